"""Differences of two groups: the interval, and the test that inverts it.

A difference of proportions has one variance for both (``stats/proportion_difference.py``). For all
other statistics the interval of a - b is computed from the two groups' intervals (MOVER,
``stats/intervals.py``) at any normal quantile z, and the test finds the z at which the interval
touches 0. A p-value of 0.05 or less and a 95 % interval without 0 are therefore equivalent.

Groups that share clusters are correlated. MOVER gets the correlation that gives the difference the
larger of two variances: the one from the clusters' residuals, and the one from the intracluster
correlation of all clusters.

Means of numbers have a variance floor: with rare outliers (an IoU of 0 among many near 1) a small
group may have none of them by chance, and its own variance is then too small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.constants import HALF_WEIGHT_DOF
from isolux.stats.intervals import (
    Z_95,
    Interval,
    t_from_z,
    wilson_interval_of_n_clusters,
)
from isolux.stats.proportion_difference import ProportionDifferences, welch_satterthwaite_dof
from isolux.stats.statistic import FloatArray
from isolux.stats.test_inversion import Difference, ZValues


def raise_variance_towards_pooled(
    group: ClusterMeans, other_group: ClusterMeans, is_constant: npt.NDArray[np.bool_]
) -> ClusterMeans:
    """Raise a group's variance towards the variance pooled over both groups.

    Shapes: ``is_constant`` [h].
    """
    weighted = group.weighting_effect is not None or other_group.weighting_effect is not None
    if weighted or group.kurtosis is None or other_group.kurtosis is None:
        return group
    pooled_variances = []
    with np.errstate(divide="ignore", invalid="ignore"):
        # Row variance pooled over both groups, over n; with units, and with clusters, as n.
        for n, m in (
            (group.n_units, other_group.n_units),
            (group.dof + 1.0, other_group.dof + 1.0),
        ):
            pooled_variances.append(
                (group.variance * n * n + other_group.variance * m * m) / (n + m) / n
            )
        # A sample variance has the relative variance (kurtosis - 1) / f, a chi-squared with v
        # degrees of freedom 2 / v: v = 2 f / (kurtosis - 1), with the larger kurtosis.
        variance_dof = 2.0 * group.dof / (np.fmax(group.kurtosis, other_group.kurtosis) - 1.0)
        own_weight = variance_dof**2 / (variance_dof**2 + HALF_WEIGHT_DOF**2)
        mixed = own_weight * group.variance + (1.0 - own_weight) * np.minimum(*pooled_variances)
    variance = np.where(
        is_constant | ~np.isfinite(mixed), group.variance, np.maximum(group.variance, mixed)
    )
    return replace(group, variance=variance)


_RELATIVE_TOLERANCE = 1e-15
"""A standard error below this fraction of its mean is rounding: all rows are equal."""
_ZERO_VARIANCE = 1e-14
"""A variance of proportions below this is rounding: all rows are equal."""


def independent_mean_difference(
    a: ClusterMeans,
    b: ClusterMeans,
    covariance: FloatArray,
    cluster_overlap: FloatArray,
    *,
    is_fraction: bool = False,
    floor_variances: bool = True,
) -> Difference:
    """Compare means of clustered rows: Wilson or t intervals of both groups, and MOVER.

    Shapes: ``covariance`` [h], ``cluster_overlap`` [h].
    """
    if not a.is_proportion:
        return _numeric_mean_difference(
            a, b, covariance, is_fraction=is_fraction, floor_variances=floor_variances
        )
    variance = np.maximum(a.variance + b.variance - 2.0 * covariance, 0.0)

    def group_intervals(z: ZValues) -> tuple[Interval, Interval]:
        return a.score_interval(z), b.score_interval(z)

    def correlation(z: ZValues) -> FloatArray:
        return _correlation_of_proportions(a, b, covariance, cluster_overlap, z)

    dof = welch_satterthwaite_dof(a.variance, a.dof, b.variance, b.dof)
    proportion_differences = (
        ProportionDifferences.from_cluster_means(a, b, covariance, cluster_overlap)
        if b.is_proportion
        else None
    )
    standard_error = np.sqrt(variance)
    return Difference(
        a.value,
        b.value,
        group_intervals,
        correlation,
        standard_error,
        dof,
        (a, b),
        proportion_differences,
    )


def _numeric_mean_difference(
    a: ClusterMeans,
    b: ClusterMeans,
    covariance: FloatArray,
    *,
    is_fraction: bool,
    floor_variances: bool,
) -> Difference:
    """Compare means of rows that are not 0 or 1."""
    if floor_variances:
        both_constant = _has_constant_rows(a) & _has_constant_rows(b)
        a, b = (
            raise_variance_towards_pooled(a, b, both_constant),
            raise_variance_towards_pooled(b, a, both_constant),
        )
    any_constant = _has_constant_rows(a) | _has_constant_rows(b)
    # The covariance of a constant is rounding.
    shared_covariance = np.where(any_constant, 0.0, covariance)
    variance_a, variance_b = (np.where(_has_constant_rows(g), 0.0, g.variance) for g in (a, b))
    fixed_correlation = _covariance_to_correlation(
        shared_covariance, np.sqrt(variance_a * variance_b)
    )
    # Without any variation, numbers have no interval; fractions have Wilson's by clusters.
    nan_if_constant = np.where(
        _has_constant_rows(a) & _has_constant_rows(b) & (not is_fraction), np.nan, 0.0
    )

    def group_intervals(z: ZValues) -> tuple[Interval, Interval]:
        intervals = (
            _skewness_adjusted_t_interval(a, z, is_fraction=is_fraction),
            _skewness_adjusted_t_interval(b, z, is_fraction=is_fraction),
        )
        return intervals[0], Interval(
            intervals[1].low + nan_if_constant, intervals[1].high + nan_if_constant
        )

    dof = welch_satterthwaite_dof(variance_a, a.dof, variance_b, b.dof)
    standard_error = np.sqrt(np.maximum(variance_a + variance_b - 2.0 * shared_covariance, 0.0))
    return Difference(
        a.value, b.value, group_intervals, lambda _: fixed_correlation, standard_error, dof, (a, b)
    )


def paired_mean_difference(
    a: ClusterMeans,
    b: ClusterMeans,
    covariance: FloatArray,
    *,
    is_fraction: bool = False,
    n_changed: FloatArray | None = None,
    is_survey_sample: bool = False,
) -> Difference:
    """Compare two means of the same clusters.

    ``n_changed``: of two models on the same rows, the clusters whose sums differ; without it the
    rows are of two groups, and proportions are compared by MOVER. Shapes: ``covariance, n_changed``
    [h].
    """
    no_overlap = np.zeros_like(covariance)
    difference = independent_mean_difference(
        a, b, covariance, no_overlap, is_fraction=is_fraction, floor_variances=False
    )
    if not a.is_proportion:
        return difference

    def correlation(z: ZValues) -> FloatArray:
        with np.errstate(invalid="ignore"):
            t_inflations = a.t_inflation(z), b.t_inflation(z)
            variance_a, variance_b = (
                group.binomial_variance()
                * np.maximum(
                    group.estimated_design_effect(z, inflation), group.rare_outcome_design_effect()
                )
                for group, inflation in zip((a, b), t_inflations, strict=True)
            )
            # The covariance is inflated like the variances, so that the correlation stays the same.
            shared_covariance = covariance * np.sqrt(t_inflations[0] * t_inflations[1])
        is_constant = (a.variance <= _ZERO_VARIANCE) | (b.variance <= _ZERO_VARIANCE)
        return np.asarray(
            np.where(
                is_constant,
                0.0,
                _covariance_to_correlation(shared_covariance, np.sqrt(variance_a * variance_b)),
            )
        )

    paired_proportions = (
        ProportionDifferences.from_paired_means(
            a, b, covariance, n_changed, is_survey_sample=is_survey_sample
        )
        if n_changed is not None and b.is_proportion
        else None
    )
    return replace(difference, correlation=correlation, proportion_differences=paired_proportions)


def _skewness_adjusted_t_interval(
    group: ClusterMeans, z: ZValues, *, is_fraction: bool
) -> Interval:
    from scipy.special import ndtr

    half_width = t_from_z(z, group.dof) * np.sqrt(group.variance)
    interval = Interval(group.value - half_width, group.value + half_width)
    is_constant = _has_constant_rows(group)
    if not (is_fraction and is_constant.any()):
        return interval
    wilson_interval = wilson_interval_of_n_clusters(
        group.value, group.dof + 1.0, 2.0 * ndtr(z) - 1.0
    )
    return Interval(
        np.where(is_constant, wilson_interval.low, interval.low),
        np.where(is_constant, wilson_interval.high, interval.high),
    )


def _has_constant_rows(group: ClusterMeans) -> npt.NDArray[np.bool_]:
    """Mask groups whose rows are all equal, up to rounding."""
    return np.asarray(np.sqrt(group.variance) <= _RELATIVE_TOLERANCE * np.abs(group.value))


def _correlation_of_proportions(
    a: ClusterMeans,
    b: ClusterMeans,
    covariance: FloatArray,
    cluster_overlap: FloatArray,
    z: ZValues,
) -> FloatArray:
    with np.errstate(invalid="ignore"):
        binomial_a, binomial_b = a.binomial_variance(), b.binomial_variance()
        t_inflations = a.t_inflation(z), b.t_inflation(z)
        root_a, root_b = np.sqrt(t_inflations[0]), np.sqrt(t_inflations[1])
        # Variance of the difference by the clusters' residuals, with t inflation.
        own_variance = (
            a.variance * root_a**2 + b.variance * root_b**2 - 2.0 * covariance * root_a * root_b
        )
        joint_sd = np.sqrt(a.value * (1.0 - a.value) * b.value * (1.0 - b.value))
        # Variance by the pooled intracluster correlation; common clusters reduce it.
        pooled_variance = (
            binomial_a * a.pooled_design_effect() + binomial_b * b.pooled_design_effect()
        )
        pooled_variance = (
            pooled_variance - 2.0 * a.intracluster_correlation * cluster_overlap * joint_sd
        )
        design_effects = (
            a.estimated_design_effect(z, t_inflations[0]),
            b.estimated_design_effect(z, t_inflations[1]),
        )
        separate_variance = binomial_a * design_effects[0] + binomial_b * design_effects[1]
        largest_effects = (
            np.maximum(x, g.rare_outcome_design_effect())
            for x, g in zip(design_effects, (a, b), strict=True)
        )
        sd_product = np.sqrt(
            binomial_a * next(largest_effects) * binomial_b * next(largest_effects)
        )
        # The correlation with which MOVER's variance is the larger of both.
        correlation = _covariance_to_correlation(
            (separate_variance - np.maximum(own_variance, pooled_variance)) / 2.0, sd_product
        )
    # Groups without common clusters may still be correlated: strata have fixed sample sizes.
    is_disjoint = (cluster_overlap <= 0) & (covariance == 0)
    is_undefined = (a.variance <= _ZERO_VARIANCE) | (b.variance <= _ZERO_VARIANCE) | is_disjoint
    return np.where(is_undefined, 0.0, correlation)


def difference_from_replicates(
    a: tuple[FloatArray, FloatArray, FloatArray],
    b: tuple[FloatArray, FloatArray, FloatArray],
    correlation: FloatArray,
    build_interval: Callable[[FloatArray, FloatArray, FloatArray, ZValues], Interval],
) -> Difference:
    """Compare statistics whose standard errors come from replicates.

    Shapes: ``a, b`` [h], ``correlation`` [h].
    """
    se_a, se_b = (_replicate_se_or_interval_se(estimate, build_interval) for estimate in (a, b))
    variance = se_a**2 + se_b**2 - 2.0 * correlation * se_a * se_b

    def group_intervals(z: ZValues) -> tuple[Interval, Interval]:
        return build_interval(*a, z), build_interval(*b, z)

    dof = welch_satterthwaite_dof(se_a**2, a[2], se_b**2, b[2])
    standard_error = np.sqrt(np.maximum(variance, 0.0))
    return Difference(a[0], b[0], group_intervals, lambda _: correlation, standard_error, dof)


def _replicate_se_or_interval_se(
    estimate: tuple[FloatArray, FloatArray, FloatArray],
    build_interval: Callable[[FloatArray, FloatArray, FloatArray, ZValues], Interval],
) -> FloatArray:
    """Return standard errors; without variation, the half-width of the 95 % interval over z.

    A group without an error has identical replicates, but an interval of positive width.
    """
    interval = build_interval(*estimate, Z_95)
    se_from_interval = np.maximum(estimate[0] - interval.low, interval.high - estimate[0]) / Z_95
    return np.where(
        (estimate[1] == 0.0) & np.isfinite(se_from_interval), se_from_interval, estimate[1]
    )


def _covariance_to_correlation(covariance: FloatArray, sd_product: FloatArray) -> FloatArray:
    ratio = np.divide(
        covariance,
        sd_product,
        out=np.zeros(np.broadcast_shapes(covariance.shape, sd_product.shape)),
        where=sd_product > 0,
    )
    return np.asarray(np.clip(np.nan_to_num(ratio), -1.0, 1.0))
