"""From questions to answers: what passes, what fails, and how many more people would decide.

Pass. Each case passes where its one-sided bound at the policy's level lies on the right side of the
limit, and a policy passes where every case does. A policy that should not pass has a case that
should not, which passes with at most 1 − level: no correction is needed, however many cases there
are (intersection-union; Berger 1982).

Fail. A case fails where its p against "it is on the right side", adjusted over all cases of the
policy, is at most 1 − level: a model that keeps every rule fails with at most 1 − level. The
adjustment is Holm's with an equal weight for each rule, shared by its cases, so that a rule of
hundreds of cases takes nothing from a rule of one.

Whatever is neither is insufficient, and so is a group that is too small to be judged.

References
----------
.. [1] Berger, R. L. (1982). Multiparameter hypothesis testing and acceptance sampling.
   Technometrics 24(4), 295-300.
.. [2] Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and the power
   approach for assessing the equivalence of average bioavailability. Journal of Pharmacokinetics
   and Biopharmaceutics 15(6), 657-680.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.groups.estimates import Estimates
from isolux.policy.asking import Asked, Measured, ask, asked_groups, plain
from isolux.policy.cells import Cells, Closed
from isolux.policy.decision import Answer, Case, Decision, RuleAnswer
from isolux.policy.more import More, more_people
from isolux.policy.rules import Policy, Rule, margin_of
from isolux.policy.sentences import counted, ruled, title, unasked
from isolux.stats.multiplicity import weighted_holm
from isolux.stats.statistic import FloatArray, PairStatistic

_STEPS = np.concatenate([np.arange(1, 41) * 0.1, np.arange(9, 17) * 0.5])
"""Reaches at which a bound is looked at, up to 8 standard errors; between them it hardly bends."""
_ROUNDING = 1e-12
"""A bound this near its limit touches it."""
_FACTS = ("covered", "ran")
_ORDER: dict[Answer, int] = {"fail": 0, "insufficient": 1, "pass": 2}


def decide(policy: Policy, measured: Measured) -> Decision:
    """Answer every rule of a policy."""
    asked = [None if rule.kind in _FACTS else ask(rule, measured) for rule in policy.rules]
    for each in asked:
        if each is not None:
            each.closed += without_answer(each.rule, measured, policy.unanswered)
    judged = _judged([one for one in asked if one is not None])
    m = sum(len(p) for each in judged.values() for p in each.p_fail)
    answers = [
        answer_without_cells(rule, measured)
        if one is None
        else _ruled(one, policy, measured, judged[rule.place])
        for rule, one in zip(policy.rules, asked, strict=True)
    ]
    overall = min((one.answer for one in answers), key=lambda answer: _ORDER[answer])
    about = {
        "model": measured.record.get("model") or "",
        "task": measured.record.get("task") or "",
        "level": policy.level,
        "power": policy.power,
        "cases": m,
    }
    return Decision(
        overall,
        tuple(answers),
        notes=_notes(measured, asked),
        unasked=unasked(policy, measured),
        about=about,
    )


def p_beyond(cells: Cells) -> FloatArray:
    """Return the one-sided p of "this value is on the right side of its limit": ``[h]``."""
    from scipy.special import ndtr

    slack = cells.slack
    z = np.zeros(len(slack))
    open_ = np.isfinite(slack) & (slack < 0)
    before, reached = 0.0, slack.copy()
    for step in _STEPS:
        if not open_.any():
            break
        high = np.asarray(cells.bounds(float(step)).high)
        now = open_ & ~(high < 0)
        part = -reached / np.maximum(high - reached, 1e-300)
        z[now] = (before + np.clip(part, 0.0, 1.0) * (step - before))[now]
        z[open_ & ~now] = step
        open_ &= ~now
        before, reached = float(step), high
    found = np.where(slack < 0, ndtr(-z), 1.0)
    return np.asarray(np.where(np.isnan(slack), np.nan, found))


@dataclass(frozen=True, slots=True)
class _Judged:
    """A rule's adjusted p of each case, and the p at which the strictest step rejects."""

    p_fail: list[FloatArray]
    weight: float


def _judged(asked: Sequence[Asked]) -> dict[int, _Judged]:
    """Adjust over all rules, each with an equal weight that its cases share."""
    p = [[p_beyond(cells) for cells in each.cells] for each in asked]
    sizes = [sum(map(len, own)) for own in p]
    rules = max(sum(size > 0 for size in sizes), 1)
    weights = [1.0 / (rules * size) if size else 0.0 for size in sizes]
    every = [part for own in p for part in own]
    if not every:
        return {each.rule.place: _Judged([], 0.0) for each in asked}
    shares = np.concatenate(
        [np.full(len(part), w) for own, w in zip(p, weights, strict=True) for part in own]
    )
    adjusted = weighted_holm(np.concatenate(every), shares)
    parts = iter(np.split(adjusted, np.cumsum([len(part) for part in every])[:-1]))
    return {
        each.rule.place: _Judged([next(parts) for _ in own], weight)
        for each, own, weight in zip(asked, p, weights, strict=True)
    }


def _ruled(asked: Asked, policy: Policy, measured: Measured, judged: _Judged) -> RuleAnswer:
    rule = asked.rule
    answers = [
        _answers(one, p, policy.level) for one, p in zip(asked.cells, judged.p_fail, strict=True)
    ]
    reach = _z(policy.level), _z(1.0 - (1.0 - policy.level) * judged.weight)
    more = more_people(
        asked.cells,
        [np.flatnonzero(one == "insufficient") for one in answers],
        [reach] * len(answers),
        policy.power,
    )
    seen = [
        case
        for parts in zip(asked.cells, answers, judged.p_fail, more, strict=True)
        for case in _cases(*parts, policy.level)
    ]
    cases = [case for _, case in sorted(seen, key=lambda pair: pair[0])]
    cases += [_closed(one, asked) for one in asked.closed]
    if rule.kind == "none_above":
        cases += vetoes(rule, measured, policy)
    if not cases:
        cases = [Case("fail", reason="there was nothing to check")]
    cases.sort(key=lambda case: _ORDER[case.answer])
    text = ruled(rule, cases, measured, policy)
    named = title(rule, measured)
    return RuleAnswer(rule.place, rule.kind, named, cases[0].answer, text, tuple(cases))


def _answers(cells: Cells, p: FloatArray, level: float) -> npt.NDArray[np.str_]:
    low = np.asarray(cells.bounds(_z(level)).low)
    found = np.where(low >= -_ROUNDING, "pass", "insufficient").astype("<U12")
    found[p <= 1.0 - level + _ROUNDING] = "fail"
    found[np.isnan(cells.slack) | np.isnan(low)] = "fail"
    return found


def _cases(
    cells: Cells, answers: npt.NDArray[np.str_], p_fail: FloatArray, more: More, level: float
) -> list[tuple[float, Case]]:
    """Describe cases, each with its place among those of its answer, the worst lowest."""
    measure = cells.first.estimates.measures[cells.first.j]
    groups = [cells.first.estimates.groups[g] for g in cells.first.rows]
    ends = cells.bounds(_z(level))
    one, two = cells.estimate(np.asarray(ends.low)), cells.estimate(np.asarray(ends.high))
    low, high = np.minimum(one, two), np.maximum(one, two)
    estimate = cells.estimate(cells.slack)
    reach = np.maximum(cells.slack - np.asarray(ends.low), _ROUNDING)
    order = np.where(answers == "fail", cells.slack, cells.slack / reach)
    order = np.nan_to_num(order, nan=-np.inf)
    others, units = cells.others(), cells.first.units
    second = None if cells.second is None or cells.rest else cells.second.units
    found = []
    for k, group in enumerate(groups):
        undecided = answers[k] == "insufficient"
        found.append(
            (
                float(order[k]),
                Case(
                    _word(answers[k]),
                    measure.model,
                    measure.metric,
                    measure.label,
                    measure.threshold,
                    group.attribute,
                    group.name,
                    others[k],
                    _number(estimate[k]),
                    _number(low[k]),
                    _number(high[k]),
                    _number(p_fail[k]),
                    int(units[k]),
                    None if second is None else int(second[k]),
                    _whole(more[0][k]) if undecided else None,
                    _whole(more[1][k]) if undecided and second is not None else None,
                    _whole(more[2][k]) if undecided else None,
                    None if np.isfinite(cells.slack[k]) else _undefined(cells),
                ),
            )
        )
    return found


def _word(answer: str) -> Answer:
    return "pass" if answer == "pass" else "fail" if answer == "fail" else "insufficient"


def _undefined(cells: Cells) -> str:
    return "a value of 0 leaves their ratio undefined" if cells.log else "it has no value"


def _closed(one: Closed, asked: Asked) -> Case:
    answer: Answer = "fail" if one.fails else "insufficient"
    return Case(
        answer,
        metric=asked.rule.metric,
        attribute=asked.rule.attribute,
        group=one.who,
        more=one.lacks_units or None,
        more_clusters=one.lacks_clusters or None,
        reason=one.why,
    )


def _notes(measured: Measured, asked: Sequence[Asked | None]) -> tuple[str, ...]:
    told = [f"WARNING of the run: {text}" for text in measured.record.get("warnings") or ()]
    left = [str(each.rule.attribute) for each in asked if each is not None and each.unknown]
    if left:
        names = ", ".join(dict.fromkeys(left))
        told.append(
            f"people whose value is not known ({names}) are in no group that a rule checks, unless "
            "`groups:` names them"
        )
    clusters = (measured.record.get("clusters") or {}).get("column")
    if clusters is None and measured.record:
        told.append(
            "the run names no clusters: each row counts as sampled on its own, and several photos "
            "of one person would make bounds too narrow"
        )
    return tuple(told)


def _z(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(level))


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _whole(value: float) -> int | None:
    return int(value) if np.isfinite(value) else None


# Rules that ask no interval: groups that must be there, analyses that must have run, vetoes.

_GAPS = "group_gaps"
_EXPLORATORY = "Exploratory"


def answer_without_cells(rule: Rule, measured: Measured) -> RuleAnswer:
    """Answer a rule of groups or of analyses."""
    cases = _covered(rule, measured) if rule.kind == "covered" else _ran(rule, measured)
    order = {"fail": 0, "insufficient": 1, "pass": 2}
    cases = sorted(cases, key=lambda case: order[case.answer])
    text = counted(rule, cases)
    named = title(rule, measured)
    return RuleAnswer(rule.place, rule.kind, named, cases[0].answer, text, tuple(cases))


def _covered(rule: Rule, measured: Measured) -> list[Case]:
    asked = Asked(rule)
    rows = asked_groups(asked, measured.estimates)
    cases = [
        Case("fail", attribute=rule.attribute, group=one.who, reason=one.why)
        for one in asked.closed
    ]
    units, clusters = _counts(measured.estimates)
    for g in () if rows is None else rows:
        lacks = (
            max((rule.people or 1) - int(units[g]), 0),
            max((rule.clusters or 1) - int(clusters[g]), 0),
        )
        none = units[g] == 0
        answer: Answer = "fail" if none else "insufficient" if any(lacks) else "pass"
        cases.append(
            Case(
                answer,
                attribute=rule.attribute,
                group=measured.estimates.groups[g].name,
                n=int(units[g]),
                more=lacks[0] or None,
                more_clusters=lacks[1] or None,
                reason=f"{units[g]:,} people{_worth(measured.estimates, int(g))}"
                f" in {clusters[g]:,} clusters",
            )
        )
    return cases or [Case("fail", attribute=rule.attribute, reason="it has no group")]


def _worth(estimates: Estimates, g: int) -> str:
    """Say what a group's people are worth, where they weigh differently."""
    if estimates.worth is None:
        return ""
    worth = round(float(estimates.worth.units[g].max()))
    alike = worth == int(estimates.n_units[g].max())
    return "" if alike else f" (worth {worth:,} of one weight)"


def _counts(estimates: Estimates) -> tuple[np.ndarray, np.ndarray]:
    """Count who is judged at all; a measure of pairs counts pairs, so it does not count."""
    of_people = [not isinstance(m.info.statistic, PairStatistic) for m in estimates.measures]
    if not any(of_people):
        of_people = [True] * len(of_people)
    return (
        estimates.n_units[:, of_people].max(axis=1),
        estimates.n_clusters[:, of_people].max(axis=1),
    )


def _ran(rule: Rule, measured: Measured) -> list[Case]:
    ran = _ran_names(measured.record)
    return [
        Case(
            "pass" if name in ran else "fail",
            group=name,
            reason="it ran"
            if name in ran
            else "it did not run: `isolux explain RUN --analysis "
            f"{name}`, or --explain {name} with the audit",
        )
        for name in rule.analyses
    ]


def _ran_names(record: Mapping[str, Any]) -> set[str]:
    return {str(one.get("name")) for one in record.get("analyses") or ()}


def vetoes(rule: Rule, measured: Measured, policy: Policy) -> list[Case]:
    """Hold findings of the analyses that a rule names to its margin."""
    ran = _ran_names(measured.record)
    cases = [
        Case("fail", group=name, reason="this analysis did not run")
        for name in rule.analyses
        if name not in ran
    ]
    shares = {m.metric for m in measured.estimates.measures if m.fraction}
    named = [name for name in rule.analyses if name != _GAPS]
    found = measured.findings.filter(
        pl.col("analysis").is_in(named), pl.col("metric").is_in(list(shares))
    )
    assert rule.amount is not None  # noqa: S101 - the reader asks for one
    margin = margin_of(rule.amount, "fraction", what=rule.kind, where=rule.where)
    for row in found.drop_nulls("effect").iter_rows(named=True):
        case = _veto(row, margin, policy)
        cases += [] if case is None else [case]
    return cases


def _veto(row: Mapping[str, Any], margin: float, policy: Policy) -> Case | None:
    low, high = row["low"], row["high"]
    known = low is not None and high is not None
    if known and max(abs(low), abs(high)) <= margin:
        return None
    beyond = known and (low > margin or high < -margin)
    sure = row["p_adjusted"] is not None and row["p_adjusted"] <= 1.0 - policy.level
    exploratory = str(row["claim"]).startswith(_EXPLORATORY)
    fails = beyond and sure and not exploratory
    return Case(
        "fail" if fails else "insufficient",
        metric=row["metric"],
        label=row["label"],
        attribute=row["attribute"],
        group=row["group_a"],
        other=row["group_b"],
        estimate=row["effect"],
        low=low,
        high=high,
        p_fail=row["p_adjusted"],
        n=row["n"],
        reason=f"a finding of {row['analysis']}: {row['claim']}",
    )


# Rules and people without a prediction: too many of them, and nothing is shown.


def without_answer(rule: Rule, measured: Measured, most: float) -> list[Closed]:
    """Name everyone or each asked group where a larger share than ``most`` has no prediction."""
    found: dict[str, Closed] = {}
    wanted = {plain(name) for name in (*rule.groups, *([rule.than] if rule.than else []))}
    for row in () if measured.silent is None else measured.silent.iter_rows(named=True):
        n, missing, group = row["n"], row["missing"], row["group"]
        ours = rule.kind == "none_above" or row["attribute"] == rule.attribute
        asked = group is None or (ours and (not wanted or plain(group) in wanted))
        right_model = rule.model in (None, row["model"])
        if asked and right_model and n and missing > most * n:
            who = "everyone" if group is None else str(group)
            found[who] = Closed(
                who,
                f"{missing:,} of {n:,} people ({100 * missing / n:.1f} %) have no prediction, and "
                f"the policy allows {100 * most:g} % (unanswered_at_most)",
            )
    return list(found.values())
