"""A first policy for a run: margins that people of this number can decide, with a comment a line.

A margin is proposed that the run would have kept with the policy's power if no two groups differed,
rounded up to whole points; beside it stand the gap that was measured and what could have been
detected. Whether a margin is acceptable is no question of statistics, and the file says so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from isolux.core.formatting import shorten_name
from isolux.core.printable import clean_line, escape_unsafe_json
from isolux.core.spec import split_intersection
from isolux.groups.estimates import Estimates
from isolux.groups.unknown_values import UNKNOWN
from isolux.policy.comparisons import ComparisonSide, split_groups_by_min_counts
from isolux.policy.evaluation import PolicyInputs
from isolux.policy.margins import (
    LEVEL,
    MAX_ATTRIBUTES,
    POWER,
    GapMargin,
    compute_gap_margin,
    n_standard_errors_of_margin,
)
from isolux.policy.sentences import list_differences_found_by_audit
from isolux.statements.numbers import format_gap_size, format_with_unit

_MAX_METRICS = 3
_COMMENT_COLUMN = 46
_MAX_LISTED = 8
_MAX_MARGIN_POINTS = 30
"""Points from which a margin says so little that it is only mentioned."""
_MAX_MARGIN_OF_FOUND = 0.1
"""The widest margin that is proposed of shares that were found to differ."""
_UNQUOTED_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_YAML_WORDS = frozenset(("yes", "no", "true", "false", "on", "off", "null", "y", "n"))


def propose_policy_yaml(inputs: PolicyInputs, run: str = "") -> str:
    """Write a policy as YAML."""
    lines = [
        f"# A policy for {clean_line(run) or 'this run'}, proposed by isolux gate --init.",
        "# The limits below are what this many people can decide, not what is acceptable:",
        "# that is for you to say. Change them, then: isolux gate RUN --policy THIS_FILE",
        *_align_yaml_comments(
            [
                ("policy: 1", "the version of this format"),
                (
                    f"level: {LEVEL:g}",
                    "a wrong pass, and a wrong fail, in at most 5 of 100 audits",
                ),
                (f"power: {POWER:g}", "probability that the requested people would decide"),
                ("rules:", "each answers pass, fail or insufficient"),
            ]
        ),
    ]
    rules, optional_rules = _propose_rules(inputs)
    lines += rules
    if optional_rules:
        lines += [
            "",
            "  # Further rules. Each that you add makes it harder to show that another is broken,",
            "  # because all cases of a policy share its level. To use one, remove its hashes.",
            *(f"# {line}".rstrip() for line in optional_rules),
        ]
    return "\n".join(lines) + "\n"


def _propose_rules(inputs: PolicyInputs) -> tuple[list[str], list[str]]:
    """Propose rules for the main metric and attributes, and others that may be added."""
    estimates = inputs.estimates
    found_pairs = list_differences_found_by_audit(inputs)
    names = _choose_proposed_metrics(estimates)
    main_attributes = _choose_main_attributes(inputs, names[0], [pair[0] for pair in found_pairs])
    rules: list[str] = []
    optional_rules: list[str] = []
    for name in names:
        is_main_metric = name == names[0]
        (rules if is_main_metric else optional_rules).extend(
            ["", *_propose_overall_limit_lines(inputs, name)]
        )
        for attribute in estimates.domain_rows:
            # that an attribute has no rule stands among the rules, not among those to add
            is_main = is_main_metric and (
                attribute in main_attributes
                or (len(main_attributes) < MAX_ATTRIBUTES and not _is_intersection(attribute))
            )
            (rules if is_main else optional_rules).extend(
                _propose_margin_lines(
                    inputs, name, attribute, is_found=(attribute, name) in found_pairs
                )
            )
    rules += _propose_rules_for_other_metrics(
        inputs, [pair for pair in found_pairs if pair[0] in main_attributes], names[:1]
    )
    optional_rules += _propose_rules_for_other_metrics(
        inputs, [pair for pair in found_pairs if pair[0] not in main_attributes], names
    )
    attributes = [name for name in estimates.domain_rows if not _is_intersection(name)]
    for attribute in attributes or estimates.domain_rows:
        (rules if attribute in (main_attributes or attributes)[:1] else optional_rules).extend(
            ["", *_propose_required_groups_lines(inputs, attribute)]
        )
    rules += _propose_required_analyses_lines(inputs)
    return rules, optional_rules


def _propose_required_analyses_lines(inputs: PolicyInputs) -> list[str]:
    names = [str(analysis["name"]) for analysis in inputs.record.get("analyses") or ()]
    if not names:
        return []
    rule = f"  - required_analyses: [{', '.join(names)}]"
    return ["", *_align_yaml_comments([(rule, "without them the run is not what was agreed")])]


def _choose_main_attributes(
    inputs: PolicyInputs, metric: str, found_attributes: Sequence[str]
) -> list[str]:
    """Choose attributes that can be decided: no intersections; found differences first."""
    names = [name for name in inputs.estimates.domain_rows if not _is_intersection(name)]
    names = names or list(inputs.estimates.domain_rows)
    decidable_names = [
        name
        for name in names
        if name in found_attributes
        or compute_gap_margin(inputs, metric, name, among_large=False) is not None
    ]
    return sorted(decidable_names, key=lambda name: name not in found_attributes)[:MAX_ATTRIBUTES]


def _is_intersection(attribute: str) -> bool:
    return len(split_intersection(attribute)) > 1


def _choose_proposed_metrics(estimates: Estimates) -> list[str]:
    """Choose the metrics of the proposed rules: those over all classes first."""
    unlabelled = [m.metric for m in estimates.measures if m.label is None]
    return list(dict.fromkeys([*unlabelled, *(m.metric for m in estimates.measures)]))[
        :_MAX_METRICS
    ]


def _propose_overall_limit_lines(inputs: PolicyInputs, name: str) -> Iterator[str]:
    estimates = inputs.estimates
    measure_indices = [
        j for j, m in enumerate(estimates.measures) if m.metric == name and m.label is None
    ]
    title = next(m.info.title for m in estimates.measures if m.metric == name)
    yield f"  # {clean_line(title)}"
    for j in measure_indices[:1]:
        measure = estimates.measures[j]
        decidable, _ = split_groups_by_min_counts(
            estimates, j, np.zeros(1, dtype=np.int64), inputs.min_counts
        )
        if not len(decidable) or measure.info.direction == "none":
            continue
        comparison_side = ComparisonSide(estimates, j, decidable)
        # What was measured now, and what will be, each err: hence the root of two.
        interval = comparison_side.one_sample_intervals()(n_standard_errors_of_margin(1, 2.0**0.5))
        is_lower_better = measure.info.direction == "lower"
        bound = float(np.asarray(interval.high if is_lower_better else interval.low)[0])
        limit = _format_rounded_limit(bound, measure.info.unit, up=is_lower_better, level=True)
        if limit is None:
            continue
        today = format_with_unit(float(comparison_side.values[0]), measure.info.unit)
        yield from _align_yaml_comments(
            [
                (
                    f"  - metric: {_quote_yaml_name(name)}",
                    f"{today} of {int(comparison_side.units[0]):,} now",
                ),
                (
                    f"    {'at_most' if is_lower_better else 'at_least'}: {limit}",
                    f"a model that does not change passes with probability {POWER:g}",
                ),
            ]
        )


def _format_rounded_limit(number: float, unit: str, *, up: bool, level: bool = False) -> str | None:
    """Format a limit or margin, rounded conservatively; None: a share that limits nothing.

    Examples
    --------
    >>> _format_rounded_limit(0.8231, "fraction", up=False, level=True)
    '82 %'
    >>> _format_rounded_limit(0.041, "fraction", up=True)
    '5 points'
    >>> _format_rounded_limit(3.214, "years", up=True), _format_rounded_limit(0.1234, "", up=True)
    ('3.3 years', '0.13 units')
    """
    round_outward = math.ceil if up else math.floor
    if unit == "fraction":
        points_of = round_outward(100 * number + (-1e-9 if up else 1e-9))
        if level:
            return f"{points_of} %" if 0 < points_of < 100 else None
        return f"{points_of} point{'s' if points_of != 1 else ''}"
    step = 10.0 ** (math.floor(math.log10(abs(number))) - 1) if number else 1.0
    return f"{round_outward(number / step) * step:.6g} {unit or 'units'}"


def _propose_margin_lines(
    inputs: PolicyInputs, name: str, attribute: str, *, is_found: bool = False
) -> Iterator[str]:
    gap_margin = compute_gap_margin(inputs, name, attribute, among_large=is_found)
    if gap_margin is None:
        yield (
            f"  # {clean_line(attribute)}: no rule, because a group is too small for a reliable"
            " interval"
        )
        return
    if is_found:
        yield from _propose_failing_rule_lines(name, attribute, gap_margin)
        return
    unit, pair = gap_margin.unit, gap_margin.pair
    gap_text = f"{format_gap_size(gap_margin.widest_gap, unit)}, {pair[0]} and {pair[1]}"
    detectable = _format_max_detectable_difference(inputs, name, attribute, unit)
    detectable_text = f"; a gap of {detectable} could have been detected" if detectable else ""
    limit = _format_rounded_limit(gap_margin.margin, unit, up=True)
    if unit == "fraction" and 100 * gap_margin.margin > _MAX_MARGIN_POINTS:
        yield (
            f"  # {clean_line(attribute)}: no rule, because this few people cannot decide a margin "
            f"below {limit}{detectable_text}"
        )
        return
    yield from _align_yaml_comments(
        [
            (f"  - metric: {_quote_yaml_name(name)}", "no two groups are further apart:"),
            (
                f"    attribute: {_quote_yaml_name(attribute)}",
                f"widest gap now: {gap_text}",
            ),
            (
                f"    max_difference: {limit}",
                f"equal groups pass with probability {POWER:g}{detectable_text}",
            ),
        ]
    )


def _propose_failing_rule_lines(name: str, attribute: str, gap_margin: GapMargin) -> list[str]:
    """Propose a rule for a difference that was found, with a margin that the run does not keep."""
    pair, unit = gap_margin.pair, gap_margin.unit
    gap_text = f"{format_gap_size(gap_margin.widest_gap, unit)}, {pair[0]} and {pair[1]}"
    return _align_yaml_comments(
        [
            (
                f"  - metric: {_quote_yaml_name(name)}",
                "DOES NOT PASS NOW: the audit found a difference here",
            ),
            (f"    attribute: {_quote_yaml_name(attribute)}", f"widest gap now: {gap_text}"),
            (
                f"    max_difference: {_format_failing_margin(gap_margin)}",
                "which difference you accept is for you to say",
            ),
        ]
    )


def _format_failing_margin(gap_margin: GapMargin) -> str:
    """Format a margin that the run is shown to break, or at least one below the widest gap."""
    gap, low, unit = gap_margin.widest_gap, gap_margin.widest_gap_low, gap_margin.unit
    is_fraction = unit == "fraction"
    margin = min(gap_margin.margin, _MAX_MARGIN_OF_FOUND) if is_fraction else gap_margin.margin
    if is_fraction and low >= 0.01:  # a limit below what the gap surely is: the run fails it
        limit = min(math.ceil(100 * margin - 1e-9), math.floor(100 * low + 1e-9))
        return f"{limit} point{'s' if limit != 1 else ''}"
    if margin < gap:
        return str(_format_rounded_limit(margin, unit, up=True))
    if not is_fraction:
        return f"{0.9 * gap:.2g} {unit or 'units'}"
    points_below = math.floor(100 * gap - 1e-9)
    if not points_below:
        return f"{90 * gap:.2g} points"
    return f"{points_below} point{'s' if points_below != 1 else ''}"


def _propose_rules_for_other_metrics(
    inputs: PolicyInputs, found_pairs: Sequence[tuple[str, str]], names: Sequence[str]
) -> list[str]:
    """Propose rules for differences that were found on other metrics than the proposed ones."""
    lines: list[str] = []
    seen_attributes = {attribute for attribute, metric in found_pairs if metric in names}
    for attribute, metric in found_pairs:
        if attribute in seen_attributes or attribute not in inputs.estimates.domain_rows:
            continue
        seen_attributes.add(attribute)
        lines += ["", *_propose_margin_lines(inputs, metric, attribute, is_found=True)]
    return lines


def _format_max_detectable_difference(
    inputs: PolicyInputs, name: str, attribute: str, unit: str
) -> str:
    """Format the largest minimum detectable difference between two groups of an attribute."""
    if inputs.disparities is None:
        return ""
    rows = inputs.disparities.filter(
        pl.col("metric") == name,
        pl.col("attribute") == attribute,
        pl.col("kind") == "difference",
        ~pl.any_horizontal(
            pl.col(group_column).str.split(" × ").list.contains(UNKNOWN)
            for group_column in ("group_a", "group_b")
        ),
    )
    max_detectable = rows["detectable"].max()
    return format_gap_size(max_detectable, unit) if isinstance(max_detectable, float) else ""


def _propose_required_groups_lines(inputs: PolicyInputs, attribute: str) -> Iterator[str]:
    estimates = inputs.estimates
    rows = [
        g for g in estimates.attribute_rows(attribute) if UNKNOWN not in estimates.groups[g].values
    ]
    units = estimates.n_units.max(axis=1)
    large = [g for g in rows if units[g] >= inputs.min_counts[0]]
    if not large:
        return
    smallest = min(large, key=lambda g: int(units[g]))
    names = ", ".join(_quote_yaml_name(estimates.groups[g].name) for g in large)
    small = [shorten_name(estimates.groups[g].name) for g in rows if g not in large]
    more_text = f" and {len(small) - _MAX_LISTED} more" if small[_MAX_LISTED:] else ""
    excluded_text = (
        f"; smaller and left out: {', '.join(small[:_MAX_LISTED])}{more_text}" if small else ""
    )
    smallest_text = f"{shorten_name(estimates.groups[smallest].name)}, {int(units[smallest]):,}"
    size_text = f"in each of them; the smallest now: {smallest_text}"
    yield from _align_yaml_comments(
        [
            (f"  - required_groups: {_quote_yaml_name(attribute)}", "who must be in the data"),
            (
                f"    groups: [{names}]",
                f"those of {inputs.min_counts[0]} people or more{excluded_text}",
            ),
            (f"    people: {inputs.min_counts[0]}", size_text),
        ]
    )


def _quote_yaml_name(name: str) -> str:
    """Write a name so that YAML reads it as that text."""
    if _UNQUOTED_NAME.fullmatch(name) and name.lower() not in _YAML_WORDS:
        return name
    return escape_unsafe_json(json.dumps(name, ensure_ascii=False))


def _align_yaml_comments(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{line:<{_COMMENT_COLUMN}}  # {clean_line(comment)}" for line, comment in pairs]
