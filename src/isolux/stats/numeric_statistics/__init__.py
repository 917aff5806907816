"""Statistics of one number a unit: quantiles, rank correlation, root mean square.

They are functions of rows and weights: a row with weight 2 counts as two rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import (
    FloatArray,
    RankStatistic,
    SumStatistic,
    WeightedValue,
    evaluate_at_weights,
    exclude_rows_with_missing_values,
    ratio_of_first_two_sums,
)


def _build_weighted_quantile(numbers: FloatArray, quantile_level: float) -> WeightedValue:
    order = np.argsort(numbers, kind="stable")
    rising = np.ascontiguousarray(numbers[order])

    def evaluate(weights: FloatArray, weight_rows: npt.NDArray[np.int64] | None) -> FloatArray:
        from isolux.stats.numeric_statistics.quantile_kernels import weighted_quantile_by_replicate

        sorted_weights = np.ascontiguousarray(
            weights[order if weight_rows is None else weight_rows[order]]
        )
        return np.asarray(weighted_quantile_by_replicate(rising, sorted_weights, quantile_level))

    return evaluate


def quantile_statistic(quantile_level: float, column: str = "value") -> RankStatistic:
    """Make a quantile a statistic of one column of an evidence table; null rows are excluded."""
    return RankStatistic(
        lambda evidence: _columns_to_floats(evidence, column),
        exclude_rows_with_missing_values(
            lambda rows: _build_weighted_quantile(rows[:, 0], quantile_level)
        ),
        quantile_level=quantile_level,
    )


def _columns_to_floats(evidence: pl.DataFrame, *columns: str) -> FloatArray:
    return evidence.select(pl.col(columns).cast(pl.Float64)).to_numpy()


def weighted_spearman(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Spearman's rank correlation for every column of ``weights``, ties at their mid-rank.

    Shapes: ``x, y`` [m], ``weights`` [m, r]; returns [r].
    Spearman (1904), "The proof and measurement of association between two things", American Journal
    of Psychology 15:72-101.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 3.0, 9.0])
    >>> float(weighted_spearman(x, x**2, np.ones(4))), float(weighted_spearman(x, -x, np.ones(4)))
    (1.0, -1.0)
    """
    return evaluate_at_weights(_build_weighted_spearman(x, y), weights)


def _build_weighted_spearman(x: FloatArray, y: FloatArray) -> WeightedValue:
    # Only weights differ between replicates, so values are sorted into levels once.
    levels = [np.unique(v, return_inverse=True) for v in (x, y)]
    sizes = np.array([len(values) for values, _ in levels], dtype=np.int64)
    first, second = (code.astype(np.int64) for _, code in levels)

    def evaluate(weights: FloatArray, weight_rows: npt.NDArray[np.int64] | None) -> FloatArray:
        from isolux.stats.numeric_statistics.quantile_kernels import weighted_spearman_by_replicate

        row_weights = np.ascontiguousarray(weights if weight_rows is None else weights[weight_rows])
        return np.asarray(weighted_spearman_by_replicate(first, second, sizes, row_weights))

    return evaluate


def spearman_statistic(first_column: str, second_column: str) -> RankStatistic:
    """Make Spearman's correlation a statistic of two columns of an evidence table.

    Examples
    --------
    >>> evidence = pl.DataFrame({"a": [1.0, 2.0, None], "b": [5.0, 7.0, 1.0]})
    >>> float(spearman_statistic("a", "b")(evidence, np.ones(3)))
    1.0
    """
    return RankStatistic(
        lambda evidence: _columns_to_floats(evidence, first_column, second_column),
        exclude_rows_with_missing_values(
            lambda rows: _build_weighted_spearman(rows[:, 0], rows[:, 1])
        ),
        is_correlation=True,
    )


_MIN_RELATIVE_VARIANCE = 1e-12
"""A variance below this share of the mean square is rounding: the numbers are all equal."""


def pearson_statistic(first_column: str, second_column: str) -> SumStatistic:
    """Make Pearson's correlation a statistic of two columns; rows without both are excluded.

    Pearson (1895), "Notes on regression and inheritance in the case of two parents", Proceedings of
    the Royal Society of London 58:240-242.

    Examples
    --------
    >>> evidence = pl.DataFrame({"a": [1.0, 2.0, 3.0, None], "b": [5.0, 6.0, 10.0, 1.0]})
    >>> float(pearson_statistic("a", "b")(evidence, np.ones(4)).round(4))
    0.9449
    """

    def moment_columns(evidence: pl.DataFrame) -> FloatArray:
        rows = _columns_to_floats(evidence, first_column, second_column)
        is_complete = ~np.isnan(rows).any(axis=1)
        columns = np.zeros((len(rows), 6))
        if is_complete.any():
            numbers = rows[is_complete]
            # Centred and scaled, which moves no correlation: sums of squares keep their digits.
            numbers = numbers - numbers.mean(axis=0)
            scale = np.abs(numbers).max(axis=0)
            x, y = (numbers / np.where(scale > 0, scale, 1.0)).T
            columns[is_complete] = np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y])
        return columns

    return SumStatistic(moment_columns, _correlation_from_sums, is_correlation=True)


def _correlation_from_sums(sums: FloatArray) -> FloatArray:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    variances = n * xx - x**2, n * yy - y**2
    varies = (variances[0] > _MIN_RELATIVE_VARIANCE * n * xx) & (
        variances[1] > _MIN_RELATIVE_VARIANCE * n * yy
    )
    correlation: FloatArray = np.full(np.shape(n), np.nan)
    scale = np.sqrt(np.where(varies, variances[0] * variances[1], 1.0))
    np.divide(n * xy - x * y, scale, out=correlation, where=varies)
    return np.clip(correlation, -1.0, 1.0)


def root_mean_square_statistic(column: str) -> SumStatistic:
    """Make the root of the mean square a statistic of one column of an evidence table."""

    def squares_and_ones(evidence: pl.DataFrame) -> FloatArray:
        numbers = evidence[column].cast(pl.Float64).to_numpy()
        is_known = ~np.isnan(numbers)
        return np.column_stack([np.where(is_known, numbers, 0.0) ** 2, is_known.astype(np.float64)])

    def rms_from_sums(sums: FloatArray) -> FloatArray:
        return np.sqrt(ratio_of_first_two_sums(sums))

    # The interval is that of the mean square (groups/interval_methods/root_mean_square.py).
    return SumStatistic(squares_and_ones, rms_from_sums, is_root_mean=True)
