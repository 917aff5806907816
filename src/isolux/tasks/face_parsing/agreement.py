"""Whether part masks cover the faces that they are given for better than other faces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.tasks.face_parsing.faces import Truth, count_pixels
from isolux.tasks.face_parsing.part_names import Vocabulary
from isolux.vocabulary.errors import IsoluxError
from isolux.vocabulary.notes import Caution

Files = list[tuple[str, str, int]]
_FACES, _FEWEST = 30, 10  # faces that are looked at again, and below which nothing can be told
_ROOM, _CHANCE = 0.01, 3.0  # more F1 than chance explains: so much, and so many standard errors
_EMPTY = 0.25


def other_faces(
    truth: Truth,
    model: str,
    drawn: Mapping[int, Files],
    words: Vocabulary,
    parts: Mapping[int, str],
) -> list[Caution]:
    """Caution where a model's masks cover the faces of others as well as their own."""
    known = truth.rows.select(
        pl.col("reason").is_null() & pl.col(truth.column).is_not_null()
    ).to_series()
    judged = [row for row in range(truth.rows.height) if known[row]]
    rows = [row for row in judged if drawn.get(row)]
    notes = _on_empty(model, len(judged), len(judged) - len(rows))
    rows = rows[:_FACES]
    if len(rows) < _FEWEST:
        return notes
    part = replace(truth, rows=truth.rows[rows])

    def covered(by: int) -> FloatArray:
        moved = {k: drawn[rows[(k + by) % len(rows)]] for k in range(len(rows))}
        try:
            counts = count_pixels(part, {model: moved}, words, last_wins=False)[model]
        except IsoluxError:
            return np.zeros(len(rows))  # masks of faces of unequal sizes cannot be exchanged
        at = list(parts)
        both = (counts.truth[:, at] + counts.drawn[:, at]).sum(axis=1)
        common = 2.0 * counts.common[:, at].sum(axis=1)
        f1: FloatArray = np.divide(common, both, out=np.zeros(len(both)), where=both > 0)
        return f1

    own = covered(0)
    others = max((covered(1), covered(len(rows) // 2)), key=lambda f1: float(f1.mean()))
    more = own - others
    error = float(more.std(ddof=1)) / len(rows) ** 0.5
    if float(more.mean()) > max(_ROOM, _CHANCE * error):
        return notes
    return [
        *notes,
        Caution(
            f"The masks of {model!r} cover the faces they are given for no better than other faces"
            f" (F1 of all parts together {own.mean():.2f} and {others.mean():.2f}). Are they of"
            " these faces?"
        ),
    ]


def _on_empty(model: str, judged: int, empty: int) -> list[Caution]:
    text = (
        f"{empty:,} of {judged:,} faces have no mask of {model!r} at all and score 0. Is the folder"
        " whole?"
    )
    return [Caution(text)] if judged >= _FEWEST and empty >= _EMPTY * judged else []
