"""Statistics of one number a unit: quantiles, rank correlation, root mean square.

Functions of rows and weights, as all of ours: a row that weighs 2 counts as two rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import FloatArray, RankStatistic, SumStatistic, Weighted


def quantile_of(numbers: FloatArray, weights: FloatArray, share: float) -> FloatArray:
    """Weighted quantile of every column of ``weights``.

    Shapes: ``numbers`` [m], ``weights`` [m, r]; returns [r].
    Interpolated as numpy does by default (Hyndman & Fan 1996, "Sample quantiles in statistical
    packages", The American Statistician 50:361-365, type 7), each row as often as it weighs.

    Examples
    --------
    >>> float(quantile_of(np.array([4.0, 1.0, 2.0]), np.ones(3), 0.5))
    2.0
    >>> float(quantile_of(np.array([4.0, 1.0, 2.0]), np.array([2.0, 1.0, 0.0]), 0.25))
    2.5
    """
    matrix = np.asarray(weights if weights.ndim == 2 else weights[:, None], dtype=np.float64)
    found = _quantile_of(np.asarray(numbers, dtype=np.float64), share)(matrix, None)
    return np.asarray(found if weights.ndim == 2 else found[0])


def _quantile_of(numbers: FloatArray, share: float) -> Weighted:
    order = np.argsort(numbers, kind="stable")
    rising = np.ascontiguousarray(numbers[order])

    def value(weights: FloatArray, at: npt.NDArray[np.int64] | None) -> FloatArray:
        from isolux.stats.numbers.kernels import quantiles_by_replicate

        own = np.ascontiguousarray(weights[order if at is None else at[order]])
        return np.asarray(quantiles_by_replicate(rising, own, share))

    return value


def quantile(share: float, column: str = "value") -> RankStatistic:
    """Make a quantile a statistic of one column of an evidence table; null rows are left out.

    Examples
    --------
    >>> evidence = pl.DataFrame({"value": [1.0, None, 3.0]})
    >>> float(quantile(0.5)(evidence, np.ones(3)))
    2.0
    """

    def columns(evidence: pl.DataFrame) -> FloatArray:
        return evidence.select(pl.col(column).cast(pl.Float64)).to_numpy()

    def of(rows: FloatArray) -> Weighted:
        known = np.flatnonzero(~np.isnan(rows[:, 0]))
        value = _quantile_of(rows[known, 0], share)
        return lambda weights, at: value(weights, known if at is None else at[known])

    return RankStatistic(columns, of, share=share)


def spearman_of(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Spearman's rank correlation for every column of ``weights``, ties at their mid-rank.

    Shapes: ``x, y`` [m], ``weights`` [m, r]; returns [r].
    Spearman (1904), "The proof and measurement of association between two things", American Journal
    of Psychology 15:72-101.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 3.0, 9.0])
    >>> float(spearman_of(x, x**2, np.ones(4))), float(spearman_of(x, -x, np.ones(4)))
    (1.0, -1.0)
    """
    matrix = np.asarray(weights if weights.ndim == 2 else weights[:, None], dtype=np.float64)
    found = _spearman_of(x, y)(matrix, None)
    return np.asarray(found if weights.ndim == 2 else found[0])


def _spearman_of(x: FloatArray, y: FloatArray) -> Weighted:
    levels = [np.unique(v, return_inverse=True) for v in (x, y)]
    sizes = np.array([len(values) for values, _ in levels], dtype=np.int64)
    first, second = (code.astype(np.int64) for _, code in levels)

    def value(weights: FloatArray, at: npt.NDArray[np.int64] | None) -> FloatArray:
        from isolux.stats.numbers.kernels import spearman_by_replicate

        own = np.ascontiguousarray(weights if at is None else weights[at])
        return np.asarray(spearman_by_replicate(first, second, sizes, own))

    return value


def spearman(first: str, second: str) -> RankStatistic:
    """Make Spearman's correlation a statistic of two columns of an evidence table.

    Examples
    --------
    >>> evidence = pl.DataFrame({"a": [1.0, 2.0, None], "b": [5.0, 7.0, 1.0]})
    >>> float(spearman("a", "b")(evidence, np.ones(3)))
    1.0
    """

    def columns(evidence: pl.DataFrame) -> FloatArray:
        return evidence.select(pl.col(first, second).cast(pl.Float64)).to_numpy()

    def of(rows: FloatArray) -> Weighted:
        known = np.flatnonzero(~np.isnan(rows).any(axis=1))
        value = _spearman_of(rows[known, 0], rows[known, 1])
        return lambda weights, at: value(weights, known if at is None else at[known])

    return RankStatistic(columns, of)


def root_mean_square(column: str) -> SumStatistic:
    """Make the root of the mean square a statistic of one column of an evidence table.

    Examples
    --------
    >>> float(root_mean_square("error")(pl.DataFrame({"error": [3.0, -4.0, None]}), np.ones(3)))
    3.5355339059327378
    """

    def columns(evidence: pl.DataFrame) -> FloatArray:
        value = evidence[column].cast(pl.Float64).to_numpy()
        known = ~np.isnan(value)
        return np.column_stack([np.where(known, value, 0.0) ** 2, known.astype(np.float64)])

    def of_sums(sums: FloatArray) -> FloatArray:
        top, bottom = sums[..., 0], sums[..., 1]
        return np.sqrt(np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0))

    return SumStatistic(columns, of_sums, of_squares=True)
