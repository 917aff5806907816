"""Rank tests of a sample with weights and strata: pairs of groups, where people stand for others.

Units get the rank that they have in the population: the share of both groups' weight that lies
below them, ties half. The mean rank of the one group less that of the other is the chance that a
person of the first scores higher, less a half, and its variance is the design's (Lumley and Scott
2013): ranks are scores in a weighted comparison of means by clusters within strata
(``stats/weighted_means.py``), with Student's t on Welch's degrees of freedom.

A group in which nearly all score alike has ranks that hardly vary, and would look surer than it is.
So no group's variance is taken smaller than that of both groups' ranks together would be in as many
people of one weight, as alike within clusters as everyone is.

References
----------
.. [1] Lumley, T. and Scott, A. J. (2013). Two-sample rank tests under complex sampling. Biometrika
   100, 831-842.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isolux.stats.deviates import Difference
from isolux.stats.differences import of_means
from isolux.stats.sampling import Strata, inner
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.weighted_means import weighted_means

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class Weights:
    """How units were drawn.

    ``weight [n]`` above 0, ``cluster [n]`` from 0, ``strata`` of the clusters, or None.
    """

    weight: FloatArray
    cluster: IntArray
    strata: Strata | None


@dataclass(frozen=True, slots=True)
class WeightedPair:
    """``superiority``: how often a person of the first scores higher, ties half; ``p`` two-sided.

    ``p`` is 1 where all score the same, and NaN where both groups are one and the same cluster.
    """

    superiority: float
    p: float


def weighted_median(value: FloatArray, weight: FloatArray) -> float:
    """Return the value with half of the weight below it; the mean of two where it lies between.

    Examples
    --------
    >>> weighted_median(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 4.0]))
    2.0
    """
    from isolux.stats.ranks.kernels import medians_by_replicate

    order = np.argsort(value, kind="stable")
    own = np.ascontiguousarray(weight[order][:, None])
    return float(medians_by_replicate(value[order], np.arange(len(order)), own)[0])


def compare_weighted(
    value: FloatArray, sides: tuple[IntArray, IntArray], drawn: Weights
) -> WeightedPair:
    """Hold the ranks of two groups against one another.

    Shapes: ``value`` [n], ``sides`` [a].
    """
    unit = np.concatenate(sides)
    score, weight = value[unit], drawn.weight[unit]
    rank = _ranks(score, weight)
    group = np.repeat(np.arange(2), [len(side) for side in sides])
    codes, cluster = np.unique(drawn.cluster[unit], return_inverse=True)
    strata = drawn.strata
    if strata is not None:
        strata = replace(strata, of=strata.of[codes])
    of = _Rows(group, cluster, len(codes))
    parts = of.sums(weight * rank), of.sums(weight), of.sums(weight**2)
    part = np.zeros(len(unit), dtype=np.int64) if strata is None else strata.of[cluster]
    own = weighted_means(parts, strata, 0.0, shares=False)
    apart = rank - _means_of(part, rank, weight)
    alike = _alike(of, rank - _means_of(part, rank, np.ones(len(rank))))
    means = _at_least_pooled(own, weight, apart, alike)
    a, b = (means.at(np.array([k])) for k in (0, 1))
    superiority = 0.5 + float((a.value - b.value).item())
    if np.ptp(score) == 0:
        return WeightedPair(0.5, 1.0)
    if len(codes) < 2:
        return WeightedPair(superiority, float("nan"))
    left = [(parts[0][[k]] - parts[1][[k]] * means.value[k]) / parts[1][[k]].sum() for k in (0, 1)]
    covariance = inner(left[0], left[1], strata)
    held = of_means(a, b, covariance, np.zeros(1), alike=False)
    return WeightedPair(superiority, _p(superiority - 0.5, held))


def _p(off: float, apart: Difference) -> float:
    """Two-sided p of Student's t, on Welch's degrees of freedom; all variance gone: one cluster."""
    from scipy.special import stdtr

    error = float(apart.standard_error.item())
    if error <= 0.0:
        return float("nan")
    return float(2.0 * stdtr(float(apart.freedom.item()), -abs(off) / error))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Entries of two groups by cluster."""

    group: IntArray
    cluster: IntArray
    clusters: int

    def sums(self, x: FloatArray) -> csr_array:
        """Add entries up by group and cluster: ``[2, c]``."""
        from scipy.sparse import coo_array, csr_array

        at = self.group, self.cluster
        found = csr_array(coo_array((x, at), shape=(2, self.clusters)))
        found.sum_duplicates()
        return found


def _ranks(score: FloatArray, weight: FloatArray) -> FloatArray:
    """Give every entry the share of all weight below it, ties half: ``[n]``."""
    levels, of = np.unique(score, return_inverse=True)
    at = np.bincount(of, weights=weight, minlength=len(levels))
    below = np.cumsum(at) - at / 2.0
    return np.asarray((below / at.sum())[of])


def _means_of(part: IntArray, rank: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the mean rank of every entry's stratum: ``[n]``."""
    total = np.bincount(part, weights=weight * rank) / np.maximum(
        np.bincount(part, weights=weight), 1e-300
    )
    return np.asarray(total[part])


def _alike(of: _Rows, off: FloatArray) -> float:
    """Correlate ranks within clusters, each entry once: 0 to 1."""
    n = np.bincount(of.cluster, minlength=of.clusters).astype(np.float64)
    within = np.bincount(of.cluster, weights=off, minlength=of.clusters) ** 2
    products = float(within.sum() - (off**2).sum())
    pairs = float((n * (n - 1.0)).sum()) * float((off**2).mean())
    return float(np.clip(products / pairs, 0.0, 1.0)) if pairs > 0 else 0.0


def _at_least_pooled(
    means: ClusterMeans, weight: FloatArray, off: FloatArray, alike: float
) -> ClusterMeans:
    """Take no variance below that of both groups' ranks, as alike within clusters as they are."""
    spread = float((weight**2 * off**2).sum() / (weight**2).sum())
    pooled = spread / means.units * (1.0 + alike * (means.size - 1.0))
    return replace(means, variance=np.maximum(means.variance, pooled))
