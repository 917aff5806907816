"""Differences of means between sets of units, with clusters as the sampling units.

Many contrasts at once: from sums by cluster to differences, intervals and max-T over the family.
The test is the audit's own (decision 17): it inverts the interval of the difference. The joint
distribution of a family's tests comes from normal weights of clusters' contributions u to the
score-type t = Σu / √Σu², the same weight in every contrast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.stats.cluster_sums import IntArray
from isolux.stats.clustered_proportions import (
    are_rows_zero_or_one,
    means_from_cluster_sums,
    pooled_intracluster_correlation,
)
from isolux.stats.differences import independent_mean_difference
from isolux.stats.multiplicity import adjust_p_max_t
from isolux.stats.multiplier_bootstrap import draw_multiplier_bootstrap_sums
from isolux.stats.statistic import FloatArray
from isolux.stats.test_inversion import (
    Difference,
    two_sided_p_from_z,
    z_statistics_by_test_inversion,
)

_RELATIVE_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class ContrastSums:
    """Sum of values ``total [C, k]`` and number of units ``count [C, k]`` by cluster and set."""

    total: FloatArray
    count: FloatArray

    def subtract(self, inner: ContrastSums) -> ContrastSums:
        """Return the sums of these sets without their subsets ``other``."""
        return ContrastSums(self.total - inner.total, self.count - inner.count)

    def take(self, sets: IntArray) -> ContrastSums:
        """Return the sums of some sets."""
        return ContrastSums(self.total[:, sets], self.count[:, sets])


@dataclass(frozen=True, slots=True)
class Contrasts:
    """Means of sets a and b and statistics of their differences; all ``[k]``.

    ``sums`` are both sets' by cluster. ``contribution [C, k]`` is u of the score test and ``t`` its
    statistic, NaN where a set is empty or nothing varies: for ranking, not for a p-value.
    """

    sums: tuple[ContrastSums, ContrastSums]
    mean: FloatArray
    other_mean: FloatArray
    pooled_mean: FloatArray
    n: FloatArray
    n_other: FloatArray
    n_clusters: IntArray
    n_clusters_other: IntArray
    contribution: FloatArray
    t: FloatArray

    def is_large_enough(self, min_units: int, min_clusters: int) -> npt.NDArray[np.bool_]:
        """Tell where both sets have enough units and clusters."""
        n = np.minimum(self.n, self.n_other)
        n_clusters = np.minimum(self.n_clusters, self.n_clusters_other)
        return (n >= min_units) & (n_clusters >= min_clusters)

    @property
    def difference(self) -> FloatArray:
        """Mean of a minus mean of b."""
        return self.mean - self.other_mean

    @property
    def ratio(self) -> FloatArray:
        """Mean of a over the mean of a and b together: the lift of a rule."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.mean / self.pooled_mean

    @property
    def standard_error(self) -> FloatArray:
        """Of the difference; NaN where a set is empty or nothing varies."""
        return _standard_error_or_nan(self.to_difference().standard_error)

    def to_difference(self) -> Difference:
        """Build the ``Difference`` with which the audit compares groups: interval and test."""
        from scipy.sparse import csr_array

        a, b = self.sums
        multiplicity = np.ones(len(a.total), dtype=np.int64)
        total, count = csr_array((a.total + b.total).T), csr_array((a.count + b.count).T)
        rho = pooled_intracluster_correlation(total, count, multiplicity)
        is_proportion = are_rows_zero_or_one(total, count)
        means_a, means_b = (
            means_from_cluster_sums(
                csr_array(s.total.T),
                csr_array(s.count.T),
                multiplicity,
                rho,
                is_proportion=is_proportion,
            )
            for s in (a, b)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            residual_products = (a.total - means_a.value * a.count) * (
                b.total - means_b.value * b.count
            )
            units = means_a.n_units * means_b.n_units
            covariance = residual_products.sum(axis=0) / units
            shared = (a.count * b.count).sum(axis=0) / units
        return independent_mean_difference(means_a, means_b, covariance, shared)

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of the difference; NaN where a set is empty."""
        interval = self.to_difference().interval(_normal_quantile_of_level(level))
        is_finite = np.isfinite(self.t)
        return np.where(is_finite, interval.low, np.nan), np.where(is_finite, interval.high, np.nan)

    def ratio_interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of the lift; NaN where either mean is 0.

        With r the ratio of means a over b and w the share of a, the lift is r / (w r + 1 − w).
        """
        log_interval = self.to_difference().interval(_normal_quantile_of_level(level), log=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self.n / (self.n + self.n_other)
            low, high = (
                ratio / (share * ratio + 1.0 - share)
                for ratio in np.exp((log_interval.low, log_interval.high))
            )
        is_defined = np.isfinite(self.t) & (self.ratio > 0)
        return np.where(is_defined, low, np.nan), np.where(is_defined, high, np.nan)


def _normal_quantile_of_level(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def sum_scores_of_sets_by_cluster(
    scores: FloatArray, is_in_set: npt.NDArray[np.bool_], cluster: IntArray, n_clusters: int
) -> ContrastSums:
    """Sum ``value [n]`` over the units of each set ``is_in_set [n, k]``, cluster by cluster.

    Examples
    --------
    >>> inside = np.array([[True], [True], [False]])
    >>> sums = sum_scores_of_sets_by_cluster(np.array([1.0, 0, 1]), inside, np.array([0, 1, 1]), 2)
    >>> sums.total[:, 0].tolist(), sums.count[:, 0].tolist()
    ([1.0, 0.0], [1.0, 1.0])
    """
    from scipy.sparse import csr_array

    n = len(scores)
    cluster_matrix = csr_array((np.ones(n), (cluster, np.arange(n))), shape=(n_clusters, n))
    members = is_in_set.astype(np.float64)
    return ContrastSums(
        np.asarray(cluster_matrix @ (members * scores[:, None])),
        np.asarray(cluster_matrix @ members),
    )


def is_attribute_value_known(
    has_item: npt.NDArray[np.bool_], attribute: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Mark for each value of an attribute the units with a known value of that attribute.

    Shapes: ``has_item`` [n, k]; returns [n, k].

    Examples
    --------
    >>> inside = np.array([[True, False], [False, True], [False, False]])
    >>> is_attribute_value_known(inside, ("tone", "tone"))[:, 0].tolist()
    [True, True, False]
    """
    is_known = np.zeros(has_item.shape, dtype=np.bool_)
    names = np.asarray(attribute, dtype=np.str_)
    for name in np.unique(names):
        columns = names == name
        is_known[:, columns] = has_item[:, columns].any(axis=1, keepdims=True)
    return is_known


def contrast_means_of_disjoint_sets(sums_a: ContrastSums, sums_b: ContrastSums) -> Contrasts:
    """Compare the means of sets with those of disjoint other sets.

    Examples
    --------
    Two clusters of one unit a side, all 1 against all 0: m = 1/2, every u is 1/4.

    >>> one, none = np.array([[1.0], [1], [0], [0]]), np.zeros((4, 1))
    >>> found = contrast_means_of_disjoint_sets(ContrastSums(one, one), ContrastSums(none, 1 - one))
    >>> found.t.tolist(), found.ratio.tolist()
    ([2.0], [2.0])
    """
    n_a, n_b = sums_a.count.sum(axis=0), sums_b.count.sum(axis=0)
    s_a, s_b = sums_a.total.sum(axis=0), sums_b.total.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, other_mean = s_a / n_a, s_b / n_b
        pooled_mean = (s_a + s_b) / (n_a + n_b)
        contribution = (sums_a.total - pooled_mean * sums_a.count) / n_a - (
            sums_b.total - pooled_mean * sums_b.count
        ) / n_b
        square = (contribution**2).sum(axis=0)
        terms = (sums_a.total**2).sum(axis=0) / n_a**2 + (sums_b.total**2).sum(axis=0) / n_b**2
        t = contribution.sum(axis=0) / np.sqrt(
            np.where(square > _RELATIVE_TOLERANCE * terms, square, np.nan)
        )
    return Contrasts(
        (sums_a, sums_b),
        mean,
        other_mean,
        pooled_mean,
        n_a,
        n_b,
        (sums_a.count > 0).sum(axis=0),
        (sums_b.count > 0).sum(axis=0),
        np.nan_to_num(contribution),
        t,
    )


def adjust_contrast_p_max_t(
    batches: Sequence[Contrasts],
    *,
    replicates: int,
    seed: int,
    one_sided: bool,
    is_tested: npt.NDArray[np.bool_],
) -> FloatArray:
    """Return p-values of contrasts, adjusted over the family of those tested: max-T.

    Shapes: ``is_tested`` [k]; returns [k].
    """
    from scipy.sparse import csr_array

    t = np.concatenate([batch.t for batch in batches])
    is_tested = is_tested & np.isfinite(t)
    adjusted = np.full(len(t), np.nan)
    if not is_tested.any():
        return adjusted
    z = np.concatenate(
        [
            z_statistics_by_test_inversion(
                batch.to_difference(), (_normal_quantile_of_level(0.95),)
            )
            for batch in batches
        ]
    )[is_tested]
    contributions = np.column_stack([batch.contribution for batch in batches])[:, is_tested]
    unit = csr_array((contributions / np.sqrt((contributions**2).sum(axis=0))).T)
    null = draw_multiplier_bootstrap_sums(
        unit, np.ones(len(contributions), dtype=np.int64), replicates, seed
    )
    null = null if one_sided else np.abs(null)
    raw = two_sided_p_from_z(z) / (2.0 if one_sided else 1.0)
    p = np.maximum(adjust_p_max_t(np.abs(z), np.maximum(null, 0.0).max(axis=0)), raw)
    if len(z) == 1:  # nothing to adjust for, and no need to simulate
        p = raw
    adjusted[is_tested] = np.where(z > 0, p, 1.0) if one_sided else p
    return adjusted


def _standard_error_or_nan(error: FloatArray) -> FloatArray:
    return np.where(np.isfinite(error) & (error > 0), error, np.nan)
