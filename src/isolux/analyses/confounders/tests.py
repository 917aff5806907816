"""Standard errors, intervals and one family of tests for everything that the analysis claims.

Every gap (as it is, between proxies, and at an equal mix) is held against 0 by its studentised
bootstrap distribution about the estimate; p-values are adjusted over all gaps of all metrics and
attributes at once by the largest statistic of each replicate (single-step max-T), whose replicates
are the same resampled clusters throughout. With C clusters a statistic is a Student's t of C − 1
degrees of freedom, and is turned into the normal deviate of the same tail first.

References
----------
.. [1] Westfall, P. H. & Young, S. S. (1993). Resampling-based multiple testing. Wiley.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isolux.analyses.confounders.facts import Estimate
from isolux.stats.constants import OWN_VARIANCE_POWER
from isolux.stats.intervals import Interval, percentile, student_t
from isolux.stats.statistic import FloatArray

__all__ = ["Family", "gap_interval", "middle", "standard_error"]

_FLAT = 1e-12
_LEAST = 0.9  # share of replicates that must have a value


@dataclass(slots=True)
class Family:
    """The largest statistic of each replicate so far, and how many hypotheses there were."""

    largest: FloatArray | None = None
    size: int = 0
    sizes: list[int] = field(default_factory=list)

    def add(self, gaps: Estimate, clusters: FloatArray) -> FloatArray:
        """Take hypotheses ``[p]`` in; return their statistics, NaN where there is none."""
        drawn, se = _spread(gaps, clusters), standard_error(gaps, clusters)
        tested = np.isfinite(se) & (se > _FLAT)
        observed = np.full(len(se), np.nan)
        observed[tested] = _deviate(np.abs(gaps.value[tested]) / se[tested], clusters[tested])
        if tested.any():
            with np.errstate(divide="ignore", invalid="ignore"):
                centred = np.abs(gaps.replicates[:, tested] - gaps.value[tested]) / drawn[tested]
            null = np.where(np.isfinite(centred), centred, 0.0).max(axis=1)
            self.largest = null if self.largest is None else np.maximum(self.largest, null)
        self.size += int(tested.sum())
        return observed

    def p(self, observed: FloatArray) -> FloatArray:
        """Adjust for all hypotheses that were taken in; NaN stays NaN."""
        if self.largest is None:
            return np.full(len(observed), np.nan)
        reached = (self.largest[None, :] >= observed[:, None]).sum(axis=1)
        adjusted = (1.0 + reached) / (1.0 + len(self.largest))
        return np.asarray(np.where(np.isfinite(observed), adjusted, np.nan))


def standard_error(estimate: Estimate, clusters: FloatArray) -> FloatArray:
    """Spread of the replicates, or what chance asks for at the least; NaN where too few exist."""
    found = _spread(estimate, clusters)
    if estimate.least is None:
        return found
    rare, pooled = estimate.least
    own = np.maximum(found, rare)
    least = own**OWN_VARIANCE_POWER * pooled ** (1.0 - OWN_VARIANCE_POWER)
    return np.asarray(np.maximum(own, least))


def _spread(estimate: Estimate, clusters: FloatArray) -> FloatArray:
    """Spread of the replicates, corrected for the number of clusters; NaN where too few exist."""
    drawn = estimate.replicates
    held = np.isfinite(drawn)
    n = held.sum(axis=0)
    centre = np.where(held, drawn, 0.0).sum(axis=0) / np.maximum(n, 1)
    square = np.where(held, (drawn - centre) ** 2, 0.0).sum(axis=0)
    enough = (n >= _LEAST * len(drawn)) & (n > 1) & (clusters > 1)
    variance = square / np.maximum(n - 1, 1) * clusters / np.maximum(clusters - 1.0, 1.0)
    found: FloatArray = np.where(enough & np.isfinite(estimate.value), np.sqrt(variance), np.nan)
    return found


def gap_interval(estimate: Estimate, clusters: FloatArray, level: float) -> Interval:
    """Give each gap its interval: the gap ± t × its standard error."""
    return student_t(estimate.value, standard_error(estimate, clusters), clusters, level)


def middle(estimate: Estimate, level: float) -> Interval:
    """Take the middle of the replicates of one number; NaN where too few have a value."""
    found = percentile(estimate.replicates[None, :], level)
    enough = (
        np.isfinite(estimate.replicates).mean() >= _LEAST if len(estimate.replicates) else False
    )
    kept = np.isfinite(estimate.value) & enough
    return Interval(np.where(kept, found.low[0], np.nan), np.where(kept, found.high[0], np.nan))


def _deviate(statistic: FloatArray, clusters: FloatArray) -> FloatArray:
    from scipy.special import ndtri, stdtr

    tail = stdtr(np.maximum(clusters - 1.0, 1.0), -statistic)
    return np.asarray(-ndtri(np.maximum(tail, 1e-300)))
