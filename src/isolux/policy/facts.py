"""Rules that ask no interval: groups that must be there, analyses that must have run, vetoes.

A finding can veto and never acquit: that nothing was found shows nothing. So ``none_above`` rests
on the bounds of every gap of the audit, and a finding of another analysis may only fail it, or keep
it from passing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from isolux.groups.estimates import Estimates
from isolux.policy.amounts import margin_of
from isolux.policy.asking import Asked, Measured, asked_groups
from isolux.policy.decision import Answer, Case, RuleAnswer
from isolux.policy.rules import Policy, Rule
from isolux.policy.sentences import counted, title
from isolux.stats.statistic import PairStatistic

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
    cases = [Case("fail", attribute=rule.attribute, group=one.who, reason=one.why)
             for one in asked.closed]  # fmt: skip
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
                answer, attribute=rule.attribute, group=measured.estimates.groups[g].name,
                n=int(units[g]), more=lacks[0] or None, more_clusters=lacks[1] or None,
                reason=f"{units[g]:,} people{_worth(measured.estimates, int(g))}"
                f" in {clusters[g]:,} clusters",
            )
        )  # fmt: skip
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
        estimates.n_units[:, of_people].max(axis=1), estimates.n_clusters[:, of_people].max(axis=1)
    )  # fmt: skip


def _ran(rule: Rule, measured: Measured) -> list[Case]:
    ran = _ran_names(measured.record)
    return [
        Case("pass" if name in ran else "fail", group=name,
             reason="it ran" if name in ran else "it did not run: `isolux explain RUN --analysis "
             f"{name}`, or --explain {name} with the audit")
        for name in rule.analyses
    ]  # fmt: skip


def _ran_names(record: Mapping[str, Any]) -> set[str]:
    return {str(one.get("name")) for one in record.get("analyses") or ()}


def vetoes(rule: Rule, measured: Measured, policy: Policy) -> list[Case]:
    """Hold findings of the analyses that a rule names to its margin."""
    ran = _ran_names(measured.record)
    cases = [Case("fail", group=name, reason="this analysis did not run")
             for name in rule.analyses if name not in ran]  # fmt: skip
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
        "fail" if fails else "insufficient", metric=row["metric"], label=row["label"],
        attribute=row["attribute"], group=row["group_a"], other=row["group_b"],
        estimate=row["effect"], low=low, high=high, p_fail=row["p_adjusted"],
        n=row["n"], reason=f"a finding of {row['analysis']}: {row['claim']}",
    )  # fmt: skip
