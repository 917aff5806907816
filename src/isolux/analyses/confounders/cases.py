"""One metric by one sensitive attribute, judged: the pair that speaks, verdicts, adjusted gaps.

What sentences and tables are made of, in the analysis ``confounders``.
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
"""Share of each group's people that must be compared, or a gap at an equal mix is of others."""
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
    """What a gap at an equal mix can bear, as shares of 0 to 1; None where there is none.

    Parameters
    ----------
    gap, end : float or None
        Robustness value of the gap, and of the end of its interval that is nearer to 0.
    score, group : float or None
        What the annotated values themselves explain, of the score within groups and of the groups.
    """

    gap: float | None
    end: float | None
    score: float | None
    group: float | None


@dataclass(frozen=True, slots=True)
class Mix:
    """What is left at an equal mix of one explanatory attribute, or of several crossed.

    Parameters
    ----------
    parts : tuple of str
        The attributes.
    standing : Standing
        Their role, and what the graph says of holding them alike.
    gap, raw : Number
        Of the pair that speaks, the worse group less the other: at the equal mix, and as it stands
        of the people who are compared there.
    share : Number
        Share of ``raw`` that is left.
    p : float or None
        Of ``gap``, adjusted.
    covered : float
        Share of the pair's people who are compared; of the group least covered.
    left_out : list of (str, int, int)
        Both groups, the worse first: people left out, and all.
    least : int
        What both groups must have at a value.
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

    ``statistics`` are normal deviates that say how surely gaps are told from 0, of the groups'
    gaps as they are (``raw``), between their proxies and at an equal mix (by place).
    ``first[s]`` is the share of replicates in which s ranks first (NaN for attributes crossed).
    ``audited``: what the audit's own test says of the gaps as they are. ``squared``: dispersions
    are variances. ``pair`` is the pair that speaks: the audit's, else told apart most surely, else
    widest; ``sides`` are its places among the judged groups, the worse one first. ``regression``
    and ``bearing`` are by place, of that pair.
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
        """Names of the judged groups."""
        return [self.layout.sensitive.groups[g] for g in self.facts.judged]

    @property
    def names(self) -> tuple[str, str]:
        """Names of the pair that speaks, the worse group first."""
        return self.groups[self.sides[0]], self.groups[self.sides[1]]

    @property
    def singles(self) -> list[int]:
        """Places of attributes that are not crossed."""
        return [s for s, one in enumerate(self.layout.strata) if len(one.parts) == 1]

    @property
    def ranked(self) -> list[int]:
        """Single explanatory attributes with an answer, by falling dispersion of their proxies."""
        usable = [s for s in self.singles if np.isfinite(self.of(s).sigma.value)]
        return sorted(usable, key=lambda s: -float(self.of(s).sigma.value))

    def of(self, s: int) -> Explanation:
        """Return what is known of one explanatory attribute."""
        return self.facts.explanations[s]

    def gap_of(self, estimate: Estimate) -> Number:
        """Return the gap of the pair that speaks, the worse group less the other."""
        pair = self.pair or 0
        ends = gap_interval(estimate, self.clusters, self.level)
        gap = Number.of(estimate.value[pair], ends.low[pair], ends.high[pair])
        if self.sides[0] < self.sides[1] or gap.value is None:
            return gap
        return Number(*(None if x is None else -x for x in (gap.value, gap.high, gap.low)))

    def spread_of(self, estimate: Estimate) -> Number:
        """Return one number with the middle of its replicates."""
        ends = middle(estimate, self.level)
        if not np.isfinite(ends.low):
            return Number.of(estimate.value)
        low, high = np.fmin(ends.low, estimate.value), np.fmax(ends.high, estimate.value)
        return Number.of(estimate.value, low, high)

    def p_of_gap(self, family: Family) -> float | None:
        """Give the p of the gap as it stands, of the pair that speaks: the audit's, else ours."""
        pair = self.pair or 0
        if np.isfinite(self.audited.p[pair]):
            return float(self.audited.p[pair])
        return family.smallest_p(self.raw[[pair]])

    def smallest_p(self, family: Family) -> float | None:
        """Give the p of the groups' surest gap: the audit's own, else this analysis's."""
        if self.audited.known:
            return float(np.nanmin(self.audited.p))
        return family.smallest_p(self.raw)

    def mix_of(self, s: int, family: Family) -> Mix:
        """Say what is left of the gap at an equal mix of one attribute."""
        strata, pair, mixed = self.layout.strata[s], self.pair or 0, self.of(s).mixed
        gap, covered = self.gap_of(mixed.gap), mixed.covered(pair)
        # As it stands, of the very people that are compared at an equal mix.
        raw = self.facts.gap if covered >= 1.0 else mixed.own
        reason = ""
        if not np.isfinite(mixed.gap.value[pair]):
            reason = f"at none of its values have both {mixed.least} people"
            reason = self.of(s).status if self.of(s).is_separated else reason
        order = [0, 1] if self.sides[0] < self.sides[1] else [1, 0]
        left_out = [
            (name, int(mixed.left_out[pair, i]), int(mixed.people[pair, i]))
            for name, i in zip(self.names, order, strict=True)
        ]
        found, agrees = self.regression.get(s), None
        if found and not found.reason and gap.low is not None and gap.high is not None:
            agrees = gap.low <= found.gap <= gap.high
        return Mix(
            strata.parts,
            self.standing[s],
            gap,
            self.gap_of(raw),
            self._share_left(raw, mixed.gap, pair),
            family.smallest_p(self.mixes[s][[pair]]),
            covered,
            left_out,
            mixed.least,
            reason,
            found,
            agrees,
            self.bearing.get(s),
        )

    def _share_left(self, raw: Estimate, left: Estimate, pair: int) -> Number:
        """Share of the gap of those compared that is left at an equal mix."""
        if not np.isfinite(left.value[pair]) or abs(raw.value[pair]) < 1e-12:
            return Number(None)
        share = float(left.value[pair] / raw.value[pair])
        se = standard_error(raw, self.clusters)[pair]
        if not (np.isfinite(se) and abs(raw.value[pair]) > 2.0 * se):
            return Number(share)
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = left.replicates[:, pair] / raw.replicates[:, pair]
        ends = middle(Estimate(np.asarray(share), drawn), self.level)
        return Number.of(share, ends.low, ends.high)

    def verdict(self, s: int) -> str:
        """Word what the paper would say of an explanatory attribute."""
        one = self.of(s)
        if one.status or not np.isfinite(one.sigma.value):
            return one.status or "undefined"
        sigma = float(one.sigma.value) ** (0.5 if self.squared else 1.0)
        if sigma <= PROBABLE_SIGMA:
            return IMPROBABLE
        return PROBABLE if float(one.reduction.value) > 0 else AGAINST


def case_of(
    row: dict[str, Any],
    info: Metric,
    layout: Layout,
    cells: Cells,
    facts: Facts,
    family: Family,
    level: float,
    *,
    standing: Sequence[Standing] = (),
    tests: pl.DataFrame | None = None,
    squared: bool = False,
) -> Case:
    """Work out which pair speaks, and take the gaps into the family of tests."""
    pairs, raw = facts.pairs, facts.gap
    of_groups = layout.of_groups(cells.independent)[facts.judged]
    clusters = of_groups[pairs].min(axis=1) if len(pairs) else np.zeros(0, dtype=np.float64)
    raw_statistic = family.add(raw, clusters)
    proxies = tuple(family.add(gaps(one.proxy, pairs), clusters) for one in facts.explanations)
    mixes = tuple(family.add(one.mixed.gap, clusters) for one in facts.explanations)
    upwards = -1.0 if info.direction == "lower" else 1.0
    worst = (upwards * facts.value.value[pairs]).min(axis=1, initial=np.inf)
    p = np.full(len(pairs), np.nan)
    if tests is not None:
        names = [layout.sensitive.groups[g] for g in facts.judged]
        named = {**row, "attribute": layout.sensitive.name}
        p = find_audited_p(tests, named, names, pairs, raw.value)
    case = Case(
        row,
        info,
        layout,
        cells,
        facts,
        level,
        tuple(standing) or (Standing(),) * len(layout.strata),
        squared,
        clusters,
        raw_statistic,
        proxies,
        mixes,
        np.full(len(layout.strata), np.nan),
        Audited(p, worst, np.abs(raw.value)),
    )
    drawn = [case.of(s).sigma.replicates for s in case.singles]
    if drawn:
        case.first[case.singles] = ranked_first(np.column_stack(drawn))
    if len(pairs):
        sure = np.nan_to_num(raw_statistic, nan=0.0)
        widest = int((sure if sure.max() > 0 else np.abs(raw.value)).argmax())
        case.pair = case.audited.leading(1.0 - level) if case.audited.known else widest
        gap = float(raw.value[case.pair])
        first, second = (int(g) for g in pairs[case.pair])
        is_first_worse = gap > 0 if info.direction == "lower" else gap <= 0
        case.sides = (first, second) if is_first_worse else (second, first)
    return case


def regress(case: Case, s: int, scored: pl.DataFrame, weight: FloatArray | None) -> Adjusted:
    """Adjust the gap of the pair that speaks by regression on attribute s.

    Shapes: ``weight`` [n_units].
    """
    sensitive, strata = case.layout.sensitive, case.layout.strata
    inside = np.zeros((2, len(strata[s].code)), dtype=np.bool_)
    for side, place in enumerate(case.sides):
        inside[side, sensitive.unit[sensitive.group == case.facts.judged[place]]] = True
    known = scored.drop_nulls("value")
    unit = known["unit"].to_numpy()
    # Who is in both groups tells nothing of their difference.
    rows = (inside[0] ^ inside[1])[unit]
    parts = [one for one in strata if len(one.parts) == 1 and one.parts[0] in strata[s].parts]
    for one in parts:
        rows &= one.code[unit] >= 0
    unit = unit[rows]
    return adjusted_gap(
        known["value"].to_numpy()[rows],
        inside[0][unit].astype(np.float64),
        [one.code[unit] for one in parts],
        known["cluster"].to_numpy()[rows],
        case.level,
        None if weight is None else weight[unit],
    )


def find_bearing(
    case: Case, s: int, scored: pl.DataFrame, weight: FloatArray | None
) -> Bearing | None:
    """Say how strong what was not annotated would have to be to take a gap away.

    Of metrics that are means of people's scores; the formulas are ``stats/confounding.py``. Shapes:
    ``weight`` [n_units].
    """
    mixed, strata = case.of(s).mixed, case.layout.strata[s]
    gap = case.gap_of(mixed.gap)
    if case.pair is None or gap.value is None:
        return None
    known = scored.drop_nulls("value")
    score = np.full(len(strata.code), np.nan)
    score[known["unit"].to_numpy()] = known["value"].to_numpy()
    mass = np.ones(len(score)) if weight is None else weight
    sensitive, k = case.layout.sensitive, len(strata.values)
    sums = np.zeros((3, 2, k))  # people, and their scores and squares
    for side, place in enumerate(case.sides):
        unit = sensitive.unit[sensitive.group == case.facts.judged[place]]
        unit = unit[(strata.code[unit] >= 0) & np.isfinite(score[unit])]
        for power in range(3):
            values = mass[unit] * score[unit] ** power
            sums[power, side] = np.bincount(strata.code[unit], values, minlength=k)
    compared = mixed.compared[case.pair]
    everyone = case.layout.of_values(case.cells.people, s)
    people, total, square = sums[:, :, compared]
    strength = strength_of_gap(people, total, square, everyone[compared])
    # The end nearer to 0; an interval that holds 0 bears nothing.
    end = 0.0 if gap.low is None or gap.high is None else max(gap.low, -gap.high, 0.0)
    return Bearing(
        number_of(strength.robustness(gap.value)),
        None if gap.low is None else number_of(strength.robustness(end)),
        number_of(strength.score),
        number_of(strength.group),
    )
