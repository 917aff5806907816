"""SQLite: rows of every table, and what the file keeps of rows that were deleted."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import polars as pl

from isolux.curation.withdrawal.rewriting.cells import theirs
from isolux.curation.withdrawal.rewriting.rewritten import Rewritten
from isolux.curation.withdrawal.terms import Terms

__all__ = ["rewrite"]


def rewrite(data: bytes, terms: Terms) -> Rewritten:
    """Take rows out of a database's tables, in a copy that takes its place."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.sqlite"
        copy.write_bytes(data)
        try:
            connection = sqlite3.connect(copy)
            try:
                n = sum(_table(connection, name, terms) for name in _tables(connection))
                connection.commit()
                connection.execute("VACUUM")  # free pages hold what was deleted
            finally:
                connection.close()
        except sqlite3.Error as error:
            return Rewritten(data, 0, why=f"the database cannot be read: {error}")
        return Rewritten(copy.read_bytes(), n) if n else Rewritten(data, 0)


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return [name for (name,) in rows if not name.startswith("sqlite_")]


def _table(connection: sqlite3.Connection, name: str, terms: Terms) -> int:
    quoted = '"' + name.replace('"', '""') + '"'
    cursor = connection.execute(f"SELECT rowid, * FROM {quoted}")  # noqa: S608 (a name of the file)
    names = [one[0] for one in cursor.description]
    rows = cursor.fetchall()
    columns = [f"column {k}" if n in names[:k] else n for k, n in enumerate(names)]
    frame = pl.DataFrame(
        {
            c: [None if isinstance(row[k], bytes | None) else str(row[k]) for row in rows]
            for k, c in enumerate(columns) if k
        },
        schema=dict.fromkeys(columns[1:], pl.String),
    )  # fmt: skip
    gone = theirs(frame, terms)
    ids = [(row[0],) for row, out in zip(rows, gone, strict=True) if out]
    connection.executemany(f"DELETE FROM {quoted} WHERE rowid = ?", ids)  # noqa: S608
    return len(ids)
