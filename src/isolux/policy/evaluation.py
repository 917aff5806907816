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

from isolux.core import registry
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.formatting import OVERALL_OUTSIDE
from isolux.disparity.attribute_measures import list_ordered_pairs
from isolux.disparity.comparisons import build_comparisons
from isolux.disparity.contrast_z import is_overall_among_groups
from isolux.disparity.paired_measures import compare_paired_measures
from isolux.groups.estimates import Estimates, Measure
from isolux.groups.unknown_values import UNKNOWN
from isolux.policy.comparisons import (
    ComparisonSide,
    RuleComparisons,
    UnevaluatedComparison,
    compare_differences_with_margin,
    compare_ratios_with_limit,
    compare_values_with_limit,
    group_pair_differences_less_noise_bias,
    independent_sample_difference,
    split_groups_by_min_counts,
)
from isolux.policy.rules import PolicyRule, convert_limit_to_unit, convert_margin_to_unit
from isolux.stats.cluster_sums import IntArray

_LOWER_LIMIT_KINDS = ("at_least",)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The other run: both models on the same people, or other people's own estimates."""

    paired_estimates: Estimates | None = None
    models: tuple[str, str] = ("", "")
    independent_estimates: Estimates | None = None
    problem: str = ""
    n_shared_people: int = 0


@dataclass(frozen=True, slots=True)
class PolicyInputs:
    """What rules are evaluated on: a run's estimates, its record, findings and baseline."""

    estimates: Estimates
    record: Mapping[str, Any]
    findings: pl.DataFrame
    min_counts: tuple[int, int]
    absent_metrics: Mapping[str, str] = field(default_factory=dict)
    same_people: Baseline = field(default_factory=Baseline)
    different_people: Baseline = field(default_factory=Baseline)
    disparities: pl.DataFrame | None = None
    shared_people: Baseline = field(default_factory=Baseline)
    missing_predictions: pl.DataFrame | None = None
    people: pl.DataFrame | None = None

    def baseline(self, rule: PolicyRule) -> Baseline:
        """Return the baseline of the people whom a rule asks about."""
        return {
            "same": self.same_people,
            "shared": self.shared_people,
            "different": self.different_people,
        }[rule.baseline_people]


@dataclass(slots=True)
class RuleEvaluation:
    """A rule's comparisons, unevaluated ones, and the number of groups of unknown value."""

    rule: PolicyRule
    comparisons: list[RuleComparisons] = field(default_factory=list)
    unevaluated: list[UnevaluatedComparison] = field(default_factory=list)
    n_unknown_groups: int = 0


def build_rule_comparisons(rule: PolicyRule, inputs: PolicyInputs) -> RuleEvaluation:
    """Build the comparisons of one rule."""
    evaluation = RuleEvaluation(rule)
    if rule.kind == "no_finding_above":
        _add_comparisons_of_all_group_pairs(evaluation, inputs)
    elif rule.kind == "max_drop":
        _add_baseline_comparisons(evaluation, inputs)
    else:
        _add_within_run_comparisons(evaluation, inputs)
    return evaluation


def _add_within_run_comparisons(evaluation: RuleEvaluation, inputs: PolicyInputs) -> None:
    """Evaluate a rule about values or differences within the run."""
    estimates = inputs.estimates
    for j in _find_measure_indices_or_add_unevaluated(evaluation, inputs, estimates):
        rows = find_rule_group_indices(evaluation, estimates)
        if rows is None:
            return
        decidable, unevaluated = split_groups_by_min_counts(estimates, j, rows, inputs.min_counts)
        evaluation.unevaluated += [
            _add_measure_name(comparison, estimates, j) for comparison in unevaluated
        ]
        evaluation.comparisons += _build_within_run_comparisons(
            evaluation, estimates, j, decidable, {comparison.subject for comparison in unevaluated}
        )


def _build_within_run_comparisons(
    evaluation: RuleEvaluation,
    estimates: Estimates,
    j: int,
    rows: IntArray,
    excluded_subjects: set[str],
) -> list[RuleComparisons]:
    rule, measure = evaluation.rule, estimates.measures[j]
    if rule.kind in ("at_least", "at_most"):
        limit = _limit_in_measure_unit(rule, measure)
        sign = 1.0 if rule.kind in _LOWER_LIMIT_KINDS else -1.0
        return (
            [compare_values_with_limit(ComparisonSide(estimates, j, rows), limit, sign)]
            if len(rows)
            else []
        )
    attribute = str(rule.attribute)
    if rule.kind == "max_deficit":
        return _compare_to_complement_or_reference(evaluation, estimates, j, rows)
    if len(rows) < 2:
        if not excluded_subjects:  # groups too small are named already
            evaluation.unevaluated.append(
                UnevaluatedComparison(attribute, "it has fewer than two groups to compare")
            )
        return []
    first, second = list_ordered_pairs(rows)
    comparison_sides = ComparisonSide(estimates, j, first), ComparisonSide(estimates, j, second)
    differences = group_pair_differences_less_noise_bias(estimates, attribute, j, first, second)
    if rule.kind == "ratio_at_least":
        return [compare_ratios_with_limit(*comparison_sides, differences, float(rule.ratio or 0.0))]
    return [
        compare_differences_with_margin(
            *comparison_sides, differences, _margin_in_measure_unit(rule, measure), -1.0
        )
    ]


def _compare_to_complement_or_reference(
    evaluation: RuleEvaluation, estimates: Estimates, j: int, rows: IntArray
) -> list[RuleComparisons]:
    """Compare groups with everyone else, or with one reference group."""
    rule, measure = evaluation.rule, estimates.measures[j]
    attribute = str(rule.attribute)
    margin, sign = _margin_in_measure_unit(rule, measure), _sign_of_better_direction(rule, measure)
    comparisons = build_comparisons(estimates, attribute, j)
    if rule.reference is None:
        if len(estimates.attribute_rows(attribute)) < 2:
            evaluation.unevaluated.append(
                UnevaluatedComparison(attribute, "it has fewer than two groups to compare")
            )
            return []
        if not is_overall_among_groups(estimates, attribute, j):
            reason = (
                OVERALL_OUTSIDE
                if measure.info.has_overall_among_groups
                else "everyone's value is no measure for groups"
            )
            evaluation.unevaluated.append(
                UnevaluatedComparison(
                    _format_metric_class_threshold(measure),
                    f"{reason}; name a group with `reference`",
                )
            )
            return []
        groups_side = ComparisonSide(estimates, j, rows)
        reference_name = "everyone else" if measure.mean is not None else "everyone"
        differences = comparisons.compare_with_complement(rows) if len(rows) else None
        return (
            [
                compare_differences_with_margin(
                    groups_side, groups_side, differences, margin, sign, reference_name
                )
            ]
            if differences
            else []
        )
    names = {
        normalise_group_name(estimates.groups[g].name): int(g)
        for g in estimates.attribute_rows(attribute)
    }
    reference_row = names.get(normalise_group_name(rule.reference))
    if reference_row is None:
        evaluation.unevaluated.append(
            _explain_missing_name_with_suggestions("group", rule.reference, names)
        )
        return []
    compared_rows = (
        rows[rows != reference_row] if reference_row in rows else rows[:0]
    )  # too small: among what is closed
    if not len(compared_rows):
        return []
    second = np.full(len(compared_rows), reference_row, dtype=np.int64)
    comparison_sides = (
        ComparisonSide(estimates, j, compared_rows),
        ComparisonSide(estimates, j, second),
    )
    differences = group_pair_differences_less_noise_bias(
        estimates, attribute, j, compared_rows, second
    )
    return [compare_differences_with_margin(*comparison_sides, differences, margin, sign)]


def _add_comparisons_of_all_group_pairs(evaluation: RuleEvaluation, inputs: PolicyInputs) -> None:
    """Compare every two groups of each attribute on each metric that is a fraction."""
    estimates = inputs.estimates
    for attribute in estimates.domain_rows:
        rows = np.array(
            [
                g
                for g in estimates.attribute_rows(attribute)
                if UNKNOWN not in estimates.groups[g].values
            ],
            dtype=np.int64,
        )
        for j, measure in enumerate(estimates.measures):
            if not measure.is_fraction:
                continue
            decidable, unevaluated = split_groups_by_min_counts(
                estimates, j, rows, inputs.min_counts
            )
            evaluation.unevaluated += [
                _add_measure_name(comparison, estimates, j) for comparison in unevaluated
            ]
            if len(decidable) < 2:
                continue
            first, second = list_ordered_pairs(decidable)
            differences = group_pair_differences_less_noise_bias(
                estimates, attribute, j, first, second
            )
            comparison_sides = (
                ComparisonSide(estimates, j, first),
                ComparisonSide(estimates, j, second),
            )
            evaluation.comparisons.append(
                compare_differences_with_margin(
                    *comparison_sides,
                    differences,
                    _margin_in_measure_unit(evaluation.rule, measure),
                    -1.0,
                )
            )
    if not evaluation.comparisons and not evaluation.unevaluated:
        evaluation.unevaluated.append(
            UnevaluatedComparison("the run", "it compares no groups on any share")
        )


def _add_baseline_comparisons(evaluation: RuleEvaluation, inputs: PolicyInputs) -> None:
    rule = evaluation.rule
    baseline = inputs.baseline(rule)
    if baseline.problem:
        evaluation.unevaluated.append(UnevaluatedComparison("the baseline", baseline.problem))
        return
    if baseline.paired_estimates is not None:
        _add_paired_baseline_comparisons(evaluation, inputs, baseline)
    elif baseline.independent_estimates is not None:
        _add_baseline_comparisons_or_note(evaluation, inputs, baseline.independent_estimates)


def _add_paired_baseline_comparisons(
    evaluation: RuleEvaluation, inputs: PolicyInputs, baseline: Baseline
) -> None:
    """Compare a model with the baseline's on the same people: paired differences."""
    estimates, rule = baseline.paired_estimates, evaluation.rule
    assert estimates is not None  # noqa: S101 - the caller asked
    measure_index = {_measure_matching_key(m): j for j, m in enumerate(estimates.measures)}
    for after in _find_measure_indices_or_add_unevaluated(
        evaluation, inputs, estimates, baseline.models[1]
    ):
        measure = estimates.measures[after]
        before = measure_index.get((baseline.models[0], *_measure_matching_key(measure)[1:]))
        rows = find_rule_group_indices(evaluation, estimates)
        if rows is None:
            return
        if before is None:
            evaluation.unevaluated.append(
                UnevaluatedComparison(
                    _format_metric_class_threshold(measure), "the baseline has no such value"
                )
            )
            continue
        margin, sign = (
            _margin_in_measure_unit(rule, measure),
            _sign_of_better_direction(rule, measure),
        )
        decidable, unevaluated = split_groups_by_min_counts(
            estimates, after, rows, inputs.min_counts
        )
        evaluation.unevaluated += [
            _add_measure_name(comparison, estimates, after) for comparison in unevaluated
        ]
        decidable, unevaluated = split_groups_by_min_counts(
            estimates, before, decidable, inputs.min_counts
        )
        evaluation.unevaluated += [
            _add_measure_name(comparison, estimates, before) for comparison in unevaluated
        ]
        if len(decidable):
            comparison_sides = (
                ComparisonSide(estimates, after, decidable),
                ComparisonSide(estimates, before, decidable),
            )
            differences = compare_paired_measures(estimates, decidable, before, after)
            evaluation.comparisons.append(
                compare_differences_with_margin(
                    *comparison_sides, differences, margin, sign, "the baseline"
                )
            )


def _add_baseline_comparisons_or_note(
    evaluation: RuleEvaluation, inputs: PolicyInputs, baseline_estimates: Estimates
) -> None:
    """Compare a model with the baseline on other people: two independent samples."""
    rule, estimates = evaluation.rule, inputs.estimates
    measure_index = {
        _measure_matching_key(m)[1:]: j for j, m in enumerate(baseline_estimates.measures)
    }
    baseline_groups = {(g.attribute, g.values): k for k, g in enumerate(baseline_estimates.groups)}
    for after in _find_measure_indices_or_add_unevaluated(evaluation, inputs, estimates):
        measure = estimates.measures[after]
        rows = find_rule_group_indices(evaluation, estimates)
        if rows is None:
            return
        before = measure_index.get(_measure_matching_key(measure)[1:])
        if before is None:
            evaluation.unevaluated.append(
                UnevaluatedComparison(
                    _format_metric_class_threshold(measure), "the baseline has no such value"
                )
            )
            continue
        decidable, unevaluated = split_groups_by_min_counts(
            estimates, after, rows, inputs.min_counts
        )
        evaluation.unevaluated += [
            _add_measure_name(comparison, estimates, after) for comparison in unevaluated
        ]
        pairs = []
        for g in decidable:
            group = estimates.groups[g]
            baseline_row = baseline_groups.get((group.attribute, group.values))
            if baseline_row is None:
                evaluation.unevaluated.append(
                    UnevaluatedComparison(group.name, "the baseline has no such group")
                )
                continue
            decidable_baseline, unevaluated = split_groups_by_min_counts(
                baseline_estimates, before, np.array([baseline_row]), inputs.min_counts
            )
            evaluation.unevaluated += [
                replace(comparison, subject=f"{comparison.subject} in the baseline")
                for comparison in unevaluated
            ]
            pairs += [(int(g), baseline_row)] if len(decidable_baseline) else []
        if pairs:
            first_rows, second_rows = (
                np.array(pair_rows, dtype=np.int64) for pair_rows in zip(*pairs, strict=True)
            )
            comparison_sides = (
                ComparisonSide(estimates, after, first_rows),
                ComparisonSide(baseline_estimates, before, second_rows),
            )
            margin, sign = (
                _margin_in_measure_unit(rule, measure),
                _sign_of_better_direction(rule, measure),
            )
            differences = independent_sample_difference(*comparison_sides)
            evaluation.comparisons.append(
                compare_differences_with_margin(
                    *comparison_sides, differences, margin, sign, "the baseline"
                )
            )


def _find_measure_indices_or_add_unevaluated(
    evaluation: RuleEvaluation, inputs: PolicyInputs, estimates: Estimates, model: str | None = None
) -> list[int]:
    """Find the measures of a rule; what the run lacks is added to the unevaluated ones."""
    rule = evaluation.rule
    all_measures = list(enumerate(estimates.measures))
    matches = [(j, m) for j, m in all_measures if m.metric == rule.metric]
    if not matches:
        evaluation.unevaluated.append(_explain_missing_metric(rule, inputs, estimates))
        return []
    asked_model = model or rule.model
    for key, requested, description in (
        ("model", asked_model, "model"),
        ("label", rule.label, "class"),
        ("threshold", rule.threshold, "threshold"),
    ):
        if requested is None:
            continue
        present_values = [getattr(m, key) for _, m in matches]
        matches = [(j, m) for j, m in matches if getattr(m, key) == requested]
        if not matches:
            evaluation.unevaluated.append(
                _explain_missing_name_with_suggestions(description, requested, present_values)
            )
            return []
    if rule.label is None and any(m.label is None for _, m in matches):
        matches = [(j, m) for j, m in matches if m.label is None]
    return [j for j, _ in matches]


def _explain_missing_metric(
    rule: PolicyRule, inputs: PolicyInputs, estimates: Estimates
) -> UnevaluatedComparison:
    name = str(rule.metric)
    metric_names = sorted({m.metric for m in estimates.measures})
    if name in inputs.absent_metrics:
        return UnevaluatedComparison(name, inputs.absent_metrics[name])
    tasks = {m.name for task in registry.names("tasks") for m in registry.task_info(task).metrics}
    if name not in tasks | set(metric_names) | set(inputs.record.get("metrics") or ()):
        raise UnknownNameError("metric", name, metric_names, where=rule.source)
    available = f"the run has {', '.join(metric_names)}" if metric_names else "the run has none"
    return UnevaluatedComparison(name, f"the run did not measure it ({available})")


def find_rule_group_indices(evaluation: RuleEvaluation, estimates: Estimates) -> IntArray | None:
    """Find the groups of a rule; None: the run lacks the attribute."""
    rule = evaluation.rule
    if rule.attribute is None:
        return np.zeros(1, dtype=np.int64)
    if rule.attribute not in estimates.domain_rows:
        missing_attribute = _explain_missing_name_with_suggestions(
            "attribute or intersection", rule.attribute, estimates.domain_rows
        )
        if missing_attribute.subject not in {c.subject for c in evaluation.unevaluated}:
            evaluation.unevaluated.append(missing_attribute)
        return None
    rows = estimates.attribute_rows(rule.attribute)
    names = {normalise_group_name(estimates.groups[g].name): int(g) for g in rows}
    if rule.groups:
        for name in rule.groups:
            if normalise_group_name(name) not in names and name not in {
                c.subject for c in evaluation.unevaluated
            }:
                evaluation.unevaluated.append(
                    _explain_missing_name_with_suggestions(
                        "group", name, [estimates.groups[g].name for g in rows]
                    )
                )
        requested_names = [*rule.groups, *([rule.reference] if rule.reference else [])]
        selected_rows = dict.fromkeys(
            names[normalise_group_name(n)]
            for n in requested_names
            if normalise_group_name(n) in names
        )
        return np.array(list(selected_rows), dtype=np.int64)
    known_rows = [int(g) for g in rows if UNKNOWN not in estimates.groups[g].values]
    evaluation.n_unknown_groups = len(rows) - len(known_rows)
    if not known_rows:
        evaluation.unevaluated.append(
            UnevaluatedComparison(rule.attribute, "it has no group whose value is known")
        )
    return np.array(known_rows, dtype=np.int64)


def _explain_missing_name_with_suggestions(
    description: str, name: object, available_names: Iterable[object]
) -> UnevaluatedComparison:
    """Explain that a name is not in the run, and suggest similar names."""
    names = sorted(
        {str(available_name) for available_name in available_names if available_name is not None}
    )
    close_names = difflib.get_close_matches(str(name), names, n=3, cutoff=0.5)
    suggestion = f"; did you mean {' or '.join(close_names)}?" if close_names else ""
    listed_names = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    return UnevaluatedComparison(
        str(name),
        f"the run has no such {description} (it has {listed_names or 'none'}){suggestion}",
    )


def _add_measure_name(
    comparison: UnevaluatedComparison, estimates: Estimates, j: int
) -> UnevaluatedComparison:
    """Add class or threshold to the name, where a metric has several."""
    measure = estimates.measures[j]
    same_metric_measures = [m for m in estimates.measures if m.metric == measure.metric]
    if len(same_metric_measures) == 1:
        return comparison
    return replace(
        comparison, subject=f"{comparison.subject} ({_format_metric_class_threshold(measure)})"
    )


def _format_metric_class_threshold(measure: Measure) -> str:
    components = [
        measure.metric,
        measure.label,
        None if measure.threshold is None else f"{measure.threshold:g}",
    ]
    return " ".join(component for component in components if component)


def _measure_matching_key(measure: Measure) -> tuple[str, str, str | None, float | None]:
    return measure.model, measure.metric, measure.label, measure.threshold


def normalise_group_name(name: object) -> str:
    """Normalise a group's name: ``darker * dim`` and ``darker × dim`` are equal."""
    return "*".join(component.strip() for component in str(name).replace("×", "*").split("*"))


def _limit_in_measure_unit(rule: PolicyRule, measure: Measure) -> float:
    assert rule.amount is not None  # noqa: S101 - the reader asks for one
    wrong_direction = {"at_least": "lower", "at_most": "higher"}[rule.kind]
    if measure.info.direction == wrong_direction:
        better = "less" if wrong_direction == "lower" else "more"
        raise SpecError(
            f"of {measure.metric}, {better} is better, so `{rule.kind}` asks for the worse",
            expected="`at_most`" if wrong_direction == "lower" else "`at_least`",
            found=f"{rule.kind}: {rule.amount.text}",
            where=rule.source,
        )
    return convert_limit_to_unit(rule.amount, measure.info.unit, key=rule.kind, source=rule.source)


def _margin_in_measure_unit(rule: PolicyRule, measure: Measure) -> float:
    assert rule.amount is not None  # noqa: S101 - the reader asks for one
    return convert_margin_to_unit(rule.amount, measure.info.unit, key=rule.kind, source=rule.source)


def _sign_of_better_direction(rule: PolicyRule, measure: Measure) -> float:
    if measure.info.direction == "none":
        raise SpecError(
            f"of {measure.metric}, neither more nor less is better: nothing is worse",
            expected="`max_difference`, or `at_least` and `at_most`",
            found=rule.kind,
            where=rule.source,
        )
    return measure.sign
