"""Skewness-adjusted t intervals of means of numbers.

If one person in fifty has an IoU of 0 and all others one near 0.94, a sample with few bad scores
has a mean that is too high and a variance that is too small. Student's t interval ignores that
correlation. This interval contains every mean m at which

    (value - m)² <= t² V(m),    V(m) = variance + slope (m - value),

where the variance slope is the third cumulant of the mean over the second: with one more bad score
the mean is lower and the variance larger. For 0/1 rows that are rarely 0 this is Wilson's interval.
It only ever lengthens Student's t interval.

A group without a bad score has no information about its slope. The slope pooled over the groups of
its attribute gets the weight v / (v + 1/2), where v = 2 f / (kurtosis - 1), the equivalent
chi-squared degrees of freedom, is twice the expected number of bad scores in the group.

References
----------
.. [1] Johnson, N. J. (1978). Modified t tests and confidence intervals for asymmetrical
   populations. Journal of the American Statistical Association 73(363), 536-544.
.. [2] Hall, P. (1992). On the removal of skewness by transformation. Journal of the Royal
   Statistical Society B 54(1), 221-228.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isolux.groups.estimates import Measure
from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.constants import HALF_WEIGHT_POOLED_DOF
from isolux.stats.intervals import Interval, logit_t_interval, t_from_z, t_interval
from isolux.stats.statistic import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class VarianceSlopes:
    """Slope of each mean's variance in the mean: ``[g]``, for the lower and the upper bound."""

    lower: FloatArray
    upper: FloatArray

    def take(self, rows: IntArray) -> VarianceSlopes:
        """Select groups by index."""
        return VarianceSlopes(self.lower[rows], self.upper[rows])


def estimate_variance_slopes(
    means: ClusterMeans, family: IntArray | None = None
) -> VarianceSlopes | None:
    """Estimate variance slopes, pooled over the groups of an attribute.

    Shapes: ``family`` [g].
    """
    if means.variance_slope is None or means.variance_slope_se is None or means.kurtosis is None:
        return None
    group_slopes = _shrink_uncertain_slopes(means.variance_slope, means.variance_slope_se)
    if family is None:
        return VarianceSlopes(group_slopes, group_slopes)
    # Effective clusters: for equal ones, the degrees of freedom are their number minus 1.
    n_clusters = means.dof + 1.0

    def sum_by_family(x: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(family, weights=x)[family], dtype=np.float64)

    family_clusters = sum_by_family(np.where(np.isfinite(means.value), n_clusters, 0.0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Cumulants of row sums are additive, so that groups of different sizes can be pooled.
        second_cumulants = _zero_if_not_finite(means.variance * means.n_units**2)
        slopes, slope_errors = (
            _zero_if_not_finite(x * means.n_units)
            for x in (means.variance_slope, means.variance_slope_se)
        )
        fourth_cumulants = _zero_if_not_finite(means.kurtosis / n_clusters) * second_cumulants**2
        family_second = sum_by_family(second_cumulants)
        # Third cumulants are summed over the family, and divided by the summed second ones.
        slopes = sum_by_family(slopes * second_cumulants) / family_second
        slope_errors = (
            np.sqrt(sum_by_family((slope_errors * second_cumulants) ** 2)) / family_second
        )
        family_kurtosis = family_clusters * sum_by_family(fourth_cumulants) / family_second**2
        # A variance with f degrees of freedom is as precise as v = 2 f / (kurtosis - 1) squares of
        # normal variables (stats/differences.py).
        variance_dof = 2.0 * means.dof / np.maximum(family_kurtosis - 1.0, 1e-9)
        pooled_slopes = (
            _shrink_uncertain_slopes(slopes, slope_errors)
            / means.n_units
            * variance_dof
            / (variance_dof + HALF_WEIGHT_POOLED_DOF)
        )
    pooled_slopes = _zero_if_not_finite(pooled_slopes)
    # The larger slope on each side: intervals are only ever lengthened.
    return VarianceSlopes(
        np.minimum(group_slopes, pooled_slopes), np.maximum(group_slopes, pooled_slopes)
    )


def _shrink_uncertain_slopes(slope: FloatArray, slope_error: FloatArray) -> FloatArray:
    """Shrink uncertain slopes: half of a slope of 0.7 standard errors counts."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # A slope that noise explains must not lengthen an interval; e is the error of a symmetric
        # distribution's slope (docs/methods/other_statistics.md).
        return _zero_if_not_finite(slope * (slope**2 / (slope**2 + slope_error**2 / 2.0)))


def _zero_if_not_finite(x: FloatArray) -> FloatArray:
    """Replace values that are not finite by 0."""
    return np.where(np.isfinite(x), x, 0.0)


def skewness_adjusted_interval(
    means: ClusterMeans, slopes: VarianceSlopes, z: float | FloatArray, *, is_fraction: bool
) -> Interval:
    """Return skewness-adjusted intervals of means at normal quantile z (Johnson, Hall)."""
    # The logit keeps a fraction's interval within 0 and 1.
    build_interval = logit_t_interval if is_fraction else t_interval
    base_interval = build_interval(means.value, np.sqrt(means.variance), means.dof, z)
    t_squared = t_from_z(z, means.dof) ** 2
    student_half_width = np.sqrt(t_squared * means.variance)

    def lengthen(half_width: FloatArray, slope: FloatArray) -> FloatArray:
        # Solves the quadratic inequality above; never further than the base interval's extension.
        half_slope = t_squared * np.maximum(slope, 0.0) / 2.0
        adjusted = half_slope + np.hypot(half_slope, student_half_width)
        return np.asarray(
            np.maximum(half_width, np.minimum(adjusted, half_width + adjusted - student_half_width))
        )

    with np.errstate(invalid="ignore", over="ignore"):
        low = means.value - lengthen(means.value - base_interval.low, -slopes.lower)
        high = means.value + lengthen(base_interval.high - means.value, slopes.upper)
    if is_fraction:
        low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    return Interval(low, high)


def build_interval_function(
    mean: ClusterMeans, families: IntArray | None, measure: Measure
) -> Callable[[float], Interval]:
    """Build the function of z that returns the default intervals of means of numbers.

    Shapes: ``families`` [g].
    """
    slopes = estimate_variance_slopes(mean, families)
    assert slopes is not None  # noqa: S101 - nor of shares

    def build_interval(z: float) -> Interval:
        return clip_to_metric_range(
            skewness_adjusted_interval(mean, slopes, z, is_fraction=measure.is_fraction), measure
        )

    return build_interval


def clip_to_metric_range(interval: Interval, measure: Measure) -> Interval:
    """Clip an interval to the metric's range: a correlation is within −1 and 1."""
    low, high = measure.info.low, measure.info.high
    floor, ceiling = (-np.inf if low is None else low), (np.inf if high is None else high)
    return Interval(np.maximum(interval.low, floor), np.minimum(interval.high, ceiling))
