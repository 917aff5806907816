"""A measure of ranked classes as a statistic of two columns of an evidence table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import FloatArray, RankStatistic

__all__ = ["of_two_columns"]

Measure = Callable[[FloatArray, npt.NDArray[np.bool_], FloatArray], FloatArray]


def of_two_columns(measure: Measure, score: str, positive: str) -> RankStatistic:
    """Evaluate a measure of (scores, positive, weights) where both columns are known.

    Parameters
    ----------
    measure : callable
        ``auc`` or ``mean_precision``.
    score, positive : str
        Columns of the evidence.
    """

    def columns(evidence: pl.DataFrame) -> FloatArray:
        # +1 and -1, so that a row of zeros is never a row that counts.
        scores = evidence[score].cast(pl.Float64).to_numpy()
        return np.column_stack([scores, evidence[positive].cast(pl.Float64).to_numpy() * 2 - 1])

    def evaluate(rows: FloatArray, weights: FloatArray) -> FloatArray:
        known = ~np.isnan(rows).any(axis=1)
        if not known.all():
            rows, weights = rows[known], weights[known]
        return measure(rows[:, 0], rows[:, 1] > 0, weights)

    return RankStatistic(columns, evaluate, two_classes=1)
