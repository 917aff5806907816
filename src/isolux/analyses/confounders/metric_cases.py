"""One metric by one sensitive attribute: the leading pair, verdicts and adjusted gaps.

Sentences and tables of the analysis ``confounders`` are written from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._unit_scores import nan_to_none
from isolux.analyses.confounders.audit_tests import (
    AuditTestResults,
    MaxStatistic,
    find_audit_p_of_gaps,
    gap_t_interval,
    percentile_interval_or_nan,
    replicate_se_with_minimum,
)
from isolux.analyses.confounders.effects import (
    ConfounderEffects,
    ExplanatoryEffect,
    ReplicatedValue,
    compute_pair_gaps,
)
from isolux.analyses.confounders.regression import RegressionGap, estimate_regression_adjusted_gap
from isolux.analyses.confounders.roles import AdjustmentStatus
from isolux.analyses.confounders.strata import StratumEstimates, StratumLayout
from isolux.core.info import Metric
from isolux.stats.confounding import robustness_from_stratum_sums, share_of_replicates_ranked_first
from isolux.stats.statistic import FloatArray

OVERLAP = 0.8
"""Share of each group's people that must be compared, or the adjusted gap concerns other people."""
PROBABLE_SIGMA = 0.01
"""Standard deviation of ProxyAP above which an attribute is a probable explanation: 1 point."""
PROBABLE, PERSISTENT, IMPROBABLE = "probable explanation", "persists after control", "not probable"
"""The paper's verdicts: its dispersion is above 1 point and control lowers it; it is and control
does not; it is not."""


@dataclass(frozen=True, slots=True)
class ValueWithInterval:
    """A number and its interval; None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def from_numbers(cls, *numbers: Any) -> ValueWithInterval:
        """Turn NaN into None."""
        return cls(*map(nan_to_none, numbers))


@dataclass(frozen=True, slots=True)
class Robustness:
    """Robustness values of an adjusted gap, as shares of 0 to 1; None where there is none.

    Parameters
    ----------
    gap, interval_bound : float or None
        Robustness value of the gap, and of the bound of its interval that is nearer to 0.
    score_explained, group_explained : float or None
        Shares that the annotated values explain: of the score within groups, and of the groups.
    """

    gap: float | None = None
    interval_bound: float | None = None
    score_explained: float | None = None
    group_explained: float | None = None


@dataclass(frozen=True, slots=True)
class EqualMixGap:
    """The gap adjusted for one explanatory attribute, or for several crossed.

    Parameters
    ----------
    attributes : tuple of str
        The attributes.
    status : AdjustmentStatus
        Their role, and what adjusting for them does by the graph.
    gap, raw : ValueWithInterval
        Of the leading pair, the worse group minus the other: adjusted, and unadjusted of the same
        people.
    remaining_share : ValueWithInterval
        Share of ``raw`` that remains.
    p : float or None
        Of ``gap``, adjusted.
    coverage : float
        Share of the pair's people who are compared; of the group least covered.
    left_out : list of (str, int, int)
        Both groups, the worse first: people excluded, and all.
    min_people : int
        Fewest people that both groups must have at a value.
    reason : str
        Why the pair cannot be compared; empty where it can.
    regression, is_consistent : RegressionGap or None, bool or None
        The same gap by regression, and whether it lies in the stratified interval.
    robustness : Robustness
    """

    attributes: tuple[str, ...]
    status: AdjustmentStatus
    gap: ValueWithInterval
    raw: ValueWithInterval
    remaining_share: ValueWithInterval
    p: float | None
    coverage: float
    left_out: list[tuple[str, int, int]]
    min_people: int
    reason: str
    regression: RegressionGap | None
    is_consistent: bool | None
    robustness: Robustness

    @property
    def name(self) -> str:
        """The attributes, joined by ``*``."""
        return "*".join(self.attributes)


@dataclass(slots=True)
class MetricCase:
    """One metric (class, threshold) by one sensitive attribute.

    ``unadjusted``, ``proxies`` and ``mixes`` are z statistics: of the unadjusted gaps, the gaps
    between proxies and the adjusted gaps (one array an explanatory attribute). ``first[s]`` is the
    share of replicates in which s ranks first (NaN for attributes crossed). ``audit_results``: the
    audit's own tests of the unadjusted gaps. ``is_variance``: dispersions are variances. ``pair``
    is the leading pair: the audit's, else that with the largest z, else the widest;
    ``pair_positions`` are its positions among the comparable groups, the worse one first.
    ``regression`` and ``robustness`` are by explanatory attribute, of that pair.
    """

    row: dict[str, Any]
    info: Metric
    layout: StratumLayout
    cells: StratumEstimates
    effects: ConfounderEffects
    level: float
    statuses: tuple[AdjustmentStatus, ...]
    is_variance: bool
    clusters: FloatArray
    unadjusted: FloatArray
    proxies: tuple[FloatArray, ...]
    mixes: tuple[FloatArray, ...]
    first_rank_share: FloatArray
    audit_results: AuditTestResults
    pair: int | None = None
    pair_positions: tuple[int, int] = (0, 0)
    area_values: FloatArray | None = None
    regression: dict[int, RegressionGap] = field(default_factory=dict)
    robustness: dict[int, Robustness] = field(default_factory=dict)

    @property
    def groups(self) -> list[str]:
        """Names of the comparable groups."""
        return [self.layout.sensitive.groups[g] for g in self.effects.comparable]

    @property
    def names(self) -> tuple[str, str]:
        """Names of the leading pair, the worse group first."""
        return self.groups[self.pair_positions[0]], self.groups[self.pair_positions[1]]

    @property
    def single_strata(self) -> list[int]:
        """Indices of attributes that are not crossed."""
        return [s for s, strata in enumerate(self.layout.strata) if len(strata.attributes) == 1]

    @property
    def ranked_strata(self) -> list[int]:
        """Indices of single attributes with a finite proxy dispersion, the largest first."""
        usable = [
            s
            for s in self.single_strata
            if np.isfinite(self.get_explanation(s).proxy_dispersion.value)
        ]
        return sorted(usable, key=lambda s: -float(self.get_explanation(s).proxy_dispersion.value))

    def get_explanation(self, s: int) -> ExplanatoryEffect:
        """Return the effect of one explanatory attribute."""
        return self.effects.explanations[s]

    def get_pair_gap(self, estimate: ReplicatedValue) -> ValueWithInterval:
        """Return the leading pair's gap, the worse group minus the other, with its interval."""
        pair = self.pair or 0
        interval = gap_t_interval(estimate, self.clusters, self.level)
        gap = ValueWithInterval.from_numbers(
            estimate.value[pair], interval.low[pair], interval.high[pair]
        )
        if self.pair_positions[0] < self.pair_positions[1] or gap.value is None:
            return gap
        return ValueWithInterval(
            *(None if x is None else -x for x in (gap.value, gap.high, gap.low))
        )

    def get_dispersion(self, estimate: ReplicatedValue) -> ValueWithInterval:
        """Return a dispersion with its percentile interval, extended to contain the estimate."""
        interval = percentile_interval_or_nan(estimate, self.level)
        if not np.isfinite(interval.low):
            return ValueWithInterval.from_numbers(estimate.value)
        low, high = np.fmin(interval.low, estimate.value), np.fmax(interval.high, estimate.value)
        return ValueWithInterval.from_numbers(estimate.value, low, high)

    def get_gap_p(self, family: MaxStatistic) -> float | None:
        """Return the adjusted p of the leading pair's unadjusted gap: the audit's, else ours."""
        pair = self.pair or 0
        if np.isfinite(self.audit_results.p[pair]):
            return float(self.audit_results.p[pair])
        return family.smallest_p(self.unadjusted[[pair]])

    def smallest_p(self, family: MaxStatistic) -> float | None:
        """Return the smallest adjusted p of the unadjusted gaps: the audit's, else ours."""
        if self.audit_results.has_tests:
            return float(np.nanmin(self.audit_results.p))
        return family.smallest_p(self.unadjusted)

    def build_equal_mix_gap(self, s: int, family: MaxStatistic) -> EqualMixGap:
        """Build the leading pair's gap adjusted for one attribute."""
        strata = self.layout.strata[s]
        pair = self.pair or 0
        standardised = self.get_explanation(s).standardised
        gap, coverage = self.get_pair_gap(standardised.gap), standardised.compute_coverage(pair)
        # The unadjusted gap of the same people that the adjusted gap compares.
        raw = self.effects.gap if coverage >= 1.0 else standardised.unstandardised_gap
        reason = ""
        if not np.isfinite(standardised.gap.value[pair]):
            reason = f"at none of its values have both {standardised.min_people} people"
            reason = (
                self.get_explanation(s).status if self.get_explanation(s).is_separated else reason
            )
        order = [0, 1] if self.pair_positions[0] < self.pair_positions[1] else [1, 0]
        left_out = [
            (name, int(standardised.n_excluded[pair, i]), int(standardised.n_people[pair, i]))
            for name, i in zip(self.names, order, strict=True)
        ]
        regression, is_consistent = self.regression.get(s), None
        if regression and not regression.reason and gap.low is not None and gap.high is not None:
            is_consistent = gap.low <= regression.gap <= gap.high
        return EqualMixGap(
            strata.attributes,
            self.statuses[s],
            gap,
            self.get_pair_gap(raw),
            self._compute_remaining_share(raw, standardised.gap, pair),
            family.smallest_p(self.mixes[s][[pair]]),
            coverage,
            left_out,
            standardised.min_people,
            reason,
            regression,
            is_consistent,
            self.robustness.get(s, Robustness()),
        )

    def _compute_remaining_share(
        self, raw: ReplicatedValue, remaining: ReplicatedValue, pair: int
    ) -> ValueWithInterval:
        """Compute the share of the unadjusted gap that remains after adjustment.

        No interval where the unadjusted gap is within two standard errors of 0: the ratio's
        denominator may then be 0.
        """
        if not np.isfinite(remaining.value[pair]) or abs(raw.value[pair]) < 1e-12:
            return ValueWithInterval(None)
        share = float(remaining.value[pair] / raw.value[pair])
        raw_se = replicate_se_with_minimum(raw, self.clusters)[pair]
        if not (np.isfinite(raw_se) and abs(raw.value[pair]) > 2.0 * raw_se):
            return ValueWithInterval(share)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = remaining.replicates[:, pair] / raw.replicates[:, pair]
        interval = percentile_interval_or_nan(
            ReplicatedValue(np.asarray(share), ratios), self.level
        )
        return ValueWithInterval.from_numbers(share, interval.low, interval.high)

    def classify_explanation(self, s: int) -> str:
        """Return the paper's verdict on an explanatory attribute."""
        explanation = self.get_explanation(s)
        if explanation.status or not np.isfinite(explanation.proxy_dispersion.value):
            return explanation.status or "undefined"
        sigma = float(explanation.proxy_dispersion.value) ** (0.5 if self.is_variance else 1.0)
        if sigma <= PROBABLE_SIGMA:
            return IMPROBABLE
        return PROBABLE if float(explanation.reduction.value) > 0 else PERSISTENT


def build_case_and_add_to_family(
    row: dict[str, Any],
    metric_info: Metric,
    layout: StratumLayout,
    cells: StratumEstimates,
    effects: ConfounderEffects,
    family: MaxStatistic,
    level: float,
    *,
    statuses: Sequence[AdjustmentStatus] = (),
    tests: pl.DataFrame | None = None,
    is_variance: bool = False,
) -> MetricCase:
    """Choose the leading pair, and add the gaps to the family of tests."""
    pairs, unadjusted = effects.pairs, effects.gap
    group_clusters = layout.take_groups(cells.independent_clusters)[effects.comparable]
    clusters = group_clusters[pairs].min(axis=1) if len(pairs) else np.zeros(0, dtype=np.float64)
    raw_statistic = family.add(unadjusted, clusters)
    proxies = tuple(
        family.add(compute_pair_gaps(explanation.proxy, pairs), clusters)
        for explanation in effects.explanations
    )
    mixes = tuple(
        family.add(explanation.standardised.gap, clusters) for explanation in effects.explanations
    )
    direction = -1.0 if metric_info.direction == "lower" else 1.0
    worse_values = (direction * effects.value.value[pairs]).min(axis=1, initial=np.inf)
    p = np.full(len(pairs), np.nan)
    if tests is not None:
        names = [layout.sensitive.groups[g] for g in effects.comparable]
        audit_row = {**row, "attribute": layout.sensitive.name}
        p = find_audit_p_of_gaps(tests, audit_row, names, pairs, unadjusted.value)
    case = MetricCase(
        row,
        metric_info,
        layout,
        cells,
        effects,
        level,
        tuple(statuses) or (AdjustmentStatus(),) * len(layout.strata),
        is_variance,
        clusters,
        raw_statistic,
        proxies,
        mixes,
        np.full(len(layout.strata), np.nan),
        AuditTestResults(p, worse_values, np.abs(unadjusted.value)),
    )
    proxy_dispersions = [
        case.get_explanation(s).proxy_dispersion.replicates for s in case.single_strata
    ]
    if proxy_dispersions:
        case.first_rank_share[case.single_strata] = share_of_replicates_ranked_first(
            np.column_stack(proxy_dispersions)
        )
    if len(pairs):
        finite_statistic = np.nan_to_num(raw_statistic, nan=0.0)
        widest = int(
            (finite_statistic if finite_statistic.max() > 0 else np.abs(unadjusted.value)).argmax()
        )
        case.pair = (
            case.audit_results.find_leading_pair(1.0 - level)
            if case.audit_results.has_tests
            else widest
        )
        gap = float(unadjusted.value[case.pair])
        first, second = (int(g) for g in pairs[case.pair])
        is_first_worse = gap > 0 if metric_info.direction == "lower" else gap <= 0
        case.pair_positions = (first, second) if is_first_worse else (second, first)
    return case


def adjust_leading_gap_by_regression(
    case: MetricCase, s: int, scored: pl.DataFrame, weight: FloatArray | None
) -> RegressionGap:
    """Adjust the leading pair's gap by regression on explanatory attribute ``s``.

    Shapes: ``weight`` [n_units].
    """
    sensitive, strata = case.layout.sensitive, case.layout.strata
    is_member = np.zeros((2, len(strata[s].code)), dtype=np.bool_)
    for pair_side, position in enumerate(case.pair_positions):
        is_member[
            pair_side, sensitive.unit[sensitive.group == case.effects.comparable[position]]
        ] = True
    defined_scores = scored.drop_nulls("value")
    unit = defined_scores["unit"].to_numpy()
    # People in both groups carry no information on their difference.
    rows = (is_member[0] ^ is_member[1])[unit]
    single_strata = [
        stratum
        for stratum in strata
        if len(stratum.attributes) == 1 and stratum.attributes[0] in strata[s].attributes
    ]
    for stratum in single_strata:
        rows &= stratum.code[unit] >= 0
    unit = unit[rows]
    return estimate_regression_adjusted_gap(
        defined_scores["value"].to_numpy()[rows],
        is_member[0][unit].astype(np.float64),
        [stratum.code[unit] for stratum in single_strata],
        defined_scores["cluster"].to_numpy()[rows],
        case.level,
        None if weight is None else weight[unit],
    )


def compute_robustness(
    case: MetricCase, s: int, scored: pl.DataFrame, weight: FloatArray | None
) -> Robustness:
    """Compute how strong an unmeasured confounder would have to be to remove a gap.

    For metrics that are means of people's scores; the formulas are in ``stats/confounding.py``
    (Cinelli and Hazlett 2020). Shapes: ``weight`` [n_units].
    """
    standardised, strata = case.get_explanation(s).standardised, case.layout.strata[s]
    gap = case.get_pair_gap(standardised.gap)
    if case.pair is None or gap.value is None:
        return Robustness()
    defined_scores = scored.drop_nulls("value")
    score = np.full(len(strata.code), np.nan)
    score[defined_scores["unit"].to_numpy()] = defined_scores["value"].to_numpy()
    weights = np.ones(len(score)) if weight is None else weight
    sensitive, k = case.layout.sensitive, len(strata.values)
    sums = np.zeros((3, 2, k))  # people, and their scores and squares
    for pair_side, position in enumerate(case.pair_positions):
        unit = sensitive.unit[sensitive.group == case.effects.comparable[position]]
        unit = unit[(strata.code[unit] >= 0) & np.isfinite(score[unit])]
        for power in range(3):
            values = weights[unit] * score[unit] ** power
            sums[power, pair_side] = np.bincount(strata.code[unit], values, minlength=k)
    compared = standardised.is_compared[case.pair]
    value_people = case.layout.take_values(case.cells.composition_counts, s)
    people, total, square = sums[:, :, compared]
    strength = robustness_from_stratum_sums(people, total, square, value_people[compared])
    # The bound nearer to 0; an interval that contains 0 has a robustness value of 0.
    nearest_bound = 0.0 if gap.low is None or gap.high is None else max(gap.low, -gap.high, 0.0)
    return Robustness(
        nan_to_none(strength.robustness_value_of_gap(gap.value)),
        None if gap.low is None else nan_to_none(strength.robustness_value_of_gap(nearest_bound)),
        nan_to_none(strength.score_share_explained),
        nan_to_none(strength.group_share_explained),
    )
