"""Standard errors, intervals and one family of tests for everything that the analysis claims.

Every gap (as it is, between proxies, and at an equal mix) is held against 0 by its studentised
bootstrap distribution about the estimate; p-values are adjusted over all gaps of all metrics and
attributes at once by the largest statistic of each replicate (single-step max-T), whose replicates
are the same resampled clusters throughout. With C clusters a statistic is a Student's t of C − 1
degrees of freedom, and is turned into the normal deviate of the same tail first.

One report shall have one p-value of one gap. So where the audit has tested a gap, whether there is
anything to explain is that test's to say, adjusted for the audit's whole family. A gap is the
audit's where metric, class, threshold, attribute and groups are its own and its value too: average
precision that is read otherwise here is another number, and is tested here.

References
----------
.. [1] Westfall, P. H. & Young, S. S. (1993). Resampling-based multiple testing. Wiley.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses.confounders.facts import Estimate
from isolux.stats.constants import OWN_VARIANCE_POWER
from isolux.stats.design import IntArray
from isolux.stats.intervals import Interval, percentile, student_t
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Run

_FLAT = 1e-12
_MIN_SHARE = 0.9  # of replicates that must have a value
_KEY = ("model", "metric", "label", "threshold", "attribute")
_SAME = 1e-6


@dataclass(slots=True)
class Family:
    """The largest statistic of each replicate so far."""

    largest: FloatArray | None = None

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
        return observed

    def p(self, observed: FloatArray) -> FloatArray:
        """Adjust for all hypotheses that were taken in; NaN stays NaN."""
        if self.largest is None:
            return np.full(len(observed), np.nan)
        reached = (self.largest[None, :] >= observed[:, None]).sum(axis=1)
        adjusted = (1.0 + reached) / (1.0 + len(self.largest))
        return np.asarray(np.where(np.isfinite(observed), adjusted, np.nan))

    def smallest_p(self, observed: FloatArray) -> float | None:
        """Adjust the p of the surest of some gaps; None where none could be tested."""
        p = self.p(observed[np.isfinite(observed)])
        return float(p.min()) if len(p) and np.isfinite(p.min()) else None


def standard_error(estimate: Estimate, clusters: FloatArray) -> FloatArray:
    """Spread of the replicates, or what chance asks for at the least; NaN where too few exist."""
    error = _spread(estimate, clusters)
    if estimate.least is None:
        return error
    rare, pooled = estimate.least
    error = np.maximum(error, rare)
    least = error**OWN_VARIANCE_POWER * pooled ** (1.0 - OWN_VARIANCE_POWER)
    return np.asarray(np.maximum(error, least))


def _spread(estimate: Estimate, clusters: FloatArray) -> FloatArray:
    """Spread of the replicates, corrected for the number of clusters; NaN where too few exist."""
    drawn = estimate.replicates
    is_finite = np.isfinite(drawn)
    n = is_finite.sum(axis=0)
    centre = np.where(is_finite, drawn, 0.0).sum(axis=0) / np.maximum(n, 1)
    square = np.where(is_finite, (drawn - centre) ** 2, 0.0).sum(axis=0)
    enough = (n >= _MIN_SHARE * len(drawn)) & (n > 1) & (clusters > 1)
    variance = square / np.maximum(n - 1, 1) * clusters / np.maximum(clusters - 1.0, 1.0)
    return np.where(enough & np.isfinite(estimate.value), np.sqrt(variance), np.nan)


def gap_interval(estimate: Estimate, clusters: FloatArray, level: float) -> Interval:
    """Give each gap its interval: the gap ± t × its standard error."""
    return student_t(estimate.value, standard_error(estimate, clusters), clusters, level)


def middle(estimate: Estimate, level: float) -> Interval:
    """Take the middle of the replicates of one number; NaN where too few have a value."""
    ends = percentile(estimate.replicates[None, :], level)
    has_value = np.isfinite(estimate.replicates)
    enough = bool(len(has_value)) and has_value.mean() >= _MIN_SHARE
    known = np.isfinite(estimate.value) & enough
    return Interval(np.where(known, ends.low[0], np.nan), np.where(known, ends.high[0], np.nan))


def _deviate(statistic: FloatArray, clusters: FloatArray) -> FloatArray:
    from scipy.special import ndtri, stdtr

    tail = stdtr(np.maximum(clusters - 1.0, 1.0), -statistic)
    return np.asarray(-ndtri(np.maximum(tail, 1e-300)))


@dataclass(frozen=True, slots=True)
class Audited:
    """The audit's word on every pair of groups.

    Parameters
    ----------
    p : [p] float
        Adjusted for the audit's family; NaN where the audit has no such test.
    worst : [p] float
        Value of the worse group of each pair, turned so that lower is worse.
    gap : [p] float
        Size of the gap.
    """

    p: FloatArray
    worst: FloatArray
    gap: FloatArray

    @property
    def known(self) -> bool:
        """Whether the audit tested any of these gaps."""
        return bool(np.isfinite(self.p).any())

    def leading(self, alpha: float) -> int:
        """Choose the pair that also speaks in ``group_gaps``: the worst group's, if any differs."""
        differs = np.isfinite(self.p) & (self.p <= alpha)
        keys = [np.where(differs, -self.worst, 0.0), differs, np.isfinite(self.p)]
        return int(np.lexsort((-np.arange(len(self.p)), self.gap, *keys))[-1])


def audited_gaps(run: Run) -> pl.DataFrame:
    """Take the tests of two groups' differences from a run's ``disparities``."""
    rows = run.disparities.filter(kind="difference").drop_nulls(["value", "p_adjusted"])
    return rows.select(*_KEY, "group_a", "group_b", "value", "p_adjusted")


def find_audited_p(
    tests: pl.DataFrame,
    row: Mapping[str, Any],
    groups: Sequence[str],
    pairs: IntArray,
    gap: FloatArray,
) -> FloatArray:
    """Find the p of the audit's tests of one metric's gaps between the judged groups: ``[p]``.

    Shapes: ``pairs`` [p, 2], ``gap`` [p].
    """
    tests = tests.filter(*(pl.col(name).eq_missing(pl.lit(row[name])) for name in _KEY))
    columns = ("group_a", "group_b", "value", "p_adjusted")
    p_by_pair = {(a, b): (value, p) for a, b, value, p in tests.select(columns).iter_rows()}
    p_by_pair |= {(b, a): (-value, p) for (a, b), (value, p) in p_by_pair.items()}
    p = np.full(len(pairs), np.nan)
    for i, (a, b) in enumerate(pairs.tolist()):
        value, own = p_by_pair.get((groups[a], groups[b]), (np.nan, np.nan))
        if abs(value - gap[i]) < _SAME:
            p[i] = own
    return p
