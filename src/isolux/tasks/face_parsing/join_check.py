"""Check that part masks fit their own faces better than other faces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from isolux.core.errors import IsoluxError
from isolux.core.notes import Caution
from isolux.stats.statistic import FloatArray
from isolux.tasks.face_parsing.faces import PartAnnotations, count_pixels
from isolux.tasks.face_parsing.part_names import PartVocabulary

Files = list[tuple[str, str, int]]
# Faces that are compared, and the fewest from which anything can be concluded.
_MAX_FACES = 30
_MIN_FACES = 10
# Masks fit their own faces if F1 exceeds that of other faces by this much, and by this many
# standard errors.
_MIN_EXCESS = 0.01
_MIN_Z = 3.0
# A caution from this share of faces without any mask.
_CAUTION_EMPTY_SHARE = 0.25


def check_face_match(
    truth: PartAnnotations,
    model: str,
    model_files: Mapping[int, Files],
    vocabulary: PartVocabulary,
    selected_parts: Mapping[int, str],
) -> list[Caution]:
    """Caution where a model's masks fit other faces as well as their own."""
    is_annotated = truth.rows.select(
        pl.col("reason").is_null() & pl.col(truth.column).is_not_null()
    ).to_series()
    scored_rows = [row for row in range(truth.rows.height) if is_annotated[row]]
    rows = [row for row in scored_rows if model_files.get(row)]
    notes = _caution_on_empty(model, len(scored_rows), len(scored_rows) - len(rows))
    # Few faces are enough: masks of the right faces fit far better than others.
    rows = rows[:_MAX_FACES]
    if len(rows) < _MIN_FACES:
        return notes
    sample = replace(truth, rows=truth.rows[rows])

    def f1_with_shift(shift: int) -> FloatArray:
        # Cyclic, so that every face gets another face's masks.
        shifted_files = {k: model_files[rows[(k + shift) % len(rows)]] for k in range(len(rows))}
        try:
            counts = count_pixels(sample, {model: shifted_files}, vocabulary, last_wins=False)[
                model
            ]
        except IsoluxError:
            return np.zeros(len(rows))  # masks of faces of unequal sizes cannot be exchanged
        part_indices = list(selected_parts)
        area_sum = (counts.truth_px[:, part_indices] + counts.predicted_px[:, part_indices]).sum(
            axis=1
        )
        # Pixels of all parts are summed, because F1 of one small part is too noisy.
        common = 2.0 * counts.common_px[:, part_indices].sum(axis=1)
        f1: FloatArray = np.divide(
            common, area_sum, out=np.zeros(len(area_sum)), where=area_sum > 0
        )
        return f1

    own_f1 = f1_with_shift(0)
    # Two shifts: neighbours in a file may be images of one person.
    other_f1 = max(
        (f1_with_shift(1), f1_with_shift(len(rows) // 2)), key=lambda f1: float(f1.mean())
    )
    excess = own_f1 - other_f1
    # A paired comparison: faces differ far more among themselves than own and other masks do.
    excess_se = float(excess.std(ddof=1)) / len(rows) ** 0.5
    if float(excess.mean()) > max(_MIN_EXCESS, _MIN_Z * excess_se):
        return notes
    return [
        *notes,
        Caution(
            f"The masks of {model!r} cover the faces they are given for no better than other faces"
            f" (F1 of all parts together {own_f1.mean():.2f} and {other_f1.mean():.2f}). Are they"
            " of these faces?"
        ),
    ]


def _caution_on_empty(model: str, n_scored: int, n_empty: int) -> list[Caution]:
    text = (
        f"{n_empty:,} of {n_scored:,} faces have no mask of {model!r} at all and score 0. Is the"
        " folder whole?"
    )
    return (
        [Caution(text)]
        if n_scored >= _MIN_FACES and n_empty >= _CAUTION_EMPTY_SHARE * n_scored
        else []
    )
