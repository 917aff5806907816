"""The compiled loops of ``numbers``, imported only by the functions that run them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


@njit(nogil=True)
def quantiles_by_replicate(rising: _Floats, weights: _Floats, share: float) -> _Floats:
    """Quantile of rising values, each as often as it weighs: ``weights [m, r]`` to ``[r]``."""
    m, replicates = weights.shape
    out = np.full(replicates, np.nan)
    for r in range(replicates):
        total = 0.0
        for i in range(m):
            total += weights[i, r]
        if total <= 0.0:
            continue
        place = max(total - 1.0, 0.0) * share
        low_place = math.floor(place)
        part = place - low_place
        passed, low = 0.0, np.nan
        for i in range(m):
            if weights[i, r] <= 0.0:
                continue
            passed += weights[i, r]
            if math.isnan(low) and passed > low_place:
                low = rising[i]
                out[r] = low
            if not math.isnan(low) and (part == 0.0 or passed > low_place + 1.0):
                out[r] = low + part * (rising[i] - low) if part > 0.0 else low
                break
    return out


@njit(nogil=True)
def _ranks(level: _Ints, n_levels: int, weights: _Floats, held: _Floats) -> None:
    """Write each row's mid-rank among rows that count as often as they weigh into ``held``."""
    mass = np.zeros(n_levels)
    for i in range(len(level)):
        mass[level[i]] += weights[i]
    below = 0.0
    for k in range(n_levels):
        own = mass[k]
        mass[k] = below + (own + 1.0) / 2.0
        below += own
    for i in range(len(level)):
        held[i] = mass[level[i]]


@njit(nogil=True)
def spearman_by_replicate(x: _Ints, y: _Ints, sizes: _Ints, weights: _Floats) -> _Floats:
    """Correlate mid-ranks of ``x`` and ``y`` (levels from 0, ``sizes`` of either): ``[r]``."""
    m, replicates = weights.shape
    out = np.full(replicates, np.nan)
    rank_x, rank_y = np.empty(m), np.empty(m)
    for r in range(replicates):
        own = weights[:, r].copy()
        total = own.sum()
        if total < 2.0:
            continue
        _ranks(x, sizes[0], own, rank_x)
        _ranks(y, sizes[1], own, rank_y)
        middle = (total + 1.0) / 2.0
        xy, xx, yy = 0.0, 0.0, 0.0
        for i in range(m):
            a, b = rank_x[i] - middle, rank_y[i] - middle
            xy += own[i] * a * b
            xx += own[i] * a * a
            yy += own[i] * b * b
        if xx > 0.0 and yy > 0.0:
            out[r] = xy / math.sqrt(xx * yy)
    return out
