"""The compiled inner loops of ``roc``, imported only where many replicates are requested.

The weights of one row's replicates lie side by side in memory, and the same addition is done to
each: the compiler makes vector instructions of it. In data without ties every weight is read once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit
from isolux.stats.statistic import FloatArray

_BLOCK = 256  # replicates at once: their running sums, three times 2 kB, stay in the fastest cache


@njit(nogil=True)
def _add_scaled_weights_in_place(
    negatives: FloatArray, fraction: float, weights: FloatArray
) -> None:
    for b in range(len(negatives)):
        negatives[b] += fraction * weights[b]


@njit(nogil=True)
def _add_positives_and_pairs_won(
    positives: FloatArray, won: FloatArray, negatives: FloatArray, weights: FloatArray
) -> None:
    for b in range(len(won)):
        positives[b] += weights[b]
        won[b] += weights[b] * negatives[b]


@njit(nogil=True)
def roc_auc_by_replicate(
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
        negatives = np.zeros(last - first)  # negatives passed; of the level at hand, half of them
        positives = np.zeros(last - first)
        won = np.zeros(last - first)  # pairs in the right order, ties half
        for level in range(len(middles)):
            start, middle, end = starts[level], middles[level], starts[level + 1]
            tied = start < middle < end
            # Negatives of a level count half for its positives and fully for later ones: half is
            # added before, half after.
            fraction = 0.5 if tied else 1.0
            for i in range(start, middle):
                _add_scaled_weights_in_place(negatives, fraction, weights[order[i], first:last])
            for i in range(middle, end):
                _add_positives_and_pairs_won(
                    positives, won, negatives, weights[order[i], first:last]
                )
            if tied:
                for i in range(start, middle):
                    _add_scaled_weights_in_place(negatives, fraction, weights[order[i], first:last])
        for b in range(last - first):
            pairs = positives[b] * negatives[b]
            area[first + b] = won[b] / pairs if pairs > 0.0 else np.nan
    return area


@njit(nogil=True)
def average_precision_by_replicate(
    order: npt.NDArray[np.intp],
    level_ends: npt.NDArray[np.intp],
    is_positive: npt.NDArray[np.bool_],
    weights: FloatArray,
) -> FloatArray:
    """Weighted average precision for each column of ``weights [m, r]``: ``[r]``."""
    replicates = weights.shape[1]
    precision = np.empty(replicates)
    for first in range(0, replicates, _BLOCK):
        last = min(first + _BLOCK, replicates)
        positive_weight, all_weight = np.zeros(last - first), np.zeros(last - first)
        previous_positive, total = np.zeros(last - first), np.zeros(last - first)
        start = 0
        for end in level_ends:
            for i in range(start, end):
                _add_scaled_weights_in_place(all_weight, 1.0, weights[order[i], first:last])
                if is_positive[i]:
                    _add_scaled_weights_in_place(
                        positive_weight, 1.0, weights[order[i], first:last]
                    )
            for b in range(last - first):
                if positive_weight[b] > previous_positive[b]:
                    total[b] += (
                        (positive_weight[b] - previous_positive[b])
                        * positive_weight[b]
                        / all_weight[b]
                    )
                    previous_positive[b] = positive_weight[b]
            start = end
        for b in range(last - first):
            precision[first + b] = (
                total[b] / positive_weight[b] if positive_weight[b] > 0.0 else np.nan
            )
    return precision
