"""Differences of two groups: one interval, and the test that agrees with it.

Two shares have one variance that test and intervals both ask (``stats/share_gaps.py``). Of all
others the interval of a - b is put together from the two groups' own (MOVER,
``stats/intervals.py``) at any reach z, and the test asks at which z it would just touch 0. Either
way a p-value of .05 or less and a 95 % interval without 0 are one and the same statement.

Groups that share clusters are correlated. The correlation that MOVER takes is the one that gives
the difference the larger of two variances: that of the clusters' own residuals, and that of
everyone's correlation within clusters.

The least variance of a group's mean of numbers, in a difference to another group's.

Scores that are seldom far off (an overlap of 0 among many near 1) leave a small group without one
of them by chance, and its own variance then says that nothing can happen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from isolux.stats.constants import HALF_OWN_SQUARES
from isolux.stats.deviates import Difference, Reach
from isolux.stats.intervals import Interval, quantile, wilson_at_edge
from isolux.stats.share_gaps import ShareGaps, welch_freedom
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray


def at_least_alike(
    own: ClusterMeans, other: ClusterMeans, flat: npt.NDArray[np.bool_]
) -> ClusterMeans:
    """Widen the variance of a group whose numbers vary less than both groups' do together.

    Shapes: ``flat`` [h].
    """
    weighted = own.row_effect is not None or other.row_effect is not None
    if weighted or own.peaked is None or other.peaked is None:
        return own
    counted = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for n, m in ((own.units, other.units), (own.freedom + 1.0, other.freedom + 1.0)):
            counted.append((own.variance * n * n + other.variance * m * m) / (n + m) / n)
        squares = 2.0 * own.freedom / (np.fmax(own.peaked, other.peaked) - 1.0)
        known = squares**2 / (squares**2 + HALF_OWN_SQUARES**2)
        mixed = known * own.variance + (1.0 - known) * np.minimum(*counted)
    wide = np.where(flat | ~np.isfinite(mixed), own.variance, np.maximum(own.variance, mixed))
    return replace(own, variance=wide)


_ROUNDING = 1e-15
"""A standard error below this share of its mean is rounding: nothing varies."""
_TOLD = 1.959963984540054
"""The reach of a 95 % interval."""
_FLAT = 1e-14
"""A variance of shares below this is rounding: nothing varies."""


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

    Shapes: ``covariance`` [h], ``shared`` [h].
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

    Shapes: ``covariance`` [h].
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

    Shapes: ``a, b`` [h], ``correlation`` [h].
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

    A group without a mistake has replicates that are all alike.
    """
    reached = ends(*side, _TOLD)
    reach = np.maximum(side[0] - reached.low, reached.high - side[0]) / _TOLD
    return np.where((side[1] == 0.0) & np.isfinite(reach), reach, side[1])


def _ratio(x: FloatArray, y: FloatArray) -> FloatArray:
    found = np.divide(x, y, out=np.zeros(np.broadcast_shapes(x.shape, y.shape)), where=y > 0)
    return np.asarray(np.clip(np.nan_to_num(found), -1.0, 1.0))
