"""Compiled loops of ``numeric_statistics``, imported only by the functions that run them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


@njit(nogil=True)
def weighted_quantile_by_replicate(
    sorted_values: _Floats, weights: _Floats, quantile_level: float
) -> _Floats:
    """Weighted quantile (type 7) of ascending values: ``weights [m, r]`` to ``[r]``."""
    m, replicates = weights.shape
    out = np.full(replicates, np.nan)
    for r in range(replicates):
        total = 0.0
        for i in range(m):
            total += weights[i, r]
        if total <= 0.0:
            continue
        # Type 7 (numpy's default): position (n - 1) q among n weighted values.
        position = max(total - 1.0, 0.0) * quantile_level
        lower_position = math.floor(position)
        fraction = position - lower_position
        cumulative, lower_value = 0.0, np.nan
        for i in range(m):
            if weights[i, r] <= 0.0:
                continue
            cumulative += weights[i, r]
            if math.isnan(lower_value) and cumulative > lower_position:
                lower_value = sorted_values[i]
                out[r] = lower_value
            if not math.isnan(lower_value) and (
                fraction == 0.0 or cumulative > lower_position + 1.0
            ):
                out[r] = (
                    lower_value + fraction * (sorted_values[i] - lower_value)
                    if fraction > 0.0
                    else lower_value
                )
                break
    return out


@njit(nogil=True)
def _fill_weighted_mid_ranks(level: _Ints, n_levels: int, weights: _Floats, ranks: _Floats) -> None:
    """Write each row's weighted mid-rank into ``ranks``."""
    level_weights = np.zeros(n_levels)
    for i in range(len(level)):
        level_weights[level[i]] += weights[i]
    weight_below = 0.0
    for k in range(n_levels):
        level_weight = level_weights[k]
        # Ranks b + 1 to b + w have the mean b + (w + 1) / 2.
        level_weights[k] = weight_below + (level_weight + 1.0) / 2.0
        weight_below += level_weight
    for i in range(len(level)):
        ranks[i] = level_weights[level[i]]


@njit(nogil=True)
def weighted_spearman_by_replicate(
    level_x: _Ints, level_y: _Ints, n_levels: _Ints, weights: _Floats
) -> _Floats:
    """Correlate mid-ranks of two variables (levels from 0, ``n_levels`` of each): ``[r]``."""
    m, replicates = weights.shape
    out = np.full(replicates, np.nan)
    rank_x, rank_y = np.empty(m), np.empty(m)
    for r in range(replicates):
        row_weights = weights[:, r].copy()
        total = row_weights.sum()
        if total < 2.0:
            continue
        _fill_weighted_mid_ranks(level_x, n_levels[0], row_weights, rank_x)
        _fill_weighted_mid_ranks(level_y, n_levels[1], row_weights, rank_y)
        # Mid-ranks keep the mean rank, so it is the same with ties.
        middle = (total + 1.0) / 2.0
        xy, xx, yy = 0.0, 0.0, 0.0
        for i in range(m):
            a, b = rank_x[i] - middle, rank_y[i] - middle
            xy += row_weights[i] * a * b
            xx += row_weights[i] * a * a
            yy += row_weights[i] * b * b
        if xx > 0.0 and yy > 0.0:
            out[r] = xy / math.sqrt(xx * yy)
    return out
