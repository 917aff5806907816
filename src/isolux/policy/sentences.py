"""What a rule is called, and what is said of its answer: one text for all who ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from isolux.core.formatting import shorten_name
from isolux.core.spec import read_recorded_spec
from isolux.policy.decision import RuleCase
from isolux.policy.evaluation import PolicyInputs, normalise_group_name
from isolux.policy.rules import Policy, PolicyRule, convert_limit_to_unit, convert_margin_to_unit
from isolux.statements.numbers import (
    MINUS,
    format_bare_value,
    format_gap_size,
    format_p_value_equation,
    format_with_unit,
)
from isolux.stats.statistic import PairStatistic

if TYPE_CHECKING:
    from isolux.core.info import Metric
    from isolux.policy.evaluation import PolicyInputs


_MAX_LISTED = 4
_MAX_MULTIPLE = 100
"""Times a group's present size beyond which more people are not asked for: its value is at most a
quarter of a standard error from the limit (2.5 / sqrt(100)), and as likely on either side."""
_DIFFERENCE_KINDS = ("max_difference", "max_deficit", "max_drop", "no_finding_above")


def rule_name_or_summary(rule: PolicyRule, inputs: PolicyInputs) -> str:
    """Return the name that a policy gives a rule, or what it asks in a few words."""
    if rule.title:
        return rule.title
    if rule.kind == "required_analyses":
        return f"{', '.join(rule.analyses)} must have run"
    if rule.kind == "required_groups":
        return _summarise_coverage_rule(rule)
    amount = rule.amount.text if rule.amount else f"{rule.ratio:g}"
    if rule.kind == "no_finding_above":
        return f"No gap and no finding of {', '.join(rule.analyses)} above {amount}"
    name = _metric_title_with_details(rule, inputs)
    groups = _describe_rule_groups(rule)
    titles = {
        "at_least": f"{name} of {groups}: at least {amount}",
        "at_most": f"{name} of {groups}: at most {amount}",
        "max_difference": f"{name}: no two of {groups} more than {amount} apart",
        "max_deficit": f"{name}: none of {groups} more than {amount} worse than "
        f"{rule.reference or 'everyone else'}",
        "max_drop": f"{name}: {groups} lost at most {amount} since the baseline",
        "ratio_at_least": f"{name}: smallest over largest of {groups} at least {amount}",
    }
    return titles[rule.kind]


def _summarise_coverage_rule(rule: PolicyRule) -> str:
    minimums = [f"{rule.min_people:,} people"] if rule.min_people else []
    minimums += [f"{rule.min_clusters:,} clusters"] if rule.min_clusters else []
    return f"Groups covered: {_describe_rule_groups(rule)}" + (
        f", each with {' and '.join(minimums)}" if minimums else ""
    )


def _metric_title_with_details(rule: PolicyRule, inputs: PolicyInputs) -> str:
    titles = [m.info.title for m in inputs.estimates.measures if m.metric == rule.metric]
    name = titles[0] if titles else str(rule.metric)
    details = [rule.label] if rule.label else []
    details += [f"at {rule.threshold:g}"] if rule.threshold is not None else []
    details += [f"model {rule.model}"] if rule.model else []
    return f"{name} ({', '.join(details)})" if details else name


def _describe_rule_groups(rule: PolicyRule) -> str:
    if rule.attribute is None:
        return "everyone"
    if len(rule.groups) > _MAX_LISTED:
        return f"{len(rule.groups):,} groups of {rule.attribute}"
    if rule.groups:
        return f"{', '.join(rule.groups)} ({rule.attribute})"
    return f"the groups of {rule.attribute}"


def describe_rule_answer(
    rule: PolicyRule, cases: Sequence[RuleCase], inputs: PolicyInputs, policy: Policy
) -> str:
    """Describe what decided a rule, or how many more people would decide it."""
    return _describe_rule_answer(rule, cases, inputs, policy)


def _describe_rule_answer(
    rule: PolicyRule, cases: Sequence[RuleCase], inputs: PolicyInputs, policy: Policy
) -> str:
    answer = cases[0].answer
    deciding_cases = _keep_worse_direction_of_pairs(
        [case for case in cases if case.answer == answer]
    )
    if answer == "pass":
        opening = (
            "It holds"
            if len(deciding_cases) == 1
            else f"It holds in all {len(deciding_cases):,} cases; nearest"
        )
        n = inputs.baseline(rule).n_shared_people if rule.needs_baseline else 0
        both_runs_text = f" {n:,} people are in both runs." if n else ""
        nearest = _describe_measured_cases(rule, deciding_cases[:1], cases, inputs)
        return f"{opening}: {nearest}.{both_runs_text}"
    measured_cases = [case for case in deciding_cases if not case.reason]
    sentences = (
        [_describe_measured_cases(rule, measured_cases, cases, inputs)] if measured_cases else []
    )
    sentences += _format_groups_by_reason([case for case in deciding_cases if case.reason])
    text = "; ".join(sentences)
    if answer == "fail":
        n_undecided = sum(
            case.answer == "insufficient" for case in _keep_worse_direction_of_pairs(cases)
        )
        return f"{_add_full_stop(text)}" + (
            f" Also not decided: {n_undecided:,}." if n_undecided else ""
        )
    needed_text = describe_needed_people(
        deciding_cases, policy, baseline=rule.needs_baseline, noun=metric_unit_noun(rule, inputs)
    )
    return f"{_add_full_stop(text)} {needed_text}".strip()


def _add_full_stop(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def _describe_measured_cases(
    rule: PolicyRule,
    shown_cases: Sequence[RuleCase],
    cases: Sequence[RuleCase],
    inputs: PolicyInputs,
) -> str:
    """Describe the first few cases that have an estimate."""
    infos = {m.metric: m.info for m in inputs.estimates.measures}
    has_several_measures = len({(c.metric, c.label, c.threshold) for c in cases if c.metric}) > 1
    has_several_models = len({c.model for c in cases if c.model}) > 1
    sentences = [
        _describe_case(
            rule,
            case,
            infos,
            has_several_measures=has_several_measures,
            has_several_models=has_several_models,
        )
        for case in shown_cases[:_MAX_LISTED]
    ]
    return "; ".join(sentences) + _format_n_more(len(shown_cases) - _MAX_LISTED)


def _format_groups_by_reason(cases: Sequence[RuleCase]) -> list[str]:
    """List groups that could not be evaluated, by reason."""
    subjects_by_reason: dict[str, list[str]] = {}
    for case in cases:
        subject = shorten_name(str(case.group or case.attribute or case.metric or "the run"))
        subjects_by_reason.setdefault(str(case.reason), []).append(subject)
    sentences = [
        f"{', '.join(subjects[:_MAX_LISTED])}"
        f"{_format_n_more(len(subjects) - _MAX_LISTED, comma=True)}: {reason}"
        for reason, subjects in subjects_by_reason.items()
    ]
    return sentences[:_MAX_LISTED]


def _format_n_more(n: int, *, comma: bool = False) -> str:
    return "" if n < 1 else f"{'' if comma else ';'} and {n:,} more"


def _keep_worse_direction_of_pairs(cases: Sequence[RuleCase]) -> list[RuleCase]:
    """Keep one direction of each pair of groups: the worse one, which stands first."""
    first_cases: dict[tuple[object, ...], RuleCase] = {}
    for case in cases:
        pair = frozenset((case.group, case.other))
        key = (case.model, case.metric, case.label, case.threshold, case.attribute, pair)
        first_cases.setdefault(key, case)
    return list(first_cases.values())


def _describe_case(
    rule: PolicyRule,
    case: RuleCase,
    infos: dict[str, Metric],
    *,
    has_several_measures: bool,
    has_several_models: bool,
) -> str:
    metric = infos.get(str(case.metric))
    threshold_text = None if case.threshold is None else f"at {case.threshold:g}"
    details = [
        case.model if has_several_models else None,
        *(
            (metric.title if metric else None, case.label, threshold_text)
            if has_several_measures
            else ()
        ),
    ]
    details_text = ", ".join(detail for detail in details if detail)
    subject = shorten_name(case.group or "everyone")
    subject = f"{subject} ({details_text})" if details_text else subject
    unit = metric.unit if metric else ""
    estimate_text = _format_estimate_with_bounds(rule, case, unit)
    return f"{subject} {estimate_text}{_describe_p_of_failing_case(rule, case, unit)}"


def _describe_p_of_failing_case(rule: PolicyRule, case: RuleCase, unit: str) -> str:
    """Format the adjusted p-value of a case that fails, or would fail as the only case."""
    if case.answer == "fail":
        return f", adjusted {format_p_value_equation(case.p_fail)}"
    if not _is_beyond_limit(rule, case, unit):
        return ""
    return (
        ", beyond the limit on its own, but not once corrected for all cases "
        f"(adjusted {format_p_value_equation(case.p_fail)})"
    )


def _is_beyond_limit(rule: PolicyRule, case: RuleCase, unit: str) -> bool:
    """Whether both bounds of an undecided case lie on the wrong side of its limit."""
    low, high = case.low, case.high
    if case.answer != "insufficient" or case.reason or low is None or high is None:
        return False
    if rule.amount is None:
        return rule.ratio is not None and high < rule.ratio
    if rule.kind in _DIFFERENCE_KINDS:
        margin = convert_margin_to_unit(rule.amount, unit, key=rule.kind, source=rule.source)
        return low > margin or high < -margin
    limit = convert_limit_to_unit(rule.amount, unit, key=rule.kind, source=rule.source)
    return high < limit if rule.kind == "at_least" else low > limit


def _format_estimate_with_bounds(rule: PolicyRule, case: RuleCase, unit: str) -> str:
    """Format an estimate with its bounds: ``77.4 % (74.6 to 80.0)``."""
    estimate, low, high = case.estimate, case.low, case.high
    if rule.kind == "ratio_at_least":
        ratio, low_text, high_text = map(_format_three_decimals, (estimate, low, high))
        return f"has {ratio} times that of {case.other} ({low_text} to {high_text})"
    interval_text = f"({format_bare_value(low, unit)} to {format_bare_value(high, unit)})"
    if rule.kind not in _DIFFERENCE_KINDS:
        return f"has {format_with_unit(estimate, unit)} {interval_text}"
    if rule.kind == "max_drop":
        change = _add_sign(format_gap_size(estimate, unit), estimate)
        return f"changed by {change} {_format_signed_interval(low, high, unit)}"
    direction = "above" if (estimate or 0) >= 0 else "below"
    is_flipped = direction == "below" and low is not None and high is not None
    first_bound, last_bound = (-high, -low) if is_flipped else (low, high)  # type: ignore[operator]
    interval_text = (
        f"({format_bare_value(first_bound, unit)} to {format_bare_value(last_bound, unit)})"
    )
    other_name = shorten_name(str(case.other))
    return f"is {format_gap_size(estimate, unit)} {direction} {other_name} {interval_text}"


def _format_signed_interval(low: float | None, high: float | None, unit: str) -> str:
    first, last = (format_bare_value(bound, unit, with_sign=True) for bound in (low, high))
    return f"({first} to {last})"


def _add_sign(text: str, number: float | None) -> str:
    return f"{'+' if (number or 0) >= 0 else MINUS}{text}"


def _format_three_decimals(number: float | None) -> str:
    return "–" if number is None else f"{number:.3f}"


def metric_unit_noun(rule: PolicyRule, inputs: PolicyInputs) -> str:
    """Return the noun of a metric's units: people, or pairs."""
    rule_measures = [m for m in inputs.estimates.measures if m.metric == rule.metric]
    in_pairs = bool(rule_measures) and all(
        isinstance(m.info.statistic, PairStatistic) for m in rule_measures
    )
    return "pairs" if in_pairs else "people"


def describe_needed_people(
    cases: Sequence[RuleCase], policy: Policy, *, baseline: bool = False, noun: str = "people"
) -> str:
    """Describe how many more people of which groups would decide the undecided cases."""
    text = list(_iterate_needed_people(cases, policy, baseline=baseline, noun=noun))
    too_small = [case for case in cases if case.reason and (case.more or case.more_clusters)]
    if too_small:
        missing_phrases = [
            f"{_format_missing_of_case(case)} of {shorten_name(str(case.group))}"
            for case in too_small[:_MAX_LISTED]
        ]
        remaining_text = (
            f"; and more of {len(too_small) - _MAX_LISTED:,} others"
            if too_small[_MAX_LISTED:]
            else ""
        )
        text.append(f"To be judged at all, it takes {'; '.join(missing_phrases)}{remaining_text}.")
    unknown_size = [
        case
        for case in cases
        if case.group and case.reason and not (case.more or case.more_clusters)
    ]
    if unknown_size:
        names = _join_phrases_with_and(
            [shorten_name(str(case.group)) for case in unknown_size[:_MAX_LISTED]]
        )
        remaining_text = (
            f" and {len(unknown_size) - _MAX_LISTED:,} others" if unknown_size[_MAX_LISTED:] else ""
        )
        text.append(f"How many more {noun} of {names}{remaining_text} it takes cannot be told.")
    if not text:
        text.append(
            f"A value is so close to the limit that more {noun} will hardly decide it."
            if any(case.reason is None for case in cases)
            else "More people would not help: look at the finding."
        )
    return " ".join(text)


def _iterate_needed_people(
    cases: Sequence[RuleCase], policy: Policy, *, baseline: bool, noun: str
) -> Iterator[str]:
    """Yield how many more people would decide the judged cases, or that hardly any number would."""
    needed_by_group: dict[str, tuple[int, int | None]] = {}
    multiples: dict[str, float] = {}
    for case in cases:
        for group, n, n_now, clusters in (
            (case.group, case.more, case.n, case.more_clusters),
            (case.other, case.more_other, case.n_other, None),
        ):
            if n and group is not None and case.reason is None:
                previous = needed_by_group.get(group, (0, None))
                needed_by_group[group] = (n, clusters) if n > previous[0] else previous
                multiples[group] = max(n / max(n_now or 0, 1), multiples.get(group, 0.0))
    if needed_by_group and max(multiples.values()) > _MAX_MULTIPLE:
        name = max(multiples, key=lambda group: multiples[group])
        yield (
            f"{shorten_name(name)} is so close to the limit that more {noun} will hardly decide it "
            f"(about {_round_up_to_two_digits(needed_by_group[name][0])} more, "
            f"{multiples[name]:,.0f} times as many as now)."
        )
    elif needed_by_group:
        largest_first = sorted(needed_by_group.items(), key=lambda entry: -entry[1][0])
        phrases = [
            _format_needed_people_of_group(shorten_name(name), *number, noun)
            for name, number in largest_first[:_MAX_LISTED]
        ]
        phrases += (
            [f"more of {len(largest_first) - _MAX_LISTED:,} other groups"]
            if largest_first[_MAX_LISTED:]
            else []
        )
        both_runs_text = " in both runs" if baseline else ""
        yield (
            f"About {_join_phrases_with_and(phrases)}{both_runs_text} would decide it "
            f"(probability {policy.power:g})."
        )


def _format_needed_people_of_group(name: str, n: int, clusters: int | None, noun: str) -> str:
    clusters_text = (
        f" in {_round_up_to_two_digits(clusters)} more clusters"
        if clusters and clusters < n
        else ""
    )
    return f"{_round_up_to_two_digits(n)} more {noun} of {name}{clusters_text}"


def _round_up_to_two_digits(n: int) -> str:
    """Round a required number up to two digits, as it is an estimate.

    Examples
    --------
    >>> _round_up_to_two_digits(14_864), _round_up_to_two_digits(86), _round_up_to_two_digits(301)
    ('15,000', '86', '310')
    """
    step = 10 ** max(len(str(n)) - 2, 0)
    return f"{-(-n // step) * step:,}"


def _format_missing_of_case(case: RuleCase) -> str:
    phrases = [f"{case.more:,} more {'people' if case.more > 1 else 'person'}"] if case.more else []
    clusters = case.more_clusters
    phrases += [f"{clusters:,} more cluster{'s' if clusters != 1 else ''}"] if clusters else []
    return f"at least {' and '.join(phrases)}"


def describe_coverage_answer(rule: PolicyRule, cases: Sequence[RuleCase]) -> str:
    """Describe what decided a rule of required groups or analyses."""
    answer = cases[0].answer
    deciding_cases = [case for case in cases if case.answer == answer]
    if answer == "pass":
        if rule.kind == "required_analyses":
            return "All of them ran." if len(deciding_cases) > 1 else "It ran."
        smallest = min(deciding_cases, key=lambda case: case.n or 0)
        number = f"{len(deciding_cases):,} groups are" if len(deciding_cases) > 1 else "group is"
        return f"The {number} there; the smallest is {smallest.group}: {smallest.reason}."
    sentences = [
        f"{shorten_name(str(case.group or case.attribute))}: {case.reason}"
        for case in deciding_cases[:_MAX_LISTED]
    ]
    text = _add_full_stop("; ".join(sentences) + _format_n_more(len(deciding_cases) - _MAX_LISTED))
    if answer == "fail":
        return text
    missing_phrases = [
        f"{_format_missing_of_case(case)} of {shorten_name(str(case.group))}"
        for case in deciding_cases[:_MAX_LISTED]
    ]
    return f"{text} It takes {'; '.join(missing_phrases)}."


def _join_phrases_with_and(phrases: Sequence[str]) -> str:
    return f"{', '.join(phrases[:-1])} and {phrases[-1]}" if len(phrases) > 1 else "".join(phrases)


_NON_STATISTICAL_KINDS = ("required_groups", "required_analyses")
_MAX_ATTRIBUTES = 8
_FOUND_SUFFIX = " (a difference was found)"


def list_differences_found_by_audit(inputs: PolicyInputs) -> list[tuple[str, str]]:
    """List attribute and metric of each difference that the audit itself found."""
    findings = inputs.findings
    if not findings.height:
        return []
    alpha = 1.0 - read_recorded_spec(inputs.record).statistics.level
    rows = findings.filter(
        pl.col("analysis") == "group_gaps",
        pl.col("p_adjusted") <= alpha,
        pl.col("attribute").is_not_null(),
        pl.col("metric").is_not_null(),
    ).sort("rank")
    return list(dict.fromkeys(rows.select("attribute", "metric").iter_rows()))


def describe_attributes_without_rule(policy: Policy, inputs: PolicyInputs) -> str:
    """Name the attributes of a run whose groups no rule holds to a limit; empty: there are none."""
    if any(rule.kind == "no_finding_above" for rule in policy.rules):
        return ""
    limited_attributes = {
        normalise_group_name(rule.attribute)
        for rule in policy.rules
        if rule.attribute is not None and rule.kind not in _NON_STATISTICAL_KINDS
    }
    uncovered = [
        name
        for name in inputs.estimates.domain_rows
        if normalise_group_name(name) not in limited_attributes
    ]
    if not uncovered:
        return ""
    differing = {normalise_group_name(name) for name, _ in list_differences_found_by_audit(inputs)}
    found_names = [
        f"{name}{_FOUND_SUFFIX}" for name in uncovered if normalise_group_name(name) in differing
    ]
    names = found_names + [
        name for name in uncovered if normalise_group_name(name) not in differing
    ]
    counted_attributes = {
        normalise_group_name(rule.attribute)
        for rule in policy.rules
        if rule.attribute is not None and rule.kind == "required_groups"
    }
    unmentioned = [
        entry
        for entry in names
        if normalise_group_name(_remove_found_suffix(entry)) not in counted_attributes
    ]
    sentences = (
        [f"not asked by any rule: {_join_first_attributes(unmentioned)}"] if unmentioned else []
    )
    counted_names = [entry for entry in names if entry not in unmentioned]
    if counted_names:
        sentences.append(
            "counted by a rule, but no rule checks how well the model "
            f"works for them: {_join_first_attributes(counted_names)}"
        )
    return "; ".join(sentences)


def _remove_found_suffix(entry: str) -> str:
    return entry.removesuffix(_FOUND_SUFFIX)


def _join_first_attributes(names: list[str]) -> str:
    n_shown = max(_MAX_ATTRIBUTES, sum(name.endswith(_FOUND_SUFFIX) for name in names))
    remaining_text = f" and {len(names) - n_shown:,} more" if names[n_shown:] else ""
    return ", ".join(names[:n_shown]) + remaining_text
