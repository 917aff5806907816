"""Measured numbers that are judged as classes: an age that is one year off counts as wrong."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.core.counts import TIMES, count_people
from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.plausibility._audit_inputs import AuditInputs
from isolux.stats.numeric_statistics import weighted_spearman

_MIN_CLASSES, _MAX_CLASSES = 20, 130
# Digits and age brackets are fewer; lists of classes that are sorted by kind, whose numbers are
# mistaken for their neighbours', are longer.
_MIN_WRONG = 30
_MIN_CORRELATION = 0.8
# Numbers that name classes are guessed wrongly without order.

INFO = PlausibilityInfo(
    title="Numbers as classes",
    summary="How near wrong answers are to the truth, where both are numbers.",
    rule=f"Warns where the truth has {_MIN_CLASSES} to {_MAX_CLASSES} different numbers, and "
    f"{_MIN_WRONG} wrong answers or more follow it (rank correlation {_MIN_CORRELATION}).",
    tasks=("classification",),
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution where wrong answers are numbers near the true one."""
    evidence = inputs.scores.evidence.get("classification")
    if evidence is None:
        return []
    numbers = (
        inputs.add_people_counts(evidence)
        .select(
            "model",
            TIMES,
            truth=pl.col("truth").list.first().cast(pl.Float64, strict=False),
            answer=pl.col("prediction").cast(pl.Float64, strict=False),
        )
        .drop_nulls()
    )
    cautions: list[Caution] = []
    for (model,), people in numbers.group_by(["model"], maintain_order=True):
        n_classes = people["truth"].n_unique()
        mistakes = people.filter(pl.col("truth") != pl.col("answer"))
        if not _MIN_CLASSES <= n_classes <= _MAX_CLASSES or count_people(mistakes) < _MIN_WRONG:
            continue
        truth, answers = mistakes["truth"].to_numpy(), mistakes["answer"].to_numpy()
        weights = mistakes[TIMES].to_numpy().astype(np.float64)
        correlation = float(weighted_spearman(truth, answers, weights))
        if correlation >= _MIN_CORRELATION:
            cautions.append(
                Caution(
                    f"Truth and answers of {model!r} are {n_classes:,} different numbers."
                    f" Wrong answers are near the truth (rank correlation {correlation:.2f}), but"
                    " as classes they count as wrong. --task regression measures how far off they"
                    " are (ages in years: --task age_estimation)."
                )
            )
    return cautions
