"""The analyses of a run, each with its claims and tables: why groups differ, where to look next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isolux.report._views import BESIDE
from isolux.report.document import Analysis, FindingRow
from isolux.report.summary.protocol import tables_of
from isolux.report.summary.units import all_fractions, in_percent

IN_THE_ANSWER = ("group_gaps", "model_changes")


def analyses_of(record: Mapping[str, Any], findings: Sequence[FindingRow]) -> tuple[Analysis, ...]:
    """List the analyses in the order in which they ran, but for those that are shown elsewhere."""
    elsewhere = (*IN_THE_ANSWER, *BESIDE)
    shown = [e for e in record.get("analyses") or () if e.get("name") not in elsewhere]
    tables, fractions = dict(record.get("explained") or {}), all_fractions(record)
    return tuple(
        Analysis(
            name=str(entry["name"]),
            title=str(entry.get("title") or entry["name"]),
            anchor=f"analysis-{i}",
            findings=tuple(row for row in findings if row.analysis == entry["name"]),
            tables=tuple(
                in_percent(table, fractions=fractions)
                for table in tables_of(tables.get(entry["name"]))
            ),
            assumptions=tuple(str(text) for text in entry.get("assumptions") or ()),
        )
        for i, entry in enumerate(shown, start=1)
    )
