"""Measures of an attribute: the omnibus test, dispersion, and plugin measures of all its groups.

``omnibus_test`` and ``estimate_noise_corrected_sd`` come first in every report. The range (max −
min), the extreme ratio and ε are never below their parity value, and grow with the number of groups
and with noise; a percentile interval of them never contains 0. So their interval here is
simultaneous: every pair's interval at the critical value of the largest |t| over this attribute's
pairs; the largest lower and upper bound among the pairs then cover the true range with at least the
level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from isolux.core.formatting import UNTESTED
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import Status
from isolux.disparity.contrast_z import is_overall_among_groups
from isolux.disparity.family import (
    AttributeTests,
    ComparisonFamily,
    choose_max_workers,
    flag_untestable_pairs,
)
from isolux.disparity.measure_registry import PluginMeasure, load_measures
from isolux.disparity.rows import (
    NO_RATIO_FLAG,
    UNTESTED_FLAG,
    DisparityRows,
    RowStatus,
    build_disparity_rows,
    list_cautions,
)
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods.noise_bias import NOISE_BIAS_REASON, has_noise_bias
from isolux.groups.unknown_values import UNKNOWN
from isolux.io.threads import map_in_threads
from isolux.stats.cluster_sums import has_whole_clusters
from isolux.stats.constants import MIN_GROUPS_FOR_DISPERSION
from isolux.stats.dispersion import estimate_noise_corrected_sd, pool_variance_per_observation
from isolux.stats.intervals import percentile_interval, two_sided_normal_quantile
from isolux.stats.multiplicity import MaxNormalTail, max_t_critical_value
from isolux.stats.null_distribution import COMPLEMENT
from isolux.stats.power_analysis import bonferroni_critical_t
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.survey_sums import unweighted_cluster_sums
from isolux.stats.test_inversion import Difference

_NO_VARIATION = RowStatus(Status.NO_VARIATION.value, "nothing varies within the groups")
_TOO_FEW_GROUPS = "fewer than five groups"


def build_attribute_measure_rows(
    estimates: Estimates, family: ComparisonFamily, spec: ComparisonSettings
) -> list[DisparityRows]:
    """Return the whole-attribute rows of every attribute and metric."""
    is_comparable, plugin_measures = estimates.is_comparable(), load_measures()

    def build_key_rows(key: tuple[str, int]) -> list[DisparityRows]:
        attribute, j = key
        tested = family.tested.get(key)
        if tested is None:
            n_comparable = int(is_comparable[estimates.attribute_rows(attribute), j].sum())
            return [_build_undefined_row(estimates, j, attribute, n_comparable)]
        return _AttributeMeasures(estimates, family, spec, attribute, j, tested).build_rows(
            plugin_measures
        )

    keys = [
        (attribute, j) for attribute in estimates.domain_rows for j in range(is_comparable.shape[1])
    ]
    max_workers = choose_max_workers(tested.contrasts for tested in family.tested.values())
    return [
        rows
        for key_rows in map_in_threads(build_key_rows, keys, max_threads=max_workers)
        for rows in key_rows
    ]


class _AttributeMeasures:
    """Builds the rows of one attribute and metric from inputs that are computed once."""

    def __init__(
        self,
        estimates: Estimates,
        family: ComparisonFamily,
        spec: ComparisonSettings,
        attribute: str,
        j: int,
        tested: AttributeTests,
    ) -> None:
        self.estimates, self.family, self.spec = estimates, family, spec
        self.attribute, self.j = attribute, j
        self.tested = drop_unknown_groups_if_testable(estimates, tested)
        self.members = self.tested.members
        self.values = estimates.value[self.members, j]
        self.replicates = estimates.replicates[self.members, j]
        self.has_noise_bias = has_noise_bias(estimates.measures[j])
        sign = estimates.measures[j].sign
        order = np.argsort(self.values * sign, kind="stable")
        self.worst, self.best = int(self.members[order[0]]), int(self.members[order[-1]])
        self.range_bounds: dict[bool, tuple[float, float]] = {}
        self.caution = next(filter(None, list_cautions(estimates, j)[self.members]), None)

    def build_rows(self, plugin_measures: Sequence[PluginMeasure]) -> list[DisparityRows]:
        metric = self.estimates.measures[self.j]
        # A distance from overall needs an overall value among the groups' values (decision 31).
        centred = self.tested.has_reference or is_overall_among_groups(
            self.estimates, self.attribute, self.j
        )
        applicable = [
            measure
            for measure in plugin_measures
            if measure.is_applicable(metric.metric, metric.info.low)
            and (centred or not measure.needs_centre)
        ]
        rows = [self._build_omnibus_row(), self._build_noise_corrected_row()]
        return [*rows, *map(self._build_plugin_row, applicable)]

    def _build_row(
        self,
        disparity_kind: str,
        estimate: float,
        bounds: tuple[float, float] = (math.nan, math.nan),
        *,
        method: str | None = None,
        p: tuple[float, float] = (math.nan, math.nan),
        groups: tuple[int | None, int | None] | None = None,
        undefined_reason: str = "the formula divides by nothing here",
        caution: RowStatus | None = None,
    ) -> DisparityRows:
        """Build one row; ``caution``: the flag where the groups have none."""
        a, b = (self.worst, self.best) if groups is None else groups
        test = self.tested.test if not math.isnan(p[0]) else None
        undefined = not math.isfinite(estimate)
        flag = self.caution or caution
        if undefined:
            flag = RowStatus(Status.UNDEFINED.value, undefined_reason)
            bounds = (math.nan, math.nan)
        return build_disparity_rows(
            self.estimates,
            self.j,
            self.attribute,
            disparity_kind,
            groups=(None if a is None else np.array([a]), None if b is None else np.array([b])),
            value=np.array([estimate]),
            low=np.array([bounds[0]]),
            high=np.array([bounds[1]]),
            method=method,
            p_value=np.array([p[0]]),
            p_adjusted=np.array([p[1]]),
            test=test,
            family=self.tested.family if test else None,
            flags=[flag],
        )

    def _build_omnibus_row(self) -> DisparityRows:
        # Groups against the rest too: whatever a report states of an attribute, this test shows.
        t = np.abs(self.tested.null.t)
        is_pair = self.tested.contrasts[:, 1] != COMPLEMENT
        if np.isnan(t[is_pair]).all():
            members = self.members[self.tested.contrasts[is_pair]]
            # Values that differ although nothing varies have no null distribution: no p.
            if flag_untestable_pairs(self.estimates, self.j, *members.T).any():
                return self._build_row("omnibus_test", math.nan, undefined_reason=UNTESTED)
            return self._build_row("omnibus_test", 0.0, p=(1.0, 1.0))
        strongest = int(np.nanargmax(t))
        tail = MaxNormalTail(self.tested.null.max_z, int(np.isfinite(t).sum()))
        p = float(tail.adjust_p(t[strongest]))
        p = max(p, float(self.tested.null.p_value[strongest]))  # no less than its own p
        adjusted = float(self.tested.adjusted[strongest])
        if self.spec.correction != "max-t":  # the attribute's own p bounds its best comparison's
            adjusted = max(adjusted, p) if self.spec.correction != "none" else p
        groups = [
            0 if k == COMPLEMENT else int(self.members[k]) for k in self.tested.contrasts[strongest]
        ]  # row 0: everyone
        sign = self.estimates.measures[self.j].sign
        groups.sort(key=lambda g: float(self.estimates.value[g, self.j]) * sign)
        return self._build_row(
            "omnibus_test",
            float(t[strongest]),
            method="largest |t|",
            p=(p, adjusted),
            groups=(groups[0], groups[1]),
        )

    def _build_noise_corrected_row(self) -> DisparityRows:
        # Noise bias differs between groups of different size, and would count as dispersion.
        if self.has_noise_bias or len(self.members) < MIN_GROUPS_FOR_DISPERSION:
            reason = NOISE_BIAS_REASON if self.has_noise_bias else _TOO_FEW_GROUPS
            return self._build_row(
                "noise_corrected_sd", math.nan, groups=(None, None), undefined_reason=reason
            )
        n_clusters = self.estimates.n_clusters[self.members, self.j]
        covariance = self._estimate_covariance()
        if self._shares_no_cluster():
            effective_size = self.estimates.n_effective
            sizes = (
                n_clusters
                if effective_size is None
                else effective_size.n_clusters[self.members, self.j]
            )
            covariance = pool_variance_per_observation(covariance, sizes)
        dispersion = estimate_noise_corrected_sd(
            self.values, covariance, self.spec.level, degrees_of_freedom=n_clusters - 1.0
        )
        # With few groups the interval has almost no upper bound; a bounded metric has one.
        metric_info = self.estimates.measures[self.j].info
        max_sd = math.inf
        if metric_info.low is not None and metric_info.high is not None:
            # tau is the SD of true values (denominator n): at most half of the range.
            half_range = (metric_info.high - metric_info.low) / 2.0
            n = len(self.members)
            # The SD (denominator n - 1) is largest with half of the values at either end.
            extreme_factor = math.sqrt((n * n // 4) / (n * max(n - 1, 1)))  # over n - 1, of 0 to 1
            # The estimate itself may exceed half of the range, so it has this limit instead.
            extreme_sd = (metric_info.high - metric_info.low) * extreme_factor
            max_sd = half_range if dispersion.tau < half_range else max(extreme_sd, dispersion.tau)
        is_constant = self._has_no_variation()
        bounds = (
            (math.nan, math.nan) if is_constant else (dispersion.low, min(dispersion.high, max_sd))
        )
        return self._build_row(
            "noise_corrected_sd",
            dispersion.tau,
            bounds,
            method="Paule–Mandel, Q-profile",
            groups=(None, None),
            caution=_NO_VARIATION if is_constant else None,
        )

    def _shares_no_cluster(self) -> bool:
        """Tell whether groups share no cluster, so that their variances may be pooled."""
        # With each group's own variance, values near 0 or 1 get weights that are far too large
        # and tau counts noise as dispersion.
        # Of 20 equal groups at 0.95, the interval contained 0 in 71 of 100 data sets, and in 98
        # with a pooled variance (docs/methods/other_statistics.md).
        estimates = self.estimates
        domain = estimates.domain_rows[self.attribute]
        design = unweighted_cluster_sums(estimates.cluster_sums)
        return has_whole_clusters(design, estimates.attribute_rows(self.attribute), domain)

    def _estimate_covariance(self) -> FloatArray:
        """Estimate the covariance ``[g, g]`` of group values from replicates.

        A group whose replicates do not vary (a value of 0 or 1) gets the variance that the width
        of its Wilson interval implies.
        """
        # A replicate without a value counts as the estimate, which adds no deviation.
        replicates = np.where(np.isfinite(self.replicates), self.replicates, self.values[:, None])
        covariance = np.cov(replicates)
        n_clusters = self.estimates.n_clusters[self.members, self.j].astype(float)
        # Resampling C clusters has the variance with denominator C, not C - 1.
        small_sample_factor = np.sqrt(n_clusters / np.maximum(n_clusters - 1.0, 1.0))
        covariance = covariance * small_sample_factor[:, None] * small_sample_factor[None, :]
        interval = self.estimates.interval
        width = interval.high[self.members, self.j] - interval.low[self.members, self.j]
        min_variance = (width / (2.0 * two_sided_normal_quantile(self.spec.level))) ** 2
        has_no_variance = np.diagonal(covariance) <= 0
        covariance[np.diag_indices_from(covariance)] += np.where(
            has_no_variance, np.nan_to_num(min_variance), 0.0
        )
        return np.asarray(covariance)

    def _build_plugin_row(self, measure: PluginMeasure) -> DisparityRows:
        """Build the row of one plugin measure."""
        overall, overall_replicates, centre_group = self._select_gap_centre()
        settings = {"ddof": self.spec.ddof, "log_base": self.spec.log_base}
        estimate = float(measure.evaluate(self.values, {"overall": np.array(overall), **settings}))
        if measure.info.interval != "percentile":
            is_log = measure.info.interval == "largest log ratio"
            bounds = measure.convert_bounds(self._compute_range_bounds(log=is_log), settings)
            missing_bound = (
                (NO_RATIO_FLAG if is_log else UNTESTED_FLAG) if math.isnan(bounds[0]) else None
            )
            return self._build_row(
                measure.name,
                estimate,
                bounds,
                method="simultaneous pairs",
                caution=missing_bound,
            )
        if self._has_no_variation():
            return self._build_row(
                measure.name, estimate, groups=(None, None), caution=_NO_VARIATION
            )
        replicate_values = measure.evaluate(
            self.replicates.T, {"overall": overall_replicates, **settings}
        )
        interval = percentile_interval(replicate_values, self.spec.level)
        # Resampling noise adds dispersion: all replicates may lie above a value close to 0.
        return self._build_row(
            measure.name,
            estimate,
            (float(np.minimum(interval.low, estimate)), float(np.maximum(interval.high, estimate))),
            method="percentile (cannot hold 0)",
            groups=(None, centre_group if measure.needs_centre else None),
        )

    def _has_no_variation(self) -> bool:
        """Tell whether no group's replicates vary, so that they give no interval."""
        is_finite = np.isfinite(self.replicates)
        low = np.min(self.replicates, axis=1, where=is_finite, initial=np.inf)
        high = np.max(self.replicates, axis=1, where=is_finite, initial=-np.inf)
        # A relative tolerance: replicates that differ by rounding do not vary.
        return bool((high - low <= 1e-12 * np.abs(high)).all())

    def _compute_range_bounds(self, *, log: bool) -> tuple[float, float]:
        """Bound the largest difference or log ratio, once for all measures that use it."""
        if log not in self.range_bounds:
            self.range_bounds[log] = range_or_log_ratio_interval(
                self.estimates, self.tested, self.j, self.spec, log=log
            )
        return self.range_bounds[log]

    def _select_gap_centre(self) -> tuple[float, FloatArray, int]:
        """Return value, replicates and row of what gaps are measured from: reference or overall."""
        pairs = self.tested.contrasts[self.tested.contrasts[:, 1] != COMPLEMENT]
        g = int(self.members[pairs[0, 1]]) if self.tested.has_reference else 0
        centre = float(self.estimates.value[g, self.j])
        return centre, self.estimates.replicates[g, self.j], g


def drop_unknown_groups_if_testable(estimates: Estimates, tested: AttributeTests) -> AttributeTests:
    """Drop groups of unknown value, if two other groups remain and have a tested pair.

    Range, dispersion, worst group and test then concern the same groups.
    """
    known_groups = [g for g in tested.members if UNKNOWN not in estimates.groups[g].values]
    if len(known_groups) < 2 or len(known_groups) == len(tested.members):
        return tested
    selected = select_group_contrasts(tested, np.array(known_groups, dtype=np.int64))
    # Without a tested pair among the known groups, the unknown one has to stay.
    return selected if (selected.contrasts[:, 1] != COMPLEMENT).any() else tested


def range_or_log_ratio_interval(
    estimates: Estimates, tested: AttributeTests, j: int, spec: ComparisonSettings, *, log: bool
) -> tuple[float, float]:
    """Bound the largest difference (or log ratio) between any two groups, all pairs at once."""
    members = tested.members
    # The widest gap may be that of the group without an interval.
    if np.isnan(estimates.interval.low[members, j]).any():
        return math.nan, math.nan
    if log and (estimates.value[members, j] <= 0.0).any():
        return math.nan, math.nan
    critical = max_t_critical_value(tested.null.max_pair_z, 1.0 - spec.level)
    # Without variance there are no replicates, and the critical value is 0 or undefined.
    has_no_variation = not np.isfinite(critical) or critical <= 0
    critical = 0.0 if has_no_variation else critical
    t = np.abs(tested.null.t[tested.contrasts[:, 1] != COMPLEMENT])
    strongest = float(np.max(t, where=np.isfinite(t), initial=0.0))
    # The relative tolerance keeps a tie by rounding from being significant.
    is_significant = not has_no_variation and strongest * (1.0 - 1e-10) > critical
    if tested.has_reference or has_no_variation:  # the null has not all pairs, the range has
        n_pairs = len(members) * (len(members) - 1) // 2
        critical = max(critical, float(bonferroni_critical_t(1.0 - spec.level, n_pairs)))
    # The maximum of few simulated pairs may be smaller than the quantile of a single pair.
    z = max(critical, float(bonferroni_critical_t(1.0 - spec.level)))
    first, second = np.triu_indices(len(members), 1)
    differences = tested.comparisons.compare_pairs(members[first], members[second])
    # Unordered pairs are enough: the interval of b - a mirrors that of a - b.
    outer_bounds = differences.outermost_bound(z, log=log)
    if not np.isfinite(outer_bounds).any():
        return math.nan, math.nan
    high = float(np.nanmax(outer_bounds))
    # Lower bound 0 where the test finds no difference: a percentile interval of a range never
    # contains 0 (docs/methods/other_statistics.md).
    return (max(largest_lower_bound(differences, z, log=log), 0.0) if is_significant else 0.0), high


def largest_lower_bound(differences: Difference, z: float, *, log: bool) -> float:
    """Return the largest lower bound over all ordered pairs."""
    return float(np.nanmax(differences.outermost_bound(z, log=log, inner_bound=True)))


def list_ordered_pairs(members: IntArray) -> tuple[IntArray, IntArray]:
    """List all ordered pairs of groups.

    Examples
    --------
    >>> first, second = list_ordered_pairs(np.array([3, 5]))
    >>> first.tolist(), second.tolist()
    ([3, 5], [5, 3])
    """
    first, second = np.nonzero(~np.eye(len(members), dtype=bool))
    return members[first], members[second]


def select_group_contrasts(tested: AttributeTests, members: IntArray) -> AttributeTests:
    """Keep the contrasts of some groups; the null maximum over all pairs is then conservative."""
    new_positions = np.full(len(tested.members), -1)
    new_positions[np.isin(tested.members, members)] = np.arange(len(members))
    first, second = tested.contrasts.T
    with_rest = second == COMPLEMENT
    new_second = np.where(with_rest, COMPLEMENT, new_positions[np.where(with_rest, 0, second)])
    is_selected = (new_positions[first] >= 0) & (with_rest | (new_second >= 0))
    return replace(
        tested,
        members=members,
        contrasts=np.column_stack([new_positions[first], new_second])[is_selected],
        null=replace(
            tested.null, t=tested.null.t[is_selected], p_value=tested.null.p_value[is_selected]
        ),
        adjusted=tested.adjusted[is_selected] if len(tested.adjusted) else tested.adjusted,
    )


def _build_undefined_row(
    estimates: Estimates, j: int, attribute: str, n_comparable: int
) -> DisparityRows:
    phrases = ("no group has", "only one group has", "the reference group, or all but one, lacks")
    phrase = phrases[min(n_comparable, 2)]
    return build_disparity_rows(
        estimates,
        j,
        attribute,
        "omnibus_test",
        groups=(None, None),
        value=np.array([np.nan]),
        flags=[
            RowStatus(Status.UNDEFINED.value, f"{phrase} enough units and clusters to be compared")
        ],
    )


def build_equalized_odds_rows(table: pl.DataFrame) -> pl.DataFrame:
    """Return equalized odds: the larger of the two rates' ranges (as fairlearn does)."""
    rates = ["true_positive_rate", "false_positive_rate"]
    ranges = table.filter((pl.col("kind") == "range") & pl.col("metric").is_in(rates))
    keys = ["model", "task", "label", "attribute"]
    worst = ranges.sort("value", descending=True, nulls_last=True).group_by(
        keys, maintain_order=True
    )
    # The larger of two ranges is at least the larger lower bound, and at most the larger upper one.
    odds = worst.agg(
        pl.all().exclude(*keys, "low", "high").first(),
        pl.col("low").max(),
        pl.col("high").max(),
        _n=pl.col("metric").n_unique(),
    ).filter(pl.col("_n") == len(rates))
    return odds.with_columns(
        kind=pl.lit("equalized_odds_difference"),
        metric=pl.lit("equalized_odds"),
        method=pl.lit("worst case of the two rates, simultaneous pairs"),
    ).select(table.columns)
