"""Clusters both ways: photos of one subject are alike, and so are photos by one photographer.

The variance of a mean is that of the one way plus that of the other, less that of the cells in
which both agree (Cameron, Gelbach and Miller 2011); never less than either way alone, which the
difference could be by chance. Degrees of freedom and effective clusters are those of the way with
fewer.

Everyone's correlation adds up over both ways, ``1 + rho_1 (m_1 - 1) + rho_2 (m_2 - 1)``.

Replicates of statistics that are no means weigh a unit by ``1 + (w_1 - 1) / 2 + (w_2 - 1) / 2``
with each way's bootstrap weights, which are never negative, and count their distance from the value
twice. Their variance is the sum of both ways': never too small, and up to twice too large where
neither way matters.

References
----------
.. [1] Cameron, A. C., Gelbach, J. B. and Miller, D. L. (2011). Robust inference with multiway
   clustering. Journal of Business & Economic Statistics 29(2), 238-249.
.. [2] Owen, A. B. (2007). The pigeonhole bootstrap. Annals of Applied Statistics 1(2), 386-411.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray

HALF = 0.5
"""How much of each way's weights a replicate moves by."""


def together(one: FloatArray, two: FloatArray, cells: FloatArray) -> FloatArray:
    """Add up products over two ways of clusters, less those of the cells where both agree.

    Examples
    --------
    >>> together(np.array([3.0]), np.array([2.0]), np.array([1.0])).tolist()
    [4.0]
    """
    return np.asarray(one + two - cells)


def both_ways(one: ClusterMeans, two: ClusterMeans, cells: ClusterMeans) -> ClusterMeans:
    """Put the means of two ways of clusters, and of the cells of both, into one."""
    variance = together(one.variance, two.variance, cells.variance)
    variance = np.maximum(variance, np.maximum(one.variance, two.variance))
    size = np.maximum(one.size, two.size)
    first, second = float(np.mean(one.correlation)), float(np.mean(two.correlation))
    most = max(first, second)
    pooled = 1.0 + first * (one.size - 1.0) + second * (two.size - 1.0)
    assert one.row_effect is not None  # noqa: S101 - means of a sample have one
    return replace(
        one,
        variance=variance,
        freedom=np.minimum(one.freedom, two.freedom),
        size=size,
        rare=np.minimum(one.rare, two.rare),
        correlation=most,
        row_effect=one.row_effect * pooled / (1.0 + most * (size - 1.0)),
    )


def shared_both_ways(
    one: FloatArray, two: FloatArray, correlations: tuple[float, float]
) -> FloatArray:
    """Weigh what two groups share either way, in units of the larger correlation.

    Examples
    --------
    >>> shared_both_ways(np.array([0.2]), np.array([0.4]), (0.1, 0.2)).round(6).tolist()
    [0.5]
    """
    most = max(correlations)
    if most <= 0.0:
        return np.zeros_like(one)
    return np.asarray((correlations[0] * one + correlations[1] * two) / most)
