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
from isolux.disparity.attribute_measures import list_ordered_pairs
from isolux.disparity.comparisons import build_comparisons
from isolux.groups.estimates import Estimates
from isolux.groups.unknown_values import UNKNOWN
from isolux.policy.comparisons import ComparisonSide, split_groups_by_min_counts
from isolux.policy.evaluation import PolicyInputs
from isolux.policy.sentences import list_differences_found_by_audit
from isolux.statements.numbers import format_gap_size, format_with_unit
from isolux.stats.cluster_sums import IntArray

_LEVEL, _POWER = 0.95, 0.8
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
                    f"level: {_LEVEL:g}",
                    "a wrong pass, and a wrong fail, in at most 5 of 100 audits",
                ),
                (f"power: {_POWER:g}", "probability that the requested people would decide"),
                ("rules:", "each answers pass, fail or insufficient"),
            ]
        ),
    ]
    estimates = inputs.estimates
    names, found_pairs = (
        _choose_proposed_metrics(estimates),
        list_differences_found_by_audit(inputs),
    )
    for name in names:
        lines += ["", *_propose_overall_limit_lines(inputs, name)]
        for attribute in estimates.domain_rows:
            lines += _propose_margin_lines(
                inputs, name, attribute, is_found=(attribute, name) in found_pairs
            )
    lines += _propose_rules_for_other_metrics(inputs, found_pairs, names)
    for attribute in estimates.domain_rows:
        lines += ["", *_propose_required_groups_lines(inputs, attribute)]
    run_analyses = [str(analysis["name"]) for analysis in inputs.record.get("analyses") or ()]
    if run_analyses:
        lines += [
            "",
            *_align_yaml_comments(
                [
                    (
                        f"  - required_analyses: [{', '.join(run_analyses)}]",
                        "without them the run is not what was agreed",
                    )
                ]
            ),
        ]
    return "\n".join(lines) + "\n"


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
                    f"a model that does not change passes with probability {_POWER:g}",
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


def n_standard_errors_of_margin(n_cases: int, spread: float = 1.0) -> float:
    """Return the standard errors of a margin: quantiles of the level and of the power, summed."""
    from scipy.special import ndtri

    return float(ndtri(_LEVEL) + spread * ndtri(1.0 - (1.0 - _POWER) / max(n_cases, 1)))


def _propose_margin_lines(
    inputs: PolicyInputs, name: str, attribute: str, *, is_found: bool = False
) -> Iterator[str]:
    margin_facts = _compute_margin_and_widest_gap(inputs, name, attribute, among_large=is_found)
    if margin_facts is None:
        yield (
            f"  # {clean_line(attribute)}: no rule, because a group is too small for a reliable"
            " interval"
        )
        return
    margin, widest, pair, unit = margin_facts
    if is_found:
        yield from _propose_failing_rule_lines(name, attribute, margin_facts)
        return
    detectable = _format_max_detectable_difference(inputs, name, attribute, unit)
    detectable_text = f"; a gap of {detectable} could have been detected" if detectable else ""
    limit = _format_rounded_limit(margin, unit, up=True)
    if unit == "fraction" and 100 * margin > _MAX_MARGIN_POINTS:
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
                f"widest gap now: {format_gap_size(widest, unit)}, {pair[0]} and {pair[1]}",
            ),
            (
                f"    max_difference: {limit}",
                f"equal groups pass with probability {_POWER:g}{detectable_text}",
            ),
        ]
    )


def _propose_failing_rule_lines(
    name: str, attribute: str, margin_facts: tuple[float, float, tuple[str, str], str]
) -> list[str]:
    """Propose a rule for a difference that was found, with a margin that the run does not keep."""
    margin, widest, pair, unit = margin_facts
    max_margin = min(margin, _MAX_MARGIN_OF_FOUND) if unit == "fraction" else margin
    proposed_margin = (
        _format_rounded_limit(max_margin, unit, up=True)
        if max_margin < widest
        else _format_failing_margin(widest, unit)
    )
    return _align_yaml_comments(
        [
            (
                f"  - metric: {_quote_yaml_name(name)}",
                "DOES NOT PASS NOW: the audit found a difference here",
            ),
            (
                f"    attribute: {_quote_yaml_name(attribute)}",
                f"widest gap now: {format_gap_size(widest, unit)}, {pair[0]} and {pair[1]}",
            ),
            (
                f"    max_difference: {proposed_margin}",
                "which difference you accept is for you to say",
            ),
        ]
    )


def _format_failing_margin(widest: float, unit: str) -> str:
    """Format a margin below the widest gap: whole points for fractions, else 90 % of the gap."""
    if unit == "fraction":
        points_below = math.floor(100 * widest - 1e-9)
        return (
            f"{points_below} point{'s' if points_below != 1 else ''}"
            if points_below
            else f"{90 * widest:.2g} points"
        )
    return f"{0.9 * widest:.2g} {unit or 'units'}"


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


def _compute_margin_and_widest_gap(
    inputs: PolicyInputs, name: str, attribute: str, *, among_large: bool = False
) -> tuple[float, float, tuple[str, str], str] | None:
    """Compute the margin that equal groups would keep, and the widest gap, its pair and unit."""
    estimates, unit = inputs.estimates, ""
    cases: list[tuple[IntArray, IntArray, int]] = []
    for j, measure in enumerate(estimates.measures):
        if measure.metric != name or (
            measure.label is not None and _has_measure_over_all_classes(estimates, name)
        ):
            continue
        rows = np.array(
            [
                g
                for g in estimates.attribute_rows(attribute)
                if UNKNOWN not in estimates.groups[g].values
            ],
            dtype=np.int64,
        )
        decidable, small = split_groups_by_min_counts(estimates, j, rows, inputs.min_counts)
        if (small or len(decidable) < 2) and not among_large:
            return None
        if len(decidable) < 2:
            continue
        cases.append((*list_ordered_pairs(decidable), j))
        unit = measure.info.unit
    pairs = sum(len(first) for first, _, _ in cases)
    if not pairs:
        return None
    z, margin, widest, widest_pair = n_standard_errors_of_margin(pairs), 0.0, -1.0, ("", "")
    for first, second, j in cases:
        differences = build_comparisons(estimates, attribute, j).compare_pairs(first, second)
        gap, interval = differences.a - differences.b, differences.interval(z)
        margin = max(margin, float(np.nanmax(np.asarray(interval.high) - gap)))
        k = int(np.nanargmax(gap))
        if gap[k] > widest:
            widest = float(gap[k])
            names = [
                shorten_name(estimates.groups[int(pair_rows[k])].name)
                for pair_rows in (first, second)
            ]
            widest_pair = (names[0], names[1])
    return margin, widest, widest_pair, unit


def _has_measure_over_all_classes(estimates: Estimates, name: str) -> bool:
    return any(m.metric == name and m.label is None for m in estimates.measures)


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
