"""One metric by one sensitive attribute, judged: the pair that speaks, verdicts, adjusted gaps.

What sentences and tables are made of, in the analysis ``confounders``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses.confounders.audited import Audited, audited
from isolux.analyses.confounders.cells import Cells, Layout
from isolux.analyses.confounders.facts import Estimate, Explanation, Facts, gaps
from isolux.analyses.confounders.regression import Adjusted, adjusted_gap
from isolux.analyses.confounders.roles import Standing
from isolux.analyses.confounders.tests import Family, gap_interval, middle, standard_error
from isolux.stats.confounding import ranked_first
from isolux.stats.intervals import Interval
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import Metric

__all__ = ["OVERLAP", "Bearing", "Case", "Gap", "Number", "case_of", "number_of", "regressed"]

OVERLAP = 0.8
"""Share of each group's people that must be compared, or a gap at an equal mix is of others."""
PROBABLE, AGAINST, IMPROBABLE = "probable explanation", "persists after control", "not probable"
"""The paper's verdicts: its dispersion is above 1 point and control lowers it; it is and control
does not; it is not."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number and its interval; None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Gaps of all pairs; ``statistic``, a normal deviate, says how surely each is told from 0."""

    estimate: Estimate
    interval: Interval
    statistic: FloatArray

    def of(self, pair: int) -> Number:
        """Return the gap of one pair."""
        ends = self.interval.low[pair], self.interval.high[pair]
        return Number(*(number_of(x) for x in (self.estimate.value[pair], *ends)))


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


@dataclass(slots=True)
class Case:
    """One metric (class, threshold) by one sensitive attribute.

    ``raw`` are the groups' gaps as they are, ``proxy[s]`` those between their proxies, ``level[s]``
    those at an equal mix of explanatory attribute s, ``own[s]`` the gaps as they stand of the
    people who are compared there. ``first[s]`` is the share of replicates in which s ranks first
    (NaN for attributes crossed). ``audited``: what the audit's own test says of ``raw``.
    ``squared``: dispersions are variances. ``regression`` and ``bearing`` are by place, of the
    pair that speaks. ``standing[s]``: the role of s, and what the graph says of holding it alike.
    """

    row: dict[str, Any]
    info: Metric
    layout: Layout
    cells: Cells
    facts: Facts
    level_of_intervals: float
    singles: tuple[int, ...]
    clusters: FloatArray
    raw: Gap
    proxy: tuple[Gap, ...]
    level: tuple[Gap, ...]
    own: tuple[Gap, ...]
    first: FloatArray
    audited: Audited
    standing: tuple[Standing, ...]
    squared: bool = False
    other_variant: FloatArray | None = None
    regression: dict[int, Adjusted] = field(default_factory=dict)
    bearing: dict[int, Bearing] = field(default_factory=dict)

    @property
    def groups(self) -> list[str]:
        """Names of the judged groups."""
        return [self.layout.sensitive.groups[g] for g in self.facts.judged]

    @property
    def pair(self) -> int | None:
        """The pair that speaks: the audit's, else told apart most surely, else widest."""
        if not len(self.facts.pairs):
            return None
        if self.audited.known:
            return self.audited.leading(1.0 - self.level_of_intervals)
        sure = np.nan_to_num(self.raw.statistic, nan=0.0)
        if sure.max() > 0:
            return int(sure.argmax())
        return int(np.abs(self.raw.estimate.value).argmax())

    @property
    def sides(self) -> tuple[int, int]:
        """Places among the judged groups of the pair that speaks, the worse one first."""
        pair = self.pair
        first, second = (int(g) for g in self.facts.pairs[0 if pair is None else pair])
        return (first, second) if self.sign > 0 else (second, first)

    @property
    def sign(self) -> float:
        """1 where the first group of the pair that speaks is the worse one, else −1."""
        pair = self.pair
        gap = 0.0 if pair is None else float(self.raw.estimate.value[pair])
        worse = gap > 0 if self.info.direction == "lower" else gap <= 0
        return 1.0 if worse else -1.0

    @property
    def ranked(self) -> list[int]:
        """Single explanatory attributes with an answer, by falling dispersion of their proxies."""
        usable = [s for s in self.singles if np.isfinite(self.of(s).sigma.value)]
        return sorted(usable, key=lambda s: -float(self.of(s).sigma.value))

    def of(self, s: int) -> Explanation:
        """Return what is known of one explanatory attribute."""
        return self.facts.explanations[s]

    def gap_of(self, gap: Gap) -> Number:
        """Return the gap of the pair that speaks, the worse group less the other."""
        found = gap.of(self.pair or 0)
        if self.sign > 0 or found.value is None:
            return found
        turned = (None if x is None else -x for x in (found.value, found.high, found.low))
        return Number(*turned)

    def spread_of(self, estimate: Estimate) -> Number:
        """Return one number with the middle of its replicates."""
        ends = middle(estimate, self.level_of_intervals)
        low, high = np.fmin(ends.low, estimate.value), np.fmax(ends.high, estimate.value)
        shown = np.isfinite(ends.low)
        low, high = np.where(shown, low, np.nan), np.where(shown, high, np.nan)
        return Number(*(number_of(x) for x in (estimate.value, low, high)))

    def covered(self, s: int) -> float:
        """Share of the people of the pair that speaks who are compared; of the least covered."""
        return self.of(s).mixed.covered(self.pair or 0)

    def left_out(self, s: int) -> list[tuple[str, int, int]]:
        """Name both groups of the pair that speaks, the worse first: people left out, and all."""
        mixed, pair = self.of(s).mixed, self.pair or 0
        both = [0, 1] if self.sign > 0 else [1, 0]
        return [
            (self.groups[side], int(mixed.left_out[pair, i]), int(mixed.people[pair, i]))
            for side, i in zip(self.sides, both, strict=True)
        ]

    def why_apart(self, s: int) -> str:
        """Say why the pair that speaks cannot be compared at an equal mix; empty where it can."""
        if np.isfinite(self.level[s].estimate.value[self.pair or 0]):
            return ""
        if self.of(s).apart:
            return self.of(s).status
        return f"at none of its values have both {self.of(s).mixed.least} people"

    def beside(self, s: int) -> Gap:
        """Return the gaps as they stand, of the very people that are compared at an equal mix."""
        return self.raw if self.covered(s) >= 1.0 else self.own[s]

    def remaining(self, s: int) -> Number:
        """Share of the gap of those compared that is left at an equal mix."""
        pair = self.pair or 0
        raw, left = self.beside(s).estimate, self.level[s].estimate
        if not np.isfinite(left.value[pair]) or abs(raw.value[pair]) < 1e-12:
            return Number(None)
        share = float(left.value[pair] / raw.value[pair])
        se = standard_error(raw, self.clusters)[pair]
        if not (np.isfinite(se) and abs(raw.value[pair]) > 2.0 * se):
            return Number(share)
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = left.replicates[:, pair] / raw.replicates[:, pair]
        ends = middle(Estimate(np.float64(share), drawn), self.level_of_intervals)  # type: ignore[arg-type]
        return Number(share, number_of(ends.low), number_of(ends.high))

    def verdict(self, s: int, probable: float) -> str:
        """Word what the paper would say of an explanatory attribute."""
        one = self.of(s)
        if one.status or not np.isfinite(one.sigma.value):
            return one.status or "undefined"
        sigma = float(one.sigma.value) ** (0.5 if self.squared else 1.0)
        if sigma <= probable:
            return IMPROBABLE
        return PROBABLE if float(one.reduction.value) > 0 else AGAINST


def number_of(x: Any) -> float | None:
    """Turn NaN into None."""
    return float(x) if np.isfinite(x) else None


def case_of(
    row: dict[str, Any],
    info: Metric,
    layout: Layout,
    cells: Cells,
    facts: Facts,
    family: Family,
    level: float,
    *,
    standing: tuple[Standing, ...],
    tested: pl.DataFrame | None = None,
    squared: bool = False,
) -> Case:
    """Work out gaps, intervals and ranks, and take the gaps into the family of tests."""
    of_groups = layout.of_groups(cells.independent)[facts.judged]
    clusters = (
        of_groups[facts.pairs].min(axis=1) if len(facts.pairs) else np.zeros(0, dtype=np.float64)
    )

    def gap(found: Estimate) -> Gap:
        return Gap(found, gap_interval(found, clusters, level), family.add(found, clusters))

    def untested(found: Estimate) -> Gap:
        nothing = np.full(len(clusters), np.nan)
        return Gap(found, gap_interval(found, clusters, level), nothing)

    singles = tuple(s for s, one in enumerate(layout.strata) if len(one.parts) == 1)
    drawn = [facts.explanations[s].sigma.replicates for s in singles]
    first = np.full(len(layout.strata), np.nan)
    if drawn:
        first[list(singles)] = ranked_first(np.column_stack(drawn))
    raw = replace(gaps(facts.value, facts.pairs), least=facts.least)
    groups = [layout.sensitive.groups[g] for g in facts.judged]
    upwards = -1.0 if info.direction == "lower" else 1.0
    worst = (upwards * facts.value.value[facts.pairs]).min(axis=1, initial=np.inf)
    return Case(
        row, info, layout, cells, facts, level, singles, clusters,
        gap(raw),
        tuple(gap(gaps(one.proxy, facts.pairs)) for one in facts.explanations),
        tuple(gap(one.mixed.gap) for one in facts.explanations),
        tuple(untested(one.mixed.own) for one in facts.explanations),
        first,
        audited(tested, row, layout.sensitive.name, groups, facts.pairs, raw.value, worst),
        standing,
        squared,
    )  # fmt: skip


def regressed(
    case: Case, s: int, scored: pl.DataFrame, weight: FloatArray | None = None
) -> Adjusted:
    """Adjust the gap of the pair that speaks by regression on attribute s.

    Shapes: ``weight`` [n_units].
    """
    sensitive, strata = case.layout.sensitive, case.layout.strata
    worse, other = (case.facts.judged[side] for side in case.sides)
    n = len(strata[s].code)
    inside = np.zeros((2, n), dtype=np.bool_)
    for side, group in enumerate((worse, other)):
        inside[side, sensitive.unit[sensitive.group == group]] = True
    known = scored.drop_nulls("value")
    unit = known["unit"].to_numpy()
    # Who is in both groups tells nothing of their difference.
    rows = (inside[0] ^ inside[1])[unit]
    parts = [one for one in strata if one.parts[0] in strata[s].parts and len(one.parts) == 1]
    for one in parts:
        rows &= one.code[unit] >= 0
    unit = unit[rows]
    return adjusted_gap(
        known["value"].to_numpy()[rows],
        inside[0][unit].astype(np.float64),
        [one.code[unit] for one in parts],
        known["cluster"].to_numpy()[rows],
        case.level_of_intervals,
        None if weight is None else weight[unit],
    )
