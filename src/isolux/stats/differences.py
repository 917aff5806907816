"""Differences of two groups: one interval, and the test that agrees with it.

Two shares have one variance that test and intervals both ask (``stats/share_gaps.py``). Of all
others the interval of a - b is put together from the two groups' own (MOVER,
``stats/intervals.py``) at any reach z, and the test asks at which z it would just touch 0. Either
way a p-value of .05 or less and a 95 % interval without 0 are one and the same statement.

Groups that share clusters are correlated. The correlation that MOVER takes is the one that gives
the difference the larger of two variances: that of the clusters' own residuals, and that of
everyone's correlation within clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from isolux.stats.alike import at_least_alike
from isolux.stats.intervals import (
    Interval,
    difference_interval,
    log_ratio_interval,
    quantile,
    wilson_at_edge,
)
from isolux.stats.share_gaps import FURTHEST, ShareGaps, welch_freedom
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray

__all__ = [
    "Difference",
    "Reach",
    "deviates",
    "of_means",
    "of_replicates",
    "paired_means",
    "quantile",
    "two_sided",
]

_STEPS = 0.1
"""Steps of the deviate, between which a gap is placed by interpolation: reaches bend little."""
_ROUNDING = 1e-15
"""A standard error below this share of its mean is rounding: nothing varies."""
_TOLD = 1.959963984540054
"""The reach of a 95 % interval."""
_FLAT = 1e-14
"""A variance of shares below this is rounding: nothing varies."""

_ENTRIES = 2048
"""Pairs times reaches that are asked together."""
_TOGETHER = 16
"""Reaches that are asked together at most: most deviates are small, and ask no more."""

Reach = float | FloatArray
"""One reach of all pairs, or several, ``[k, 1]``, of which each is asked of all."""
Ends = Callable[[Reach], tuple[Interval, Interval]]


@dataclass(frozen=True, slots=True)
class Difference:
    """Differences a - b of h pairs of groups.

    Parameters
    ----------
    a, b : [h] float
        The groups' values.
    ends : callable
        Both groups' intervals that reach z standard errors: of one z ``[h]``, of ``[k, 1]`` of them
        ``[k, h]``.
    correlation : callable
        What MOVER takes, at a reach of z, ``[h]`` or ``[k, h]``.
    standard_error, freedom : [h] float
        Of the difference, and on how many degrees of freedom it rests.
    groups : (ClusterMeans, ClusterMeans), optional
        Where both are means.
    gaps : ShareGaps, optional
        Where both are shares of people who are in one of the groups only: asked instead of MOVER.
    span : float
        How far apart two values can be at most: no interval of a difference goes beyond it.
    also : ([h] float, [h] float), optional
        Other values that the two groups may be compared by: the interval reaches as far as it would
        about the difference of those, too.
    """

    a: FloatArray
    b: FloatArray
    ends: Ends
    correlation: Callable[[Reach], FloatArray]
    standard_error: FloatArray
    freedom: FloatArray
    groups: tuple[ClusterMeans, ClusterMeans] | None = None
    gaps: ShareGaps | None = None
    span: float = np.inf
    also: tuple[FloatArray, FloatArray] | None = None

    def interval(self, z: float, *, log: bool = False, careful: bool = False) -> Interval:
        """Return the interval of a - b, or of ln(a / b), that reaches z standard errors.

        ``careful``: ends of two shares that are asked alone (``ShareGaps.interval``).
        """
        if self.gaps is not None:
            if log:
                return self.gaps.log_ratio_interval(z, careful=careful)
            return self.gaps.interval(z, careful=careful)
        return self.of_ends(*self.ends(z), z, log=log)

    def farthest(self, z: float, *, log: bool = False, towards: bool = False) -> FloatArray:
        """Return the larger of ``high`` and ``-low`` of each interval: ``[h]``.

        -inf of pairs that are sure to be below the largest, NaN where there is no interval.
        ``towards``: the larger of ``low`` and ``-high``, above 0 where 0 is not in the interval.
        """
        if self.gaps is not None:
            return self.gaps.farthest(z, log=log, towards=towards)
        found = self.interval(z, log=log)
        sign = -1.0 if towards else 1.0
        return np.asarray(np.fmax(sign * found.high, -sign * found.low))

    def of_ends(self, one: Interval, two: Interval, z: Reach, *, log: bool = False) -> Interval:
        """Put the interval together from the two groups' own (MOVER)."""
        join = log_ratio_interval if log else difference_interval
        found = join(self.a, one, self.b, two, self.correlation(z))
        if self.also is not None:
            found = self._about_both(found, log=log)
        if log or np.isinf(self.span):
            return found
        # A cut end is further from 0 than any difference: the test that asks the reach is the same.
        return Interval(np.maximum(found.low, -self.span), np.minimum(found.high, self.span))

    def _about_both(self, found: Interval, *, log: bool) -> Interval:
        """Let intervals about one difference reach as far as about the other."""
        assert self.also is not None  # noqa: S101 - callers ask
        a, b = self.also
        with np.errstate(divide="ignore", invalid="ignore"):
            one = np.log(self.a / self.b) if log else self.a - self.b
            two = np.log(a / b) if log else a - b
            moved = np.nan_to_num(two - one, nan=0.0, posinf=0.0, neginf=0.0)
        return Interval(found.low + np.minimum(moved, 0.0), found.high + np.maximum(moved, 0.0))


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
    if difference.gaps is not None:
        return difference.gaps.deviates()
    gap = difference.a - difference.b
    size = np.abs(gap)
    found = np.where(np.isnan(gap), np.nan, FURTHEST)
    open_ = np.isfinite(gap) & (size > 0)
    found[size == 0] = 0.0
    before, reached = 0.0, np.zeros(len(gap))
    for z, reach in _reaches(difference, gap, exact):
        if not open_.any():
            break
        now = open_ & (reach >= size)
        step = np.maximum(reach - reached, 1e-300)  # where it did not grow, 0 / 0 would be NaN
        part = np.clip((size - reached) / step, 0.0, 1.0)
        found[now] = (before + part * (z - before))[now]
        open_ &= ~now
        before, reached = z, reach
    found[open_ & np.isnan(reached)] = np.nan  # no interval, no test
    return np.sign(gap) * found


def _reaches(
    difference: Difference, gap: FloatArray, exact: tuple[float, ...]
) -> Iterator[tuple[float, FloatArray]]:
    """Give each reach in turn, and how far towards 0 the intervals of that reach extend: ``[h]``.

    Several are asked at once: a few pairs cost as little sixteen times as once.
    """
    steps = np.array(sorted({*np.arange(1, round(FURTHEST / _STEPS) + 1) * _STEPS, *exact}))
    k = min(max(_ENTRIES // max(len(gap), 1), 1), _TOGETHER)
    for start in range(0, len(steps), k):
        some = steps[start : start + k]
        ends = difference.of_ends(*difference.ends(some[:, None]), some[:, None])
        reach = np.where(gap > 0, gap - ends.low, ends.high - gap)
        yield from zip(some.tolist(), np.broadcast_to(reach, (len(some), len(gap))), strict=True)


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
    a: ClusterMeans,
    b: ClusterMeans,
    covariance: FloatArray,
    shared: FloatArray,
    *,
    fraction: bool = False,
    alike: bool = True,
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
    fraction : bool
        Whether means lie between 0 and 1. Then a group whose rows are all alike has Wilson's
        interval with each cluster one observation, as its value has; of anything else nothing can
        be said where neither group varies.
    alike : bool
        Whether a group of few clusters whose numbers vary less than the other's may owe that to
        chance (``stats/alike.py``).
    """
    if not a.shares:
        return _of_numbers(a, b, covariance, fraction=fraction, alike=alike)
    variance = np.maximum(a.variance + b.variance - 2.0 * covariance, 0.0)

    def ends(z: Reach) -> tuple[Interval, Interval]:
        return a.score_interval(z), b.score_interval(z)

    def correlation(z: Reach) -> FloatArray:
        return _of_shares(a, b, covariance, shared, z)

    freedom = welch_freedom(a.variance, a.freedom, b.variance, b.freedom)
    gaps = ShareGaps.of(a, b, covariance, shared) if b.shares else None
    error = np.sqrt(variance)
    return Difference(a.value, b.value, ends, correlation, error, freedom, (a, b), gaps)


def _of_numbers(
    a: ClusterMeans, b: ClusterMeans, covariance: FloatArray, *, fraction: bool, alike: bool
) -> Difference:
    """Compare means of rows that are not 0 or 1."""
    if alike:
        flat = _is_flat(a) & _is_flat(b)
        a, b = at_least_alike(a, b, flat), at_least_alike(b, a, flat)
    flat = _is_flat(a) | _is_flat(b)
    tied = np.where(flat, 0.0, covariance)  # what is left of nothing is rounding
    one, two = (np.where(_is_flat(g), 0.0, g.variance) for g in (a, b))
    fixed = _ratio(tied, np.sqrt(one * two))
    nothing = np.where(_is_flat(a) & _is_flat(b) & (not fraction), np.nan, 0.0)

    def ends(z: Reach) -> tuple[Interval, Interval]:
        own = _student(a, z, fraction=fraction), _student(b, z, fraction=fraction)
        return own[0], Interval(own[1].low + nothing, own[1].high + nothing)

    freedom = welch_freedom(one, a.freedom, two, b.freedom)
    error = np.sqrt(np.maximum(one + two - 2.0 * tied, 0.0))
    return Difference(a.value, b.value, ends, lambda _: fixed, error, freedom, (a, b))


def paired_means(
    a: ClusterMeans, b: ClusterMeans, covariance: FloatArray, *, fraction: bool = False
) -> Difference:
    """Compare two means of the same rows, two models' on the same people, say.

    Nothing but their own clusters tells how two models' mistakes hang together, so everyone's
    correlation within clusters does not enter the correlation here.

    Parameters
    ----------
    a, b : ClusterMeans
        Of h groups each, row by row the same people.
    covariance : [h] float
        Of the two values, by the clusters' residuals.
    fraction : bool
        As in ``of_means``.
    """
    none = np.zeros_like(covariance)
    found = of_means(a, b, covariance, none, fraction=fraction, alike=False)
    if not a.shares:
        return found

    def correlation(z: Reach) -> FloatArray:
        with np.errstate(invalid="ignore"):
            grown = a.growth(z), b.growth(z)
            one, two = (
                group.binomial() * np.maximum(group.measured_effect(z, own), group.rare_effect())
                for group, own in zip((a, b), grown, strict=True)
            )
            tied = covariance * np.sqrt(grown[0] * grown[1])
        flat = (a.variance <= _FLAT) | (b.variance <= _FLAT)
        return np.asarray(np.where(flat, 0.0, _ratio(tied, np.sqrt(one * two))))

    return replace(found, correlation=correlation, gaps=None)


def _student(group: ClusterMeans, z: Reach, *, fraction: bool) -> Interval:
    from scipy.special import ndtr

    half = quantile(z, group.freedom) * np.sqrt(group.variance)
    own = Interval(group.value - half, group.value + half)
    flat = _is_flat(group)
    if not (fraction and flat.any()):
        return own
    edge = wilson_at_edge(group.value, group.freedom + 1.0, 2.0 * ndtr(z) - 1.0)
    return Interval(np.where(flat, edge.low, own.low), np.where(flat, edge.high, own.high))


def _is_flat(group: ClusterMeans) -> npt.NDArray[np.bool_]:
    """Tell where all rows are alike, but for rounding."""
    return np.asarray(np.sqrt(group.variance) <= _ROUNDING * np.abs(group.value))


def _of_shares(
    a: ClusterMeans, b: ClusterMeans, covariance: FloatArray, shared: FloatArray, z: Reach
) -> FloatArray:
    with np.errstate(invalid="ignore"):
        one, two = a.binomial(), b.binomial()
        grown = a.growth(z), b.growth(z)
        root_a, root_b = np.sqrt(grown[0]), np.sqrt(grown[1])
        own = a.variance * root_a**2 + b.variance * root_b**2 - 2.0 * covariance * root_a * root_b
        spread = np.sqrt(a.value * (1.0 - a.value) * b.value * (1.0 - b.value))
        pooled = one * a.pooled_effect() + two * b.pooled_effect()
        pooled = pooled - 2.0 * a.correlation * shared * spread
        effects = a.measured_effect(z, grown[0]), b.measured_effect(z, grown[1])
        apart = one * effects[0] + two * effects[1]
        widest = (np.maximum(x, g.rare_effect()) for x, g in zip(effects, (a, b), strict=True))
        wide = np.sqrt(one * next(widest) * two * next(widest))
        found = _ratio((apart - np.maximum(own, pooled)) / 2.0, wide)
    # Strata tie groups that share no cluster: one drawn from a stratum is one less of another.
    apart_wholly = (shared <= 0) & (covariance == 0)
    flat = (a.variance <= _FLAT) | (b.variance <= _FLAT) | apart_wholly
    return np.where(flat, 0.0, found)


def of_replicates(
    a: tuple[FloatArray, FloatArray, FloatArray],
    b: tuple[FloatArray, FloatArray, FloatArray],
    correlation: FloatArray,
    ends: Callable[[FloatArray, FloatArray, FloatArray, Reach], Interval],
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
    one, two = (_as_sure_as_its_interval(side, ends) for side in (a, b))
    variance = one**2 + two**2 - 2.0 * correlation * one * two

    def both(z: Reach) -> tuple[Interval, Interval]:
        return ends(*a, z), ends(*b, z)

    freedom = welch_freedom(one**2, a[2], two**2, b[2])
    error = np.sqrt(np.maximum(variance, 0.0))
    return Difference(a[0], b[0], both, lambda _: correlation, error, freedom)


def _as_sure_as_its_interval(
    side: tuple[FloatArray, FloatArray, FloatArray],
    ends: Callable[[FloatArray, FloatArray, FloatArray, Reach], Interval],
) -> FloatArray:
    """Return standard errors; where nothing varied, what the interval reaches says how sure it is.

    A group without a mistake has replicates that are all alike. That is no error of 0: a gap that
    its interval could not tell from chance would otherwise be called detectable.
    """
    reached = ends(*side, _TOLD)
    reach = np.maximum(side[0] - reached.low, reached.high - side[0]) / _TOLD
    return np.where((side[1] == 0.0) & np.isfinite(reach), reach, side[1])


def _ratio(x: FloatArray, y: FloatArray) -> FloatArray:
    found = np.divide(x, y, out=np.zeros(np.broadcast_shapes(x.shape, y.shape)), where=y > 0)
    return np.asarray(np.clip(np.nan_to_num(found), -1.0, 1.0))
