"""Units that are judged alike are one row of the columns that a design sums.

A million people who were each right or wrong on ten metrics are a few dozen kinds of people. Kinds
are told column by column, so a column of every person's own values is never laid out for them; a
column that takes many values (a mean of precisions) is, and then everyone has a row.

Scores that lie far from 0 and close together: what is taken from them before they are summed.

A float64 has 16 digits, and a square of seconds since 1970 uses up all of them.
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

_FEW_VALUES = 64  # of a column, for units to be told apart by them
_FEW_COLUMNS = 64  # of a block
_FEW_KINDS = 1024


class AlikeRows:
    """Collects columns, a block at a time, and tells units apart by what they hold so far.

    Column 0 counts units.
    """

    def __init__(self, n_units: int) -> None:
        self.n_units = n_units
        self.width = 1
        self.kind_of = np.zeros(n_units, dtype=np.int64)
        self.columns: dict[int, FloatArray] = {0: np.ones(min(n_units, 1))}
        self.loose: list[tuple[IntArray, IntArray, FloatArray]] = []

    def add(self, units: IntArray, block: FloatArray) -> int:
        """Add columns ``block [n, k]`` of these units; return the first one's number."""
        start = self.width
        self.width += block.shape[1]
        once = block.shape[1] <= _FEW_COLUMNS and bool(
            (np.diff(units) > 0).all() or np.bincount(units, minlength=self.n_units).max() <= 1
        )
        for k in range(block.shape[1]):
            if not (once and self._told(units, block[:, k], start + k)):
                row = np.flatnonzero(block[:, k])
                column = np.full(len(row), start + k)
                self.loose.append((units[row], column, block[row, k]))
        return start

    def _told(self, units: IntArray, column: FloatArray, number: int) -> bool:
        """Tell kinds apart by one more column; false where it holds too many values."""
        coded = _coded(column)
        if coded is None:
            return False
        values, code = coded
        of_unit = np.zeros(self.n_units, dtype=np.int64)
        of_unit[units] = code
        of_unit += self.kind_of * len(values)
        n_kinds = len(self.columns[0])
        held = np.flatnonzero(np.bincount(of_unit, minlength=n_kinds * len(values)))
        if len(held) > max(_FEW_KINDS, self.n_units // 4):
            return False
        renumbered = np.empty(n_kinds * len(values), dtype=np.int64)
        renumbered[held] = np.arange(len(held))
        self.kind_of = renumbered[of_unit]
        before = held // len(values)
        self.columns = {k: own[before] for k, own in self.columns.items()}
        self.columns[number] = values[held % len(values)]
        return True

    def matrix(self) -> tuple[csr_array, IntArray]:
        """Return the columns ``[n_rows, width]`` and each unit's row of them."""
        from scipy.sparse import coo_array, csr_array

        shape = (len(self.columns[0]), self.width)
        held = {number: np.flatnonzero(own) for number, own in self.columns.items()}
        rows = np.concatenate([*held.values()])
        cols = np.repeat([*held], [len(own) for own in held.values()])
        data = np.concatenate([self.columns[number][own] for number, own in held.items()])
        kinds = csr_array(coo_array((data, (rows, cols)), shape=shape))
        if not self.loose:
            return kinds, self.kind_of
        unit, col, own_data = (np.concatenate(part) for part in zip(*self.loose, strict=True))
        own = coo_array((own_data, (unit, col)), shape=(self.n_units, self.width))
        return csr_array(kinds[self.kind_of] + csr_array(own)), np.arange(self.n_units)


def _coded(column: FloatArray) -> tuple[FloatArray, IntArray] | None:
    """Return the values that a column takes, 0 the first, and which each cell is; None: many."""
    right = column == 1.0
    if (right | (column == 0.0)).all():
        return np.array([0.0, 1.0]), right.astype(np.int64)
    values = pl.Series(column).unique().to_numpy()
    if len(values) > _FEW_VALUES or np.isnan(values).any():
        return None
    values = np.unique(np.append(values, 0.0))
    code = np.searchsorted(values, column)
    zero = int(np.searchsorted(values, 0.0))  # whoever has no row adds nothing: code 0
    order = np.append(zero, np.delete(np.arange(len(values)), zero))
    place = np.empty(len(values), dtype=np.int64)
    place[order] = np.arange(len(values))
    return values[order], place[code]


_FAR = 300.0
"""Times the range of values that they lie from 0, beyond which they are summed about a centre."""
_ALIKE = 1e12
"""Times the range of values that they lie from 0, beyond which they differ by rounding alone."""


def about_centres(scores: Scores) -> tuple[pl.Series, dict[str, float]]:
    """Return the values to sum, and the centre to sum each metric's about where it is not 0."""
    rows = scores.units
    value = pl.col("value")
    held = rows.lazy().filter(value.is_finite()).group_by("metric", maintain_order=True)
    ends = held.agg(
        first=value.first(), mean=value.mean(), low=value.min(), high=value.max()
    ).collect()
    centres, alike = {}, {}
    for metric, first, mean, low, high in ends.iter_rows():
        spread, size = high - low, max(abs(low), abs(high))
        if spread == 0.0 or size <= _FAR * spread:
            continue
        if size <= _ALIKE * spread:
            centres[metric] = _rounded(mean, spread)
        else:
            alike[metric] = first
    values = rows.get_column("value")
    if alike:
        one = pl.col("metric").replace_strict(alike, default=None, return_dtype=pl.Float64)
        whole = pl.when(value.is_finite() & one.is_not_null()).then(one).otherwise(value)
        values = rows.select(whole.alias("value")).get_column("value")
    return values, centres


def _rounded(mean: float, spread: float) -> float:
    """Round a mean to about its values' spread: the order of rows must not show in its last digit.

    Examples
    --------
    >>> _rounded(1700000030.000001, 42.4), _rounded(1700000030.000002, 42.4)
    (1700000032.0, 1700000032.0)
    """
    step = 2.0 ** round(math.log2(spread))
    return round(mean / step) * step
