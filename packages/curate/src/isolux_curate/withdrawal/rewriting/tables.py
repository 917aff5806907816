"""Tables without their rows: the rule that all follow, Parquet and Arrow, SQLite, NumPy.

SQLite loses what the file keeps of deleted rows too; NumPy's arrays beside an array of ids lose the
same places.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.binary_tables import first_line, read_arrow, refuse_damaged
from isolux.io.panics import panics_unprinted
from isolux_curate.id_columns import ANY, kinds_of_column
from isolux_curate.withdrawal.terms import Terms

_CODINGS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


class Blind(Exception):  # noqa: N818  (it says what a search or a withdrawal is)
    """A file, or a part of one, that cannot be looked into, and why."""


Rewritten = tuple[bytes | None, int]
"""A file's new content (None: all of it is theirs, and it goes), and how many rows, entries or
parts went."""


def decoded(data: bytes) -> tuple[str, str]:
    """Read text, and tell its coding.

    Examples
    --------
    >>> decoded(b"a"), decoded("a".encode("utf-16"))[0]
    (('a', 'utf-8'), 'a')
    """
    coding = next((name for mark, name in _CODINGS if data.startswith(mark)), "utf-8")
    for one in (coding, "latin-1") if b"\0" not in data else (coding,):
        try:
            return data.decode(one), one
        except UnicodeDecodeError:
            continue
    raise Blind("its text has no known coding")


Rule = Callable[[str], bool]
"""Whether a cell names someone who withdrew."""


def rule_of(terms: Terms, column: str, columns: Sequence[str] = ()) -> Rule:
    """Give the rule of a column, by its name and by those beside it."""
    found = kinds_of_column(column)
    if found is None:
        return terms.in_text
    kinds, strict = found
    known = [one for one in map(kinds_of_column, columns) if one is not None]
    strict = strict or not any(said for _, said in known)
    return lambda cell: terms.is_id(cell, kinds, strict=strict)


def theirs(frame: pl.DataFrame, terms: Terms) -> pl.Series:
    """Tell of each row whether it is about someone who withdrew."""
    found = pl.repeat(value=False, n=frame.height, dtype=pl.Boolean, eager=True)
    for name in frame.columns:
        cells = _text(frame[name])
        if cells is not None:
            found = found | _hit(cells, _of_kind(frame, name, terms))
        found = found | pl.Series(_hold_picture(frame[name], terms.pictures), dtype=pl.Boolean)
    if {"attribute", "value"} <= set(frame.columns):
        found = found | _by_attribute(frame, terms)
    return found.fill_null(value=False)


def held_bytes(cells: pl.Series) -> Iterator[Sequence[bytes]]:
    """Give the bytes in each cell of a column, as of pictures that a table holds.

    Examples
    --------
    >>> list(held_bytes(pl.Series([{"path": "a.jpg", "bytes": b"x"}, None])))
    [[b'x'], []]
    """
    kind = cells.dtype
    if kind == pl.Binary:
        yield from ([] if one is None else [one] for one in cells)
    elif isinstance(kind, pl.Struct) and pl.Binary in [f.dtype for f in kind.fields]:
        for cell in cells:
            yield [one for one in (cell or {}).values() if isinstance(one, bytes)]


def _hold_picture(cells: pl.Series, pictures: frozenset[str]) -> list[bool]:
    held = [
        any(hashlib.sha256(one).hexdigest() in pictures for one in cell)
        for cell in held_bytes(cells)
    ]
    return held or [False] * len(cells)


def _of_kind(frame: pl.DataFrame, name: str, terms: Terms) -> Rule | pl.Series:
    if name != "unit_id" or "unit_kind" not in frame.columns:
        return rule_of(terms, name, frame.columns)
    kinds = frame["unit_kind"].cast(pl.String)
    found = pl.repeat(value=False, n=frame.height, dtype=pl.Boolean, eager=True)
    cells = frame[name].cast(pl.String)
    for kind in kinds.unique():
        strict = kind is not None and kind in terms.named.keys() | terms.others.keys()
        of = (kind,) if strict else ANY
        mask = kinds.eq_missing(kind)
        is_id = partial(terms.is_id, kinds=of, strict=strict)
        found = found | (mask & _hit(cells, is_id))
    return found


def _hit(cells: pl.Series, rule: Rule | pl.Series) -> pl.Series:
    if isinstance(rule, pl.Series):
        return rule
    bad = [one for one in cells.unique() if one is not None and rule(one)]
    return cells.is_in(pl.Series(bad, dtype=pl.String).implode()).fill_null(value=False)


def _by_attribute(frame: pl.DataFrame, terms: Terms) -> pl.Series:
    """Look at values of attributes that are ids (``subject``), in a table of attributes."""
    found = pl.repeat(value=False, n=frame.height, dtype=pl.Boolean, eager=True)
    names, values = frame["attribute"].cast(pl.String), frame["value"].cast(pl.String)
    for name in names.unique().drop_nulls():
        if kinds_of_column(name) is not None:
            found = found | ((names == name) & _hit(values, rule_of(terms, name, [name])))
    return found


def _text(cells: pl.Series) -> pl.Series | None:
    """Give cells as text; numbers of columns that hold no ids, and lists, are no names."""
    kind = cells.dtype
    if kind in (pl.String, pl.Categorical, pl.Enum):
        return cells.cast(pl.String)
    if kind.is_integer() and kinds_of_column(cells.name) is not None:
        return cells.cast(pl.String)
    if isinstance(kind, pl.Struct) and pl.String in [f.dtype for f in kind.fields]:
        return pl.Series(
            cells.name,
            [None if c is None else json.dumps(c, default=str, ensure_ascii=False) for c in cells],
            dtype=pl.String,
        )
    return None


def without(frame: pl.DataFrame, terms: Terms) -> tuple[pl.DataFrame, int]:
    """Take their rows out, and out of lists of others' rows what is about them."""
    gone = theirs(frame, terms)
    kept = frame.filter(~gone)
    n = int(gone.sum())
    for name in frame.columns:
        kind = frame.schema[name]
        if isinstance(kind, pl.List) and kind.inner in (pl.String, pl.Categorical):
            kept, entries = _without_entries(kept, name, terms)
            n += entries
    return kept, n


def _without_entries(frame: pl.DataFrame, name: str, terms: Terms) -> tuple[pl.DataFrame, int]:
    """Take entries out of a list, and out of lists of the same lengths beside it."""
    rule = rule_of(terms, name, frame.columns)
    every = frame[name].explode(empty_as_null=False).cast(pl.String) if frame.height else None
    if every is None:
        return frame, 0
    bad = [one for one in every.unique() if one is not None and rule(one)]
    if not bad:
        return frame, 0
    lists = [c for c, kind in frame.schema.items() if isinstance(kind, pl.List)]
    rows: dict[str, list[list[object] | None]] = {c: frame[c].to_list() for c in lists}
    known, n = frozenset(bad), 0
    for row, entries in enumerate(rows[name]):
        if entries is None or known.isdisjoint(entries):
            continue
        keep = [k for k, one in enumerate(entries) if one not in known]
        n += len(entries) - len(keep)
        for held in rows.values():
            beside = held[row]
            if beside is not None and len(beside) == len(entries):
                held[row] = [beside[k] for k in keep]
    made = [pl.Series(c, rows[c], dtype=frame.schema[c]) for c in lists]
    return frame.with_columns(made), n


def read_frame(data: bytes) -> tuple[pl.DataFrame, str]:
    """Read a table, and tell in which of the two forms it is."""
    with panics_unprinted():
        refuse_damaged(data)
        if data[:4] == b"PAR1":
            return pl.read_parquet(io.BytesIO(data)), "parquet"
        return read_arrow(data), "file" if data[:6] == b"ARROW1" else "stream"


def rewrite_frame(data: bytes, terms: Terms) -> Rewritten:
    """Take rows out of a table."""
    try:
        frame, form = read_frame(data)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise Blind(f"it cannot be read: {first_line(error)[:80]}") from error
    kept, n = without(frame, terms)
    out = io.BytesIO()
    if form == "parquet":
        kept.write_parquet(out, statistics=False)
    elif form == "file":
        kept.write_ipc(out)
    else:
        kept.write_ipc_stream(out)
    return out.getvalue(), n


@contextmanager
def database_of(data: bytes) -> Iterator[tuple[sqlite3.Connection, Path]]:
    """Open a copy of a database."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.sqlite"
        copy.write_bytes(data)
        connection = sqlite3.connect(copy)
        try:
            yield connection, copy
        finally:
            connection.close()


def read_tables(
    connection: sqlite3.Connection, columns: str = "*"
) -> Iterator[tuple[str, list[str], list[tuple[Any, ...]]]]:
    """Read each table of a database: its name in SQL, its columns' names and its rows."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    for (name,) in connection.execute(query).fetchall():
        if columns == "*" or not name.startswith("sqlite_"):
            quoted = '"' + name.replace('"', '""') + '"'
            cursor = connection.execute(f"SELECT {columns} FROM {quoted}")  # noqa: S608 (the file's name)
            names = [one[0] for one in cursor.description]
            names = [f"column {k}" if n in names[:k] else n for k, n in enumerate(names)]
            yield quoted, names, cursor.fetchall()


def rewrite_database(data: bytes, terms: Terms) -> Rewritten:
    """Take rows out of a database's tables, in a copy that takes its place."""
    try:
        with database_of(data) as (connection, copy):
            n = 0
            for name, columns, rows in read_tables(connection, "rowid, *"):
                named = theirs(frame_of(columns[1:], [row[1:] for row in rows]), terms)
                gone = [row[:1] for row, is_theirs in zip(rows, named, strict=True) if is_theirs]
                connection.executemany(f"DELETE FROM {name} WHERE rowid = ?", gone)  # noqa: S608
                n += len(gone)
            connection.commit()
            connection.execute("VACUUM")  # free pages hold what was deleted
            connection.close()  # before, changes may stand in a log beside the file
            new = copy.read_bytes()
    except sqlite3.Error as error:
        raise Blind(f"the database cannot be read: {error}") from error
    return new, n or _forgotten(data, new, terms)


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


def rewrite_array(data: bytes, terms: Terms) -> Rewritten:
    """Take entries out of arrays of text, and of arrays of the same length beside them."""
    out = io.BytesIO()
    try:
        if data[:6] == b"\x93NUMPY":
            array = np.load(io.BytesIO(data), allow_pickle=False)
            _refuse_unread("", array, frozenset(), terms)
            hit = _named_entries("id", array, terms)
            np.save(out, array[~hit] if hit.any() else array)
            return out.getvalue(), int(hit.sum())
        with np.load(io.BytesIO(data), allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            packed = any(one.compress_type for one in archive.infolist())
    except (ValueError, OSError, zipfile.BadZipFile, EOFError, KeyError) as error:
        raise Blind(f"arrays cannot be read: {str(error).splitlines()[0][:80]}") from error
    named = {len(one) for name, one in arrays.items() if _is_ids(name, one)}
    gone: dict[int, npt.NDArray[np.bool_]] = {}
    for name, array in arrays.items():
        _refuse_unread(name, array, named, terms)
        hit = _named_entries(name, array, terms)
        if hit.any():
            gone[len(array)] = gone.get(len(array), np.zeros(len(array), bool)) | hit
    kept = {
        name: array[~gone[len(array)]] if array.ndim and len(array) in gone else array
        for name, array in arrays.items()
    }
    (np.savez_compressed if packed else np.savez)(out, **kept)
    return out.getvalue(), int(sum(one.sum() for one in gone.values()))


def _is_ids(name: str, array: npt.NDArray[np.generic]) -> bool:
    """Tell whether an array is one of text, or of whole numbers that its name says are ids."""
    kind = array.dtype.kind
    return array.ndim == 1 and (
        kind in "US" or (kind in "iu" and kinds_of_column(name) is not None)
    )


def _refuse_unread(
    name: str, array: npt.NDArray[np.generic], named: AbstractSet[int], terms: Terms
) -> None:
    """Refuse an array in which what it holds of them would not be found."""
    if array.dtype.kind == "V":
        raise Blind("an array of records")
    if array.dtype.kind not in "US" and array.ndim > 1 and named.isdisjoint(array.shape):
        raise Blind("numbers (pixels, vectors), and beside them no ids of the same length")
    is_bare = array.dtype.kind in "iu" and re.fullmatch(r"(arr_\d+)?", name)
    if is_bare and any(one.isdigit() and np.any(array == int(one)) for one in terms.every):
        raise Blind("an array without a name holds numbers that are spelt as their ids")


def _named_entries(
    name: str, array: npt.NDArray[np.generic], terms: Terms
) -> npt.NDArray[np.bool_]:
    if not _is_ids(name, array):
        return np.zeros(array.shape, bool)
    rule = rule_of(terms, name, [name])
    cells = [c.decode("utf-8", "replace") if isinstance(c, bytes) else str(c) for c in array]
    return np.array([rule(cell) for cell in cells], bool)
