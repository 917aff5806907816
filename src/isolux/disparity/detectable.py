"""The smallest difference that a comparison would have found, with power .8.

A difference is planted: the pair's pooled value less (or, where less is better, plus) d against
the pooled value itself. Found is what lies further from 0 than the interval reaches at the family's
critical deviate. With the interval's own reach at the planted values and 0.84 of the standard
errors that they would have, d is where both add up to d. Near 0 and 1 this is not what a standard
error at the observed values says.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isolux.stats.constants import POWER
from isolux.stats.detectable import smallest_detectable
from isolux.stats.deviates import Difference
from isolux.stats.intervals import quantile
from isolux.stats.roots import passing_zero
from isolux.stats.share_gaps import ShareGaps
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray


def least_detectable(
    apart: Difference,
    critical: float,
    *,
    worse_is_lower: bool,
    power: float = POWER,
    most: float = np.inf,
    paired: bool = False,
) -> FloatArray:
    """Return the smallest difference that would have been found, NaN where none would: ``[h]``."""
    if not np.isfinite(critical):
        return np.full(len(apart.a), np.nan)
    if apart.groups is None or not apart.groups[0].shares:
        freedom = apart.freedom
        found = smallest_detectable(apart.standard_error, quantile(critical, freedom), power)
        return np.where(found <= most, found, np.nan)
    a, b = apart.groups
    pooled = (a.value * a.units + b.value * b.units) / (a.units + b.units)
    if not worse_is_lower:  # the mirror image: shares of the other answer
        pooled = 1.0 - pooled
    # A variance is as sure as the clusters are many in which the rarer answer occurs at all.
    rare = np.maximum(a.rare + b.rare, 2.0)
    needed = (
        _asked(apart.gaps, rare, critical, power)
        if apart.gaps
        else _mover(apart, critical, power, paired=paired)
    )

    def excess(planted: FloatArray) -> FloatArray:
        return planted - needed(pooled - planted, pooled)

    found = passing_zero(excess, np.zeros_like(pooled), pooled)
    # Never enough, down to a share of 0 in the lower group: no difference could have been seen.
    none = found >= pooled * (1.0 - 1e-6)
    return np.where(none | np.isnan(pooled), np.nan, found)


_Needed = Callable[[FloatArray, FloatArray], FloatArray]
"""How far apart two shares, the lower first, must be to be found so often."""


def _asked(gaps: ShareGaps, rare: FloatArray, critical: float, power: float) -> _Needed:
    """Ask the variance that test and interval share."""
    from scipy.special import ndtri

    z, free = float(ndtri(power)), gaps.freedom

    def needed(lower: FloatArray, upper: FloatArray) -> FloatArray:
        there = gaps.at(lower, upper)
        own, least = there.variances(lower - upper)  # at the shares themselves
        reach = there.reach(critical)
        # What few clusters say of their own variance varies, and the reach with it.
        unsure = np.where(np.isinf(free), 0.0, reach**2 / (2.0 * np.minimum(free, rare)))
        return np.asarray(reach + z * np.sqrt(np.maximum(own, least) + unsure))

    return needed


def _mover(apart: Difference, critical: float, power: float, *, paired: bool) -> _Needed:
    """Ask MOVER, of people who are in several groups or were judged by two models."""
    assert apart.groups is not None  # noqa: S101 - shares are means
    a, b = apart.groups
    from scipy.special import ndtri

    rho = apart.correlation(critical)
    effects = [g.design_effect(critical) for g in (a, b)]
    plain = [g.measured_effect(critical) / g.growth(critical) for g in (a, b)]
    unsure = _unsure(a, b, rho)
    together = np.sqrt(plain[0] * plain[1])
    z = float(ndtri(power))

    def needed(lower: FloatArray, upper: FloatArray) -> FloatArray:
        up, down = _ends((a, b), (lower, upper), effects, critical)
        tied = _tied(rho, lower, upper, together) if paired else rho
        reach = _reach(up, down, tied)
        own = _spread((a, b), (lower, upper), plain, tied)
        return np.asarray(reach + z * np.hypot(own, unsure * up * down / reach))

    return needed


def _tied(rho: FloatArray, lower: FloatArray, upper: FloatArray, effect: FloatArray) -> FloatArray:
    """Return two models' correlation once one of them has fewer right."""
    one, two = upper * (1.0 - upper), lower * (1.0 - lower)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_clusters = np.nan_to_num(one / two, nan=1.0, posinf=1.0) ** 0.25
        odds = lower * (1.0 - upper) / (upper * (1.0 - lower))
        of_rows = np.sqrt(np.clip(np.nan_to_num(odds, nan=1.0), 0.0, 1.0))
    rows = 1.0 / np.maximum(effect, 1.0)
    return np.asarray(rho * of_rows**rows * np.minimum(of_clusters, 1.0) ** (1.0 - rows))


def _unsure(a: ClusterMeans, b: ClusterMeans, rho: FloatArray) -> FloatArray:
    """Return the standard error of the groups' correlation, 0 where they share no cluster."""
    clusters = np.maximum((a.rare + b.rare) / 2.0, 1.0)
    return np.asarray(np.where(rho != 0.0, (1.0 - rho**2) / np.sqrt(clusters), 0.0))


def _ends(
    groups: tuple[ClusterMeans, ClusterMeans],
    values: tuple[FloatArray, FloatArray],
    effects: list[FloatArray],
    z: float,
) -> tuple[FloatArray, FloatArray]:
    """How far Wilson's interval of the lower group reaches up, and that of the upper one down."""
    (one, two), (lower, upper) = groups, values
    up = _wilson(lower, one.units / effects[0], z, 1.0) - lower
    down = upper - _wilson(upper, two.units / effects[1], z, -1.0)
    return up, down


def _reach(up: FloatArray, down: FloatArray, rho: FloatArray) -> FloatArray:
    """How far the interval of (upper less lower) reaches down: MOVER."""
    return np.sqrt(np.maximum(up * up + down * down - 2.0 * rho * up * down, 1e-300))


def _spread(
    groups: tuple[ClusterMeans, ClusterMeans],
    values: tuple[FloatArray, FloatArray],
    effects: list[FloatArray],
    rho: FloatArray,
) -> FloatArray:
    one, two = (v * (1 - v) * e / g.units for g, v, e in zip(groups, values, effects, strict=True))
    return np.sqrt(np.maximum(one + two - 2.0 * rho * np.sqrt(one * two), 0.0))


def _wilson(p: FloatArray, n: FloatArray, z: float, side: float) -> FloatArray:
    half = z * np.sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n))
    return (p + z * z / (2.0 * n) + side * half) / (1.0 + z * z / n)
