"""The compiled loop of ``ranks.median_replicates``; imported only by the function that runs it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


@njit(nogil=True)
def medians_by_replicate(value: _Floats, cluster: _Ints, weights: _Floats) -> _Floats:
    """Weighted median of rising ``value [m]`` for each column of ``weights [c, r]``: ``[r]``."""
    replicates = weights.shape[1]
    out = np.full(replicates, np.nan)
    total = np.zeros(replicates)
    for i in range(len(value)):
        for r in range(replicates):
            total[r] += weights[cluster[i], r]
    passed = np.zeros(replicates)
    lower = np.full(replicates, np.nan)
    for i in range(len(value)):
        for r in range(replicates):
            w = weights[cluster[i], r]
            if w == 0.0:
                continue
            passed[r] += w
            if math.isnan(out[r]):
                if not math.isnan(lower[r]):
                    out[r] = 0.5 * (lower[r] + value[i])
                elif 2.0 * passed[r] > total[r]:
                    out[r] = value[i]
                elif 2.0 * passed[r] == total[r]:
                    lower[r] = value[i]
    return out
