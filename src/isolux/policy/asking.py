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

_LOWER_LIMIT_KINDS = ("at_least",)


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
    """What rules are evaluated on: a run's estimates, its record, findings and baseline."""

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
    """A rule's comparisons, unevaluated ones, and the number of groups of unknown value."""

    rule: Rule
    cells: list[Cells] = field(default_factory=list)
    closed: list[Closed] = field(default_factory=list)
    unknown: int = 0


def ask(rule: Rule, inputs: Measured) -> Asked:
    """Build the comparisons of one rule."""
    evaluation = Asked(rule)
    if rule.kind == "none_above":
        _compare_all_groups(evaluation, inputs)
    elif rule.kind == "lost_at_most":
        _evaluate_baseline(evaluation, inputs)
    else:
        _evaluate_run(evaluation, inputs)
    return evaluation


def _evaluate_run(evaluation: Asked, inputs: Measured) -> None:
    """Evaluate a rule about values or differences within the run."""
    estimates = inputs.estimates
    for j in _find_measures(evaluation, inputs, estimates):
        rows = asked_groups(evaluation, estimates)
        if rows is None:
            return
        decidable, unevaluated = too_small(estimates, j, rows, inputs.least)
        evaluation.closed += [
            _add_measure_name(comparison, estimates, j) for comparison in unevaluated
        ]
        evaluation.cells += _build_comparisons(
            evaluation, estimates, j, decidable, {comparison.who for comparison in unevaluated}
        )


def _build_comparisons(
    evaluation: Asked, estimates: Estimates, j: int, rows: IntArray, excluded_subjects: set[str]
) -> list[Cells]:
    rule, measure = evaluation.rule, estimates.measures[j]
    if rule.kind in ("at_least", "at_most"):
        limit = _read_limit(rule, measure)
        sign = 1.0 if rule.kind in _LOWER_LIMIT_KINDS else -1.0
        return [of_values(Side(estimates, j, rows), limit, sign)] if len(rows) else []
    attribute = str(rule.attribute)
    if rule.kind == "worse_by_at_most":
        return _compare_to_reference(evaluation, estimates, j, rows)
    if len(rows) < 2:
        if not excluded_subjects:  # groups too small are named already
            evaluation.closed.append(Closed(attribute, "it has fewer than two groups to compare"))
        return []
    first, second = both_ways(rows)
    comparison_sides = Side(estimates, j, first), Side(estimates, j, second)
    differences = pairs_of(estimates, attribute, j, first, second)
    if rule.kind == "ratio_at_least":
        return [of_ratios(*comparison_sides, differences, float(rule.ratio or 0.0))]
    return [of_differences(*comparison_sides, differences, _margin(rule, measure), -1.0)]


def _compare_to_reference(
    evaluation: Asked, estimates: Estimates, j: int, rows: IntArray
) -> list[Cells]:
    """Compare groups with everyone else, or with one reference group."""
    rule, measure = evaluation.rule, estimates.measures[j]
    attribute = str(rule.attribute)
    margin, sign = _margin(rule, measure), _better_sign(rule, measure)
    comparisons = compare_groups(estimates, attribute, j)
    if rule.than is None:
        if len(estimates.members(attribute)) < 2:
            evaluation.closed.append(Closed(attribute, "it has fewer than two groups to compare"))
            return []
        if not is_among(estimates, attribute, j):
            reason = OUTSIDE if measure.info.pooled else "everyone's value is no measure for groups"
            evaluation.closed.append(
                Closed(_format_measure(measure), f"{reason}; name a group with `than`")
            )
            return []
        groups_side = Side(estimates, j, rows)
        reference_name = "everyone else" if measure.mean is not None else "everyone"
        differences = comparisons.rests(rows) if len(rows) else None
        return (
            [of_differences(groups_side, groups_side, differences, margin, sign, reference_name)]
            if differences
            else []
        )
    names = {plain(estimates.groups[g].name): int(g) for g in estimates.members(attribute)}
    reference_row = names.get(plain(rule.than))
    if reference_row is None:
        evaluation.closed.append(_explain_missing_name("group", rule.than, names))
        return []
    compared_rows = (
        rows[rows != reference_row] if reference_row in rows else rows[:0]
    )  # too small: among what is closed
    if not len(compared_rows):
        return []
    second = np.full(len(compared_rows), reference_row, dtype=np.int64)
    comparison_sides = Side(estimates, j, compared_rows), Side(estimates, j, second)
    differences = pairs_of(estimates, attribute, j, compared_rows, second)
    return [of_differences(*comparison_sides, differences, margin, sign)]


def _compare_all_groups(evaluation: Asked, inputs: Measured) -> None:
    """Compare every two groups of each attribute on each metric that is a fraction."""
    estimates = inputs.estimates
    for attribute in estimates.domain_of:
        rows = np.array(
            [g for g in estimates.members(attribute) if UNKNOWN not in estimates.groups[g].values],
            dtype=np.int64,
        )
        for j, measure in enumerate(estimates.measures):
            if not measure.fraction:
                continue
            decidable, unevaluated = too_small(estimates, j, rows, inputs.least)
            evaluation.closed += [
                _add_measure_name(comparison, estimates, j) for comparison in unevaluated
            ]
            if len(decidable) < 2:
                continue
            first, second = both_ways(decidable)
            differences = pairs_of(estimates, attribute, j, first, second)
            comparison_sides = Side(estimates, j, first), Side(estimates, j, second)
            evaluation.cells.append(
                of_differences(
                    *comparison_sides, differences, _margin(evaluation.rule, measure), -1.0
                )
            )
    if not evaluation.cells and not evaluation.closed:
        evaluation.closed.append(Closed("the run", "it compares no groups on any share"))


def _evaluate_baseline(evaluation: Asked, inputs: Measured) -> None:
    rule = evaluation.rule
    baseline = inputs.baseline(rule)
    if baseline.problem:
        evaluation.closed.append(Closed("the baseline", baseline.problem))
        return
    if baseline.paired is not None:
        _compare_paired_baseline(evaluation, inputs, baseline)
    elif baseline.other is not None:
        _compare_independent_baseline(evaluation, inputs, baseline.other)


def _compare_paired_baseline(evaluation: Asked, inputs: Measured, baseline: Baseline) -> None:
    """Compare a model with the baseline's on the same people: paired differences."""
    estimates, rule = baseline.paired, evaluation.rule
    assert estimates is not None  # noqa: S101 - the caller asked
    measure_index = {_measure_key(m): j for j, m in enumerate(estimates.measures)}
    for after in _find_measures(evaluation, inputs, estimates, baseline.models[1]):
        measure = estimates.measures[after]
        before = measure_index.get((baseline.models[0], *_measure_key(measure)[1:]))
        rows = asked_groups(evaluation, estimates)
        if rows is None:
            return
        if before is None:
            evaluation.closed.append(
                Closed(_format_measure(measure), "the baseline has no such value")
            )
            continue
        margin, sign = _margin(rule, measure), _better_sign(rule, measure)
        decidable, unevaluated = too_small(estimates, after, rows, inputs.least)
        evaluation.closed += [
            _add_measure_name(comparison, estimates, after) for comparison in unevaluated
        ]
        decidable, unevaluated = too_small(estimates, before, decidable, inputs.least)
        evaluation.closed += [
            _add_measure_name(comparison, estimates, before) for comparison in unevaluated
        ]
        if len(decidable):
            comparison_sides = Side(estimates, after, decidable), Side(estimates, before, decidable)
            differences = paired_difference(estimates, decidable, before, after)
            evaluation.cells.append(
                of_differences(*comparison_sides, differences, margin, sign, "the baseline")
            )


def _compare_independent_baseline(
    evaluation: Asked, inputs: Measured, baseline_estimates: Estimates
) -> None:
    """Compare a model with the baseline on other people: two independent samples."""
    rule, estimates = evaluation.rule, inputs.estimates
    measure_index = {_measure_key(m)[1:]: j for j, m in enumerate(baseline_estimates.measures)}
    baseline_groups = {(g.attribute, g.values): k for k, g in enumerate(baseline_estimates.groups)}
    for after in _find_measures(evaluation, inputs, estimates):
        measure = estimates.measures[after]
        rows = asked_groups(evaluation, estimates)
        if rows is None:
            return
        before = measure_index.get(_measure_key(measure)[1:])
        if before is None:
            evaluation.closed.append(
                Closed(_format_measure(measure), "the baseline has no such value")
            )
            continue
        decidable, unevaluated = too_small(estimates, after, rows, inputs.least)
        evaluation.closed += [
            _add_measure_name(comparison, estimates, after) for comparison in unevaluated
        ]
        pairs = []
        for g in decidable:
            group = estimates.groups[g]
            baseline_row = baseline_groups.get((group.attribute, group.values))
            if baseline_row is None:
                evaluation.closed.append(Closed(group.name, "the baseline has no such group"))
                continue
            decidable_baseline, unevaluated = too_small(
                baseline_estimates, before, np.array([baseline_row]), inputs.least
            )
            evaluation.closed += [
                replace(comparison, who=f"{comparison.who} in the baseline")
                for comparison in unevaluated
            ]
            pairs += [(int(g), baseline_row)] if len(decidable_baseline) else []
        if pairs:
            first_rows, second_rows = (
                np.array(pair_rows, dtype=np.int64) for pair_rows in zip(*pairs, strict=True)
            )
            comparison_sides = (
                Side(estimates, after, first_rows),
                Side(baseline_estimates, before, second_rows),
            )
            margin, sign = _margin(rule, measure), _better_sign(rule, measure)
            differences = independent(*comparison_sides)
            evaluation.cells.append(
                of_differences(*comparison_sides, differences, margin, sign, "the baseline")
            )


def _find_measures(
    evaluation: Asked, inputs: Measured, estimates: Estimates, model: str | None = None
) -> list[int]:
    """Find the measures of a rule; what the run lacks is added to the unevaluated ones."""
    rule = evaluation.rule
    all_measures = list(enumerate(estimates.measures))
    matches = [(j, m) for j, m in all_measures if m.metric == rule.metric]
    if not matches:
        evaluation.closed.append(_explain_missing_metric(rule, inputs, estimates))
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
            evaluation.closed.append(_explain_missing_name(description, requested, present_values))
            return []
    if rule.label is None and any(m.label is None for _, m in matches):
        matches = [(j, m) for j, m in matches if m.label is None]
    return [j for j, _ in matches]


def _explain_missing_metric(rule: Rule, inputs: Measured, estimates: Estimates) -> Closed:
    name = str(rule.metric)
    metric_names = sorted({m.metric for m in estimates.measures})
    if name in inputs.absent:
        return Closed(name, inputs.absent[name])
    tasks = {m.name for task in registry.names("tasks") for m in registry.task_info(task).metrics}
    if name not in tasks | set(metric_names) | set(inputs.record.get("metrics") or ()):
        raise UnknownNameError("metric", name, metric_names, where=rule.where)
    available = f"the run has {', '.join(metric_names)}" if metric_names else "the run has none"
    return Closed(name, f"the run did not measure it ({available})")


def asked_groups(evaluation: Asked, estimates: Estimates) -> IntArray | None:
    """Find the groups of a rule; None: the run lacks the attribute."""
    rule = evaluation.rule
    if rule.attribute is None:
        return np.zeros(1, dtype=np.int64)
    if rule.attribute not in estimates.domain_of:
        missing_attribute = _explain_missing_name(
            "attribute or intersection", rule.attribute, estimates.domain_of
        )
        if missing_attribute.who not in {c.who for c in evaluation.closed}:
            evaluation.closed.append(missing_attribute)
        return None
    rows = estimates.members(rule.attribute)
    names = {plain(estimates.groups[g].name): int(g) for g in rows}
    if rule.groups:
        for name in rule.groups:
            if plain(name) not in names and name not in {c.who for c in evaluation.closed}:
                evaluation.closed.append(
                    _explain_missing_name("group", name, [estimates.groups[g].name for g in rows])
                )
        requested_names = [*rule.groups, *([rule.than] if rule.than else [])]
        selected_rows = dict.fromkeys(names[plain(n)] for n in requested_names if plain(n) in names)
        return np.array(list(selected_rows), dtype=np.int64)
    known_rows = [int(g) for g in rows if UNKNOWN not in estimates.groups[g].values]
    evaluation.unknown = len(rows) - len(known_rows)
    if not known_rows:
        evaluation.closed.append(Closed(rule.attribute, "it has no group whose value is known"))
    return np.array(known_rows, dtype=np.int64)


def _explain_missing_name(
    description: str, name: object, available_names: Iterable[object]
) -> Closed:
    """Explain that a name is not in the run, and suggest similar names."""
    names = sorted(
        {str(available_name) for available_name in available_names if available_name is not None}
    )
    close_names = difflib.get_close_matches(str(name), names, n=3, cutoff=0.5)
    suggestion = f"; did you mean {' or '.join(close_names)}?" if close_names else ""
    listed_names = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    return Closed(
        str(name),
        f"the run has no such {description} (it has {listed_names or 'none'}){suggestion}",
    )


def _add_measure_name(comparison: Closed, estimates: Estimates, j: int) -> Closed:
    """Add class or threshold to the name, where a metric has several."""
    measure = estimates.measures[j]
    same_metric_measures = [m for m in estimates.measures if m.metric == measure.metric]
    if len(same_metric_measures) == 1:
        return comparison
    return replace(comparison, who=f"{comparison.who} ({_format_measure(measure)})")


def _format_measure(measure: Measure) -> str:
    components = [
        measure.metric,
        measure.label,
        None if measure.threshold is None else f"{measure.threshold:g}",
    ]
    return " ".join(component for component in components if component)


def _measure_key(measure: Measure) -> tuple[str, str, str | None, float | None]:
    return measure.model, measure.metric, measure.label, measure.threshold


def plain(name: object) -> str:
    """Normalise a group's name: ``darker * dim`` and ``darker × dim`` are equal."""
    return "*".join(component.strip() for component in str(name).replace("×", "*").split("*"))


def _read_limit(rule: Rule, measure: Measure) -> float:
    assert rule.amount is not None  # noqa: S101 - the reader asks for one
    wrong_direction = {"at_least": "lower", "at_most": "higher"}[rule.kind]
    if measure.info.direction == wrong_direction:
        better = "less" if wrong_direction == "lower" else "more"
        raise SpecError(
            f"of {measure.metric}, {better} is better, so `{rule.kind}` asks for the worse",
            expected="`at_most`" if wrong_direction == "lower" else "`at_least`",
            found=f"{rule.kind}: {rule.amount.text}",
            where=rule.where,
        )
    return level_of(rule.amount, measure.info.unit, what=rule.kind, where=rule.where)


def _margin(rule: Rule, measure: Measure) -> float:
    assert rule.amount is not None  # noqa: S101 - the reader asks for one
    return margin_of(rule.amount, measure.info.unit, what=rule.kind, where=rule.where)


def _better_sign(rule: Rule, measure: Measure) -> float:
    if measure.info.direction == "none":
        raise SpecError(
            f"of {measure.metric}, neither more nor less is better: nothing is worse",
            expected="`within`, or `at_least` and `at_most`",
            found=rule.kind,
            where=rule.where,
        )
    return measure.sign
