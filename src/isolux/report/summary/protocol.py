"""The protocol that an audit followed: the paper's tables, and its disagreements with itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isolux.report.document import PaperTable, Protocol


def protocol_of(record: Mapping[str, Any]) -> Protocol | None:
    """Take the protocol out of a run's record; None where the audit followed none."""
    said = record.get("protocol")
    if not isinstance(said, Mapping):
        return None
    return Protocol(
        name=str(said.get("name") or ""),
        title=str(said.get("title") or ""),
        tables=tables_of(said.get("tables")),
        absent=tuple((str(k), str(v)) for k, v in dict(said.get("absent") or {}).items()),
        disagreements=tuple(str(text) for text in said.get("disagreements") or ()),
    )


def tables_of(said: object) -> tuple[PaperTable, ...]:
    """Take tables as a record has them: ``columns`` and ``rows`` by caption."""
    return tuple(
        PaperTable(
            caption=str(caption),
            columns=tuple(str(c) for c in table.get("columns") or ()),
            rows=tuple(tuple(row) for row in table.get("rows") or ()),
        )
        for caption, table in (said.items() if isinstance(said, Mapping) else ())
    )
