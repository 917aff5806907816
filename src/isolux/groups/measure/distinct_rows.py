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

from isolux.core.containers import Scores
from isolux.stats.statistic import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_MAX_DISTINCT_VALUES = 64  # of a column that distinguishes types
_MAX_BLOCK_COLUMNS = 64  # of a block
_MIN_MAX_TYPES = 1024


class DistinctRows:
    """Collects columns in blocks, and groups units into types with equal values so far.

    Types are a tree: a column splits off, from a type, those of its units that are not 0 in it.
    A type's values are thus its own and those of its ancestors, and a column costs what it has
    other than 0: a column for each of thousands of classes is as cheap as one column of all.
    Column 0 counts units.
    """

    def __init__(self, n_units: int) -> None:
        self.n_units = n_units
        self.width = 1
        self.type_index = np.zeros(n_units, dtype=np.int64)
        self.n_units_of_type = [n_units] * min(n_units, 1)
        self.n_occurring = len(self.n_units_of_type)
        self.parent = [-1] * self.n_occurring
        self.column_of_type = [0] * self.n_occurring
        self.code_of_type = [0] * self.n_occurring
        self.value_of_type = [1.0] * self.n_occurring
        self.individual_columns: list[tuple[IntArray, IntArray, FloatArray]] = []

    def add(self, units: IntArray, block: FloatArray) -> int:
        """Add columns ``block [n, k]`` of these units; return the number of the first one."""
        start = self.width
        self.width += block.shape[1]
        # A type has one value in each column, so no unit may be in a column twice.
        has_each_unit_once = block.shape[1] <= _MAX_BLOCK_COLUMNS and bool(
            (np.diff(units) > 0).all() or len(np.unique(units)) == len(units)
        )
        for k in range(block.shape[1]):
            if not (
                has_each_unit_once and self._split_types_by_column(units, block[:, k], start + k)
            ):
                nonzero_rows = np.flatnonzero(block[:, k])
                column = np.full(len(nonzero_rows), start + k)
                self.individual_columns.append(
                    (units[nonzero_rows], column, block[nonzero_rows, k])
                )
        return start

    def add_sparse(self, units: IntArray, block: csr_array) -> int:
        """Add sparse columns ``block [n, k]`` of these units; return the first one's number."""
        if block.shape[1] <= _MAX_BLOCK_COLUMNS:
            return self.add(units, block.toarray())
        start = self.width
        self.width += block.shape[1]
        entries = block.tocoo()
        self.individual_columns.append((units[entries.row], start + entries.col, entries.data))
        return start

    def _split_types_by_column(self, units: IntArray, column: FloatArray, number: int) -> bool:
        """Split types by one more column; False if it has too many values."""
        encoded = _encode_if_few_values(column)
        if encoded is None:
            return False
        values, code = encoded
        is_split = code > 0
        split_units, split_code = units[is_split], code[is_split]
        key = self.type_index[split_units] * len(values) + split_code
        split_keys, new_type, counts = np.unique(key, return_inverse=True, return_counts=True)
        parents = split_keys // len(values)
        n_lost = np.bincount(np.searchsorted(np.unique(parents), parents), weights=counts)
        n_vanished = sum(
            self.n_units_of_type[parent] == n
            for parent, n in zip(np.unique(parents).tolist(), n_lost.tolist(), strict=True)
        )
        n_occurring = self.n_occurring + len(split_keys) - n_vanished
        if n_occurring > max(_MIN_MAX_TYPES, self.n_units // 4):
            return False
        self.n_occurring = n_occurring
        self.type_index[split_units] = len(self.parent) + new_type
        for parent, n in zip(parents.tolist(), counts.tolist(), strict=True):
            self.n_units_of_type[parent] -= n
        self.n_units_of_type += counts.tolist()
        self.parent += parents.tolist()
        self.column_of_type += [number] * len(split_keys)
        self.code_of_type += (split_keys % len(values)).tolist()
        self.value_of_type += values[split_keys % len(values)].tolist()
        return True

    def matrix(self) -> tuple[csr_array, IntArray]:
        """Return the columns ``[n_rows, width]`` and each unit's row of them."""
        from scipy.sparse import coo_array, csr_array

        order = self._order_types()
        parent, column = (np.array(i, dtype=np.int64) for i in (self.parent, self.column_of_type))
        type_value = np.array(self.value_of_type)
        rows, ancestors = np.arange(len(order)), order
        entries: list[tuple[FloatArray, IntArray, IntArray]] = []
        while len(ancestors):
            entries.append((type_value[ancestors], rows, column[ancestors]))
            has_parent = parent[ancestors] >= 0
            rows, ancestors = rows[has_parent], parent[ancestors[has_parent]]
        entry_values, row, col = (
            np.concatenate([e[k] for e in entries] or [np.zeros(0, dtype=np.int64)])
            for k in range(3)
        )
        type_matrix = csr_array(
            coo_array((entry_values, (row, col)), shape=(len(order), self.width))
        )
        row_of_type = np.empty(len(parent), dtype=np.int64)
        row_of_type[order] = np.arange(len(order))
        row_index = row_of_type[self.type_index]
        if not self.individual_columns:
            return type_matrix, row_index
        unit, col, own_data = (
            np.concatenate(arrays) for arrays in zip(*self.individual_columns, strict=True)
        )
        individual = coo_array((own_data, (unit, col)), shape=(self.n_units, self.width))
        return csr_array(type_matrix[row_index] + csr_array(individual)), np.arange(self.n_units)

    def _order_types(self) -> IntArray:
        """Order the types that occur by their codes, the first column's first.

        Of a type's descendants those that a later column split off come first: they are 0 in the
        earlier ones.
        """
        children: list[list[int]] = [[] for _ in self.parent]
        for child, parent in enumerate(self.parent[1:], start=1):
            children[parent].append(child)
        order, pending = [], [0] if self.parent else []
        while pending:
            node = pending.pop()
            if self.n_units_of_type[node]:
                order.append(node)
            # The last of the stack is next: the latest column, and in it the lowest code.
            pending += sorted(
                children[node], key=lambda k: (self.column_of_type[k], -self.code_of_type[k])
            )
        return np.array(order, dtype=np.int64)


def _encode_if_few_values(column: FloatArray) -> tuple[FloatArray, IntArray] | None:
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


def centre_scores(scores: Scores) -> tuple[pl.Series, dict[str, float]]:
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
            centres[metric] = _round_mean_to_range(mean, value_range)
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


def _round_mean_to_range(mean: float, value_range: float) -> float:
    """Round a mean to about its values' range, so that it does not depend on the order of rows.

    Examples
    --------
    >>> _round_mean_to_range(1700000030.000001, 42.4), _round_mean_to_range(1700000030.000002, 42.4)
    (1700000032.0, 1700000032.0)
    """
    step = 2.0 ** round(math.log2(value_range))
    return round(mean / step) * step
