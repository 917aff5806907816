"""Standard errors, intervals and one family of tests for everything that the analysis claims.

Every gap (unadjusted, between proxies, and adjusted) is tested against 0 by its studentised
bootstrap distribution about the estimate; p-values are corrected over all gaps of all metrics and
attributes at once by the largest statistic of each replicate (single-step max-T [1]_), whose
replicates are the same resampled clusters throughout. With C clusters a statistic is a Student's t
of C − 1 degrees of freedom, and is first converted to the normal deviate of the same tail.

One report must have one p-value of one gap. So where the audit has tested a gap, that test,
corrected over its family in the audit, decides whether there is anything to explain. A gap is the
audit's where metric, class, threshold, attribute, groups and value are the same: average precision
that is computed differently here is another number, and is tested here.

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

from isolux.analyses.confounders.effects import ReplicatedValue
from isolux.core.containers import Run
from isolux.stats.cluster_sums import IntArray
from isolux.stats.constants import OWN_VARIANCE_WEIGHT
from isolux.stats.intervals import Interval, percentile_interval, t_interval_at_level
from isolux.stats.statistic import FloatArray

_ZERO_SE_TOLERANCE = 1e-12
_MIN_DEFINED_SHARE = 0.9  # of replicates that must have a value
_KEY = ("model", "metric", "label", "threshold", "attribute")
_EQUALITY_TOLERANCE = 1e-6


@dataclass(slots=True)
class MaxStatistic:
    """The family of tests: the largest statistic of each replicate so far ``[r]``."""

    largest: FloatArray | None = None

    def add(self, gaps: ReplicatedValue, clusters: FloatArray) -> FloatArray:
        """Add hypotheses ``[p]`` to the family; return their z statistics, NaN where undefined."""
        replicate_error = _replicate_se_or_nan(gaps, clusters)
        se = replicate_se_with_minimum(gaps, clusters)
        is_tested = np.isfinite(se) & (se > _ZERO_SE_TOLERANCE)
        observed = np.full(len(se), np.nan)
        observed[is_tested] = _t_to_normal_z(
            np.abs(gaps.value[is_tested]) / se[is_tested], clusters[is_tested]
        )
        if is_tested.any():
            with np.errstate(divide="ignore", invalid="ignore"):
                null_statistics = (
                    np.abs(gaps.replicates[:, is_tested] - gaps.value[is_tested])
                    / replicate_error[is_tested]
                )
            null = np.where(np.isfinite(null_statistics), null_statistics, 0.0).max(axis=1)
            self.largest = null if self.largest is None else np.maximum(self.largest, null)
        return observed

    def adjust_p(self, observed: FloatArray) -> FloatArray:
        """Return p-values adjusted over the whole family; NaN stays NaN."""
        if self.largest is None:
            return np.full(len(observed), np.nan)
        n_exceeding = (self.largest[None, :] >= observed[:, None]).sum(axis=1)
        adjusted = (1.0 + n_exceeding) / (1.0 + len(self.largest))
        return np.asarray(np.where(np.isfinite(observed), adjusted, np.nan))

    def smallest_p(self, observed: FloatArray) -> float | None:
        """Return the smallest adjusted p of some gaps; None where none could be tested."""
        p = self.adjust_p(observed[np.isfinite(observed)])
        return float(p.min()) if len(p) and np.isfinite(p.min()) else None


def replicate_se_with_minimum(estimate: ReplicatedValue, clusters: FloatArray) -> FloatArray:
    """Return the replicates' standard error, or its minimum; NaN with too few replicates.

    The minimum combines own and pooled variance as the audit does (``OWN_VARIANCE_WEIGHT``).
    """
    error = _replicate_se_or_nan(estimate, clusters)
    if estimate.min_errors is None:
        return error
    rare_error, pooled_error = estimate.min_errors
    error = np.maximum(error, rare_error)
    combined = error**OWN_VARIANCE_WEIGHT * pooled_error ** (1.0 - OWN_VARIANCE_WEIGHT)
    return np.asarray(np.maximum(error, combined))


def _replicate_se_or_nan(estimate: ReplicatedValue, clusters: FloatArray) -> FloatArray:
    """Return the replicates' SD times √(C / (C − 1)); NaN with too few defined replicates."""
    replicates = estimate.replicates
    is_finite = np.isfinite(replicates)
    n = is_finite.sum(axis=0)
    centre = np.where(is_finite, replicates, 0.0).sum(axis=0) / np.maximum(n, 1)
    square = np.where(is_finite, (replicates - centre) ** 2, 0.0).sum(axis=0)
    has_enough = (n >= _MIN_DEFINED_SHARE * len(replicates)) & (n > 1) & (clusters > 1)
    variance = square / np.maximum(n - 1, 1) * clusters / np.maximum(clusters - 1.0, 1.0)
    return np.where(has_enough & np.isfinite(estimate.value), np.sqrt(variance), np.nan)


def gap_t_interval(estimate: ReplicatedValue, clusters: FloatArray, level: float) -> Interval:
    """Return each gap's t interval: the gap ± t × its standard error."""
    return t_interval_at_level(
        estimate.value, replicate_se_with_minimum(estimate, clusters), clusters, level
    )


def percentile_interval_or_nan(estimate: ReplicatedValue, level: float) -> Interval:
    """Return the percentile interval of one number; NaN with too few defined replicates."""
    interval = percentile_interval(estimate.replicates[None, :], level)
    has_value = np.isfinite(estimate.replicates)
    has_enough = bool(len(has_value)) and has_value.mean() >= _MIN_DEFINED_SHARE
    is_known = np.isfinite(estimate.value) & has_enough
    return Interval(
        np.where(is_known, interval.low[0], np.nan), np.where(is_known, interval.high[0], np.nan)
    )


def _t_to_normal_z(statistic: FloatArray, clusters: FloatArray) -> FloatArray:
    from scipy.special import ndtri, stdtr

    tail = stdtr(np.maximum(clusters - 1.0, 1.0), -statistic)
    return np.asarray(-ndtri(np.maximum(tail, 1e-300)))


@dataclass(frozen=True, slots=True)
class AuditTestResults:
    """The audit's own tests of every pair of groups.

    Parameters
    ----------
    p : [p] float
        Adjusted for the audit's family; NaN where the audit has no such test.
    worse_values : [p] float
        Value of the worse group of each pair, with the sign that makes lower worse.
    gap : [p] float
        Size of the gap.
    """

    p: FloatArray
    worse_values: FloatArray
    gap: FloatArray

    @property
    def has_tests(self) -> bool:
        """Whether the audit tested any of these gaps."""
        return bool(np.isfinite(self.p).any())

    def find_leading_pair(self, alpha: float) -> int:
        """Find the leading pair as in ``group_gaps``: that of the worst group, if any differs."""
        differs = np.isfinite(self.p) & (self.p <= alpha)
        keys = [np.where(differs, -self.worse_values, 0.0), differs, np.isfinite(self.p)]
        return int(np.lexsort((-np.arange(len(self.p)), self.gap, *keys))[-1])


def read_pair_difference_tests(run: Run) -> pl.DataFrame:
    """Read the tests of two groups' differences from a run's ``disparities``."""
    rows = run.disparities.filter(kind="difference").drop_nulls(["value", "p_adjusted"])
    return rows.select(*_KEY, "group_a", "group_b", "value", "p_adjusted")


def find_audit_p_of_gaps(
    tests: pl.DataFrame,
    row: Mapping[str, Any],
    groups: Sequence[str],
    pairs: IntArray,
    gap: FloatArray,
) -> FloatArray:
    """Find the audit's adjusted p of one metric's gaps between the comparable groups: ``[p]``.

    Shapes: ``pairs`` [p, 2], ``gap`` [p].
    """
    tests = tests.filter(*(pl.col(name).eq_missing(pl.lit(row[name])) for name in _KEY))
    columns = ("group_a", "group_b", "value", "p_adjusted")
    p_by_pair = {(a, b): (audit_gap, p) for a, b, audit_gap, p in tests.select(columns).iter_rows()}
    p_by_pair |= {(b, a): (-audit_gap, p) for (a, b), (audit_gap, p) in p_by_pair.items()}
    p = np.full(len(pairs), np.nan)
    for i, (a, b) in enumerate(pairs.tolist()):
        audit_gap, audit_p = p_by_pair.get((groups[a], groups[b]), (np.nan, np.nan))
        if abs(audit_gap - gap[i]) < _EQUALITY_TOLERANCE:
            p[i] = audit_p
    return p
