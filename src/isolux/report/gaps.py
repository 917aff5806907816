"""How differences are printed beside the values that they are differences of.

A difference is printed as the difference of the two values as printed, with as many decimals as
their column at least. Where rounding would break that for any of a column, the whole column has one
more digit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import polars as pl

from isolux.core.containers import Run
from isolux.groups.missing_predictions import find_evidence_with_undetected
from isolux.report.document import (
    AttributeSection,
    AuditSubject,
    CautionParagraph,
    Estimate,
    GroupRow,
    LineTable,
    PairRow,
)
from isolux.statements.metric_lines import MetricLine
from isolux.statements.numbers import (
    MINUS,
    NO_VALUE,
    choose_column_decimals,
    choose_shared_decimals,
    format_bare_value,
    format_gap_size,
    format_interval,
    format_with_unit,
)

Gap = tuple[float | None, float | None, float | None]
"""A difference and its interval."""


def format_group_gaps(table_rows: Sequence[tuple[LineTable, GroupRow]]) -> list[tuple[str, str]]:
    """Print the groups' differences to everyone, and their intervals."""
    unit = table_rows[0][0].line.unit if table_rows else ""
    gaps = [(row.difference, row.difference_low, row.difference_high) for _, row in table_rows]
    n_decimals = choose_column_decimals([row.estimate.value for _, row in table_rows], unit)
    printed_values = [
        (
            _format_value_or_dash(row.estimate, unit, n_decimals),
            _format_value_or_dash(table.overall, unit, n_decimals),
        )
        for table, row in table_rows
    ]
    return format_gaps_and_intervals(gaps, printed_values, unit, n_decimals)


def format_pair_gaps(
    pairs: Sequence[PairRow], tables: Sequence[LineTable]
) -> list[tuple[str, str]]:
    """Print the differences between two groups of these tables, and their intervals."""
    unit = tables[0].line.unit
    rows = [(table.line.label, row) for table in tables for row in table.rows]
    n_decimals = choose_column_decimals([row.estimate.value for _, row in rows], unit)
    values = {
        (label, row.group): _format_value_or_dash(row.estimate, unit, n_decimals)
        for label, row in rows
    }
    printed_values = [
        tuple(values.get((pair.label, name), NO_VALUE) for name in (pair.group_a, pair.group_b))
        for pair in pairs
    ]
    return format_gaps_and_intervals(
        [(pair.value, pair.low, pair.high) for pair in pairs], printed_values, unit, n_decimals
    )


def format_gaps_and_intervals(
    gaps: Sequence[Gap], printed_values: Sequence[tuple[str, ...]], unit: str, n_decimals: int = 1
) -> list[tuple[str, str]]:
    """Print a column of differences and their intervals.

    Examples
    --------
    >>> format_gaps_and_intervals([(0.0317, 0.016, 0.048)], [("77.1", "73.9")], "fraction")
    [('+3.2', '1.6 to 4.8')]
    >>> format_gaps_and_intervals([(-0.0074, -0.03, 0.01)], [("73.2", "73.8")], "fraction")
    [('−0.74', '−3.0 to 1.0')]
    """
    min_decimals = [
        max(choose_shared_decimals(unit, *gap), n_decimals if unit == "fraction" else 0)
        for gap in gaps
    ]
    for extra_digits in (0, 1):
        texts = [
            format_bare_value(gap[0], unit, with_sign=True, n_decimals=n + extra_digits)
            for gap, n in zip(gaps, min_decimals, strict=True)
        ]
        if all(map(_matches_printed_values, texts, printed_values)):
            break
    intervals = [
        format_interval(low, high, unit, n_decimals=n)
        for (_, low, high), n in zip(gaps, min_decimals, strict=True)
    ]
    return list(zip(texts, intervals, strict=True))


def _format_value_or_dash(estimate: Estimate | None, unit: str, n_decimals: int) -> str:
    return format_bare_value(estimate.value, unit, n_decimals=n_decimals) if estimate else NO_VALUE


def _matches_printed_values(gap_text: str, printed_values: tuple[str, ...]) -> bool:
    """Return whether a printed difference equals that of the printed values, or has more digits."""
    if NO_VALUE in (gap_text, *printed_values):
        return True
    gap, first, second = (
        Decimal(number_text.replace(MINUS, "-").replace(",", ""))
        for number_text in (gap_text, *printed_values)
    )
    return gap == first - second or len(gap_text.partition(".")[2]) > len(
        printed_values[0].partition(".")[2]
    )


_HEADLINE = "People who were not detected count as mistakes."
_WORTH_SAYING = 0.01
"""Share of people not detected from which it is said before the numbers."""


def build_undetected_people_caution(run: Run, line: MetricLine | None) -> CautionParagraph | None:
    """Say how many people were not detected, where they count as mistakes in accuracy."""
    detection_rows = find_evidence_with_undetected(run.evidence)
    if detection_rows is None or line is None or line.metric != "accuracy":
        return None
    detection_rows = detection_rows.filter(model=line.model)
    undetected_share, accuracy, detected_accuracy = _compute_detection_shares(detection_rows)
    if undetected_share < _WORTH_SAYING:
        return None
    return CautionParagraph(
        _HEADLINE,
        f"They are {format_with_unit(undetected_share)} of everyone and "
        f"{format_with_unit(_compute_undetected_error_share(undetected_share, accuracy))} of all "
        f"mistakes; of the people who were detected {format_with_unit(detected_accuracy)} got a "
        f"right answer.",
    )


def build_undetected_comparison_caution(
    run: Run, models: tuple[str, str], line: MetricLine | None
) -> CautionParagraph | None:
    """Say what of a difference between two models is detection, on the people both detected."""
    detection_rows = find_evidence_with_undetected(run.evidence)
    if detection_rows is None or line is None or line.metric != "accuracy":
        return None
    model_answers = [detection_rows.filter(model=model) for model in models]
    if any(model_rows.is_empty() for model_rows in model_answers):
        return None
    first, second = (_compute_detection_shares(model_rows) for model_rows in model_answers)
    if max(first[0], second[0]) < _WORTH_SAYING:
        return None
    shared_people = (
        model_answers[0]
        .select("unit_id", "detected", "correct")
        .join(
            model_answers[1].select("unit_id", "detected", "correct"),
            on="unit_id",
            suffix="_second",
        )
        .filter("detected", "detected_second")
    )
    sentence = (
        f"{models[0]} did not detect {format_with_unit(first[0])} of the people, {models[1]} "
        f"{format_with_unit(second[0])}. Accuracy for everyone differs by "
        f"{format_gap_size(second[1] - first[1])}"
    )
    if shared_people.is_empty():
        return CautionParagraph(_HEADLINE, f"{sentence}.")
    right = [_mean_or_zero(shared_people[name]) for name in ("correct", "correct_second")]
    return CautionParagraph(
        _HEADLINE,
        f"{sentence}; on the {shared_people.height:,} people whom both detected it is "
        f"{format_with_unit(right[0])} "
        f"with {models[0]} and {format_with_unit(right[1])} with {models[1]}, a difference of "
        f"{format_gap_size(right[1] - right[0])}.",
    )


def _compute_detection_shares(detection_rows: pl.DataFrame) -> tuple[float, float, float]:
    """Return the shares: not detected, right of everyone, right of the detected."""
    detected = detection_rows.filter("detected")
    return (
        1 - _mean_or_zero(detection_rows["detected"]),
        _mean_or_zero(detection_rows["correct"]),
        _mean_or_zero(detected["correct"]),
    )


def _compute_undetected_error_share(undetected_share: float, accuracy: float) -> float:
    """Return the share of all mistakes that are people who were not detected."""
    return undetected_share / (1 - accuracy) if accuracy < 1 else 0.0


def _mean_or_zero(values: pl.Series) -> float:
    return float(values.cast(pl.Float64).mean() or 0.0)  # type: ignore[arg-type]


_WIDTH, _MARGIN = 172.0, 8.0
"""Units of a strip's own scale, and what is left free on both sides."""
_MARKS = {"higher": ("worse", "better"), "lower": ("better", "worse"), "none": ("lower", "higher")}
"""What a difference that is shown means for the group: one below 0, one above."""


@dataclass(frozen=True, slots=True)
class StripRow:
    """A row: places of the value and its interval on the strip, and its difference to everyone."""

    row: GroupRow
    positions: tuple[float | None, ...]
    gap: str
    gap_interval: str
    mark: str
    pairs: str


@dataclass(frozen=True, slots=True)
class StripTable:
    """The rows, everyone's place, and the ends of the scale as text."""

    rows: tuple[StripRow, ...]
    overall_at: float | None
    scale_bounds: tuple[str, str]


def build_strip_table(section: AttributeSection, audited: AuditSubject) -> StripTable:
    """Place the groups' values and intervals on one scale, and print their differences."""
    main, groups = section.main, section.drawn_groups.rows if section.drawn_groups else ()
    intervals = [
        (e.value, e.low, e.high) if e.is_comparable else ()
        for e in (row.estimate for row in groups)
    ]
    overall = (main.overall.value, main.overall.low, main.overall.high) if main.overall else ()
    scale_values = [x for numbers in (*intervals, overall) for x in numbers if x is not None] or [
        0.0
    ]
    low, high = min(scale_values), max(scale_values)

    def to_strip_position(number: float | None) -> float | None:
        if number is None:
            return None
        return round(_MARGIN + (number - low) / (high - low or 1.0) * (_WIDTH - 2 * _MARGIN), 1)

    pairs = _format_pair_gaps_by_group(section, audited)
    unit = main.line.unit
    n_decimals = choose_column_decimals([row.estimate.value for row in groups], unit)
    return StripTable(
        rows=tuple(
            StripRow(
                row=row,
                positions=tuple(map(to_strip_position, numbers or (None, None, None))),
                gap=gap,
                gap_interval=interval_text,
                mark=row.mark,
                pairs=json.dumps(pairs.get(row.group, {})),
            )
            for row, numbers, (gap, interval_text) in zip(
                groups, intervals, format_group_gaps([(main, row) for row in groups]), strict=True
            )
        ),
        overall_at=to_strip_position(overall[0] if overall else None),
        scale_bounds=(
            format_bare_value(low, unit, n_decimals=n_decimals),
            format_bare_value(high, unit, n_decimals=n_decimals),
        ),
    )


def _format_pair_mark(
    section: AttributeSection, gap: float | None, p_adjusted: float | None, audited: AuditSubject
) -> str:
    """Say whether a difference is shown, and whether the group is better or worse off."""
    if gap is None:
        return ""
    is_established = p_adjusted is not None and p_adjusted <= audited.alpha
    return _MARKS[section.main.line.direction][gap > 0] if is_established else "~"


def _format_pair_gaps_by_group(
    section: AttributeSection, audited: AuditSubject
) -> dict[str, dict[str, list[str | float | None]]]:
    """Print each group's differences to every other group: by group, then by the baseline."""
    drawn_pairs = section.drawn_groups.pairs if section.drawn_groups else ()
    columns: dict[str, list[PairRow]] = {}
    for pair in (*drawn_pairs, *map(_swap_pair_groups, drawn_pairs)):
        columns.setdefault(pair.group_b, []).append(pair)
    printed_pairs: dict[str, dict[str, list[str | float | None]]] = {}
    for baseline, column in columns.items():
        gaps = format_pair_gaps(column, [section.main])
        for pair, (gap, interval_text) in zip(column, gaps, strict=True):
            mark = _format_pair_mark(section, pair.value, pair.p_adjusted, audited)
            printed_pairs.setdefault(pair.group_a, {})[baseline] = [
                gap,
                interval_text,
                mark,
                pair.value,
            ]
    return printed_pairs


def _swap_pair_groups(pair: PairRow) -> PairRow:
    """Exchange the two groups of a pair: signs and bounds are reversed."""
    difference, low, high = (None if x is None else -x for x in (pair.value, pair.high, pair.low))
    return replace(
        pair, group_a=pair.group_b, group_b=pair.group_a, value=difference, low=low, high=high
    )
