"""Intervals from replicates over clusters, and MOVER for differences and ratios.

- ``logit_or_wilson_interval_at_level`` (the default): ``logit(p) ± t × se / (p (1 - p))`` with the
bootstrap's standard
  error, corrected by ``sqrt(C / (C - 1))``, and t with C − 1 degrees of freedom for C clusters. It
  stays within 0 and 1, and its coverage is measured in ``docs/methods/uncertainty.md``.
- At 0 and 1 replicates do not vary: Wilson's interval with the largest possible design effect,
  each cluster one observation.
- ``percentile_interval`` and ``bca_interval`` as in Efron & Tibshirani (1993), chapters 13 and 14.
- Intervals of differences and ratios are computed from the groups' intervals (MOVER: Zou & Donner
  2008; with correlation: Zou 2007), so that they inherit asymmetry and bounds. Groups that share
  people are correlated; the correlation is that of their replicates.

Coverage may not be nominal (93 to 97 % at 95 %) with fewer than 30 clusters (status ``few
clusters``) or fewer than five effective observations of the rarer outcome (``rare outcome``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.io.threads import ignore_runtime_warnings
from isolux.stats.constants import (
    EXACT_END_EVENTS,
    MIN_CLUSTERS_FOR_NOMINAL_COVERAGE,
    MIN_EVENTS_FOR_NOMINAL_COVERAGE,
)
from isolux.stats.statistic import FloatArray

_MIN_ROWS_TO_DEDUPLICATE = 256  # rows from which equal degrees of freedom are computed once
_ZERO_STANDARD_ERROR = 1e-12  # a standard error below this is rounding
Z_95 = 1.959963984540054
"""The normal quantile of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Lower and upper bounds, of one shape; NaN where there is none."""

    low: FloatArray
    high: FloatArray

    def take(self, rows: npt.NDArray[np.integer] | slice) -> Interval:
        """Select rows of the last axis."""
        return Interval(self.low[..., rows], self.high[..., rows])

    def set_nan_where_false(self, mask: npt.NDArray[np.bool_]) -> Interval:
        """Set bounds to NaN where a mask is false."""
        return Interval(np.where(mask, self.low, np.nan), np.where(mask, self.high, np.nan))

    def scale(self, factor: FloatArray | float) -> Interval:
        """Multiply both bounds by a factor above 0."""
        return Interval(self.low * factor, self.high * factor)


def two_sided_normal_quantile(level: float) -> float:
    """Return the two-sided normal quantile of a level: 1.96 for 0.95."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2.0))


def t_quantile(probability: float | FloatArray, dof: FloatArray) -> FloatArray:
    """Return quantiles of Student's t, computed once for equal degrees of freedom.

    Examples
    --------
    >>> t_quantile(0.975, np.array([11.0, 11.0])).round(3).tolist()
    [2.201, 2.201]
    """
    from scipy.special import stdtrit

    if np.ndim(probability) or dof.ndim != 1 or len(dof) <= _MIN_ROWS_TO_DEDUPLICATE:
        return np.asarray(stdtrit(dof, probability))
    # Pairs repeat their groups, and a quantile costs more than finding equal values.
    distinct, inverse = np.unique(dof, return_inverse=True)
    return np.asarray(stdtrit(distinct, probability)[inverse])


def t_from_z(z: FloatArray | float, dof: FloatArray) -> FloatArray:
    """Return the t quantile with the same tail probability as the normal quantile z."""
    from scipy.special import ndtr

    return -t_quantile(ndtr(-np.asarray(z)), np.maximum(dof, 1.0))


def _two_sided_t_quantile(level: float | FloatArray, n_clusters: FloatArray) -> FloatArray:
    return t_quantile(0.5 + level / 2.0, np.maximum(np.asarray(n_clusters) - 1.0, 1.0))


def logit_or_wilson_interval_at_level(
    proportion: FloatArray, se: FloatArray, n_clusters: FloatArray, level: float | FloatArray
) -> Interval:
    """Logit t interval of a fraction; Wilson's, with clusters as observations, if se is 0.

    Shapes: ``proportion, se, n_clusters`` [n], ``level`` [k, 1].
    """
    from scipy.special import expit

    is_at_edge = is_fraction_without_variation(proportion, se)
    # Any value will do: Wilson's interval replaces these rows.
    p = np.where(is_at_edge, 0.5, proportion)
    half_width = _two_sided_t_quantile(level, n_clusters) * se / (p * (1.0 - p))
    centre = np.log(p / (1.0 - p))
    low, high = expit(centre - half_width), expit(centre + half_width)
    wilson = wilson_interval_of_n_clusters(proportion, n_clusters, level)
    return Interval(np.where(is_at_edge, wilson.low, low), np.where(is_at_edge, wilson.high, high))


def logit_t_interval(
    proportion: FloatArray, se: FloatArray, dof: FloatArray, z: float | FloatArray
) -> Interval:
    """Logit t interval of a fraction, at the level of the normal quantile z.

    Examples
    --------
    >>> ends = logit_t_interval(np.array([0.8]), np.array([0.04]), np.array([49.0]), 1.959964)
    >>> ends.low.round(3).item(), ends.high.round(3).item()
    (0.708, 0.869)
    """
    from scipy.special import ndtr

    return logit_or_wilson_interval_at_level(proportion, se, dof + 1.0, 2.0 * ndtr(z) - 1.0)


def t_interval(
    estimate: FloatArray, se: FloatArray, dof: FloatArray, z: float | FloatArray
) -> Interval:
    """Student's t interval of an unbounded quantity, at the level of the normal quantile z."""
    half_width = t_from_z(z, dof) * se
    return Interval(estimate - half_width, estimate + half_width)


def fisher_z_t_interval(
    correlation: FloatArray, se: FloatArray, dof: FloatArray, z: float | FloatArray
) -> Interval:
    """Student's t interval of Fisher's z of a correlation, turned back; z: normal quantile.

    Fisher (1921), "On the probable error of a coefficient of correlation", Metron 1:3-32. The
    standard error of z = artanh(r) is that of r over 1 - r² (delta method).

    Examples
    --------
    >>> bounds = fisher_z_t_interval(np.array([0.9]), np.array([0.03]), np.array([49.0]), 1.959964)
    >>> bounds.low.round(3).item(), bounds.high.round(3).item()
    (0.819, 0.946)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        half_width = t_from_z(z, dof) * se / (1.0 - correlation**2)
        low, high = (np.tanh(np.arctanh(correlation) + s * half_width) for s in (-1.0, 1.0))
    # At -1 and 1 there is no z: every pair is on one line, in every replicate as well.
    is_edge = np.abs(correlation) >= 1.0
    return Interval(np.where(is_edge, correlation, low), np.where(is_edge, correlation, high))


def is_fraction_without_variation(fraction: FloatArray, se: FloatArray) -> npt.NDArray[np.bool_]:
    """Mask fractions whose replicates do not vary: at 0 and 1, or if all clusters are equal."""
    return np.asarray((fraction <= 0.0) | (fraction >= 1.0) | (se < _ZERO_STANDARD_ERROR))


def wilson_interval_of_n_clusters(
    proportion: FloatArray, n_clusters: FloatArray, level: float | FloatArray
) -> Interval:
    """Wilson's interval with n = the number of clusters (design effect = cluster size)."""
    from scipy.special import ndtri

    return _wilson_interval_at_z(proportion, n_clusters, ndtri(0.5 + level / 2.0))


def score_interval(proportion: FloatArray, n_units: FloatArray, z: FloatArray | float) -> Interval:
    """Wilson's interval at normal quantile z, with ends that are nearly exact where events are few.

    Each end is a mean of Wilson's (1927) and of Clopper and Pearson's (1934), whose weight falls
    from 1 without an event on that side to 0 at ``EXACT_END_EVENTS`` z² events. Wilson's end
    alone leaves out a proportion near 1 that gives one error in few rows: coverage 84 %.
    Shapes: ``proportion, n_units`` [g], ``z`` [k, 1] or one number.

    Examples
    --------
    49 of 50, for which Wilson's interval is .895 to .9965.

    >>> ends = score_interval(np.array([0.98]), np.array([50.0]), 1.959964)
    >>> ends.low.round(4).item(), ends.high.round(4).item()
    (0.895, 0.9994)
    """
    wilson = _wilson_interval_at_z(proportion, n_units, z)
    low_shift = _shift_of_low_towards_exact(wilson.low, proportion, n_units, z)
    high_shift = _shift_of_low_towards_exact(1.0 - wilson.high, 1.0 - proportion, n_units, z)
    low, high = np.maximum(wilson.low - low_shift, 0.0), np.minimum(wilson.high + high_shift, 1.0)
    return Interval(low, high).set_nan_where_false(~np.isnan(proportion))


def _wilson_interval_at_z(
    proportion: FloatArray, n_units: FloatArray, z: FloatArray | float
) -> Interval:
    z_squared = np.square(z)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Wilson (1927): all proportions that a score test does not reject.
        widening = 1.0 + z_squared / n_units
        centre = (proportion + z_squared / (2.0 * n_units)) / widening
        variance = np.maximum(proportion * (1.0 - proportion), 0.0) / n_units + z_squared / (
            4.0 * n_units**2
        )
        half_width = z * np.sqrt(variance) / widening
    # At 0 and 1 one bound is the proportion itself; rounding must not move it.
    low = np.where(proportion <= 0.0, 0.0, np.maximum(centre - half_width, 0.0))
    high = np.where(proportion >= 1.0, 1.0, np.minimum(centre + half_width, 1.0))
    return Interval(low, high)


def _shift_of_low_towards_exact(
    low: FloatArray, proportion: FloatArray, n_units: FloatArray, z: FloatArray | float
) -> FloatArray:
    """Return how far a lower bound moves towards Clopper and Pearson's, from 0 with many events."""
    from scipy.special import betaincinv, ndtr

    with np.errstate(divide="ignore", invalid="ignore"):
        n_events = proportion * n_units
        weight = 1.0 - n_events / (EXACT_END_EVENTS * np.square(z))
    is_moved = (weight > 0.0) & (n_events > 0.0) & np.isfinite(low)
    events, units, weights, tail = (
        np.broadcast_to(x, low.shape)[is_moved]
        for x in (n_events, n_units, weight, ndtr(-np.asarray(z)))
    )
    shift = np.zeros_like(low)
    shift[is_moved] = weights * (low[is_moved] - betaincinv(events, units - events + 1.0, tail))
    return shift


def t_interval_at_level(
    estimate: FloatArray, se: FloatArray, n_clusters: FloatArray, level: float
) -> Interval:
    """Interval of an unbounded quantity: ``value ± t × se``."""
    half_width = _two_sided_t_quantile(level, n_clusters) * se
    return Interval(estimate - half_width, estimate + half_width)


def percentile_interval(replicates: FloatArray, level: float) -> Interval:
    """Percentile interval: quantiles of the replicates ``[..., r]`` without NaN."""
    percentiles = [50.0 * (1.0 - level), 50.0 * (1.0 + level)]  # numpy takes percent
    with ignore_runtime_warnings():  # all NaN gives NaN without a warning
        bounds = np.nanpercentile(replicates, percentiles, axis=-1)
    return Interval(bounds[0], bounds[1])


def bca_interval(
    estimate: FloatArray, replicates: FloatArray, acceleration: FloatArray, level: float
) -> Interval:
    """Bias-corrected and accelerated percentiles (Efron & Tibshirani 1993, 14.3).

    Shapes: ``estimate`` [n], ``replicates`` [n, r], ``acceleration`` [n].
    """
    from scipy.special import ndtr, ndtri

    is_valid = np.isfinite(replicates)
    n_valid = np.maximum(is_valid.sum(axis=-1), 1)
    n_below = ((replicates < estimate[:, None]) & is_valid).sum(axis=-1)
    # Ties count half: replicates of a proportion are discrete, and many equal the estimate.
    n_ties = ((replicates == estimate[:, None]) & is_valid).sum(axis=-1)
    # At least half a replicate on either side: the normal quantile of 0 or 1 is infinite.
    proportion_below = np.clip(
        (n_below + 0.5 * n_ties) / n_valid, 0.5 / n_valid, 1.0 - 0.5 / n_valid
    )
    bias = ndtri(proportion_below)
    bounds = []
    for tail in (0.5 - level / 2.0, 0.5 + level / 2.0):
        z = bias + ndtri(tail)
        # Efron's formula has a pole where acceleration times z is 1, and changes sign beyond it.
        levels = ndtr(bias + z / np.maximum(1.0 - acceleration * z, 1e-9))
        bounds.append(_row_quantiles_ignoring_nan(replicates, levels))
    return Interval(bounds[0], bounds[1])


def _row_quantiles_ignoring_nan(replicates: FloatArray, levels: FloatArray) -> FloatArray:
    """One quantile per row; NaN replicates sort last and are not counted."""
    sorted_replicates = np.sort(replicates, axis=-1)
    last_index = np.maximum(np.isfinite(sorted_replicates).sum(axis=-1) - 1, 0)
    position = levels * last_index
    lower_index = np.floor(position).astype(int)
    upper_index = np.minimum(lower_index + 1, last_index)
    rows = np.arange(len(sorted_replicates))
    fraction = position - lower_index
    return np.asarray(
        sorted_replicates[rows, lower_index] * (1 - fraction)
        + sorted_replicates[rows, upper_index] * fraction
    )


def has_fraction_nominal_coverage(
    proportion: FloatArray, se: FloatArray, n_clusters: FloatArray
) -> npt.NDArray[np.bool_]:
    """Check whether a fraction's interval has its nominal coverage (limits in ``constants``).

    The effective number of observations is ``p (1 - p) / se²``, which is n where rows are
    independent and n over the design effect where they are not.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        n_effective = proportion * (1.0 - proportion) / se**2
        n_rarer = np.where(
            se > _ZERO_STANDARD_ERROR, np.minimum(proportion, 1.0 - proportion) * n_effective, 0.0
        )
    return (n_clusters >= MIN_CLUSTERS_FOR_NOMINAL_COVERAGE) & (
        n_rarer >= MIN_EVENTS_FOR_NOMINAL_COVERAGE
    )


def mover_difference_interval(
    a: FloatArray,
    interval_a: Interval,
    b: FloatArray,
    interval_b: Interval,
    correlation: FloatArray,
) -> Interval:
    """Interval of a − b from the two intervals (MOVER)."""
    down_a, up_a = a - interval_a.low, interval_a.high - a
    down_b, up_b = b - interval_b.low, interval_b.high - b
    low = a - b - _mover_half_width(down_a, up_b, correlation)
    return Interval(low, a - b + _mover_half_width(up_a, down_b, correlation))


def mover_log_ratio_interval(
    a: FloatArray,
    interval_a: Interval,
    b: FloatArray,
    interval_b: Interval,
    correlation: FloatArray,
) -> Interval:
    """Interval of ln(a / b), MOVER on the log scale; NaN where a value or bound is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [np.log(np.where(x > 0, x, np.nan)) for x in (a, b)]
        log_intervals = [
            Interval(
                np.log(np.where(interval.low > 0, interval.low, np.nan)),
                np.log(interval.high),
            )
            for interval in (interval_a, interval_b)
        ]
    return mover_difference_interval(
        logs[0], log_intervals[0], logs[1], log_intervals[1], correlation
    )


def _mover_half_width(x: FloatArray, y: FloatArray, correlation: FloatArray) -> FloatArray:
    # With correlation 1 it is (x - y)², which rounding may make negative.
    return np.sqrt(np.maximum(x * x + y * y - 2.0 * correlation * x * y, 0.0))
