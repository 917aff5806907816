"""From a rule to its cells: which measures, which groups, held to whom; what is not there, by name.

What the policy names and the run lacks fails closed. Only a name that no task knows is a mistake of
the policy itself (``UnknownNameError``), as is a limit in another unit than the metric's.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from isolux.disparity.comparisons import compare_groups
from isolux.disparity.observed import is_among
from isolux.disparity.paired import paired_difference
from isolux.disparity.whole import both_ways
from isolux.groups.estimates import Estimates, Measure
from isolux.groups.unknown import UNKNOWN
from isolux.policy.cells import (
    Cells,
    Closed,
    Side,
    independent,
    of_differences,
    of_ratios,
    of_values,
    pairs_of,
    too_small,
)
from isolux.policy.rules import Rule, level_of, margin_of
from isolux.stats.design import IntArray
from isolux.vocabulary import registry
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.words import OUTSIDE

_HIGHER = ("at_least",)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The other run: both models on the same people, or other people's own estimates."""

    paired: Estimates | None = None
    models: tuple[str, str] = ("", "")
    other: Estimates | None = None
    problem: str = ""
    people: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """What rules are asked of: a run's estimates, its record, and its baseline."""

    estimates: Estimates
    record: Mapping[str, Any]
    findings: pl.DataFrame
    least: tuple[int, int]
    absent: Mapping[str, str] = field(default_factory=dict)
    same: Baseline = field(default_factory=Baseline)
    different: Baseline = field(default_factory=Baseline)
    disparities: pl.DataFrame | None = None
    shared: Baseline = field(default_factory=Baseline)
    silent: pl.DataFrame | None = None

    def baseline(self, rule: Rule) -> Baseline:
        """Return the baseline of the people whom a rule asks about."""
        return {"same": self.same, "shared": self.shared, "different": self.different}[
            rule.same_people
        ]


@dataclass(slots=True)
class Asked:
    """A rule's cells, what could not be asked, and how many groups of unknown value it leaves."""

    rule: Rule
    cells: list[Cells] = field(default_factory=list)
    closed: list[Closed] = field(default_factory=list)
    unknown: int = 0


def ask(rule: Rule, measured: Measured) -> Asked:
    """Lay out what one rule asks."""
    asked = Asked(rule)
    if rule.kind == "none_above":
        _every_gap(asked, measured)
    elif rule.kind == "lost_at_most":
        _since_baseline(asked, measured)
    else:
        _of_run(asked, measured)
    return asked


def _of_run(asked: Asked, measured: Measured) -> None:
    """Ask about values and gaps of the run itself."""
    estimates = measured.estimates
    for j in _measures(asked, measured, estimates):
        rows = asked_groups(asked, estimates)
        if rows is None:
            return
        kept, closed = too_small(estimates, j, rows, measured.least)
        asked.closed += [_of_measure(one, estimates, j) for one in closed]
        asked.cells += _cells(asked, estimates, j, kept, {one.who for one in closed})


def _cells(
    asked: Asked, estimates: Estimates, j: int, rows: IntArray, left: set[str]
) -> list[Cells]:
    rule, measure = asked.rule, estimates.measures[j]
    if rule.kind in ("at_least", "at_most"):
        limit = _limit(rule, measure)
        sign = 1.0 if rule.kind in _HIGHER else -1.0
        return [of_values(Side(estimates, j, rows), limit, sign)] if len(rows) else []
    attribute = str(rule.attribute)
    if rule.kind == "worse_by_at_most":
        return _behind(asked, estimates, j, rows)
    if len(rows) < 2:
        if not left:  # groups too small are named already
            asked.closed.append(Closed(attribute, "it has fewer than two groups to compare"))
        return []
    first, second = both_ways(rows)
    sides = Side(estimates, j, first), Side(estimates, j, second)
    apart = pairs_of(estimates, attribute, j, first, second)
    if rule.kind == "ratio_at_least":
        return [of_ratios(*sides, apart, float(rule.ratio or 0.0))]
    return [of_differences(*sides, apart, _margin(rule, measure), -1.0)]


def _behind(asked: Asked, estimates: Estimates, j: int, rows: IntArray) -> list[Cells]:
    """Hold groups to everyone else, or to one group."""
    rule, measure = asked.rule, estimates.measures[j]
    attribute = str(rule.attribute)
    margin, sign = _margin(rule, measure), _direction(rule, measure)
    compared = compare_groups(estimates, attribute, j)
    if rule.than is None:
        if len(estimates.members(attribute)) < 2:
            asked.closed.append(Closed(attribute, "it has fewer than two groups to compare"))
            return []
        if not is_among(estimates, attribute, j):
            why = OUTSIDE if measure.info.pooled else "everyone's value is no measure for groups"
            asked.closed.append(Closed(_called(measure), f"{why}; name a group with `than`"))
            return []
        side = Side(estimates, j, rows)
        rest = "everyone else" if measure.mean is not None else "everyone"
        apart = compared.rests(rows) if len(rows) else None
        return [of_differences(side, side, apart, margin, sign, rest)] if apart else []
    names = {plain(estimates.groups[g].name): int(g) for g in estimates.members(attribute)}
    at = names.get(plain(rule.than))
    if at is None:
        asked.closed.append(_missing("group", rule.than, names))
        return []
    others = rows[rows != at] if at in rows else rows[:0]  # too small: among what is closed
    if not len(others):
        return []
    second = np.full(len(others), at, dtype=np.int64)
    sides = Side(estimates, j, others), Side(estimates, j, second)
    apart = pairs_of(estimates, attribute, j, others, second)
    return [of_differences(*sides, apart, margin, sign)]


def _every_gap(asked: Asked, measured: Measured) -> None:
    """Ask of all shares and all attributes of the run that no two groups differ by so much."""
    estimates = measured.estimates
    for attribute in estimates.domain_of:
        rows = np.array(
            [g for g in estimates.members(attribute) if UNKNOWN not in estimates.groups[g].values],
            dtype=np.int64,
        )
        for j, measure in enumerate(estimates.measures):
            if not measure.fraction:
                continue
            kept, closed = too_small(estimates, j, rows, measured.least)
            asked.closed += [_of_measure(one, estimates, j) for one in closed]
            if len(kept) < 2:
                continue
            first, second = both_ways(kept)
            apart = pairs_of(estimates, attribute, j, first, second)
            sides = Side(estimates, j, first), Side(estimates, j, second)
            asked.cells.append(of_differences(*sides, apart, _margin(asked.rule, measure), -1.0))
    if not asked.cells and not asked.closed:
        asked.closed.append(Closed("the run", "it compares no groups on any share"))


def _since_baseline(asked: Asked, measured: Measured) -> None:
    rule = asked.rule
    base = measured.baseline(rule)
    if base.problem:
        asked.closed.append(Closed("the baseline", base.problem))
        return
    if base.paired is not None:
        _paired(asked, measured, base)
    elif base.other is not None:
        _of_others(asked, measured, base.other)


def _paired(asked: Asked, measured: Measured, base: Baseline) -> None:
    """Hold a model to the baseline's on the same people."""
    both, rule = base.paired, asked.rule
    assert both is not None  # noqa: S101 - the caller asked
    at = {_key(m): j for j, m in enumerate(both.measures)}
    for now in _measures(asked, measured, both, base.models[1]):
        measure = both.measures[now]
        then = at.get((base.models[0], *_key(measure)[1:]))
        rows = asked_groups(asked, both)
        if rows is None:
            return
        if then is None:
            asked.closed.append(Closed(_called(measure), "the baseline has no such value"))
            continue
        margin, sign = _margin(rule, measure), _direction(rule, measure)
        kept, closed = too_small(both, now, rows, measured.least)
        asked.closed += [_of_measure(one, both, now) for one in closed]
        kept, closed = too_small(both, then, kept, measured.least)
        asked.closed += [_of_measure(one, both, then) for one in closed]
        if len(kept):
            sides = Side(both, now, kept), Side(both, then, kept)
            apart = paired_difference(both, kept, then, now)
            asked.cells.append(of_differences(*sides, apart, margin, sign, "the baseline"))


def _of_others(asked: Asked, measured: Measured, other: Estimates) -> None:
    """Hold a model to the baseline on other people: two independent samples."""
    rule, estimates = asked.rule, measured.estimates
    at = {_key(m)[1:]: j for j, m in enumerate(other.measures)}
    there = {(g.attribute, g.values): k for k, g in enumerate(other.groups)}
    for now in _measures(asked, measured, estimates):
        measure = estimates.measures[now]
        rows = asked_groups(asked, estimates)
        if rows is None:
            return
        then = at.get(_key(measure)[1:])
        if then is None:
            asked.closed.append(Closed(_called(measure), "the baseline has no such value"))
            continue
        kept, closed = too_small(estimates, now, rows, measured.least)
        asked.closed += [_of_measure(one, estimates, now) for one in closed]
        pairs = []
        for g in kept:
            group = estimates.groups[g]
            twin = there.get((group.attribute, group.values))
            if twin is None:
                asked.closed.append(Closed(group.name, "the baseline has no such group"))
                continue
            fit, closed = too_small(other, then, np.array([twin]), measured.least)
            asked.closed += [replace(one, who=f"{one.who} in the baseline") for one in closed]
            pairs += [(int(g), twin)] if len(fit) else []
        if pairs:
            one, two = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
            sides = Side(estimates, now, one), Side(other, then, two)
            margin, sign = _margin(rule, measure), _direction(rule, measure)
            apart = independent(*sides)
            asked.cells.append(of_differences(*sides, apart, margin, sign, "the baseline"))


def _measures(
    asked: Asked, measured: Measured, estimates: Estimates, model: str | None = None
) -> list[int]:
    """Find the measures that a rule is about; what is not there is closed, by name."""
    rule = asked.rule
    every = list(enumerate(estimates.measures))
    found = [(j, m) for j, m in every if m.metric == rule.metric]
    if not found:
        asked.closed.append(_no_metric(rule, measured, estimates))
        return []
    asked_model = model or rule.model
    for key, wanted, kind in (
        ("model", asked_model, "model"),
        ("label", rule.label, "class"),
        ("threshold", rule.threshold, "threshold"),
    ):
        if wanted is None:
            continue
        known = [getattr(m, key) for _, m in found]
        found = [(j, m) for j, m in found if getattr(m, key) == wanted]
        if not found:
            asked.closed.append(_missing(kind, wanted, known))
            return []
    if rule.label is None and any(m.label is None for _, m in found):
        found = [(j, m) for j, m in found if m.label is None]
    return [j for j, _ in found]


def _no_metric(rule: Rule, measured: Measured, estimates: Estimates) -> Closed:
    name = str(rule.metric)
    known = sorted({m.metric for m in estimates.measures})
    if name in measured.absent:
        return Closed(name, measured.absent[name])
    tasks = {m.name for task in registry.names("tasks") for m in registry.task_info(task).metrics}
    if name not in tasks | set(known) | set(measured.record.get("metrics") or ()):
        raise UnknownNameError("metric", name, known, where=rule.where)
    has = f"the run has {', '.join(known)}" if known else "the run has none"
    return Closed(name, f"the run did not measure it ({has})")


def asked_groups(asked: Asked, estimates: Estimates) -> IntArray | None:
    """Find the groups that a rule is about; None: the attribute is not there."""
    rule = asked.rule
    if rule.attribute is None:
        return np.zeros(1, dtype=np.int64)
    if rule.attribute not in estimates.domain_of:
        one = _missing("attribute or intersection", rule.attribute, estimates.domain_of)
        if one.who not in {c.who for c in asked.closed}:
            asked.closed.append(one)
        return None
    rows = estimates.members(rule.attribute)
    names = {plain(estimates.groups[g].name): int(g) for g in rows}
    if rule.groups:
        for name in rule.groups:
            if plain(name) not in names and name not in {c.who for c in asked.closed}:
                asked.closed.append(
                    _missing("group", name, [estimates.groups[g].name for g in rows])
                )
        wanted = [*rule.groups, *([rule.than] if rule.than else [])]
        kept = dict.fromkeys(names[plain(n)] for n in wanted if plain(n) in names)
        return np.array(list(kept), dtype=np.int64)
    known = [int(g) for g in rows if UNKNOWN not in estimates.groups[g].values]
    asked.unknown = len(rows) - len(known)
    if not known:
        asked.closed.append(Closed(rule.attribute, "it has no group whose value is known"))
    return np.array(known, dtype=np.int64)


def _missing(kind: str, name: object, known: Iterable[object]) -> Closed:
    """Say that something is not in the run, and what is called alike there."""
    names = sorted({str(one) for one in known if one is not None})
    near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.5)
    like = f"; did you mean {' or '.join(near)}?" if near else ""
    has = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    return Closed(str(name), f"the run has no such {kind} (it has {has or 'none'}){like}")


def _of_measure(one: Closed, estimates: Estimates, j: int) -> Closed:
    """Name the class or threshold too, where a metric has several."""
    measure = estimates.measures[j]
    alike = [m for m in estimates.measures if m.metric == measure.metric]
    if len(alike) == 1:
        return one
    return replace(one, who=f"{one.who} ({_called(measure)})")


def _called(measure: Measure) -> str:
    parts = [
        measure.metric,
        measure.label,
        None if measure.threshold is None else f"{measure.threshold:g}",
    ]
    return " ".join(part for part in parts if part)


def _key(measure: Measure) -> tuple[str, str, str | None, float | None]:
    return measure.model, measure.metric, measure.label, measure.threshold


def plain(name: object) -> str:
    """Let ``darker * dim`` name the group ``darker × dim``."""
    return "*".join(part.strip() for part in str(name).replace("×", "*").split("*"))


def _limit(rule: Rule, measure: Measure) -> float:
    assert rule.amount is not None  # noqa: S101 - the reader asks for one
    wrong = {"at_least": "lower", "at_most": "higher"}[rule.kind]
    if measure.info.direction == wrong:
        better = "less" if wrong == "lower" else "more"
        raise SpecError(
            f"of {measure.metric}, {better} is better, so `{rule.kind}` asks for the worse",
            expected="`at_most`" if wrong == "lower" else "`at_least`",
            found=f"{rule.kind}: {rule.amount.text}",
            where=rule.where,
        )
    return level_of(rule.amount, measure.info.unit, what=rule.kind, where=rule.where)


def _margin(rule: Rule, measure: Measure) -> float:
    assert rule.amount is not None  # noqa: S101 - the reader asks for one
    return margin_of(rule.amount, measure.info.unit, what=rule.kind, where=rule.where)


def _direction(rule: Rule, measure: Measure) -> float:
    if measure.info.direction == "none":
        raise SpecError(
            f"of {measure.metric}, neither more nor less is better: nothing is worse",
            expected="`within`, or `at_least` and `at_most`",
            found=rule.kind,
            where=rule.where,
        )
    return measure.sign
