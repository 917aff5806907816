"""The analyses of a run, each with its claims and tables: why groups differ, where to look next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from isolux.report._extra_figures import INLINE_ANALYSES
from isolux.report.document import Analysis, FindingRow, PaperTable
from isolux.report.summary.sentences import read_paper_tables

IN_THE_ANSWER = ("group_gaps", "model_changes")


def build_analysis_sections(
    run_record: Mapping[str, Any], findings: Sequence[FindingRow]
) -> tuple[Analysis, ...]:
    """List the analyses in the order in which they ran, but for those that are shown elsewhere."""
    excluded_names = (*IN_THE_ANSWER, *INLINE_ANALYSES)
    entries = [e for e in run_record.get("analyses") or () if e.get("name") not in excluded_names]
    tables, fractions = dict(run_record.get("explained") or {}), has_only_fractions(run_record)
    return tuple(
        Analysis(
            name=str(entry["name"]),
            title=str(entry.get("title") or entry["name"]),
            anchor=f"analysis-{i}",
            findings=tuple(row for row in findings if row.analysis == entry["name"]),
            tables=tuple(
                convert_table_to_percent(table, are_fractions=fractions)
                for table in read_paper_tables(tables.get(entry["name"]))
            ),
            assumptions=tuple(str(text) for text in entry.get("assumptions") or ()),
        )
        for i, entry in enumerate(entries, start=1)
    )


# Tables of analyses in the units of the sentences above them: percent, and points for gaps.

_Cell = str | float | int | None

SHARES = frozenset(
    {
        "confidence",
        "coverage",
        "overall coverage",
        "error",
        "error from",
        "error to",
        "first in",
        "low-performing",
        "low-performing without",
        "others' share",
        "people compared",
        "share",
        "share left",
        "share left high",
        "share left low",
        "share of the group",
        "share of the low-performing",
        "support",
        "worse, share of pairs",
    }
)
"""Columns that are shares whatever the metric."""
VALUES = frozenset(
    {
        "high",
        "low",
        "mean",
        "mean where suggested",
        "median best",
        "median worst",
        "of all others",
        "of everyone else",
        "of others of known value",
        "value",
        "overall value",
        "value, other ap",
    }
)
"""Columns in the metric's own unit."""
GAPS = frozenset(
    {
        "controlled dispersion",
        "detectable now",
        "difference",
        "dispersion",
        "gap",
        "unadjusted gap",
        "gap high",
        "gap low",
        "gap of those compared",
        "difference to everyone else",
        "proxy dispersion",
        "proxy dispersion high",
        "proxy dispersion low",
        "reduction",
        "reduction high",
        "reduction low",
        "regression",
        "regression high",
        "regression low",
        "standard error",
        "target",
    }
)
"""Columns that are differences in the metric's unit, or spreads."""


def has_only_fractions(run_record: Mapping[str, Any]) -> bool:
    """Say whether every metric of a run is a fraction of 1; False where a run does not say."""
    measures = dict(run_record.get("measures") or {}).values()
    return bool(measures) and all(measure.get("unit") == "fraction" for measure in measures)


def convert_table_to_percent(table: PaperTable, *, are_fractions: bool) -> PaperTable:
    """Print shares in percent and differences in points; say so in the columns' names."""
    units = _choose_column_units(table.columns, are_fractions=are_fractions)
    if not any(units):
        return table
    columns = tuple(
        f"{name} ({unit})" if unit else name
        for name, unit in zip(table.columns, units, strict=True)
    )
    rows = tuple(
        tuple(
            _multiply_number_by_100(cell) if unit else cell
            for cell, unit in zip(row, units, strict=True)
        )
        for row in table.rows
    )
    return replace(table, columns=columns, rows=rows)


def _choose_column_units(columns: Sequence[str], *, are_fractions: bool) -> list[str]:
    units: list[str] = []
    for column in columns:
        name = column.replace("_", " ").lower()
        before = units[-1] if units else ""
        if name in SHARES or (are_fractions and name in VALUES):
            units.append("%")
        elif are_fractions and name in GAPS:
            units.append("points")
        elif name in {"from", "to"}:  # the ends of what stands before them
            units.append(before)
        else:
            units.append("")
    return units


def _multiply_number_by_100(cell: _Cell) -> _Cell:
    return 100 * cell if isinstance(cell, int | float) and not isinstance(cell, bool) else cell
