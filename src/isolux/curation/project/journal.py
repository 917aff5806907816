"""The project remembers the last row of its consent ledger, so that lost rows are noticed."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.curation._chain import FIRST, digest_of, is_signed, seal_of, signature_of
from isolux.curation.consent import Ledger, read_ledger
from isolux.curation.project.database import reading, shown
from isolux.curation.project.tables import annotations_table, decisions, journal, seals, settings
from isolux.vocabulary.errors import FileError, TableError

if TYPE_CHECKING:
    from isolux.curation.project.folder import Project

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


_HASHED = ("n", "at", "who", "step", "rule", "said", "digest", "previous")
_OF_DECISION = ("unit_kind", "unit_id", "step", "rule", "verdict", "reason")
_OF_ANNOTATION = (
    "annotation_id", "task_id", "annotator_id", "source", "source_id", "version", "made_at",
    "updated_at", "seconds", "answer",
)  # fmt: skip


def now() -> str:
    """Tell the time, as ISO 8601 in UTC."""
    text = dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds")
    return text.replace("+00:00", "Z")


def add_row(
    connection: Connection,
    project: Project,
    *,
    step: str,
    rule: str,
    said: Mapping[str, Any],
    seals: Iterable[str],
) -> int:
    """Add a row at the end; the connection must be the project's only writer."""
    last = connection.execute(
        sa.select(journal.c.n, journal.c.hash).order_by(journal.c.n.desc()).limit(1)
    ).first()
    n, previous = (last.n + 1, last.hash) if last else (1, FIRST)
    fields = {
        "n": n, "at": now(), "who": project.who, "step": step, "rule": rule,
        "said": json.loads(json.dumps(said)), "digest": _digest(seals), "previous": previous,
    }  # fmt: skip
    digest = digest_of(fields)
    seal = signature_of(digest, project.key)
    connection.execute(sa.insert(journal), [fields | {"hash": digest, "signature": seal}])
    remember_ledger_head(connection, project)
    return int(n)


def _digest(seals: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(seals)).encode()).hexdigest()


def read_journal(project: Project) -> pl.DataFrame:
    """Read the journal, oldest row first."""
    with reading(project.engine) as connection:
        rows = connection.execute(sa.select(journal).order_by(journal.c.n)).mappings().all()
    columns = ("n", "at", "who", "step", "rule", "said", "hash")
    told = [{c: json.dumps(r[c]) if c == "said" else r[c] for c in columns} for r in rows]
    schema = {c: pl.Int64 if c == "n" else pl.String for c in columns}
    return pl.DataFrame(told, schema=schema)


def check_journal(project: Project, *, head: str | None = None) -> int:
    """See that no row and no verdict was changed, taken out or put in; the number of rows."""
    where = shown(project.engine)
    with reading(project.engine) as connection:
        rows = connection.execute(sa.select(journal).order_by(journal.c.n)).mappings().all()
        held = _seals(connection, where)
    previous = FIRST
    for number, row in enumerate(rows, 1):
        _check_row(row, number, previous, project.key, where)
        if row["digest"] != _digest(held.pop(number, ())):
            raise TableError(
                f"verdicts of row {number} of the journal were taken out or put in",
                expected="the verdicts that the row was signed with", where=where,
                found=f"{row['step']}, rule {row['rule']}", hint=_BACKUP,
            )  # fmt: skip
        previous = row["hash"]
    if head is not None and not any(row["hash"].startswith(head.lower()) for row in rows):
        raise TableError(
            "the row that was last is not in the journal: rows were cut off",
            expected=f"a row with the hash {head}", found=f"{len(rows):,} rows", where=where,
            hint=_BACKUP,
        )  # fmt: skip
    return len(rows)


_BACKUP = "bring the project back from a backup"


def _check_row(row: Mapping[Any, Any], number: int, previous: str, key: bytes, where: str) -> None:
    fields = {name: row[name] for name in _HASHED}
    wrong = None
    if row["n"] != number or row["previous"] != previous:
        wrong = "a row before this one was taken out, put in or moved"
    elif digest_of(fields) != row["hash"]:
        wrong = "this row was changed after it was written"
    elif not is_signed(row["hash"], row["signature"], key):
        wrong = "this row's signature does not verify"
    if wrong:
        raise TableError(
            wrong, expected="the row that was signed", found=f"{row['step']}, rule {row['rule']}",
            where=f"{where}, row {number} of the journal", hint=_BACKUP,
        )  # fmt: skip


def _seals(connection: Connection, where: str) -> dict[int, list[str]]:
    """Gather the seals of each row, and see that what is sealed is as it was."""
    found: dict[int, list[str]] = {}
    for table, fields in ((decisions, _OF_DECISION), (annotations_table, _OF_ANNOTATION)):
        for row in connection.execute(sa.select(table)).mappings():
            if row["salt"] is not None and row["seal"] != seal_of(
                row["salt"], {name: row[name] for name in fields}
            ):
                raise TableError(
                    f"one of the {table.name} was changed after it was written",
                    expected="what was sealed", found=f"one of row {row['n']} of the journal",
                    where=where, hint=_BACKUP,
                )  # fmt: skip
            found.setdefault(row["n"], []).append(row["seal"])
    for n, seal in connection.execute(sa.select(seals.c.n, seals.c.seal)):
        found.setdefault(n, []).append(seal)  # of answers that were deleted
    return found
