"""Remove a column of facts that a sheet brought by mistake."""

from __future__ import annotations

from typing import Literal

import sqlalchemy as sa

from isolux.core.errors import UnknownNameError
from isolux_curate.project.database import open_write_transaction, update_rows_by_key
from isolux_curate.project.folder import Project, append_signed_journal_row
from isolux_curate.project.tables import instances, subjects

_STEP, _RULE = "arrival", "column removed"


def remove_fact_column(
    project: Project, column: str, sheet_kind: Literal["photos", "subjects"]
) -> int:
    """Remove a column of the sheets of photos or of subjects; the number of rows that had it."""
    table = instances if sheet_kind == "photos" else subjects
    key_column = next(iter(table.primary_key.columns))
    query = sa.select(key_column, table.c.facts)
    if table is instances:
        query = query.where(table.c.origin == "submitted")
    with open_write_transaction(project.engine) as connection:
        facts_by_key = {str(key): dict(facts) for key, facts in connection.execute(query)}
        changed_rows = {
            key: {"facts": {name: fact for name, fact in facts.items() if name != column}}
            for key, facts in facts_by_key.items()
            if column in facts
        }
        if not changed_rows:
            names = {name for facts in facts_by_key.values() for name in facts}
            raise UnknownNameError("column", column, names, where=f"the sheets of {sheet_kind}")
        update_rows_by_key(connection, key_column, changed_rows)
        details = {"sheet": sheet_kind, "column": column, "rows": len(changed_rows)}
        append_signed_journal_row(
            connection, project, step=_STEP, rule=_RULE, details=details, seals=()
        )
    return len(changed_rows)
