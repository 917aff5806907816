"""The compiled loops of ``tradeoffs``; imported only by the functions that run them.

Rows are by descending score; row i is in the groups ``group[start[i]:start[i + 1]]``, the first of
which is overall (0), and has the weight of its cluster. Every loop is one pass a replicate.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_Bools = npt.NDArray[np.bool_]
_RELATIVE_TOLERANCE = 1e-9


@njit(nogil=True)
def _add_group_weights_by_mark(
    weight: _Floats, cluster: _Ints, is_marked: _Bools, start: _Ints, group: _Ints, totals: _Floats
) -> None:
    """Sum each group's weights, unmarked and marked rows apart: ``totals [2, g]``."""
    totals[:] = 0.0
    for i in range(len(cluster)):
        w, mark = weight[cluster[i]], np.int64(is_marked[i])
        for m in range(start[i], start[i + 1]):
            totals[mark, group[m]] += w


@njit(nogil=True)
def sum_weights_within_coverages(
    weights: _Floats,
    cluster: _Ints,
    score: _Floats,
    is_wrong: _Bools,
    start: _Ints,
    group: _Ints,
    coverages: _Floats,
    kept_weights: _Floats,
) -> None:
    """Accumulate the most confident up to each overall coverage, ties with the last included."""
    n, k, g = len(cluster), len(coverages), kept_weights.shape[2]
    total, running = np.zeros((2, g)), np.zeros((2, g))
    for j in range(weights.shape[0]):
        weight = weights[j]
        _add_group_weights_by_mark(weight, cluster, is_wrong, start, group, total)
        overall_total = total[0, 0] + total[1, 0]
        running[:] = 0.0
        level = 0
        for i in range(n):
            w, mark = weight[cluster[i]], np.int64(is_wrong[i])
            for m in range(start[i], start[i + 1]):
                running[mark, group[m]] += w
            if i + 1 < n and score[i + 1] == score[i]:
                continue
            running_total = (running[0, 0] + running[1, 0]) * (1.0 + _RELATIVE_TOLERANCE)
            while level < k and running_total >= coverages[level] * overall_total:
                kept_weights[:, level, :, j] = running
                level += 1


@njit(nogil=True)
def _find_thresholds_at_target_weights(
    weight: _Floats,
    cluster: _Ints,
    score: _Floats,
    is_positive: _Bools,
    start: _Ints,
    group: _Ints,
    target_weights: _Floats,
    threshold: _Floats,
) -> None:
    """Find each group's score at which the weight of its positives reaches its target ``[g]``."""
    running = np.zeros(len(target_weights))
    for i in range(len(score)):
        w = weight[cluster[i]]
        if not is_positive[i] or w <= 0:
            continue
        for m in range(start[i], start[i + 1]):
            q = group[m]
            running[q] += w
            if (
                np.isnan(threshold[q])
                and running[q] * (1.0 + _RELATIVE_TOLERANCE) >= target_weights[q]
            ):
                threshold[q] = score[i]


@njit(nogil=True)
def _sum_negatives_above(
    weight: _Floats,
    cluster: _Ints,
    score: _Floats,
    is_positive: _Bools,
    start: _Ints,
    group: _Ints,
    threshold: _Floats,
    weight_above: _Floats,
) -> None:
    """Sum each group's weight of negatives at or above its own threshold."""
    weight_above[:] = 0.0
    for i in range(len(score)):
        if is_positive[i]:
            continue
        for m in range(start[i], start[i + 1]):
            if score[i] >= threshold[group[m]]:
                weight_above[group[m]] += weight[cluster[i]]


@njit(nogil=True)
def find_equal_tpr_thresholds(
    weights: _Floats,
    cluster: _Ints,
    score: _Floats,
    is_positive: _Bools,
    start: _Ints,
    group: _Ints,
    operating: float,
    rate: _Floats,
    threshold: _Floats,
    false_rates: _Floats,
) -> None:
    """Find each group's highest threshold with at least the overall true positive rate."""
    g = threshold.shape[0]
    total = np.zeros((2, g))
    above_totals = np.zeros((2, g))
    group_thresholds = np.zeros(g)
    negatives_above = np.zeros(g)
    n_above = 0
    while n_above < len(score) and score[n_above] >= operating:
        n_above += 1
    for j in range(weights.shape[0]):
        weight = weights[j]
        _add_group_weights_by_mark(weight, cluster, is_positive, start, group, total)
        _add_group_weights_by_mark(
            weight, cluster[:n_above], is_positive, start, group, above_totals
        )
        rate[:, :, j] = np.where(total > 0, above_totals / np.where(total > 0, total, 1.0), np.nan)
        group_thresholds[:] = np.nan
        if rate[1, 0, j] > 0:
            target_weights = rate[1, 0, j] * total[1]
            _find_thresholds_at_target_weights(
                weight, cluster, score, is_positive, start, group, target_weights, group_thresholds
            )
        _sum_negatives_above(
            weight, cluster, score, is_positive, start, group, group_thresholds, negatives_above
        )
        is_defined = (total[0] > 0) & ~np.isnan(group_thresholds)
        threshold[:, j] = group_thresholds
        false_rates[:, j] = np.where(
            is_defined, negatives_above / np.where(total[0] > 0, total[0], 1.0), np.nan
        )
