"""SQLite: rows of every table, and what the file keeps of rows that were deleted."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.curation.withdrawal.rewriting.cells import theirs
from isolux.curation.withdrawal.rewriting.rewritten import Rewritten
from isolux.curation.withdrawal.terms import Terms

__all__ = ["frame_of", "rewrite"]


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
        new = copy.read_bytes()
        n = n or _forgotten(data, new, terms)
        return Rewritten(new, n) if n else Rewritten(data, 0)


def _forgotten(data: bytes, new: bytes, terms: Terms) -> int:
    """Count their names in pages that no row uses: there, cells stand without a gap between."""
    names = [one.encode("utf-8", "surrogatepass") for one in terms.distinctive]
    return sum(max(0, data.count(one) - new.count(one)) for one in names)


def frame_of(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> pl.DataFrame:
    """Make a table of a database's cells, whose types are their own: text, and bytes beside it.

    Examples
    --------
    >>> frame_of(["a"], [["x"], [b"y"]]).to_dict(as_series=False)
    {'a': ['x', None], 'a (bytes)': [None, b'y']}
    """
    held: dict[str, pl.Series] = {}
    for k, name in enumerate(columns):
        cells = [row[k] for row in rows]
        text = [None if isinstance(one, bytes | None) else str(one) for one in cells]
        held[name] = pl.Series(name, text, dtype=pl.String)
        if any(isinstance(one, bytes) for one in cells):
            packed = [one if isinstance(one, bytes) else None for one in cells]
            held[f"{name} (bytes)"] = pl.Series(f"{name} (bytes)", packed, dtype=pl.Binary)
    return pl.DataFrame(held)


def _tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return [name for (name,) in rows if not name.startswith("sqlite_")]


def _table(connection: sqlite3.Connection, name: str, terms: Terms) -> int:
    quoted = '"' + name.replace('"', '""') + '"'
    cursor = connection.execute(f"SELECT rowid, * FROM {quoted}")  # noqa: S608 (a name of the file)
    names = [one[0] for one in cursor.description]
    rows = cursor.fetchall()
    columns = [f"column {k}" if n in names[:k] else n for k, n in enumerate(names)]
    gone = theirs(frame_of(columns[1:], [row[1:] for row in rows]), terms)
    ids = [(row[0],) for row, out in zip(rows, gone, strict=True) if out]
    connection.executemany(f"DELETE FROM {quoted} WHERE rowid = ?", ids)  # noqa: S608
    return len(ids)
