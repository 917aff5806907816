"""A measure of ranked classes as a statistic of two columns of an evidence table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import FloatArray, RankStatistic, Weighted

Measure = Callable[[FloatArray, npt.NDArray[np.bool_]], Weighted]


def of_two_columns(measure: Measure, score: str, positive: str) -> RankStatistic:
    """Evaluate a measure of (scores, positive) where both columns are known."""

    def columns(evidence: pl.DataFrame) -> FloatArray:
        # +1 and -1, so that a row of zeros is never a row that counts.
        scores = evidence[score].cast(pl.Float64).to_numpy()
        return np.column_stack([scores, evidence[positive].cast(pl.Float64).to_numpy() * 2 - 1])

    def of(rows: FloatArray) -> Weighted:
        known = np.flatnonzero(~np.isnan(rows).any(axis=1))
        value = measure(rows[known, 0], rows[known, 1] > 0)
        if len(known) == len(rows):
            return value
        return lambda weights, at: value(weights, known if at is None else at[known])

    return RankStatistic(columns, of, two_classes=1)
