"""Intervals of a group's own mean of numbers that are seldom far off on one side.

If one person in fifty has an overlap of 0 and all others one near .94, a sample that holds few bad
scores has a mean that is too high and a variance that is too small, both for the same reason.
Student's interval knows nothing of that. The one here contains every mean m at which

    (value - m)² <= t² V(m),    V(m) = variance + slope (m - value),

where the slope is the third cumulant of the mean over the second: a mean that is lower by what one
bad score costs has a variance that is larger by what one bad score adds. Of 0/1 rows that are
seldom 0 this is Wilson's interval. It only ever lengthens the end that Student's t gives.

A group without a single bad score does not show its slope. The groups of its attribute do: what
they have together counts as v / (v + 1/2), where v = 2 f / (kurtosis - 1) says how many bad scores
the group should have had, twice over.

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
from isolux.stats.constants import HALF_LENT_SQUARES
from isolux.stats.intervals import Interval, logit_reach, quantile, student_reach
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Slopes:
    """By how much each mean's variance rises with the mean: ``[g]``, for either end."""

    down: FloatArray
    up: FloatArray

    def at(self, rows: IntArray) -> Slopes:
        """Return some of the groups."""
        return Slopes(self.down[rows], self.up[rows])


def slopes_of(means: ClusterMeans, family: IntArray | None = None) -> Slopes | None:
    """Say how the variance of each mean of numbers would change with the mean.

    Shapes: ``family`` [g].
    """
    if means.lean is None or means.lean_error is None or means.peaked is None:
        return None
    group_slopes = _shrink_slope(means.lean, means.lean_error)
    if family is None:
        return Slopes(group_slopes, group_slopes)
    n_clusters = means.freedom + 1.0

    def sum_by_family(x: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(family, weights=x)[family], dtype=np.float64)

    family_clusters = sum_by_family(np.where(np.isfinite(means.value), n_clusters, 0.0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # What rows add, so that groups of all sizes can be put together.
        second_cumulants = _finite(means.variance * means.units**2)
        slopes, slope_errors = (_finite(x * means.units) for x in (means.lean, means.lean_error))
        fourth_cumulants = _finite(means.peaked / n_clusters) * second_cumulants**2
        family_second = sum_by_family(second_cumulants)
        slopes = sum_by_family(slopes * second_cumulants) / family_second
        slope_errors = (
            np.sqrt(sum_by_family((slope_errors * second_cumulants) ** 2)) / family_second
        )
        family_kurtosis = family_clusters * sum_by_family(fourth_cumulants) / family_second**2
        variance_dof = 2.0 * means.freedom / np.maximum(family_kurtosis - 1.0, 1e-9)
        pooled_slopes = (
            _shrink_slope(slopes, slope_errors)
            / means.units
            * variance_dof
            / (variance_dof + HALF_LENT_SQUARES)
        )
    pooled_slopes = _finite(pooled_slopes)
    return Slopes(np.minimum(group_slopes, pooled_slopes), np.maximum(group_slopes, pooled_slopes))


def _shrink_slope(slope: FloatArray, slope_error: FloatArray) -> FloatArray:
    """Shrink slopes that may be chance: half of one that is 0.7 standard errors from 0 counts."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _finite(slope * (slope**2 / (slope**2 + slope_error**2 / 2.0)))


def _finite(x: FloatArray) -> FloatArray:
    """Put 0 where there is no number."""
    return np.where(np.isfinite(x), x, 0.0)


def number_interval(
    means: ClusterMeans, slopes: Slopes, z: float | FloatArray, *, fraction: bool
) -> Interval:
    """Return the intervals of means of numbers that reach z standard errors."""
    build_interval = logit_reach if fraction else student_reach
    base_interval = build_interval(means.value, np.sqrt(means.variance), means.freedom, z)
    t_squared = quantile(z, means.freedom) ** 2
    student_half_width = np.sqrt(t_squared * means.variance)

    def lengthen(half_width: FloatArray, slope: FloatArray) -> FloatArray:
        # From where the end is, or from Student's t: as far as the nearer one goes.
        half_slope = t_squared * np.maximum(slope, 0.0) / 2.0
        adjusted = half_slope + np.hypot(half_slope, student_half_width)
        return np.asarray(
            np.maximum(half_width, np.minimum(adjusted, half_width + adjusted - student_half_width))
        )

    with np.errstate(invalid="ignore", over="ignore"):
        low = means.value - lengthen(means.value - base_interval.low, -slopes.down)
        high = means.value + lengthen(base_interval.high - means.value, slopes.up)
    if fraction:
        low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    return Interval(low, high)


def of_numbers(
    mean: ClusterMeans, families: IntArray | None, measure: Measure
) -> Callable[[float], Interval]:
    """Give the intervals of means of numbers at any reach: those that are an audit's default.

    Shapes: ``families`` [g].
    """
    slopes = slopes_of(mean, families)
    assert slopes is not None  # noqa: S101 - nor of shares

    def build_interval(z: float) -> Interval:
        return within_range(number_interval(mean, slopes, z, fraction=measure.fraction), measure)

    return build_interval


def within_range(interval: Interval, measure: Measure) -> Interval:
    """Cut an interval where the metric's range ends: a correlation stays within −1 and 1."""
    low, high = measure.info.low, measure.info.high
    floor, ceiling = (-np.inf if low is None else low), (np.inf if high is None else high)
    return Interval(np.maximum(interval.low, floor), np.minimum(interval.high, ceiling))
