"""Clustered proportions: score interval with a design effect.

n is divided by a design effect. Where a group has few clusters, or its proportion is near 0 or 1,
its own estimate of the design effect is too small as often as too large, so the largest of three
is used:

- **own**: from the group's own clusters, by the bias-reduced linearisation CR2, times the t
  inflation with Bell and McCaffrey's degrees of freedom;
- **pooled**: 1 + (m - 1) rho, with the intracluster correlation rho of all clusters and Kish's
  cluster size m of this group;
- **rare**: 1 + (m - 1) / (1 + k²), where the rarer outcome occurs in k clusters only. With k = 0
  the correlation cannot be estimated, and each cluster counts as one observation.

Only clusters with the rarer outcome carry information about the correlation. What own and pooled
add to 1 is therefore multiplied by the squared ratio of Student's t with 3 k degrees of freedom to
that of independent rows.

Where every cluster is one row all three are 1. The interval is Wilson's, with ends moved towards
Clopper and Pearson's where few effective events lie on that side (``stats/intervals.py``).

References
----------
.. [1] Wilson, E. B. (1927). Probable inference, the law of succession, and statistical
   inference. Journal of the American Statistical Association 22(158), 209-212.
.. [2] Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear
   regression with multi-stage samples. Survey Methodology 28(2), 169-181.
.. [3] Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small
   expected number of positive counts estimated from survey data. Survey Methodology 24(2),
   193-201.
.. [4] Kish, L. (1965). Survey Sampling. Wiley, section 8.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isolux.stats.constants import ASSUMED_INTRACLUSTER_CORRELATION, RARE_CLUSTER_DOF
from isolux.stats.intervals import Interval, score_interval, t_from_z
from isolux.stats.sparse_rows import (
    align_sum_and_count_entries,
    take_rows_of_all_arrays,
    values_at_pattern_entries,
)
from isolux.stats.statistic import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SumByGroup = Callable[[FloatArray], FloatArray]
"""Sums entries by group: ``[n] -> [g]``."""

_ZERO_VARIANCE = 1e-14  # a variance of proportions below this is rounding


@dataclass(frozen=True, slots=True)
class ClusterMeans:
    """Means of groups and their cluster-robust variances; arrays ``[g]``.

    Parameters
    ----------
    value, n_units : float
        The mean, and its number of rows: with weights, Kish's effective number.
    variance : float
        CR2: right on average where rows are independent, nearly so elsewhere.
    dof : float
        Bell and McCaffrey's degrees of freedom of ``variance``, for independent rows.
    kish_cluster_size : float
        Kish's cluster size sum(n²) / sum(n); the rows over it are the number of equal clusters.
    n_clusters_with_event : float
        Clusters in which the rarer outcome occurs.
    intracluster_correlation : float, or [g] float
        Between two rows of one cluster, estimated from all clusters.
    is_proportion : bool
        Whether rows are 0 or 1.
    weighting_effect : float, or [g] float, or None
        With unequal weights: the variance of rows over what their weights alone imply, above 1
        where errors have larger weights. None: all rows have one weight.
    kurtosis : float, or None
        Of numbers: Pearson's kurtosis of cluster contributions, 3 for a normal distribution. A
        variance with f degrees of freedom counts as 2 f / (kurtosis - 1) of a normal sample.
    variance_slope : float, or None
        Of numbers: the third cumulant of the mean over the second. It is negative with outliers
        below the mean: a lower mean then has a larger variance.
    variance_slope_se : float, or None
        Its standard error for a symmetric distribution.
    """

    value: FloatArray
    n_units: FloatArray
    variance: FloatArray
    dof: FloatArray
    kish_cluster_size: FloatArray
    n_clusters_with_event: FloatArray
    intracluster_correlation: FloatArray | float
    is_proportion: bool = True
    weighting_effect: FloatArray | None = None
    kurtosis: FloatArray | None = None
    variance_slope: FloatArray | None = None
    variance_slope_se: FloatArray | None = None

    @property
    def n_effective_clusters(self) -> FloatArray:
        """Number of equal clusters with the same variance: the effective number of clusters."""
        return self.n_units / self.kish_cluster_size

    def take(self, rows: IntArray) -> ClusterMeans:
        """Select groups by index."""
        means: ClusterMeans = take_rows_of_all_arrays(self, rows)
        return replace(means, intracluster_correlation=self.intracluster_correlation)

    def shift(self, offset: float) -> ClusterMeans:
        """Add a constant to all means."""
        return self if offset == 0.0 else replace(self, value=self.value + offset)

    def binomial_variance(self) -> FloatArray:
        """Variance of a proportion of independent rows: p (1 - p) / n."""
        return self.value * (1.0 - self.value) / self.n_units

    def t_inflation(self, z: FloatArray | float) -> FloatArray:
        """Squared ratio of Student's t of the clusters to that of independent rows, at z."""
        is_independent = self.has_independent_rows
        if is_independent.all():  # no quantiles needed
            return np.ones(np.broadcast_shapes(self.kish_cluster_size.shape, np.shape(z)))
        ratio = t_from_z(z, self.dof) / t_from_z(z, np.maximum(self.n_units - 1.0, 1.0))
        return np.asarray(np.where(is_independent, 1.0, ratio**2))

    @property
    def has_independent_rows(self) -> npt.NDArray[np.bool_]:
        """Mask of groups whose rows are independent and of one weight."""
        return np.asarray((self.kish_cluster_size <= 1.0) & (self.weighting_effect is None))

    def pooled_design_effect(self) -> FloatArray:
        """Design effect by the intracluster correlation of all clusters: 1 + rho (m - 1)."""
        clustering_effect = 1.0 + self.intracluster_correlation * (self.kish_cluster_size - 1.0)
        return np.asarray(
            clustering_effect
            if self.weighting_effect is None
            else self.weighting_effect * clustering_effect
        )

    def own_design_effect(self) -> FloatArray:
        """Design effect by the group's own CR2 variance; 1 where rows are independent."""
        is_constant = self.variance <= _ZERO_VARIANCE
        with np.errstate(divide="ignore", invalid="ignore"):
            # n - 1: with one row per cluster, CR2 is p (1 - p) / (n - 1), and the effect 1.
            binomial_variance = (
                self.value * (1.0 - self.value) / np.maximum(self.n_units - 1.0, 1.0)
            )
            # Without variation the correlation is unknown: each cluster is one observation.
            fallback_effect = (
                self.kish_cluster_size
                if self.weighting_effect is None
                else self.kish_cluster_size * self.weighting_effect
            )
            effect = np.where(is_constant, fallback_effect, self.variance / binomial_variance)
        return np.asarray(np.where(self.has_independent_rows, 1.0, effect))

    def estimated_design_effect(
        self, z: FloatArray | float, t_inflation: FloatArray | None = None
    ) -> FloatArray:
        """Larger of the t-inflated own and the pooled design effect; without weights at least 1."""
        is_constant = self.variance <= _ZERO_VARIANCE
        t_inflation = self.t_inflation(z) if t_inflation is None else t_inflation
        # That fallback is not estimated from clusters, so t inflation does not apply.
        own_effect = self.own_design_effect() * np.where(is_constant, 1.0, t_inflation)
        pooled_effect = self.pooled_design_effect()
        if self.weighting_effect is not None:
            return np.asarray(np.maximum(own_effect, pooled_effect))
        return np.asarray(
            np.where(
                self.has_independent_rows,
                1.0,
                np.maximum(np.maximum(own_effect, pooled_effect), 1.0),
            )
        )

    def rare_outcome_design_effect(self) -> FloatArray:
        """Design effect that cannot be excluded when few clusters have the rarer outcome."""
        effect = 1.0 + (self.kish_cluster_size - 1.0) / (1.0 + self.n_clusters_with_event**2)
        return np.asarray(
            effect if self.weighting_effect is None else effect * self.weighting_effect
        )

    def min_design_effect(self) -> FloatArray:
        """Lower bound of the design effect: that of rare outcomes, and 1 without weights."""
        effect = self.rare_outcome_design_effect()
        return effect if self.weighting_effect is not None else np.maximum(effect, 1.0)

    def design_effect(self, z: FloatArray | float) -> FloatArray:
        """Design effect of the interval with normal quantile z: the largest of all estimates."""
        effect = np.maximum(self.estimated_design_effect(z), self.rare_outcome_design_effect())
        return np.asarray(np.maximum(effect, self._uncertain_design_effect(z)))

    def _uncertain_design_effect(self, z: FloatArray | float) -> FloatArray:
        """Design effect inflated for its estimation from few clusters with the rarer outcome."""
        if self.has_independent_rows.all():
            return np.ones(np.broadcast_shapes(self.kish_cluster_size.shape, np.shape(z)))
        weighting_effect = (
            np.float64(1.0) if self.weighting_effect is None else self.weighting_effect
        )
        clustering_excess = np.maximum(
            np.maximum(self.own_design_effect(), self.pooled_design_effect()) - weighting_effect,
            0.0,
        )
        # The most with nominal coverage in every cell: with 4 k three of 1,212 had 92.3 to 92.9 %,
        # with 2 k intervals are 5 to 8 % wider (docs/methods/uncertainty.md).
        dof = np.maximum(RARE_CLUSTER_DOF * self.n_clusters_with_event, 1.0)
        t_ratio = t_from_z(z, dof) / t_from_z(z, np.maximum(self.n_units - 1.0, 1.0))
        # With k = 0 the rare-outcome effect already counts each cluster as one observation.
        is_affected = ~self.has_independent_rows & (self.n_clusters_with_event > 0)
        return np.asarray(
            np.where(is_affected, weighting_effect + clustering_excess * t_ratio**2, 0.0)
        )

    def score_interval(self, z: FloatArray | float) -> Interval:
        """Score interval of each proportion at normal quantile z; NaN where there are no rows."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return score_interval(self.value, self.n_units / self.design_effect(z), z)


def concatenate_means(means: Sequence[ClusterMeans]) -> ClusterMeans:
    """Concatenate the groups of one metric; the sequence must not be empty."""
    first = means[0]
    names = [field.name for field in fields(ClusterMeans)]
    array_fields = [name for name in names if isinstance(getattr(first, name), np.ndarray)]
    arrays_by_field: dict[str, Any] = {
        name: np.concatenate([getattr(group_means, name) for group_means in means])
        for name in array_fields
    }
    # All groups of a metric share one intracluster correlation.
    return replace(
        replace(first, **arrays_by_field), intracluster_correlation=first.intracluster_correlation
    )


def means_from_cluster_sums(
    sums: csr_array,
    counts: csr_array,
    multiplicity: IntArray,
    intracluster_correlation: FloatArray | float,
    *,
    is_proportion: bool = True,
) -> ClusterMeans:
    """Estimate groups' means with CR2 variances from cluster sums and counts.

    Shapes: ``sums, counts`` [g, n_distinct], ``multiplicity`` [n_distinct],
    ``intracluster_correlation`` [g].
    """
    rows, s, n, c = align_sum_and_count_entries(sums, counts, multiplicity)
    g = sums.shape[0]

    def sum_by_group(x: FloatArray) -> FloatArray:
        return np.bincount(rows, weights=x, minlength=g).astype(np.float64)

    n_units = sum_by_group(c * n)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = sum_by_group(c * s) / np.where(n_units > 0, n_units, np.nan)
        cluster_share = n / n_units[rows]
        # CR2 scales each residual by (1 - leverage)^-1/2 (Bell and McCaffrey 2002), here squared.
        cr2_factor = 1.0 / np.maximum(1.0 - cluster_share, 1e-12)
        residual = s - mean[rows] * n
        variance = sum_by_group(c * cr2_factor * residual**2) / n_units**2
        kish_cluster_size = sum_by_group(c * n * n) / n_units
        n_clusters_with_event = np.minimum(sum_by_group(c * (s > 0)), sum_by_group(c * (s < n)))
        dof = cr2_satterthwaite_dof((n, c, cluster_share, cr2_factor), n_units, sum_by_group)
    fields_in_order = mean, n_units, variance, dof, kish_cluster_size, n_clusters_with_event
    if is_proportion:  # the variance of a proportion follows from its value: no higher moments
        return ClusterMeans(*fields_in_order, intracluster_correlation)
    kurtosis, variance_slope, variance_slope_se = kurtosis_and_variance_slope(
        residual, c, n_units, sum_by_group
    )
    return ClusterMeans(
        *fields_in_order,
        intracluster_correlation,
        is_proportion=False,
        kurtosis=kurtosis,
        variance_slope=variance_slope,
        variance_slope_se=variance_slope_se,
    )


def kurtosis_and_variance_slope(
    residual_sums: FloatArray,
    multiplicity: FloatArray,
    n_units: FloatArray,
    sum_by_group: SumByGroup,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return kurtosis, variance slope and its standard error from residual cluster sums."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        square = residual_sums * residual_sums
        sum_of_squares = sum_by_group(multiplicity * square)
        kurtosis = (
            sum_by_group(multiplicity) * sum_by_group(multiplicity * square**2) / sum_of_squares**2
        )
        variance_slope = (
            sum_by_group(multiplicity * square * residual_sums) / sum_of_squares / n_units
        )
        # 0.4 = 6 / 15: for a normal distribution skewness has variance 6 / n, and E x⁶ is 15.
        variance_slope_se = (
            np.sqrt(0.4 * sum_by_group(multiplicity * square**3)) / sum_of_squares / n_units
        )
    return kurtosis, variance_slope, variance_slope_se


def cr2_satterthwaite_dof(
    clusters: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    n_units: FloatArray,
    sum_by_group: SumByGroup,
) -> FloatArray:
    """Satterthwaite degrees of freedom of CR2 for independent rows, in closed form.

    Bell and McCaffrey (2002): 2 E(V)² / Var(V) with V a quadratic form of the residuals.
    """
    n, c, cluster_share, cr2_factor = clusters
    k = np.sqrt(cr2_factor)
    a, b, d = k * n, k * cluster_share, cr2_factor * n
    aa, ab, bb = sum_by_group(c * a * a), sum_by_group(c * a * b), sum_by_group(c * b * b)
    inner = -2.0 * a * b  # N b² is added below, with N the rows of each group
    trace = sum_by_group(c * (d + inner)) + n_units * bb
    square = sum_by_group(c * (d * d + 2.0 * d * inner)) + 2.0 * n_units * sum_by_group(
        c * d * b * b
    )
    square += 2.0 * aa * bb + 2.0 * ab**2 - 4.0 * n_units * ab * bb + n_units**2 * bb**2
    dof = np.divide(trace**2, square, out=np.ones_like(trace), where=square > 0.0)
    return np.asarray(np.maximum(np.nan_to_num(dof, nan=1.0), 1.0))


def pooled_intracluster_correlation(
    sums: csr_array, counts: csr_array, multiplicity: IntArray
) -> FloatArray:
    """Estimate the intracluster correlation, 0 to 1, from pairs of rows: ``[g]``.

    Shapes: ``sums, counts`` [g, n_distinct], ``multiplicity`` [n_distinct].
    """
    rows, s, n, c = align_sum_and_count_entries(sums, counts, multiplicity)
    g = sums.shape[0]

    def sum_by_group(x: FloatArray) -> FloatArray:
        return np.bincount(rows, weights=x, minlength=g).astype(np.float64)

    n_units = sum_by_group(c * n)
    p = np.divide(sum_by_group(c * s), n_units, out=np.zeros(g), where=n_units > 0)
    # About the inverse variance of a cross product at the assumed correlation, per pair of rows:
    # large clusters must not dominate the estimate.
    weight = c * np.where(
        n > 1, 1.0 / (1.0 + (n - 1.0) * ASSUMED_INTRACLUSTER_CORRELATION) ** 2, 0.0
    )
    group_mean = p[rows]
    row_squares = s * (1.0 - group_mean) ** 2 + (n - s) * group_mean**2
    # Cross products of two different rows: the squared sum less the rows' own squares.
    numerator = sum_by_group(weight * ((s - group_mean * n) ** 2 - row_squares))
    denominator = sum_by_group(weight * n * (n - 1.0)) * p * (1.0 - p)
    correlation = np.divide(numerator, denominator, out=np.zeros(g), where=denominator > 0)
    return np.asarray(np.clip(correlation, 0.0, 1.0))


def are_rows_zero_or_one(sums: csr_array, counts: csr_array) -> bool:
    """Check whether rows are 0 or 1: every cluster's sum is an integer up to its count."""
    s: npt.NDArray[np.float64] = sums.data
    if not (np.all(s == np.rint(s)) and np.all(s >= 0)):
        return False
    counts_at_sums = values_at_pattern_entries(counts, sums)
    return bool(np.all(counts_at_sums <= counts.data) and counts_at_sums.sum() == s.sum())
