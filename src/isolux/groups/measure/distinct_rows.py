"""Distinct rows of the score matrix: units with equal scores share one row.

A million people who were each right or wrong on ten metrics are a few dozen types. Types are
distinguished column by column, so that a dense column of all people is not needed; with a column of
many values (a mean of precisions) every unit has its own row.

Also the centres that are subtracted from scores far from 0 with a small range before they are
summed: a float64 has 16 digits, all of which a square of seconds since 1970 uses.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.containers import Scores

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MAX_DISTINCT_VALUES = 64  # of a column that distinguishes types
_MAX_BLOCK_COLUMNS = 64  # of a block
_MIN_MAX_TYPES = 1024


class DistinctRows:
    """Collects columns in blocks, and groups units into types with equal values so far.

    Column 0 counts units.
    """

    def __init__(self, n_units: int) -> None:
        self.n_units = n_units
        self.width = 1
        self.type_index = np.zeros(n_units, dtype=np.int64)
        self.columns: dict[int, FloatArray] = {0: np.ones(min(n_units, 1))}
        self.individual_columns: list[tuple[IntArray, IntArray, FloatArray]] = []

    def add(self, units: IntArray, block: FloatArray) -> int:
        """Add columns ``block [n, k]`` of these units; return the number of the first one."""
        start = self.width
        self.width += block.shape[1]
        # A type has one value in each column, so no unit may be in a column twice.
        has_each_unit_once = block.shape[1] <= _MAX_BLOCK_COLUMNS and bool(
            (np.diff(units) > 0).all() or np.bincount(units, minlength=self.n_units).max() <= 1
        )
        for k in range(block.shape[1]):
            if not (has_each_unit_once and self._distinguish(units, block[:, k], start + k)):
                nonzero_rows = np.flatnonzero(block[:, k])
                column = np.full(len(nonzero_rows), start + k)
                self.individual_columns.append(
                    (units[nonzero_rows], column, block[nonzero_rows, k])
                )
        return start

    def _distinguish(self, units: IntArray, column: FloatArray, number: int) -> bool:
        """Split types by one more column; False if it has too many values."""
        encoded = _encode_column(column)
        if encoded is None:
            return False
        values, code = encoded
        unit_code = np.zeros(self.n_units, dtype=np.int64)
        unit_code[units] = code
        unit_code += self.type_index * len(values)
        n_types = len(self.columns[0])
        occurring = np.flatnonzero(np.bincount(unit_code, minlength=n_types * len(values)))
        # With hardly fewer types than units, splitting costs more than it saves.
        if len(occurring) > max(_MIN_MAX_TYPES, self.n_units // 4):
            return False
        renumbered = np.empty(n_types * len(values), dtype=np.int64)
        renumbered[occurring] = np.arange(len(occurring))
        self.type_index = renumbered[unit_code]
        previous_type = occurring // len(values)
        self.columns = {k: type_values[previous_type] for k, type_values in self.columns.items()}
        self.columns[number] = values[occurring % len(values)]
        return True

    def matrix(self) -> tuple[csr_array, IntArray]:
        """Return the columns ``[n_rows, width]`` and each unit's row of them."""
        from scipy.sparse import coo_array, csr_array

        shape = (len(self.columns[0]), self.width)
        nonzero_by_column = {
            number: np.flatnonzero(individual) for number, individual in self.columns.items()
        }
        rows = np.concatenate([*nonzero_by_column.values()])
        cols = np.repeat(
            [*nonzero_by_column], [len(individual) for individual in nonzero_by_column.values()]
        )
        entries = np.concatenate(
            [self.columns[number][individual] for number, individual in nonzero_by_column.items()]
        )
        type_matrix = csr_array(coo_array((entries, (rows, cols)), shape=shape))
        if not self.individual_columns:
            return type_matrix, self.type_index
        unit, col, own_data = (
            np.concatenate(arrays) for arrays in zip(*self.individual_columns, strict=True)
        )
        individual = coo_array((own_data, (unit, col)), shape=(self.n_units, self.width))
        return csr_array(type_matrix[self.type_index] + csr_array(individual)), np.arange(
            self.n_units
        )


def _encode_column(column: FloatArray) -> tuple[FloatArray, IntArray] | None:
    """Return a column's distinct values, 0 first, and each cell's code; None: too many values."""
    is_one = column == 1.0
    if (is_one | (column == 0.0)).all():
        return np.array([0.0, 1.0]), is_one.astype(np.int64)
    values = pl.Series(column).unique().to_numpy()
    if len(values) > _MAX_DISTINCT_VALUES or np.isnan(values).any():
        return None
    values = np.unique(np.append(values, 0.0))
    code = np.searchsorted(values, column)
    zero = int(np.searchsorted(values, 0.0))  # units without a row contribute 0: code 0
    order = np.append(zero, np.delete(np.arange(len(values)), zero))
    new_code = np.empty(len(values), dtype=np.int64)
    new_code[order] = np.arange(len(values))
    return values[order], new_code[code]


_MIN_CENTRED_RATIO = 300.0
"""Ratio of magnitude to range above which values are summed around a centre."""
_MAX_CENTRED_RATIO = 1e12
"""Ratio of magnitude to range above which values differ by rounding alone."""


def centre_values(scores: Scores) -> tuple[pl.Series, dict[str, float]]:
    """Return the values to sum, and the centres of metrics that are summed around one."""
    rows = scores.units
    value_column = pl.col("value")
    finite_rows = (
        rows.lazy().filter(value_column.is_finite()).group_by("metric", maintain_order=True)
    )
    value_ranges = finite_rows.agg(
        first=value_column.first(),
        mean=value_column.mean(),
        low=value_column.min(),
        high=value_column.max(),
    ).collect()
    centres, constants = {}, {}
    for metric, first, mean, low, high in value_ranges.iter_rows():
        value_range, magnitude = high - low, max(abs(low), abs(high))
        if value_range == 0.0 or magnitude <= _MIN_CENTRED_RATIO * value_range:
            continue
        if magnitude <= _MAX_CENTRED_RATIO * value_range:
            centres[metric] = _round_to_range(mean, value_range)
        else:
            constants[metric] = first
    values = rows.get_column("value")
    # Such differences are rounding: as variation, they would give an interval of pure noise.
    if constants:
        constant = pl.col("metric").replace_strict(constants, default=None, return_dtype=pl.Float64)
        rounded = (
            pl.when(value_column.is_finite() & constant.is_not_null())
            .then(constant)
            .otherwise(value_column)
        )
        values = rows.select(rounded.alias("value")).get_column("value")
    return values, centres


def _round_to_range(mean: float, value_range: float) -> float:
    """Round a mean to about its values' range, so that it does not depend on the order of rows.

    Examples
    --------
    >>> _round_to_range(1700000030.000001, 42.4), _round_to_range(1700000030.000002, 42.4)
    (1700000032.0, 1700000032.0)
    """
    step = 2.0 ** round(math.log2(value_range))
    return round(mean / step) * step
