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
    own = _beyond_error(means.lean, means.lean_error)
    if family is None:
        return Slopes(own, own)
    clusters = means.freedom + 1.0

    def together(x: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(family, weights=x)[family], dtype=np.float64)

    held = together(np.where(np.isfinite(means.value), clusters, 0.0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # What rows add, so that groups of all sizes can be put together.
        two = _finite(means.variance * means.units**2)
        lean, error = (_finite(x * means.units) for x in (means.lean, means.lean_error))
        four = _finite(means.peaked / clusters) * two**2
        second = together(two)
        lean = together(lean * two) / second
        error = np.sqrt(together((error * two) ** 2)) / second
        peaked = held * together(four) / second**2
        squares = 2.0 * means.freedom / np.maximum(peaked - 1.0, 1e-9)
        lent = _beyond_error(lean, error) / means.units * squares / (squares + HALF_LENT_SQUARES)
    lent = _finite(lent)
    return Slopes(np.minimum(own, lent), np.maximum(own, lent))


def _beyond_error(lean: FloatArray, error: FloatArray) -> FloatArray:
    """Shrink slopes that may be chance: half of one that is 0.7 standard errors from 0 counts."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _finite(lean * (lean**2 / (lean**2 + error**2 / 2.0)))


def _finite(x: FloatArray) -> FloatArray:
    """Put 0 where there is no number."""
    return np.where(np.isfinite(x), x, 0.0)


def number_interval(
    means: ClusterMeans, slopes: Slopes, z: float | FloatArray, *, fraction: bool
) -> Interval:
    """Return the intervals of means of numbers that reach z standard errors."""
    base = logit_reach if fraction else student_reach
    ends = base(means.value, np.sqrt(means.variance), means.freedom, z)
    square = quantile(z, means.freedom) ** 2
    plain = np.sqrt(square * means.variance)

    def reach(before: FloatArray, slope: FloatArray) -> FloatArray:
        # From where the end is, or from Student's t: as far as the nearer one goes.
        half = square * np.maximum(slope, 0.0) / 2.0
        found = half + np.hypot(half, plain)
        return np.asarray(np.maximum(before, np.minimum(found, before + found - plain)))

    with np.errstate(invalid="ignore", over="ignore"):
        low = means.value - reach(means.value - ends.low, -slopes.down)
        high = means.value + reach(ends.high - means.value, slopes.up)
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

    def reach(z: float) -> Interval:
        return within_range(number_interval(mean, slopes, z, fraction=measure.fraction), measure)

    return reach


def within_range(ends: Interval, measure: Measure) -> Interval:
    """Cut an interval where the metric's range ends: a correlation stays within −1 and 1."""
    low, high = measure.info.low, measure.info.high
    floor, ceiling = (-np.inf if low is None else low), (np.inf if high is None else high)
    return Interval(np.maximum(ends.low, floor), np.minimum(ends.high, ceiling))
