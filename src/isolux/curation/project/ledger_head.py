"""The project remembers the last row of its consent ledger, so that lost rows are noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.curation.consent import Ledger, read_ledger
from isolux.curation.project.tables import settings
from isolux.vocabulary.errors import FileError, TableError

if TYPE_CHECKING:
    from isolux.curation.project.folder import Project

__all__ = ["check_ledger_head", "remember_ledger_head"]

_NAME = "consent ledger: last row"


def check_ledger_head(connection: Connection, project: Project, ledger: Ledger | None) -> None:
    """Refuse a ledger without the row that was its last when the project last wrote its journal."""
    query = sa.select(settings.c.value).where(settings.c.name == _NAME)
    head = connection.execute(query).scalar()
    if head is None:
        return
    hint = "bring the ledger back from a backup that has this row"
    expected = f"row {head['n']}, with the hash {head['hash'][:12]}…"
    if ledger is None:
        raise FileError(
            "the project's ledger of consent is not there", expected=f"a ledger with {expected}",
            found="no file", where=str(project.consent), hint=hint,
        )  # fmt: skip
    rows = ledger.rows
    if len(rows) < head["n"] or rows[head["n"] - 1].hash != head["hash"]:
        raise TableError(
            "the project's ledger of consent lost rows", expected=expected,
            found=f"{len(rows):,} rows, without it", where=str(project.consent), hint=hint,
        )  # fmt: skip


def remember_ledger_head(connection: Connection, project: Project) -> None:
    """Write down the last row of the ledger, if the project has one that holds the row before."""
    ledger = read_ledger(project.consent) if project.consent.exists() else None
    check_ledger_head(connection, project, ledger)
    if ledger is not None and ledger.rows:
        last = ledger.rows[-1]
        connection.execute(sa.delete(settings).where(settings.c.name == _NAME))
        value = {"n": last.n, "hash": last.hash}
        connection.execute(sa.insert(settings), [{"name": _NAME, "value": value}])
