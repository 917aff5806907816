"""The compiled loops of ``tradeoffs``; imported only by the functions that run them.

Rows come by falling score; row i is in the groups ``group[start[i]:start[i + 1]]``, the first of
which is everyone (0), and weighs what its cluster does. Every loop is one pass a replicate.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_Bools = npt.NDArray[np.bool_]
_ROUNDING = 1e-9


@njit(nogil=True)
def _totals(
    weight: _Floats, cluster: _Ints, wrong: _Bools, start: _Ints, group: _Ints, total: _Floats
) -> None:
    """Add up each group's rows of either kind: ``total [2, g]``."""
    total[:] = 0.0
    for i in range(len(cluster)):
        w, kind = weight[cluster[i]], np.int64(wrong[i])
        for m in range(start[i], start[i + 1]):
            total[kind, group[m]] += w


@njit(nogil=True)
def kept_at(
    weights: _Floats,
    cluster: _Ints,
    score: _Floats,
    wrong: _Bools,
    start: _Ints,
    group: _Ints,
    coverages: _Floats,
    kept: _Floats,
) -> None:
    """Keep the surest until everyone's coverage is reached, those that tie with the last too."""
    n, k, g = len(cluster), len(coverages), kept.shape[2]
    total, so_far = np.zeros((2, g)), np.zeros((2, g))
    for j in range(weights.shape[0]):
        weight = weights[j]
        _totals(weight, cluster, wrong, start, group, total)
        everyone = total[0, 0] + total[1, 0]
        so_far[:] = 0.0
        at = 0
        for i in range(n):
            w, kind = weight[cluster[i]], np.int64(wrong[i])
            for m in range(start[i], start[i + 1]):
                so_far[kind, group[m]] += w
            if i + 1 < n and score[i + 1] == score[i]:
                continue
            reached = (so_far[0, 0] + so_far[1, 0]) * (1.0 + _ROUNDING)
            while at < k and reached >= coverages[at] * everyone:
                kept[:, at, :, j] = so_far
                at += 1


@njit(nogil=True)
def _reach(
    weight: _Floats,
    cluster: _Ints,
    score: _Floats,
    positive: _Bools,
    start: _Ints,
    group: _Ints,
    wanted: _Floats,
    threshold: _Floats,
) -> None:
    """Find for each group the score at which its positives weigh ``wanted [g]``."""
    so_far = np.zeros(len(wanted))
    for i in range(len(score)):
        w = weight[cluster[i]]
        if not positive[i] or w <= 0:
            continue
        for m in range(start[i], start[i + 1]):
            q = group[m]
            so_far[q] += w
            if np.isnan(threshold[q]) and so_far[q] * (1.0 + _ROUNDING) >= wanted[q]:
                threshold[q] = score[i]


@njit(nogil=True)
def _beyond(
    weight: _Floats,
    cluster: _Ints,
    score: _Floats,
    positive: _Bools,
    start: _Ints,
    group: _Ints,
    threshold: _Floats,
    beyond: _Floats,
) -> None:
    """Add up each group's negatives at or above its own threshold."""
    beyond[:] = 0.0
    for i in range(len(score)):
        if positive[i]:
            continue
        for m in range(start[i], start[i + 1]):
            if score[i] >= threshold[group[m]]:
                beyond[group[m]] += weight[cluster[i]]


@njit(nogil=True)
def meeting(
    weights: _Floats,
    cluster: _Ints,
    score: _Floats,
    positive: _Bools,
    start: _Ints,
    group: _Ints,
    operating: float,
    rate: _Floats,
    threshold: _Floats,
    false: _Floats,
) -> None:
    """Find for each group the highest threshold at which its positives fare as everyone's do."""
    g = threshold.shape[0]
    total, above, own, beyond = np.zeros((2, g)), np.zeros((2, g)), np.zeros(g), np.zeros(g)
    inside = 0
    while inside < len(score) and score[inside] >= operating:
        inside += 1
    for j in range(weights.shape[0]):
        weight = weights[j]
        _totals(weight, cluster, positive, start, group, total)
        _totals(weight, cluster[:inside], positive, start, group, above)
        rate[:, :, j] = np.where(total > 0, above / np.where(total > 0, total, 1.0), np.nan)
        own[:] = np.nan
        if rate[1, 0, j] > 0:
            wanted = rate[1, 0, j] * total[1]
            _reach(weight, cluster, score, positive, start, group, wanted, own)
        _beyond(weight, cluster, score, positive, start, group, own, beyond)
        known = (total[0] > 0) & ~np.isnan(own)
        threshold[:, j] = own
        false[:, j] = np.where(known, beyond / np.where(total[0] > 0, total[0], 1.0), np.nan)
