"""Sums over clusters of products of two groups: where a group stands in them, and everyone else's.

Shared by comparisons of people who count alike (``comparisons``) and of samples (``drawn``).
"""

from __future__ import annotations

import numpy as np

from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray

Moments = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Of pairs of groups: sums of s s', s n', n s' and n n'."""


def places(rows: IntArray, wanted: IntArray) -> IntArray:
    """Return where each wanted row is among the rows.

    Examples
    --------
    >>> places(np.array([7, 2, 5]), np.array([5, 7])).tolist()
    [2, 0]
    """
    order = np.argsort(rows, kind="stable")
    return np.asarray(order[np.searchsorted(rows, wanted, sorter=order)])


def beside_others(square: FloatArray, cross: FloatArray, count: FloatArray, i: IntArray) -> Moments:
    """Pair groups ``i`` with everyone else: the sums with everyone (row 0) minus their own."""
    return (
        square[i, 0] - square[i, i],
        cross[i, 0] - cross[i, i],
        cross[0, i] - cross[i, i],
        count[i, 0] - count[i, i],
    )
