"""The compiled inner loops of ``roc``, imported only where many replicates are asked for.

The weights of one row's replicates lie side by side in memory, and the same addition is done to
each: the compiler makes vector instructions of it. In data without ties every weight is read once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit
from isolux.stats.statistic import FloatArray

_BLOCK = 256  # replicates at once: their running sums, three times 2 kB, stay in the fastest cache


@njit(nogil=True)
def _pass_negative(below: FloatArray, share: float, weights: FloatArray) -> None:
    for b in range(len(below)):
        below[b] += share * weights[b]


@njit(nogil=True)
def _pass_positive(
    positives: FloatArray, won: FloatArray, below: FloatArray, weights: FloatArray
) -> None:
    for b in range(len(won)):
        positives[b] += weights[b]
        won[b] += weights[b] * below[b]


@njit(nogil=True)
def area_by_replicate(
    order: npt.NDArray[np.intp],
    starts: npt.NDArray[np.intp],
    middles: npt.NDArray[np.intp],
    weights: FloatArray,
) -> FloatArray:
    """Weighted area under the curve for each column of ``weights [m, r]``: ``[r]``."""
    replicates = weights.shape[1]
    area = np.empty(replicates)
    for first in range(0, replicates, _BLOCK):
        last = min(first + _BLOCK, replicates)
        below = np.zeros(last - first)  # negatives passed; of the level at hand, half of them
        positives = np.zeros(last - first)
        won = np.zeros(last - first)  # pairs in the right order, ties half
        for level in range(len(middles)):
            start, middle, end = starts[level], middles[level], starts[level + 1]
            tied = start < middle < end
            share = 0.5 if tied else 1.0
            for i in range(start, middle):
                _pass_negative(below, share, weights[order[i], first:last])
            for i in range(middle, end):
                _pass_positive(positives, won, below, weights[order[i], first:last])
            if tied:
                for i in range(start, middle):
                    _pass_negative(below, share, weights[order[i], first:last])
        for b in range(last - first):
            pairs = positives[b] * below[b]
            area[first + b] = won[b] / pairs if pairs > 0.0 else np.nan
    return area


@njit(nogil=True)
def precision_by_replicate(
    order: npt.NDArray[np.intp],
    ends: npt.NDArray[np.intp],
    positive: npt.NDArray[np.bool_],
    weights: FloatArray,
) -> FloatArray:
    """Weighted average precision for each column of ``weights [m, r]``: ``[r]``."""
    replicates = weights.shape[1]
    found = np.empty(replicates)
    for first in range(0, replicates, _BLOCK):
        last = min(first + _BLOCK, replicates)
        right, every = np.zeros(last - first), np.zeros(last - first)
        before, total = np.zeros(last - first), np.zeros(last - first)
        start = 0
        for end in ends:
            for i in range(start, end):
                _pass_negative(every, 1.0, weights[order[i], first:last])
                if positive[i]:
                    _pass_negative(right, 1.0, weights[order[i], first:last])
            for b in range(last - first):
                if right[b] > before[b]:
                    total[b] += (right[b] - before[b]) * right[b] / every[b]
                    before[b] = right[b]
            start = end
        for b in range(last - first):
            found[first + b] = total[b] / right[b] if right[b] > 0.0 else np.nan
    return found
