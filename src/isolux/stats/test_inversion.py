"""Differences of two groups: intervals at any normal quantile z, and the z at which they touch 0.

The test inverts the interval: a p-value of 0.05 or less and a 95 % interval without 0 are
equivalent. ``stats/differences.py`` builds differences of means and of replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.constants import MAX_Z, Z_STEP
from isolux.stats.intervals import Interval, mover_difference_interval, mover_log_ratio_interval
from isolux.stats.proportion_difference import ProportionDifferences
from isolux.stats.statistic import FloatArray, IntArray

_MAX_BATCH_CELLS = 2048
"""Pairs times values of z that are evaluated at once."""
_MAX_Z_PER_BATCH = 16
"""Most values of z that are evaluated at once: most z statistics are small and need no more."""

ZValues = float | FloatArray
"""One normal quantile for all pairs, or several, ``[k, 1]``, each for all pairs."""
GroupIntervals = Callable[[ZValues], tuple[Interval, Interval]]


@dataclass(frozen=True, slots=True)
class Difference:
    """Differences a - b of h pairs of groups.

    Parameters
    ----------
    a, b : [h] float
        The groups' values.
    group_intervals : callable
        Both groups' intervals at normal quantile z: ``[h]`` for one z, ``[k, h]`` for ``[k, 1]``.
    correlation : callable
        The correlation of MOVER at z, ``[h]`` or ``[k, h]``.
    standard_error, dof : [h] float
        Standard error of the difference, and its degrees of freedom (Welch–Satterthwaite).
    group_means : (ClusterMeans, ClusterMeans), optional
        Both groups' means, where both are means.
    proportion_differences : ProportionDifferences, optional
        Where both are proportions of different people: replaces MOVER.
    value_range : float
        Largest possible difference of two values: intervals are cut there.
    alternative_values : ([h] float, [h] float), optional
        Other estimates of the two groups' values: the interval also covers the one around their
        difference.
    """

    a: FloatArray
    b: FloatArray
    group_intervals: GroupIntervals
    correlation: Callable[[ZValues], FloatArray]
    standard_error: FloatArray
    dof: FloatArray
    group_means: tuple[ClusterMeans, ClusterMeans] | None = None
    proportion_differences: ProportionDifferences | None = None
    value_range: float = np.inf
    alternative_values: tuple[FloatArray, FloatArray] | None = None

    def interval(self, z: float, *, log: bool = False, conservative: bool = False) -> Interval:
        """Return the interval of a - b, or of ln(a / b), at normal quantile z.

        ``conservative``: with a continuity correction, for one-sided bounds.
        """
        if self.proportion_differences is not None:
            if log:
                return self.proportion_differences.log_ratio_interval(z, conservative=conservative)
            return self.proportion_differences.interval(z, conservative=conservative)
        return self.mover_interval(*self.group_intervals(z), z, log=log)

    def intervals(self, z: ZValues, rows: IntArray) -> Interval:
        """Return the intervals of some pairs at one z, ``[h]``, or at several, ``[k, h]``."""
        if self.proportion_differences is None:
            return self.mover_interval(*self.group_intervals(z), z).take(rows)
        quantiles = np.broadcast_to(z, (*np.shape(z)[:1], len(rows)))
        repeated = np.broadcast_to(rows, quantiles.shape).ravel()
        interval = self.proportion_differences.take(repeated).interval(quantiles.ravel())
        return Interval(*(x.reshape(quantiles.shape) for x in (interval.low, interval.high)))

    def outermost_bound(
        self, z: float, *, log: bool = False, inner_bound: bool = False
    ) -> FloatArray:
        """Return the larger of ``high`` and ``-low`` of each interval: ``[h]``.

        ``inner_bound``: the larger of ``low`` and ``-high``, the bound nearer to 0.
        """
        if self.proportion_differences is not None:
            return self.proportion_differences.outermost_bound(z, log=log, inner_bound=inner_bound)
        interval = self.interval(z, log=log)
        sign = -1.0 if inner_bound else 1.0
        return np.asarray(np.fmax(sign * interval.high, -sign * interval.low))

    def mover_interval(
        self, interval_a: Interval, interval_b: Interval, z: ZValues, *, log: bool = False
    ) -> Interval:
        """Combine the two groups' intervals (MOVER: Zou and Donner 2008)."""
        combine = mover_log_ratio_interval if log else mover_difference_interval
        interval = combine(self.a, interval_a, self.b, interval_b, self.correlation(z))
        if self.alternative_values is not None:
            interval = self._extend_to_alternative_values(interval, log=log)
        if log or np.isinf(self.value_range):
            return interval
        # The cut is beyond any possible difference, so the inverted test does not change.
        return Interval(
            np.maximum(interval.low, -self.value_range), np.minimum(interval.high, self.value_range)
        )

    def _extend_to_alternative_values(self, interval: Interval, *, log: bool) -> Interval:
        """Extend intervals to those around the difference of the alternative values."""
        assert self.alternative_values is not None  # noqa: S101 - callers ask
        a, b = self.alternative_values
        with np.errstate(divide="ignore", invalid="ignore"):
            difference = np.log(self.a / self.b) if log else self.a - self.b
            alternative = np.log(a / b) if log else a - b
            offset = np.nan_to_num(alternative - difference, nan=0.0, posinf=0.0, neginf=0.0)
        return Interval(
            interval.low + np.minimum(offset, 0.0), interval.high + np.maximum(offset, 0.0)
        )


def z_statistics_by_test_inversion(
    difference: Difference, exact_z: tuple[float, ...] = ()
) -> FloatArray:
    """Find the z at which each interval touches 0, with the sign of a - b: ``[h]``.

    Half-widths are evaluated on a grid of z up to the largest z, and interpolated linearly.
    """
    if difference.proportion_differences is not None:
        return difference.proportion_differences.z_statistics()
    observed = difference.a - difference.b
    distance = np.abs(observed)
    statistics = np.where(np.isnan(observed), np.nan, MAX_Z)
    is_open = np.isfinite(observed) & (distance > 0)
    statistics[distance == 0] = 0.0
    previous_z, previous_half_width = 0.0, np.zeros(len(observed))
    for z, half_width in _iterate_half_widths_by_z(difference, observed, exact_z):
        if not is_open.any():
            break
        is_reached = is_open & (half_width >= distance)
        step = np.maximum(
            half_width - previous_half_width, 1e-300
        )  # an equal half-width would give 0 / 0
        fraction = np.clip((distance - previous_half_width) / step, 0.0, 1.0)
        statistics[is_reached] = (previous_z + fraction * (z - previous_z))[is_reached]
        is_open &= ~is_reached
        previous_z, previous_half_width = z, half_width
    statistics[is_open & np.isnan(previous_half_width)] = np.nan  # no interval, no test
    return np.sign(observed) * statistics


def _iterate_half_widths_by_z(
    difference: Difference, observed: FloatArray, exact_z: tuple[float, ...]
) -> Iterator[tuple[float, FloatArray]]:
    """Yield each z with the half-widths towards 0 of the intervals at z: ``[h]``.

    Several are evaluated at once, as a few pairs cost the same sixteen times as once.
    """
    z_values = np.array(sorted({*np.arange(1, round(MAX_Z / Z_STEP) + 1) * Z_STEP, *exact_z}))
    k = min(max(_MAX_BATCH_CELLS // max(len(observed), 1), 1), _MAX_Z_PER_BATCH)
    for start in range(0, len(z_values), k):
        batch = z_values[start : start + k]
        intervals = difference.mover_interval(
            *difference.group_intervals(batch[:, None]), batch[:, None]
        )
        half_width = np.where(observed > 0, observed - intervals.low, intervals.high - observed)
        yield from zip(
            batch.tolist(), np.broadcast_to(half_width, (len(batch), len(observed))), strict=True
        )


def two_sided_p_from_z(z: FloatArray) -> FloatArray:
    """Return two-sided p-values of z statistics."""
    from scipy.special import ndtr

    return np.asarray(2.0 * ndtr(-np.abs(z)))
