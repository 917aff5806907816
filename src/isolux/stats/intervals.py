"""Intervals of rates and of what is computed from them, from replicates over clusters.

- ``logit_t`` (the default): ``logit(p) ± t × se / (p (1 - p))`` with the bootstrap's standard
  error, corrected by ``sqrt(C / (C - 1))``, and t with C − 1 degrees of freedom for C clusters. It
  stays within 0 and 1, and its coverage is measured in ``docs/methods/uncertainty.md``.
- At 0 and 1 there is no spread to resample: Wilson's interval with the largest design effect
  there is, each cluster one observation.
- ``percentile`` and ``bca`` as in Efron & Tibshirani (1993), chapters 13 and 14.
- Differences and ratios of two groups recover their variances from the groups' own intervals
  (MOVER: Zou & Donner 2008; with correlation: Zou 2007), so that they inherit asymmetry and
  bounds. Groups that share people are correlated; the correlation is that of their replicates.

``boundary`` marks where the promise (95 % means 93 to 97) is not kept: fewer than 30 clusters, or
fewer than five effective observations of the rarer outcome.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.io.threads import quietly
from isolux.stats.constants import KEPT_CLUSTERS, KEPT_RARER
from isolux.stats.statistic import FloatArray

_REPEATED = 256  # values from which it pays to look for equal ones
_FLAT = 1e-12  # a standard error below this is rounding


@dataclass(frozen=True, slots=True)
class Interval:
    """Lower and upper ends, of one shape; NaN where there is none."""

    low: FloatArray
    high: FloatArray

    def take(self, rows: npt.NDArray[np.integer] | slice) -> Interval:
        """Give the ends of some rows, in the last axis."""
        return Interval(self.low[..., rows], self.high[..., rows])

    def show(self, mask: npt.NDArray[np.bool_]) -> Interval:
        """Give the ends where a mask is true, and NaN elsewhere."""
        return Interval(np.where(mask, self.low, np.nan), np.where(mask, self.high, np.nan))

    def times(self, factor: FloatArray | float) -> Interval:
        """Give both ends times a factor above 0."""
        return Interval(self.low * factor, self.high * factor)


def normal_quantile(level: float) -> float:
    """Say how many standard errors an interval of a level reaches to either side."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2.0))


def of_student(share: float | FloatArray, freedom: FloatArray) -> FloatArray:
    """Return quantiles of Student's t, each distinct number of degrees of freedom asked once.

    Examples
    --------
    >>> of_student(0.975, np.array([11.0, 11.0])).round(3).tolist()
    [2.201, 2.201]
    """
    from scipy.special import stdtrit

    if np.ndim(share) or freedom.ndim != 1 or len(freedom) <= _REPEATED:
        return np.asarray(stdtrit(freedom, share))
    # Pairs repeat their groups, and a quantile costs more than to find what is repeated.
    distinct, of = np.unique(freedom, return_inverse=True)
    return np.asarray(stdtrit(distinct, share)[of])


def quantile(z: FloatArray | float, freedom: FloatArray) -> FloatArray:
    """Student's t that has the tail of the normal quantile z."""
    from scipy.special import ndtr

    return -of_student(ndtr(-np.asarray(z)), np.maximum(freedom, 1.0))


def _t(level: float | FloatArray, clusters: FloatArray) -> FloatArray:
    return of_student(0.5 + level / 2.0, np.maximum(np.asarray(clusters) - 1.0, 1.0))


def logit_t(
    value: FloatArray, se: FloatArray, clusters: FloatArray, level: float | FloatArray
) -> Interval:
    """Interval of a fraction; where nothing varies Wilson's with each cluster one observation.

    Shapes: ``value, se, clusters`` [n], ``level`` [k, 1].
    """
    from scipy.special import expit

    edge = no_spread(value, se)
    p = np.where(edge, 0.5, value)
    half = _t(level, clusters) * se / (p * (1.0 - p))
    centre = np.log(p / (1.0 - p))
    low, high = expit(centre - half), expit(centre + half)
    wilson = wilson_at_edge(value, clusters, level)
    return Interval(np.where(edge, wilson.low, low), np.where(edge, wilson.high, high))


def logit_reach(
    value: FloatArray, se: FloatArray, freedom: FloatArray, z: float | FloatArray
) -> Interval:
    """Interval of a fraction that reaches as far as the normal quantile z, on the logit scale.

    Examples
    --------
    >>> ends = logit_reach(np.array([0.8]), np.array([0.04]), np.array([49.0]), 1.959964)
    >>> ends.low.round(3).item(), ends.high.round(3).item()
    (0.708, 0.869)
    """
    from scipy.special import ndtr

    return logit_t(value, se, freedom + 1.0, 2.0 * ndtr(z) - 1.0)


def student_reach(
    value: FloatArray, se: FloatArray, freedom: FloatArray, z: float | FloatArray
) -> Interval:
    """Interval of an unbounded quantity that reaches as far as the normal quantile z."""
    half = quantile(z, freedom) * se
    return Interval(value - half, value + half)


def no_spread(value: FloatArray, se: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell where there is nothing to resample: at 0 and 1, or all clusters alike."""
    return np.asarray((value <= 0.0) | (value >= 1.0) | (se < _FLAT))


def wilson_at_edge(value: FloatArray, clusters: FloatArray, level: float | FloatArray) -> Interval:
    """Wilson's interval with n = the number of clusters (design effect = cluster size)."""
    from scipy.special import ndtri

    z2 = ndtri(0.5 + level / 2.0) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (value + z2 / (2.0 * clusters)) / (1.0 + z2 / clusters)
        inner = np.maximum(value * (1.0 - value), 0.0) / clusters + z2 / (4.0 * clusters**2)
        half = np.sqrt(z2 * inner) / (1.0 + z2 / clusters)
    return Interval(np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0))


def student_t(value: FloatArray, se: FloatArray, clusters: FloatArray, level: float) -> Interval:
    """Interval of an unbounded quantity: ``value ± t × se``."""
    half = _t(level, clusters) * se
    return Interval(value - half, value + half)


def percentile(replicates: FloatArray, level: float) -> Interval:
    """Take the middle ``level`` of the replicates ``[..., r]``, NaN ones left out."""
    tails = [50.0 * (1.0 - level), 50.0 * (1.0 + level)]  # numpy takes percent
    with quietly():  # all NaN gives NaN, which is meant
        ends = np.nanpercentile(replicates, tails, axis=-1)
    return Interval(ends[0], ends[1])


def bca(
    value: FloatArray, replicates: FloatArray, acceleration: FloatArray, level: float
) -> Interval:
    """Bias-corrected and accelerated percentiles (Efron & Tibshirani 1993, 14.3).

    Shapes: ``value`` [n], ``replicates`` [n, r], ``acceleration`` [n].
    """
    from scipy.special import ndtr, ndtri

    valid = np.isfinite(replicates)
    count = np.maximum(valid.sum(axis=-1), 1)
    below = ((replicates < value[:, None]) & valid).sum(axis=-1)
    ties = ((replicates == value[:, None]) & valid).sum(axis=-1)
    # Half a replicate at least on either side: the normal quantile of 0 or 1 is infinite.
    share = np.clip((below + 0.5 * ties) / count, 0.5 / count, 1.0 - 0.5 / count)
    bias = ndtri(share)
    ends = []
    for tail in (0.5 - level / 2.0, 0.5 + level / 2.0):
        z = bias + ndtri(tail)
        # Efron's formula has a pole where acceleration times z is 1, and turns over beyond it.
        at = ndtr(bias + z / np.maximum(1.0 - acceleration * z, 1e-9))
        ends.append(_quantiles(replicates, at))
    return Interval(ends[0], ends[1])


def _quantiles(replicates: FloatArray, at: FloatArray) -> FloatArray:
    """One quantile per row; NaN replicates sort last and are not counted."""
    ordered = np.sort(replicates, axis=-1)
    last = np.maximum(np.isfinite(ordered).sum(axis=-1) - 1, 0)
    position = at * last
    below = np.floor(position).astype(int)
    above = np.minimum(below + 1, last)
    rows = np.arange(len(ordered))
    part = position - below
    return np.asarray(ordered[rows, below] * (1 - part) + ordered[rows, above] * part)


def keeps_promise(value: FloatArray, se: FloatArray, clusters: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell whether a fraction's interval keeps its promise: see ``KEPT_CLUSTERS``, ``KEPT_RARER``.

    The effective number of observations is ``p (1 - p) / se²``, which is n where rows are
    independent and n over the design effect where they are not.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = value * (1.0 - value) / se**2
        rarer = np.where(se > _FLAT, np.minimum(value, 1.0 - value) * effective, 0.0)
    return (clusters >= KEPT_CLUSTERS) & (rarer >= KEPT_RARER)


def difference_interval(
    a: FloatArray, ends_a: Interval, b: FloatArray, ends_b: Interval, correlation: FloatArray
) -> Interval:
    """Interval of a − b from the two intervals (MOVER)."""
    down_a, up_a = a - ends_a.low, ends_a.high - a
    down_b, up_b = b - ends_b.low, ends_b.high - b
    low = a - b - _join(down_a, up_b, correlation)
    return Interval(low, a - b + _join(up_a, down_b, correlation))


def log_ratio_interval(
    a: FloatArray, ends_a: Interval, b: FloatArray, ends_b: Interval, correlation: FloatArray
) -> Interval:
    """Interval of ln(a / b), MOVER on the log scale; NaN where a value or end is not above 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [np.log(np.where(x > 0, x, np.nan)) for x in (a, b)]
        ends = [
            Interval(np.log(np.where(e.low > 0, e.low, np.nan)), np.log(e.high))
            for e in (ends_a, ends_b)
        ]
    return difference_interval(logs[0], ends[0], logs[1], ends[1], correlation)


def _join(x: FloatArray, y: FloatArray, correlation: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(x * x + y * y - 2.0 * correlation * x * y, 0.0))
