"""Rank tests of survey samples with weights and strata, for pairs of groups.

Units have their rank in the population: the share of both groups' weight below them, ties half.
The difference of mean ranks is the probability of superiority minus a half, and its variance is
that of the sampling design (Lumley and Scott
2013): ranks are scores in a weighted comparison of means by clusters within strata
(``stats/weighted_means.py``), with Student's t on Welch's degrees of freedom.

A group with almost equal scores has ranks that hardly vary, and its variance is underestimated. So
no group's variance is smaller than the one by the pooled variance of both groups' ranks and their
intracluster correlation.

References
----------
.. [1] Lumley, T. and Scott, A. J. (2013). Two-sample rank tests under complex sampling. Biometrika
   100, 831-842.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.differences import independent_mean_difference
from isolux.stats.sampling import Strata, stratified_row_products
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.test_inversion import Difference
from isolux.stats.weighted_means import estimate_weighted_means

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class RankWeights:
    """The sampling design of units.

    ``weight [n]`` above 0, ``cluster [n]`` from 0, ``strata`` of the clusters, or None.
    """

    weight: FloatArray
    cluster: IntArray
    strata: Strata | None


@dataclass(frozen=True, slots=True)
class WeightedRankTest:
    """``superiority``: how often a person of the first scores higher, ties half; ``p`` two-sided.

    ``p`` is 1 where all scores are equal, and NaN where both groups are one cluster.
    """

    superiority: float
    p: float


def weighted_median(scores: FloatArray, weight: FloatArray) -> float:
    """Return the weighted median; the mean of two values where it is between them.

    Examples
    --------
    >>> weighted_median(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 4.0]))
    2.0
    """
    from isolux.stats.ranks.rank_kernels import weighted_median_by_replicate

    order = np.argsort(scores, kind="stable")
    sorted_weights = np.ascontiguousarray(weight[order][:, None])
    return float(
        weighted_median_by_replicate(scores[order], np.arange(len(order)), sorted_weights)[0]
    )


def weighted_rank_test_two_groups(
    scores: FloatArray, groups: tuple[IntArray, IntArray], weights: RankWeights
) -> WeightedRankTest:
    """Compare the ranks of two groups.

    Shapes: ``scores`` [n], ``groups`` [a].
    """
    unit = np.concatenate(groups)
    score, weight = scores[unit], weights.weight[unit]
    rank = _weighted_mid_rank_shares(score, weight)
    group = np.repeat(np.arange(2), [len(members) for members in groups])
    codes, cluster = np.unique(weights.cluster[unit], return_inverse=True)
    strata = weights.strata
    if strata is not None:
        strata = replace(strata, stratum_index=strata.stratum_index[codes])
    entries = _PairEntries(group, cluster, len(codes))
    sums = entries.sums(weight * rank), entries.sums(weight), entries.sums(weight**2)
    stratum_index = (
        np.zeros(len(unit), dtype=np.int64) if strata is None else strata.stratum_index[cluster]
    )
    rank_means = estimate_weighted_means(sums, strata, 0.0, is_proportion=False)
    weighted_residuals = rank - _stratum_mean_rank_by_entry(stratum_index, rank, weight)
    intracluster_correlation = _rank_intracluster_correlation(
        entries, rank - _stratum_mean_rank_by_entry(stratum_index, rank, np.ones(len(rank)))
    )
    means = _raise_variance_to_pooled(
        rank_means, weight, weighted_residuals, intracluster_correlation
    )
    a, b = (means.take(np.array([k])) for k in (0, 1))
    superiority = 0.5 + float((a.value - b.value).item())
    # Equal scores have equal ranks: without variance there is no statistic.
    if np.ptp(score) == 0:
        return WeightedRankTest(0.5, 1.0)
    if len(codes) < 2:
        return WeightedRankTest(superiority, float("nan"))
    cluster_contributions = [
        (sums[0][[k]] - sums[1][[k]] * means.value[k]) / sums[1][[k]].sum() for k in (0, 1)
    ]
    # Clusters with units of both groups correlate the two means.
    covariance = stratified_row_products(cluster_contributions[0], cluster_contributions[1], strata)
    difference = independent_mean_difference(a, b, covariance, np.zeros(1), floor_variances=False)
    return WeightedRankTest(superiority, _welch_t_p(superiority - 0.5, difference))


def _welch_t_p(offset: float, difference: Difference) -> float:
    """Two-sided p of Student's t with Welch's dof; NaN without variance, as in one cluster."""
    from scipy.special import stdtr

    standard_error = float(difference.standard_error.item())
    if standard_error <= 0.0:
        return float("nan")
    return float(2.0 * stdtr(float(difference.dof.item()), -abs(offset) / standard_error))


@dataclass(frozen=True, slots=True)
class _PairEntries:
    """Entries of two groups by cluster."""

    group: IntArray
    cluster: IntArray
    n_clusters: int

    def sums(self, x: FloatArray) -> csr_array:
        """Sum entries by group and cluster: ``[2, c]``."""
        from scipy.sparse import coo_array, csr_array

        coordinates = self.group, self.cluster
        sums = csr_array(coo_array((x, coordinates), shape=(2, self.n_clusters)))
        sums.sum_duplicates()
        return sums


def _weighted_mid_rank_shares(score: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the share of all weight below every entry, ties half: ``[n]``."""
    levels, level_index = np.unique(score, return_inverse=True)
    level_weights = np.bincount(level_index, weights=weight, minlength=len(levels))
    weight_below = np.cumsum(level_weights) - level_weights / 2.0
    return np.asarray((weight_below / level_weights.sum())[level_index])


def _stratum_mean_rank_by_entry(
    stratum_index: IntArray, rank: FloatArray, weight: FloatArray
) -> FloatArray:
    """Return the mean rank of every entry's stratum: ``[n]``."""
    total = np.bincount(stratum_index, weights=weight * rank) / np.maximum(
        np.bincount(stratum_index, weights=weight), 1e-300
    )
    return np.asarray(total[stratum_index])


def _rank_intracluster_correlation(entries: _PairEntries, residuals: FloatArray) -> float:
    """Estimate the intracluster correlation of unweighted ranks: 0 to 1."""
    n = np.bincount(entries.cluster, minlength=entries.n_clusters).astype(np.float64)
    squared_sums = (
        np.bincount(entries.cluster, weights=residuals, minlength=entries.n_clusters) ** 2
    )
    # Cross products of different units: the squared sum less the units' own squares.
    products = float(squared_sums.sum() - (residuals**2).sum())
    pairs = float((n * (n - 1.0)).sum()) * float((residuals**2).mean())
    return float(np.clip(products / pairs, 0.0, 1.0)) if pairs > 0 else 0.0


def _raise_variance_to_pooled(
    means: ClusterMeans, weight: FloatArray, residuals: FloatArray, intracluster_correlation: float
) -> ClusterMeans:
    """Raise variances to those by the pooled rank variance and intracluster correlation."""
    # A weighted mean of independent rows has the variance σ² Σ w² / (Σ w)²: rows count by w².
    row_variance = float((weight**2 * residuals**2).sum() / (weight**2).sum())
    pooled_variance = (
        row_variance
        / means.n_units
        * (1.0 + intracluster_correlation * (means.kish_cluster_size - 1.0))
    )
    return replace(means, variance=np.maximum(means.variance, pooled_variance))
