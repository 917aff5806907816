"""Differences of two groups: one interval, and the test that agrees with it.

The interval of a - b is put together from the two groups' own (MOVER, ``stats/intervals.py``) at
any reach z, and the test asks at which z it would just touch 0. So a p-value of .05 or less and a
95 % interval without 0 are one and the same statement.

Groups that share clusters are correlated. The correlation that MOVER takes is the one that gives
the difference the larger of two variances: that of the clusters' own residuals, and that of
everyone's correlation within clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from isolux.stats.intervals import Interval, difference_interval
from isolux.stats.shares import ClusterMeans, quantile
from isolux.stats.statistic import FloatArray

__all__ = [
    "Difference",
    "deviates",
    "of_means",
    "of_replicates",
    "paired_means",
    "quantile",
    "two_sided",
]

_FURTHEST = 8.0
"""Beyond 8 standard errors (p = 1e-15) it makes no difference how far."""
_STEPS = 0.1
"""Steps of the deviate, between which a gap is placed by interpolation: reaches bend little."""
_FLAT = 1e-14
"""A variance of shares below this is rounding: nothing varies."""

Ends = Callable[[float], tuple[Interval, Interval]]


@dataclass(frozen=True, slots=True)
class Difference:
    """Differences a - b of h pairs of groups.

    Parameters
    ----------
    a, b : [h] float
        The groups' values.
    ends : callable
        Both groups' intervals that reach z standard errors.
    correlation : callable
        What MOVER takes, at a reach of z, ``[h]``.
    standard_error, freedom : [h] float
        Of the difference, and on how many degrees of freedom it rests.
    groups : (ClusterMeans, ClusterMeans), optional
        Where both are means.
    """

    a: FloatArray
    b: FloatArray
    ends: Ends
    correlation: Callable[[float], FloatArray]
    standard_error: FloatArray
    freedom: FloatArray
    groups: tuple[ClusterMeans, ClusterMeans] | None = None

    def interval(self, z: float) -> Interval:
        """Return the interval of a - b that reaches z standard errors."""
        one, two = self.ends(z)
        return difference_interval(self.a, one, self.b, two, self.correlation(z))


def deviates(difference: Difference, exact: tuple[float, ...] = ()) -> FloatArray:
    """Find the reach at which each interval touches 0, with the sign of a - b: ``[h]``.

    Parameters
    ----------
    difference : Difference
    exact : tuple of float
        Reaches at which the test must agree with the interval to the last digit.

    Returns
    -------
    [h] float
        A normal deviate, at most 8 in size; 0 where a = b, NaN where either is.

    Examples
    --------
    Two means 3 apart, each with a standard error of 1 and no correlation: 3 / sqrt(2).

    >>> one = np.ones(1)
    >>> apart = Difference(3 * one, 0 * one, lambda z: (Interval(3 - z * one, 3 + z * one),
    ...     Interval(-z * one, z * one)), lambda z: 0 * one, 1.4 * one, one)
    >>> deviates(apart).round(4).item()
    2.1213
    """
    gap = difference.a - difference.b
    size = np.abs(gap)
    found = np.where(np.isnan(gap), np.nan, _FURTHEST)
    open_ = np.isfinite(gap) & (size > 0)
    found[size == 0] = 0.0
    before, reached = 0.0, np.zeros(len(gap))
    for z in sorted({*np.arange(1, round(_FURTHEST / _STEPS) + 1) * _STEPS, *exact}):
        if not open_.any():
            break
        ends = difference.interval(float(z))
        reach = np.where(gap > 0, gap - ends.low, ends.high - gap)
        now = open_ & (reach >= size)
        step = np.maximum(reach - reached, 1e-300)  # where it did not grow, 0 / 0 would be NaN
        part = np.clip((size - reached) / step, 0.0, 1.0)
        found[now] = (before + part * (z - before))[now]
        open_ &= ~now
        before, reached = float(z), reach
    return np.sign(gap) * found


def two_sided(z: FloatArray) -> FloatArray:
    """Return the two-sided p-value of normal deviates.

    Examples
    --------
    >>> two_sided(np.array([-1.959964])).round(4).item()
    0.05
    """
    from scipy.special import ndtr

    return np.asarray(2.0 * ndtr(-np.abs(z)))


def of_means(
    a: ClusterMeans, b: ClusterMeans, covariance: FloatArray, shared: FloatArray
) -> Difference:
    """Compare means of clustered rows.

    Parameters
    ----------
    a, b : ClusterMeans
        Of h groups each.
    covariance : [h] float
        Of the two values, by the clusters' residuals.
    shared : [h] float
        Sum over clusters of the products of both groups' shares of their rows; 0: no cluster is in
        both.
    """
    variance = np.maximum(a.variance + b.variance - 2.0 * covariance, 0.0)

    if a.shares:

        def ends(z: float) -> tuple[Interval, Interval]:
            return a.score_interval(z), b.score_interval(z)

        def correlation(_: float) -> FloatArray:
            return _of_shares(a, b, covariance, shared, _)
    else:
        fixed = _ratio(covariance, np.sqrt(a.variance * b.variance))

        def ends(z: float) -> tuple[Interval, Interval]:
            return _student(a, z), _student(b, z)

        def correlation(_: float) -> FloatArray:
            return fixed

    freedom = _welch(a.variance, a.freedom, b.variance, b.freedom)
    return Difference(a.value, b.value, ends, correlation, np.sqrt(variance), freedom, (a, b))


def paired_means(a: ClusterMeans, b: ClusterMeans, covariance: FloatArray) -> Difference:
    """Compare two means of the same rows, two models' on the same people, say.

    Nothing but their own clusters tells how two models' mistakes hang together, so everyone's
    correlation within clusters does not enter the correlation here.

    Parameters
    ----------
    a, b : ClusterMeans
        Of h groups each, row by row the same people.
    covariance : [h] float
        Of the two values, by the clusters' residuals.
    """
    found = of_means(a, b, covariance, np.zeros_like(covariance))
    if not a.shares:
        return found

    def correlation(z: float) -> FloatArray:
        with np.errstate(invalid="ignore"):
            one, two = a.binomial() * a.design_effect(z), b.binomial() * b.design_effect(z)
            tied = covariance * np.sqrt(a.growth(z) * b.growth(z))
        flat = (a.variance <= _FLAT) | (b.variance <= _FLAT)
        return np.asarray(np.where(flat, 0.0, _ratio(tied, np.sqrt(one * two))))

    return replace(found, correlation=correlation)


def _student(group: ClusterMeans, z: float) -> Interval:
    half = quantile(z, group.freedom) * np.sqrt(group.variance)
    return Interval(group.value - half, group.value + half)


def _of_shares(
    a: ClusterMeans, b: ClusterMeans, covariance: FloatArray, shared: FloatArray, z: float
) -> FloatArray:
    with np.errstate(invalid="ignore"):
        one, two = a.binomial(), b.binomial()
        root_a, root_b = np.sqrt(a.growth(z)), np.sqrt(b.growth(z))
        own = a.variance * root_a**2 + b.variance * root_b**2 - 2.0 * covariance * root_a * root_b
        spread = np.sqrt(a.value * (1.0 - a.value) * b.value * (1.0 - b.value))
        pooled = one * a.pooled_effect() + two * b.pooled_effect()
        pooled = pooled - 2.0 * a.correlation * shared * spread
        apart = one * a.measured_effect(z) + two * b.measured_effect(z)
        wide = np.sqrt(one * a.design_effect(z) * two * b.design_effect(z))
        found = _ratio((apart - np.maximum(own, pooled)) / 2.0, wide)
    # Strata tie groups that share no cluster: one drawn from a stratum is one less of another.
    apart_wholly = (shared <= 0) & (covariance == 0)
    flat = (a.variance <= _FLAT) | (b.variance <= _FLAT) | apart_wholly
    return np.where(flat, 0.0, found)


def of_replicates(
    a: tuple[FloatArray, FloatArray, FloatArray],
    b: tuple[FloatArray, FloatArray, FloatArray],
    correlation: FloatArray,
    ends: Callable[[FloatArray, FloatArray, FloatArray, float], Interval],
) -> Difference:
    """Compare statistics whose standard errors come from replicates.

    Parameters
    ----------
    a, b : ([h] float, [h] float, [h] float)
        Values, standard errors and degrees of freedom.
    correlation : [h] float
        Of the replicates.
    ends : callable
        One group's interval from these and z.
    """
    variance = a[1] ** 2 + b[1] ** 2 - 2.0 * correlation * a[1] * b[1]

    def both(z: float) -> tuple[Interval, Interval]:
        return ends(*a, z), ends(*b, z)

    freedom = _welch(a[1] ** 2, a[2], b[1] ** 2, b[2])
    error = np.sqrt(np.maximum(variance, 0.0))
    return Difference(a[0], b[0], both, lambda _: correlation, error, freedom)


def _welch(
    one: FloatArray, free_one: FloatArray, two: FloatArray, free_two: FloatArray
) -> FloatArray:
    """Degrees of freedom of a sum of two variances (Welch and Satterthwaite)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (one + two) ** 2 / (one**2 / free_one + two**2 / free_two)
    return np.asarray(np.nan_to_num(found, nan=1.0))


def _ratio(x: FloatArray, y: FloatArray) -> FloatArray:
    found = np.divide(x, y, out=np.zeros_like(x), where=y > 0)
    return np.asarray(np.clip(np.nan_to_num(found), -1.0, 1.0))
