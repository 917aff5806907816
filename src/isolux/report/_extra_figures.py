"""What is shown with each disparity: curves over overlaps or confidences, people by size.

Read from the tables of the analyses ``INLINE_ANALYSES`` in a run's record, and arranged by
attribute. Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from isolux.statements.metric_lines import LINE_COLUMNS, to_line_key

INLINE_ANALYSES = ("overlap_curves", "size_and_occlusion", "confidence_curves")
"""Analyses whose tables are shown with the attributes, in no section of their own."""

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The share of a group at one overlap or confidence, with a pointwise interval."""

    position: float
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """A group's recall at each overlap, or its rate of a kind of labels at each confidence."""

    group: str
    people: int
    points: tuple[CurvePoint, ...]
    measure: str = "overlap"
    share: str = "found"


@dataclass(frozen=True, slots=True)
class StratumCell:
    """A group's people of one size: how many, which share of the group, how well they are found."""

    people: int
    share: float | None
    value: float | None
    low: float | None
    high: float | None
    status: str


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """One group: a cell for each stratum, None where it has no people."""

    group: str
    cells: tuple[StratumCell | None, ...]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The groups of one attribute, divided by size or by how much of a person is hidden."""

    by: str
    metric: str
    strata: tuple[str, ...]
    overall_row: BreakdownRow | None
    rows: tuple[BreakdownRow, ...]


def read_curves_by_attribute(
    run_record: Mapping[str, Any], model: str
) -> dict[str, tuple[Curve, ...]]:
    """Take the curves of one model by attribute, everyone's first in each."""
    all_rows = [
        *_read_analysis_rows(run_record, "overlap_curves"),
        *_read_analysis_rows(run_record, "confidence_curves"),
    ]
    rows = [row for row in all_rows if row.get("model") == model]
    by_attribute = _group_rows_by_key(rows, lambda row: row.get("attribute"))
    overall_curves = _build_group_curves(by_attribute.pop(None, []))
    return {
        str(attribute): (*overall_curves, *_build_group_curves(attribute_rows))
        for attribute, attribute_rows in by_attribute.items()
    }


def _build_group_curves(curve_rows: Sequence[_Row]) -> tuple[Curve, ...]:
    rows_by_group = _group_rows_by_key(
        curve_rows, lambda row: (row.get("labels"), row.get("group"))
    )
    return tuple(
        _build_curve(str(group), group_rows) for (_, group), group_rows in rows_by_group.items()
    )


def read_breakdowns_by_attribute(
    run_record: Mapping[str, Any], model: str
) -> dict[str, tuple[Breakdown, ...]]:
    """Take the tables of one model by attribute: one for each thing people are divided by."""
    rows = [
        row
        for row in _read_analysis_rows(run_record, "size_and_occlusion")
        if row.get("model") == model
    ]
    breakdowns: dict[str, tuple[Breakdown, ...]] = {}
    for by, stratification_rows in _group_rows_by_key(rows, lambda row: row.get("by")).items():
        rows_by_attribute = _group_rows_by_key(
            stratification_rows, lambda row: row.get("attribute")
        )
        strata = tuple(
            dict.fromkeys(
                str(row["stratum"]) for row in rows_by_attribute.get(None, stratification_rows)
            )
        )
        overall_rows = [_build_breakdown_row("overall", rows_by_attribute.pop(None, []), strata)]
        for attribute, attribute_rows in rows_by_attribute.items():
            groups = _group_rows_by_key(attribute_rows, lambda row: row.get("group"))
            breakdown = Breakdown(
                by=str(by),
                metric=str(attribute_rows[0].get("metric") or ""),
                strata=strata,
                overall_row=overall_rows[0] if any(overall_rows[0].cells) else None,
                rows=tuple(
                    _build_breakdown_row(str(g), group_rows, strata)
                    for g, group_rows in groups.items()
                ),
            )
            breakdowns[str(attribute)] = (*breakdowns.get(str(attribute), ()), breakdown)
    return breakdowns


def _read_analysis_rows(run_record: Mapping[str, Any], analysis: str) -> list[dict[str, Any]]:
    tables = (run_record.get("explained") or {}).get(analysis) or {}
    return [
        dict(zip(table["columns"], row, strict=True))
        for table in tables.values()
        for row in table["rows"]
    ]


def _group_rows_by_key(rows: Sequence[_Row], key: Callable[[_Row], Any]) -> dict[Any, list[_Row]]:
    rows_by_key: dict[Any, list[_Row]] = {}
    for row in rows:
        rows_by_key.setdefault(key(row), []).append(row)
    return rows_by_key


def _build_curve(group: str, curve_rows: Sequence[_Row]) -> Curve:
    labels = curve_rows[0].get("labels")
    position_column, value_column = (
        ("overlap", "recall") if labels is None else ("confidence", "rate")
    )
    points = [
        CurvePoint(row[position_column], row[value_column], row["low"], row["high"])
        for row in sorted(curve_rows, key=lambda row: row[position_column])
        if row[value_column] is not None
    ]
    n_people = max(int(row["people"]) for row in curve_rows)
    if labels is None:
        return Curve(
            group, n_people, tuple(points), str(curve_rows[0].get("measure") or position_column)
        )
    return Curve(group, n_people, tuple(points), position_column, f"given {labels} labels")


def _build_breakdown_row(
    group: str, stratum_rows: Sequence[_Row], strata: Sequence[str]
) -> BreakdownRow:
    rows_by_stratum = {row["stratum"]: row for row in stratum_rows}
    cell_fields = ("people", "share", "value", "low", "high", "status")
    cells = [
        StratumCell(**{name: rows_by_stratum[stratum][name] for name in cell_fields})
        if stratum in rows_by_stratum
        else None
        for stratum in strata
    ]
    return BreakdownRow(group, tuple(cells))


PAIRS_SHOWN = 10
"""Pairs printed for each metric; all of them are in disparities.parquet."""

BLOCK = ("model", "task", "metric", "threshold", "attribute")
"""The columns that name a block: the lines of a metric that differ only in their class."""

_READ = (
    *LINE_COLUMNS,
    "attribute",
    "group_a",
    "group_b",
    "value",
    "low",
    "high",
    "p_adjusted",
    "detectable",
    "n_units_a",
    "n_units_b",
    "status",
    "reason",
)
"""What is read of each pair: of 200 groups there are 20,000 for every metric."""

RowsByKey = dict[tuple[Any, ...], list[dict[str, Any]]]
"""Rows of a table by their line and what else was asked for."""


def group_rows_by_line_key(table: pl.DataFrame, *extra_columns: str) -> RowsByKey:
    rows_by_key: RowsByKey = {}
    for row in table.iter_rows(named=True):
        rows_by_key.setdefault(
            (*to_line_key(row), *(row[name] for name in extra_columns)), []
        ).append(row)
    return rows_by_key


def select_largest_differences_by_block(disparities: pl.DataFrame) -> RowsByKey:
    ratios = disparities.filter(pl.col("kind") == "ratio").select(
        *LINE_COLUMNS, "attribute", "group_a", "group_b", ratio="value"
    )
    largest = (
        disparities.select(*_READ, "kind")
        .filter(pl.col("kind") == "difference")
        .with_columns(_size=pl.col("value").abs())
        .sort("_size", descending=True, nulls_last=True, maintain_order=True)
        .group_by(BLOCK, maintain_order=True)
        .head(PAIRS_SHOWN)
        .join(
            ratios,
            on=[*LINE_COLUMNS, "attribute", "group_a", "group_b"],
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
    )
    pairs_by_block: RowsByKey = {}
    for row in largest.iter_rows(named=True):
        pairs_by_block.setdefault(tuple(row[name] for name in BLOCK), []).append(row)
    return pairs_by_block


def count_differences_by_block(disparities: pl.DataFrame) -> dict[tuple[Any, ...], int]:
    counts = disparities.filter(pl.col("kind") == "difference").group_by(BLOCK).len("n")
    return {tuple(row[:-1]): row[-1] for row in counts.select(*BLOCK, "n").iter_rows()}
