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
from isolux.policy.comparisons import RuleComparisons, UnevaluatedComparison
from isolux.policy.decision import Answer, Decision, RuleAnswer, RuleCase
from isolux.policy.evaluation import (
    PolicyInputs,
    RuleEvaluation,
    build_rule_comparisons,
    find_rule_group_indices,
    normalise_group_name,
)
from isolux.policy.rules import Policy, PolicyRule, convert_margin_to_unit
from isolux.policy.sample_size import RequiredSizes, n_more_people_to_decide
from isolux.policy.sentences import (
    describe_attributes_without_rule,
    describe_coverage_answer,
    describe_rule_answer,
    rule_name_or_summary,
)
from isolux.stats.multiplicity import adjust_p_weighted_holm
from isolux.stats.statistic import FloatArray, PairStatistic

_Z_GRID = np.concatenate([np.arange(1, 41) * 0.1, np.arange(9, 17) * 0.5])
"""Standard errors at which a bound is evaluated, up to 8; linear interpolation lies between."""
_TOUCH_TOLERANCE = 1e-12
"""A bound this near its limit touches it."""
_NON_STATISTICAL_KINDS = ("required_groups", "required_analyses")
_ANSWER_ORDER: dict[Answer, int] = {"fail": 0, "insufficient": 1, "pass": 2}


def answer_policy(policy: Policy, inputs: PolicyInputs) -> Decision:
    """Answer every rule of a policy."""
    evaluations = [
        None if rule.kind in _NON_STATISTICAL_KINDS else build_rule_comparisons(rule, inputs)
        for rule in policy.rules
    ]
    for evaluation in evaluations:
        if evaluation is not None:
            evaluation.unevaluated += list_groups_missing_predictions(
                evaluation.rule, inputs, policy.max_missing_share
            )
    p_values = _adjust_p_by_weighted_holm(
        [evaluated for evaluated in evaluations if evaluated is not None]
    )
    n_cases = sum(len(p) for evaluation in p_values.values() for p in evaluation.p_fail)
    answers = [
        answer_non_statistical_rule(rule, inputs)
        if evaluation_or_none is None
        else _answer_statistical_rule(evaluation_or_none, policy, inputs, p_values[rule.number])
        for rule, evaluation_or_none in zip(policy.rules, evaluations, strict=True)
    ]
    overall = min((answer.answer for answer in answers), key=lambda answer: _ANSWER_ORDER[answer])
    context = {
        "model": inputs.record.get("model") or "",
        "task": inputs.record.get("task") or "",
        "level": policy.level,
        "power": policy.power,
        "cases": n_cases,
    }
    return Decision(
        overall,
        tuple(answers),
        notes=_build_decision_notes(inputs, evaluations),
        uncovered_attributes=describe_attributes_without_rule(policy, inputs),
        context=context,
    )


def one_sided_p_of_compliance(comparisons: RuleComparisons) -> FloatArray:
    """Return the one-sided p of "this value is on the right side of its limit": ``[h]``."""
    from scipy.special import ndtr

    slack = comparisons.slack
    z = np.zeros(len(slack))
    is_undecided = np.isfinite(slack) & (slack < 0)
    z_before, bound_before = 0.0, slack.copy()
    for step in _Z_GRID:
        if not is_undecided.any():
            break
        high = np.asarray(comparisons.bounds(float(step)).high)
        crosses = is_undecided & ~(high < 0)
        # Linear interpolation of the z at which the upper bound passes 0.
        fraction = -bound_before / np.maximum(high - bound_before, 1e-300)
        z[crosses] = (z_before + np.clip(fraction, 0.0, 1.0) * (step - z_before))[crosses]
        z[is_undecided & ~crosses] = step
        is_undecided &= ~crosses
        z_before, bound_before = float(step), high
    p = np.where(slack < 0, ndtr(-z), 1.0)
    return np.asarray(np.where(np.isnan(slack), np.nan, p))


@dataclass(frozen=True, slots=True)
class _RulePValues:
    """The adjusted p-values of a rule's cases, and the Holm weight of each case."""

    p_fail: list[FloatArray]
    weight: float


def _adjust_p_by_weighted_holm(evaluations: Sequence[RuleEvaluation]) -> dict[int, _RulePValues]:
    """Adjust p-values by weighted Holm over all rules: equal weight a rule, shared by its cases."""
    p = [
        [one_sided_p_of_compliance(comparisons) for comparisons in evaluation.comparisons]
        for evaluation in evaluations
    ]
    sizes = [sum(map(len, rule_p)) for rule_p in p]
    rules = max(sum(size > 0 for size in sizes), 1)
    weights = [1.0 / (rules * size) if size else 0.0 for size in sizes]
    all_p = [case_p for rule_p in p for case_p in rule_p]
    if not all_p:
        return {evaluation.rule.number: _RulePValues([], 0.0) for evaluation in evaluations}
    shares = np.concatenate(
        [np.full(len(case_p), w) for rule_p, w in zip(p, weights, strict=True) for case_p in rule_p]
    )
    adjusted = adjust_p_weighted_holm(np.concatenate(all_p), shares)
    adjusted_parts = iter(np.split(adjusted, np.cumsum([len(case_p) for case_p in all_p])[:-1]))
    return {
        evaluation.rule.number: _RulePValues([next(adjusted_parts) for _ in rule_p], weight)
        for evaluation, rule_p, weight in zip(evaluations, p, weights, strict=True)
    }


def _answer_statistical_rule(
    evaluation: RuleEvaluation, policy: Policy, inputs: PolicyInputs, p_values: _RulePValues
) -> RuleAnswer:
    rule = evaluation.rule
    answers = [
        _answer_cases_by_p(case_answers, p, policy.level)
        for case_answers, p in zip(evaluation.comparisons, p_values.p_fail, strict=True)
    ]
    z_pair = (
        _normal_quantile(policy.level),
        _normal_quantile(1.0 - (1.0 - policy.level) * p_values.weight),
    )
    required = n_more_people_to_decide(
        evaluation.comparisons,
        [np.flatnonzero(case_answers == "insufficient") for case_answers in answers],
        [z_pair] * len(answers),
        policy.power,
    )
    ranked_cases = [
        case
        for columns in zip(evaluation.comparisons, answers, p_values.p_fail, required, strict=True)
        for case in _describe_cases_by_severity(*columns, policy.level)
    ]
    cases = [case for _, case in sorted(ranked_cases, key=lambda pair: pair[0])]
    cases += [
        _unevaluated_to_rule_case(case_answers, evaluation)
        for case_answers in evaluation.unevaluated
    ]
    if rule.kind == "no_finding_above":
        cases += findings_beyond_margin_to_cases(rule, inputs, policy)
    if not cases:
        cases = [RuleCase("fail", reason="there was nothing to check")]
    cases.sort(key=lambda case: _ANSWER_ORDER[case.answer])
    text = describe_rule_answer(rule, cases, inputs, policy)
    title_text = rule_name_or_summary(rule, inputs)
    return RuleAnswer(rule.number, rule.kind, title_text, cases[0].answer, text, tuple(cases))


def _answer_cases_by_p(
    comparisons: RuleComparisons, p: FloatArray, level: float
) -> npt.NDArray[np.str_]:
    low = np.asarray(comparisons.bounds(_normal_quantile(level)).low)
    answers = np.where(low >= -_TOUCH_TOLERANCE, "pass", "insufficient").astype("<U12")
    answers[p <= 1.0 - level + _TOUCH_TOLERANCE] = "fail"
    answers[np.isnan(comparisons.slack) | np.isnan(low)] = "fail"
    return answers


def _describe_cases_by_severity(
    comparisons: RuleComparisons,
    answers: npt.NDArray[np.str_],
    p_fail: FloatArray,
    required: RequiredSizes,
    level: float,
) -> list[tuple[float, RuleCase]]:
    """Describe cases, each with its sort key among those of its answer, the worst lowest."""
    measure = comparisons.first.estimates.measures[comparisons.first.j]
    groups = [comparisons.first.estimates.groups[g] for g in comparisons.first.rows]
    interval = comparisons.bounds(_normal_quantile(level))
    first_bound, second_bound = (
        comparisons.to_estimates(np.asarray(interval.low)),
        comparisons.to_estimates(np.asarray(interval.high)),
    )
    low, high = np.minimum(first_bound, second_bound), np.maximum(first_bound, second_bound)
    estimate = comparisons.to_estimates(comparisons.slack)
    half_width = np.maximum(comparisons.slack - np.asarray(interval.low), _TOUCH_TOLERANCE)
    severity = np.where(answers == "fail", comparisons.slack, comparisons.slack / half_width)
    severity = np.nan_to_num(severity, nan=-np.inf)
    reference_names, units = comparisons.reference_names(), comparisons.first.units
    second = (
        None
        if comparisons.second is None or comparisons.shared_reference
        else comparisons.second.units
    )
    ranked_cases = []
    for k, group in enumerate(groups):
        is_undecided = answers[k] == "insufficient"
        ranked_cases.append(
            (
                float(severity[k]),
                RuleCase(
                    _to_answer_literal(answers[k]),
                    measure.model,
                    measure.metric,
                    measure.label,
                    measure.threshold,
                    group.attribute,
                    group.name,
                    reference_names[k],
                    _finite_or_none(estimate[k]),
                    _finite_or_none(low[k]),
                    _finite_or_none(high[k]),
                    _finite_or_none(p_fail[k]),
                    int(units[k]),
                    None if second is None else int(second[k]),
                    _finite_int_or_none(required[0][k]) if is_undecided else None,
                    _finite_int_or_none(required[1][k])
                    if is_undecided and second is not None
                    else None,
                    _finite_int_or_none(required[2][k]) if is_undecided else None,
                    None
                    if np.isfinite(comparisons.slack[k])
                    else _explain_undefined_value(comparisons),
                ),
            )
        )
    return ranked_cases


def _to_answer_literal(answer: str) -> Answer:
    return "pass" if answer == "pass" else "fail" if answer == "fail" else "insufficient"


def _explain_undefined_value(cells: RuleComparisons) -> str:
    return "a value of 0 leaves their ratio undefined" if cells.is_log_ratio else "it has no value"


def _unevaluated_to_rule_case(
    comparison: UnevaluatedComparison, evaluation: RuleEvaluation
) -> RuleCase:
    answer: Answer = "fail" if comparison.is_failure else "insufficient"
    return RuleCase(
        answer,
        metric=evaluation.rule.metric,
        attribute=evaluation.rule.attribute,
        group=comparison.subject,
        more=comparison.n_missing_units or None,
        more_clusters=comparison.n_missing_clusters or None,
        reason=comparison.reason,
    )


def _build_decision_notes(
    inputs: PolicyInputs, evaluations: Sequence[RuleEvaluation | None]
) -> tuple[str, ...]:
    notes = [f"WARNING of the run: {text}" for text in inputs.record.get("warnings") or ()]
    attributes_with_unknown = [
        str(evaluation.rule.attribute)
        for evaluation in evaluations
        if evaluation is not None and evaluation.n_unknown_groups
    ]
    if attributes_with_unknown:
        names = ", ".join(dict.fromkeys(attributes_with_unknown))
        notes.append(
            f"people whose value is not known ({names}) are in no group that a rule checks, unless "
            "`groups:` names them"
        )
    clusters = (inputs.record.get("clusters") or {}).get("column")
    if clusters is None and inputs.record:
        notes.append(
            "the run names no clusters: each row counts as sampled on its own, and several photos "
            "of one person would make bounds too narrow"
        )
    return tuple(notes)


def _normal_quantile(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(level))


def _finite_or_none(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _finite_int_or_none(number: float) -> int | None:
    return int(number) if np.isfinite(number) else None


# Rules that ask no interval: groups that must be there, analyses that must have run, vetoes.

_GAP_ANALYSIS = "group_gaps"
_EXPLORATORY_PREFIX = "Exploratory"


def answer_non_statistical_rule(rule: PolicyRule, inputs: PolicyInputs) -> RuleAnswer:
    """Answer a rule of required groups or analyses, which needs no interval."""
    cases = (
        _required_groups_to_cases(rule, inputs)
        if rule.kind == "required_groups"
        else _required_analyses_to_cases(rule, inputs)
    )
    order = {"fail": 0, "insufficient": 1, "pass": 2}
    cases = sorted(cases, key=lambda case: order[case.answer])
    text = describe_coverage_answer(rule, cases)
    title_text = rule_name_or_summary(rule, inputs)
    return RuleAnswer(rule.number, rule.kind, title_text, cases[0].answer, text, tuple(cases))


def _required_groups_to_cases(rule: PolicyRule, inputs: PolicyInputs) -> list[RuleCase]:
    evaluation = RuleEvaluation(rule)
    rows = find_rule_group_indices(evaluation, inputs.estimates)
    cases = [
        RuleCase(
            "fail", attribute=rule.attribute, group=comparison.subject, reason=comparison.reason
        )
        for comparison in evaluation.unevaluated
    ]
    units, clusters = _count_scored_people_and_clusters(inputs)
    for g in () if rows is None else rows:
        missing = (
            max((rule.min_people or 1) - int(units[g]), 0),
            max((rule.min_clusters or 1) - int(clusters[g]), 0),
        )
        is_empty = units[g] == 0
        answer: Answer = "fail" if is_empty else "insufficient" if any(missing) else "pass"
        cases.append(
            RuleCase(
                answer,
                attribute=rule.attribute,
                group=inputs.estimates.groups[g].name,
                n=int(units[g]),
                more=missing[0] or None,
                more_clusters=missing[1] or None,
                reason=f"{units[g]:,} people{_format_effective_size(inputs.estimates, int(g))}"
                f" in {clusters[g]:,} clusters",
            )
        )
    return cases or [RuleCase("fail", attribute=rule.attribute, reason="it has no group")]


def _format_effective_size(estimates: Estimates, g: int) -> str:
    """Format a group's effective sample size, where its people have unequal weights."""
    if estimates.n_effective is None:
        return ""
    n_effective = round(float(estimates.n_effective.n_units[g].max()))
    is_unweighted = n_effective == int(estimates.n_units[g].max())
    return "" if is_unweighted else f" (worth {n_effective:,} of one weight)"


def _count_scored_people_and_clusters(inputs: PolicyInputs) -> tuple[np.ndarray, np.ndarray]:
    """Count scored people and clusters of each group ``[g]``; measures of pairs are left out."""
    estimates = inputs.estimates
    counts_people = [not isinstance(m.info.statistic, PairStatistic) for m in estimates.measures]
    if not any(counts_people):
        counts_people = [True] * len(counts_people)
    units = estimates.n_units[:, counts_people].max(axis=1)
    clusters = estimates.n_clusters[:, counts_people].max(axis=1)
    # A measure counts its denominator: a true positive rate the positives, not the people.
    row_of_group = {(group.attribute, group.name): g for g, group in enumerate(estimates.groups)}
    for attribute, name, n, n_clusters in () if inputs.people is None else inputs.people.rows():
        g = row_of_group[attribute, name]
        units[g], clusters[g] = max(units[g], n), max(clusters[g], n_clusters)
    return units, clusters


def _required_analyses_to_cases(rule: PolicyRule, inputs: PolicyInputs) -> list[RuleCase]:
    names_that_ran = _list_run_analysis_names(inputs.record)
    return [
        RuleCase(
            "pass" if name in names_that_ran else "fail",
            group=name,
            reason="it ran"
            if name in names_that_ran
            else "it did not run: `isolux explain RUN --analysis "
            f"{name}`, or --explain {name} with the audit",
        )
        for name in rule.analyses
    ]


def _list_run_analysis_names(record: Mapping[str, Any]) -> set[str]:
    return {str(analysis.get("name")) for analysis in record.get("analyses") or ()}


def findings_beyond_margin_to_cases(
    rule: PolicyRule, inputs: PolicyInputs, policy: Policy
) -> list[RuleCase]:
    """Compare findings of the analyses that a rule names with its margin."""
    names_that_ran = _list_run_analysis_names(inputs.record)
    cases = [
        RuleCase("fail", group=name, reason="this analysis did not run")
        for name in rule.analyses
        if name not in names_that_ran
    ]
    share_metrics = {m.metric for m in inputs.estimates.measures if m.is_fraction}
    names = [name for name in rule.analyses if name != _GAP_ANALYSIS]
    findings = inputs.findings.filter(
        pl.col("analysis").is_in(names), pl.col("metric").is_in(list(share_metrics))
    )
    assert rule.amount is not None  # noqa: S101 - the reader asks for one
    margin = convert_margin_to_unit(rule.amount, "fraction", key=rule.kind, source=rule.source)
    for row in findings.drop_nulls("effect").iter_rows(named=True):
        case = _finding_to_case_if_beyond_margin(row, margin, policy)
        cases += [] if case is None else [case]
    return cases


def _finding_to_case_if_beyond_margin(
    row: Mapping[str, Any], margin: float, policy: Policy
) -> RuleCase | None:
    low, high = row["low"], row["high"]
    has_interval = low is not None and high is not None
    if has_interval and max(abs(low), abs(high)) <= margin:
        return None
    exceeds_margin = has_interval and (low > margin or high < -margin)
    is_significant = row["p_adjusted"] is not None and row["p_adjusted"] <= 1.0 - policy.level
    is_exploratory = str(row["claim"]).startswith(_EXPLORATORY_PREFIX)
    is_failure = exceeds_margin and is_significant and not is_exploratory
    return RuleCase(
        "fail" if is_failure else "insufficient",
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


def list_groups_missing_predictions(
    rule: PolicyRule, inputs: PolicyInputs, max_share: float
) -> list[UnevaluatedComparison]:
    """List the groups in which a larger share than ``max_share`` has no prediction."""
    unevaluated: dict[str, UnevaluatedComparison] = {}
    requested_groups = {
        normalise_group_name(name)
        for name in (*rule.groups, *([rule.reference] if rule.reference else []))
    }
    for row in (
        ()
        if inputs.missing_predictions is None
        else inputs.missing_predictions.iter_rows(named=True)
    ):
        n, missing, group = row["n"], row["missing"], row["group"]
        concerns_attribute = rule.kind == "no_finding_above" or row["attribute"] == rule.attribute
        is_requested = group is None or (
            concerns_attribute
            and (not requested_groups or normalise_group_name(group) in requested_groups)
        )
        is_rule_model = rule.model in (None, row["model"])
        if is_requested and is_rule_model and n and missing > max_share * n:
            subject = "everyone" if group is None else str(group)
            unevaluated[subject] = UnevaluatedComparison(
                subject,
                f"{missing:,} of {n:,} people ({100 * missing / n:.1f} %) have no prediction, and "
                f"the policy allows {100 * max_share:g} % (unanswered_at_most)",
            )
    return list(unevaluated.values())
