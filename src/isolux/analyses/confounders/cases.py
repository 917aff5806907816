"""One metric by one sensitive attribute: the leading pair, verdicts and adjusted gaps.

Sentences and tables of the analysis ``confounders`` are written from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._judged import number_of
from isolux.analyses.confounders.cells import Cells, Layout
from isolux.analyses.confounders.facts import Estimate, Explanation, Facts, gaps
from isolux.analyses.confounders.regression import Adjusted, adjusted_gap
from isolux.analyses.confounders.roles import Standing
from isolux.analyses.confounders.tests import (
    Audited,
    Family,
    find_audited_p,
    gap_interval,
    middle,
    standard_error,
)
from isolux.stats.confounding import ranked_first, strength_of_gap
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import Metric

OVERLAP = 0.8
"""Share of each group's people that must be compared, or the adjusted gap concerns other people."""
PROBABLE_SIGMA = 0.01
"""Standard deviation of ProxyAP above which an attribute is a probable explanation: 1 point."""
PROBABLE, AGAINST, IMPROBABLE = "probable explanation", "persists after control", "not probable"
"""The paper's verdicts: its dispersion is above 1 point and control lowers it; it is and control
does not; it is not."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number and its interval; None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, *numbers: Any) -> Number:
        """Turn NaN into None."""
        return cls(*map(number_of, numbers))


@dataclass(frozen=True, slots=True)
class Bearing:
    """Robustness values of an adjusted gap, as shares of 0 to 1; None where there is none.

    Parameters
    ----------
    gap, end : float or None
        Robustness value of the gap, and of the bound of its interval that is nearer to 0.
    score, group : float or None
        Shares that the annotated values explain: of the score within groups, and of the groups.
    """

    gap: float | None
    end: float | None
    score: float | None
    group: float | None


@dataclass(frozen=True, slots=True)
class Mix:
    """The gap adjusted for one explanatory attribute, or for several crossed.

    Parameters
    ----------
    parts : tuple of str
        The attributes.
    standing : Standing
        Their role, and what adjusting for them does by the graph.
    gap, raw : Number
        Of the leading pair, the worse group minus the other: adjusted, and unadjusted of the same
        people.
    share : Number
        Share of ``raw`` that remains.
    p : float or None
        Of ``gap``, adjusted.
    covered : float
        Share of the pair's people who are compared; of the group least covered.
    left_out : list of (str, int, int)
        Both groups, the worse first: people excluded, and all.
    least : int
        Fewest people that both groups must have at a value.
    reason : str
        Why the pair cannot be compared; empty where it can.
    regression, agrees : Adjusted or None, bool or None
        The same gap by regression, and whether it lies in the stratified interval.
    bearing : Bearing or None
    """

    parts: tuple[str, ...]
    standing: Standing
    gap: Number
    raw: Number
    share: Number
    p: float | None
    covered: float
    left_out: list[tuple[str, int, int]]
    least: int
    reason: str
    regression: Adjusted | None
    agrees: bool | None
    bearing: Bearing | None

    @property
    def name(self) -> str:
        """The attributes, joined by ``*``."""
        return "*".join(self.parts)


@dataclass(slots=True)
class Case:
    """One metric (class, threshold) by one sensitive attribute.

    ``raw``, ``proxies`` and ``mixes`` are z statistics: of the unadjusted gaps, the gaps between
    proxies and the adjusted gaps (one array an explanatory attribute). ``first[s]`` is the share of
    replicates in which s ranks first (NaN for attributes crossed). ``audited``: the audit's own
    tests of the unadjusted gaps. ``squared``: dispersions are variances. ``pair`` is the leading
    pair: the audit's, else that with the largest z, else the widest; ``sides`` are its positions
    among the comparable groups, the worse one first. ``regression`` and ``bearing`` are by
    explanatory attribute, of that pair.
    """

    row: dict[str, Any]
    info: Metric
    layout: Layout
    cells: Cells
    facts: Facts
    level: float
    standing: tuple[Standing, ...]
    squared: bool
    clusters: FloatArray
    raw: FloatArray
    proxies: tuple[FloatArray, ...]
    mixes: tuple[FloatArray, ...]
    first: FloatArray
    audited: Audited
    pair: int | None = None
    sides: tuple[int, int] = (0, 0)
    other_variant: FloatArray | None = None
    regression: dict[int, Adjusted] = field(default_factory=dict)
    bearing: dict[int, Bearing] = field(default_factory=dict)

    @property
    def groups(self) -> list[str]:
        """Names of the comparable groups."""
        return [self.layout.sensitive.groups[g] for g in self.facts.judged]

    @property
    def names(self) -> tuple[str, str]:
        """Names of the leading pair, the worse group first."""
        return self.groups[self.sides[0]], self.groups[self.sides[1]]

    @property
    def singles(self) -> list[int]:
        """Indices of attributes that are not crossed."""
        return [s for s, strata in enumerate(self.layout.strata) if len(strata.parts) == 1]

    @property
    def ranked(self) -> list[int]:
        """Indices of single attributes with a finite proxy dispersion, the largest first."""
        usable = [s for s in self.singles if np.isfinite(self.of(s).sigma.value)]
        return sorted(usable, key=lambda s: -float(self.of(s).sigma.value))

    def of(self, s: int) -> Explanation:
        """Return the effect of one explanatory attribute."""
        return self.facts.explanations[s]

    def gap_of(self, estimate: Estimate) -> Number:
        """Return the leading pair's gap, the worse group minus the other, with its interval."""
        pair = self.pair or 0
        interval = gap_interval(estimate, self.clusters, self.level)
        gap = Number.of(estimate.value[pair], interval.low[pair], interval.high[pair])
        if self.sides[0] < self.sides[1] or gap.value is None:
            return gap
        return Number(*(None if x is None else -x for x in (gap.value, gap.high, gap.low)))

    def spread_of(self, estimate: Estimate) -> Number:
        """Return a dispersion with its percentile interval, extended to contain the estimate."""
        interval = middle(estimate, self.level)
        if not np.isfinite(interval.low):
            return Number.of(estimate.value)
        low, high = np.fmin(interval.low, estimate.value), np.fmax(interval.high, estimate.value)
        return Number.of(estimate.value, low, high)

    def p_of_gap(self, family: Family) -> float | None:
        """Return the adjusted p of the leading pair's unadjusted gap: the audit's, else ours."""
        pair = self.pair or 0
        if np.isfinite(self.audited.p[pair]):
            return float(self.audited.p[pair])
        return family.smallest_p(self.raw[[pair]])

    def smallest_p(self, family: Family) -> float | None:
        """Return the smallest adjusted p of the unadjusted gaps: the audit's, else ours."""
        if self.audited.known:
            return float(np.nanmin(self.audited.p))
        return family.smallest_p(self.raw)

    def mix_of(self, s: int, family: Family) -> Mix:
        """Build the leading pair's gap adjusted for one attribute."""
        strata, pair, standardised = self.layout.strata[s], self.pair or 0, self.of(s).mixed
        gap, coverage = self.gap_of(standardised.gap), standardised.covered(pair)
        # The unadjusted gap of the same people that the adjusted gap compares.
        raw = self.facts.gap if coverage >= 1.0 else standardised.own
        reason = ""
        if not np.isfinite(standardised.gap.value[pair]):
            reason = f"at none of its values have both {standardised.least} people"
            reason = self.of(s).status if self.of(s).is_separated else reason
        order = [0, 1] if self.sides[0] < self.sides[1] else [1, 0]
        left_out = [
            (name, int(standardised.left_out[pair, i]), int(standardised.people[pair, i]))
            for name, i in zip(self.names, order, strict=True)
        ]
        regression, is_consistent = self.regression.get(s), None
        if regression and not regression.reason and gap.low is not None and gap.high is not None:
            is_consistent = gap.low <= regression.gap <= gap.high
        return Mix(
            strata.parts,
            self.standing[s],
            gap,
            self.gap_of(raw),
            self._compute_remaining_share(raw, standardised.gap, pair),
            family.smallest_p(self.mixes[s][[pair]]),
            coverage,
            left_out,
            standardised.least,
            reason,
            regression,
            is_consistent,
            self.bearing.get(s),
        )

    def _compute_remaining_share(self, raw: Estimate, remaining: Estimate, pair: int) -> Number:
        """Compute the share of the unadjusted gap that remains after adjustment.

        No interval where the unadjusted gap is within two standard errors of 0: the ratio's
        denominator may then be 0.
        """
        if not np.isfinite(remaining.value[pair]) or abs(raw.value[pair]) < 1e-12:
            return Number(None)
        share = float(remaining.value[pair] / raw.value[pair])
        raw_se = standard_error(raw, self.clusters)[pair]
        if not (np.isfinite(raw_se) and abs(raw.value[pair]) > 2.0 * raw_se):
            return Number(share)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = remaining.replicates[:, pair] / raw.replicates[:, pair]
        interval = middle(Estimate(np.asarray(share), ratios), self.level)
        return Number.of(share, interval.low, interval.high)

    def verdict(self, s: int) -> str:
        """Return the paper's verdict on an explanatory attribute."""
        explanation = self.of(s)
        if explanation.status or not np.isfinite(explanation.sigma.value):
            return explanation.status or "undefined"
        sigma = float(explanation.sigma.value) ** (0.5 if self.squared else 1.0)
        if sigma <= PROBABLE_SIGMA:
            return IMPROBABLE
        return PROBABLE if float(explanation.reduction.value) > 0 else AGAINST


def case_of(
    row: dict[str, Any],
    metric_info: Metric,
    layout: Layout,
    cells: Cells,
    effects: Facts,
    family: Family,
    level: float,
    *,
    standing: Sequence[Standing] = (),
    tests: pl.DataFrame | None = None,
    squared: bool = False,
) -> Case:
    """Choose the leading pair, and add the gaps to the family of tests."""
    pairs, unadjusted = effects.pairs, effects.gap
    group_clusters = layout.of_groups(cells.independent)[effects.judged]
    clusters = group_clusters[pairs].min(axis=1) if len(pairs) else np.zeros(0, dtype=np.float64)
    raw_statistic = family.add(unadjusted, clusters)
    proxies = tuple(
        family.add(gaps(explanation.proxy, pairs), clusters) for explanation in effects.explanations
    )
    mixes = tuple(
        family.add(explanation.mixed.gap, clusters) for explanation in effects.explanations
    )
    direction = -1.0 if metric_info.direction == "lower" else 1.0
    worse_values = (direction * effects.value.value[pairs]).min(axis=1, initial=np.inf)
    p = np.full(len(pairs), np.nan)
    if tests is not None:
        names = [layout.sensitive.groups[g] for g in effects.judged]
        audit_row = {**row, "attribute": layout.sensitive.name}
        p = find_audited_p(tests, audit_row, names, pairs, unadjusted.value)
    case = Case(
        row,
        metric_info,
        layout,
        cells,
        effects,
        level,
        tuple(standing) or (Standing(),) * len(layout.strata),
        squared,
        clusters,
        raw_statistic,
        proxies,
        mixes,
        np.full(len(layout.strata), np.nan),
        Audited(p, worse_values, np.abs(unadjusted.value)),
    )
    proxy_dispersions = [case.of(s).sigma.replicates for s in case.singles]
    if proxy_dispersions:
        case.first[case.singles] = ranked_first(np.column_stack(proxy_dispersions))
    if len(pairs):
        finite_statistic = np.nan_to_num(raw_statistic, nan=0.0)
        widest = int(
            (finite_statistic if finite_statistic.max() > 0 else np.abs(unadjusted.value)).argmax()
        )
        case.pair = case.audited.leading(1.0 - level) if case.audited.known else widest
        gap = float(unadjusted.value[case.pair])
        first, second = (int(g) for g in pairs[case.pair])
        is_first_worse = gap > 0 if metric_info.direction == "lower" else gap <= 0
        case.sides = (first, second) if is_first_worse else (second, first)
    return case


def regress(case: Case, s: int, scored: pl.DataFrame, weight: FloatArray | None) -> Adjusted:
    """Adjust the leading pair's gap by regression on explanatory attribute ``s``.

    Shapes: ``weight`` [n_units].
    """
    sensitive, strata = case.layout.sensitive, case.layout.strata
    is_member = np.zeros((2, len(strata[s].code)), dtype=np.bool_)
    for pair_side, position in enumerate(case.sides):
        is_member[pair_side, sensitive.unit[sensitive.group == case.facts.judged[position]]] = True
    defined_scores = scored.drop_nulls("value")
    unit = defined_scores["unit"].to_numpy()
    # People in both groups carry no information on their difference.
    rows = (is_member[0] ^ is_member[1])[unit]
    single_strata = [
        stratum
        for stratum in strata
        if len(stratum.parts) == 1 and stratum.parts[0] in strata[s].parts
    ]
    for stratum in single_strata:
        rows &= stratum.code[unit] >= 0
    unit = unit[rows]
    return adjusted_gap(
        defined_scores["value"].to_numpy()[rows],
        is_member[0][unit].astype(np.float64),
        [stratum.code[unit] for stratum in single_strata],
        defined_scores["cluster"].to_numpy()[rows],
        case.level,
        None if weight is None else weight[unit],
    )


def find_bearing(
    case: Case, s: int, scored: pl.DataFrame, weight: FloatArray | None
) -> Bearing | None:
    """Compute how strong an unmeasured confounder would have to be to remove a gap.

    For metrics that are means of people's scores; the formulas are in ``stats/confounding.py``
    (Cinelli and Hazlett 2020). Shapes: ``weight`` [n_units].
    """
    standardised, strata = case.of(s).mixed, case.layout.strata[s]
    gap = case.gap_of(standardised.gap)
    if case.pair is None or gap.value is None:
        return None
    defined_scores = scored.drop_nulls("value")
    score = np.full(len(strata.code), np.nan)
    score[defined_scores["unit"].to_numpy()] = defined_scores["value"].to_numpy()
    weights = np.ones(len(score)) if weight is None else weight
    sensitive, k = case.layout.sensitive, len(strata.values)
    sums = np.zeros((3, 2, k))  # people, and their scores and squares
    for pair_side, position in enumerate(case.sides):
        unit = sensitive.unit[sensitive.group == case.facts.judged[position]]
        unit = unit[(strata.code[unit] >= 0) & np.isfinite(score[unit])]
        for power in range(3):
            values = weights[unit] * score[unit] ** power
            sums[power, pair_side] = np.bincount(strata.code[unit], values, minlength=k)
    compared = standardised.compared[case.pair]
    value_people = case.layout.of_values(case.cells.people, s)
    people, total, square = sums[:, :, compared]
    strength = strength_of_gap(people, total, square, value_people[compared])
    # The bound nearer to 0; an interval that contains 0 has a robustness value of 0.
    nearest_bound = 0.0 if gap.low is None or gap.high is None else max(gap.low, -gap.high, 0.0)
    return Bearing(
        number_of(strength.robustness(gap.value)),
        None if gap.low is None else number_of(strength.robustness(nearest_bound)),
        number_of(strength.score),
        number_of(strength.group),
    )
