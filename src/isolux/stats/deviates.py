"""A difference of two groups: its interval at any reach, and the reach at which it touches 0.

The test asks the interval, so that a p-value of .05 or less and a 95 % interval without 0 are one
and the same statement. ``stats/differences.py`` makes differences of means and of replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from isolux.stats.constants import DEVIATE_STEP, FURTHEST
from isolux.stats.intervals import Interval, difference_interval, log_ratio_interval
from isolux.stats.share_gaps import ShareGaps
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray

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
        """Return the interval of a - b, or of ln(a / b), that reaches z standard errors."""
        if self.gaps is not None:
            if log:
                return self.gaps.log_ratio_interval(z, careful=careful)
            return self.gaps.interval(z, careful=careful)
        return self.of_ends(*self.ends(z), z, log=log)

    def farthest(self, z: float, *, log: bool = False, towards: bool = False) -> FloatArray:
        """Return the larger of ``high`` and ``-low`` of each interval: ``[h]``."""
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

    Returns [h].
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
    steps = np.array(
        sorted({*np.arange(1, round(FURTHEST / DEVIATE_STEP) + 1) * DEVIATE_STEP, *exact})
    )
    k = min(max(_ENTRIES // max(len(gap), 1), 1), _TOGETHER)
    for start in range(0, len(steps), k):
        some = steps[start : start + k]
        ends = difference.of_ends(*difference.ends(some[:, None]), some[:, None])
        reach = np.where(gap > 0, gap - ends.low, ends.high - gap)
        yield from zip(some.tolist(), np.broadcast_to(reach, (len(some), len(gap))), strict=True)


def two_sided(z: FloatArray) -> FloatArray:
    """Return the two-sided p-value of normal deviates."""
    from scipy.special import ndtr

    return np.asarray(2.0 * ndtr(-np.abs(z)))
