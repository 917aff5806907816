"""The compiled loop of ``precision_recall``; imported only by the function that runs it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, types

from isolux.stats.statistic import FloatArray

__all__ = ["average_precision_of_replicates"]

_I = types.Array(types.int64, 1, "A", readonly=True)
_U = types.Array(types.uint16, 1, "A", readonly=True)
_F = types.Array(types.float64, 1, "A", readonly=True)
_M = types.Array(types.float64, 2, "C", readonly=True)

_Ints = npt.NDArray[np.int64]
_Bits = npt.NDArray[np.uint16]


@njit(cache=True, nogil=True)
def _forward(
    first: int,
    last: int,
    cluster: _Ints,
    right: _Bits,
    wrong: _Bits,
    bit: int,
    weight: FloatArray,
    people: float,
    recall: FloatArray,
    precision: FloatArray,
) -> int:
    """Fill recall and precision after each detection that counts; return how many do."""
    n = 0
    true, false = 0.0, 0.0
    for i in range(first, last):
        hit, miss = (right[i] >> bit) & 1, (wrong[i] >> bit) & 1
        w = weight[cluster[i]]
        if w == 0.0 or (hit | miss) == 0:
            continue
        true += w * hit
        false += w * miss
        recall[n] = true / people
        precision[n] = true / (true + false)
        n += 1
    return n


@njit(cache=True, nogil=True)
def _sampled(n: int, recall: FloatArray, precision: FloatArray, points: FloatArray) -> float:
    """Sum the highest precision at or beyond each recall point; 0 where it is not reached."""
    at = len(points) - 1
    best, total = 0.0, 0.0
    for i in range(n - 1, -1, -1):
        best = max(best, precision[i])
        while at >= 0 and points[at] > recall[i]:
            at -= 1  # beyond what is ever reached
        before = recall[i - 1] if i > 0 else -1.0
        while at >= 0 and points[at] > before:
            total += best
            at -= 1
    return total


@njit((_I, _U, _U, _I, _I, _M, _M, _F), cache=True, nogil=True)
def average_precision_of_replicates(
    cluster: _Ints,
    right: _Bits,
    wrong: _Bits,
    starts: _Ints,
    bits: _Ints,
    people: FloatArray,
    weights: FloatArray,
    points: FloatArray,
) -> FloatArray:
    """Average precision for each row of ``weights [r, n_clusters]``: ``[r]``.

    ``people [r, K]`` is the weight of each class's people; NaN where none has any.
    """
    longest = 0
    for k in range(len(starts) - 1):
        longest = max(longest, starts[k + 1] - starts[k])
    recall, precision = np.empty(longest), np.empty(longest)
    found = np.full(len(weights), np.nan)
    for r in range(len(weights)):
        total, n_classes = 0.0, 0
        for k in range(len(starts) - 1):
            if not people[r, k] > 0.0:
                continue
            n_classes += 1
            for bit in bits:
                n = _forward(
                    starts[k], starts[k + 1], cluster, right, wrong, bit,
                    weights[r], people[r, k], recall, precision,
                )  # fmt: skip
                total += _sampled(n, recall, precision, points)
        if n_classes:
            found[r] = total / (n_classes * len(bits) * len(points))
    return found
