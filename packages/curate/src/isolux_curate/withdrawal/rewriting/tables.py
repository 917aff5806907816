"""Remove a person's rows from tables: Parquet and Arrow, SQLite, NumPy.

SQLite files are vacuumed, so that no deleted rows remain; NumPy arrays of the same length as an
array of ids lose the same entries.
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

from isolux.io.binary_tables import first_error_line, read_arrow, refuse_damaged
from isolux.io.polars_panics import silence_panics
from isolux_curate.id_columns import ALL_ID_KINDS, parse_id_column_or_none
from isolux_curate.withdrawal.terms import IdentifyingTerms

_CODINGS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


class UnsearchableFile(Exception):  # noqa: N818  (a result of search and withdrawal, not an error)
    """A file, or a member of one, that cannot be searched, and why."""


RewriteResult = tuple[bytes | None, int]
"""A file's new content (None: delete the file), and the number of removed rows, entries or
members."""


def decode_text_and_name_coding(file_bytes: bytes) -> tuple[str, str]:
    """Decode text, and return its coding.

    Examples
    --------
    >>> decode_text_and_name_coding(b"a"), decode_text_and_name_coding("a".encode("utf-16"))[0]
    (('a', 'utf-8'), 'a')
    """
    coding = next((name for mark, name in _CODINGS if file_bytes.startswith(mark)), "utf-8")
    for candidate in (coding, "latin-1") if b"\0" not in file_bytes else (coding,):
        try:
            return file_bytes.decode(candidate), candidate
        except UnicodeDecodeError:
            continue
    raise UnsearchableFile("its text has no known coding")


CellTest = Callable[[str], bool]
"""Whether a cell names someone who withdrew."""


def build_cell_test(
    terms: IdentifyingTerms, column_name: str, all_columns: Sequence[str] = ()
) -> CellTest:
    """Build the test of a column's cells from its name and the other columns' names."""
    parsed = parse_id_column_or_none(column_name)
    if parsed is None:
        return terms.does_text_name_people
    id_kinds, strict = parsed
    parsed_columns = [
        parsed_column
        for parsed_column in map(parse_id_column_or_none, all_columns)
        if parsed_column is not None
    ]
    strict = strict or not any(is_specific for _, is_specific in parsed_columns)
    return lambda cell: terms.does_id_cell_name_people(cell, id_kinds, strict=strict)


def flag_rows_naming_people(frame: pl.DataFrame, terms: IdentifyingTerms) -> pl.Series:
    """Flag rows that hold a person who withdrew."""
    is_person_row = pl.repeat(value=False, n=frame.height, dtype=pl.Boolean, eager=True)
    for name in frame.columns:
        cells = _cast_cells_to_text(frame[name])
        if cells is not None:
            is_person_row = is_person_row | _flag_cells_by_rule(
                cells, _build_test_or_mask(frame, name, terms)
            )
        is_person_row = is_person_row | pl.Series(
            _flag_cells_containing_photo(frame[name], terms.photo_hashes), dtype=pl.Boolean
        )
    if {"attribute", "value"} <= set(frame.columns):
        is_person_row = is_person_row | _flag_attribute_rows_naming_people(frame, terms)
    return is_person_row.fill_null(value=False)


def iterate_cell_bytes(cells: pl.Series) -> Iterator[Sequence[bytes]]:
    """Iterate over the binary contents of a column's cells, such as embedded images.

    Examples
    --------
    >>> list(iterate_cell_bytes(pl.Series([{"path": "a.jpg", "bytes": b"x"}, None])))
    [[b'x'], []]
    """
    dtype = cells.dtype
    if dtype == pl.Binary:
        yield from ([] if content is None else [content] for content in cells)
    elif isinstance(dtype, pl.Struct) and pl.Binary in [f.dtype for f in dtype.fields]:
        for cell in cells:
            yield [content for content in (cell or {}).values() if isinstance(content, bytes)]


def _flag_cells_containing_photo(cells: pl.Series, photo_hashes: frozenset[str]) -> list[bool]:
    holds_photo = [
        any(hashlib.sha256(content).hexdigest() in photo_hashes for content in cell)
        for cell in iterate_cell_bytes(cells)
    ]
    return holds_photo or [False] * len(cells)


def _build_test_or_mask(
    frame: pl.DataFrame, column_name: str, terms: IdentifyingTerms
) -> CellTest | pl.Series:
    if column_name != "unit_id" or "unit_kind" not in frame.columns:
        return build_cell_test(terms, column_name, frame.columns)
    unit_kinds = frame["unit_kind"].cast(pl.String)
    is_match = pl.repeat(value=False, n=frame.height, dtype=pl.Boolean, eager=True)
    cells = frame[column_name].cast(pl.String)
    for unit_kind in unit_kinds.unique():
        strict = (
            unit_kind is not None
            and unit_kind in terms.names_by_kind.keys() | terms.other_names.keys()
        )
        id_kinds = (unit_kind,) if strict else ALL_ID_KINDS
        mask = unit_kinds.eq_missing(unit_kind)
        is_id = partial(terms.does_id_cell_name_people, id_kinds=id_kinds, strict=strict)
        is_match = is_match | (mask & _flag_cells_by_rule(cells, is_id))
    return is_match


def _flag_cells_by_rule(cells: pl.Series, test_or_mask: CellTest | pl.Series) -> pl.Series:
    if isinstance(test_or_mask, pl.Series):
        return test_or_mask
    matching_cells = [cell for cell in cells.unique() if cell is not None and test_or_mask(cell)]
    return cells.is_in(pl.Series(matching_cells, dtype=pl.String).implode()).fill_null(value=False)


def _flag_attribute_rows_naming_people(frame: pl.DataFrame, terms: IdentifyingTerms) -> pl.Series:
    """Flag rows of a table of attributes whose value is an id (``subject``)."""
    is_match = pl.repeat(value=False, n=frame.height, dtype=pl.Boolean, eager=True)
    names, values = frame["attribute"].cast(pl.String), frame["value"].cast(pl.String)
    for name in names.unique().drop_nulls():
        if parse_id_column_or_none(name) is not None:
            is_match = is_match | (
                (names == name) & _flag_cells_by_rule(values, build_cell_test(terms, name, [name]))
            )
    return is_match


def _cast_cells_to_text(cells: pl.Series) -> pl.Series | None:
    """Convert cells to text; None for lists, and for numbers of columns without ids."""
    dtype = cells.dtype
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return cells.cast(pl.String)
    if dtype.is_integer() and parse_id_column_or_none(cells.name) is not None:
        return cells.cast(pl.String)
    if isinstance(dtype, pl.Struct) and pl.String in [f.dtype for f in dtype.fields]:
        return pl.Series(
            cells.name,
            [None if c is None else json.dumps(c, default=str, ensure_ascii=False) for c in cells],
            dtype=pl.String,
        )
    return None


def remove_rows_and_list_entries(
    frame: pl.DataFrame, terms: IdentifyingTerms
) -> tuple[pl.DataFrame, int]:
    """Remove the people's rows, and their entries in lists of other rows."""
    is_person_row = flag_rows_naming_people(frame, terms)
    remaining = frame.filter(~is_person_row)
    n = int(is_person_row.sum())
    for name in frame.columns:
        dtype = frame.schema[name]
        if isinstance(dtype, pl.List) and dtype.inner in (pl.String, pl.Categorical):
            remaining, entries = _remove_entries_of_aligned_lists(remaining, name, terms)
            n += entries
    return remaining, n


def _remove_entries_of_aligned_lists(
    frame: pl.DataFrame, column_name: str, terms: IdentifyingTerms
) -> tuple[pl.DataFrame, int]:
    """Remove entries from a list column, and from list columns of the same lengths."""
    rule = build_cell_test(terms, column_name, frame.columns)
    all_entries = (
        frame[column_name].explode(empty_as_null=False).cast(pl.String) if frame.height else None
    )
    if all_entries is None:
        return frame, 0
    matching_cells = [entry for entry in all_entries.unique() if entry is not None and rule(entry)]
    if not matching_cells:
        return frame, 0
    lists = [c for c, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    rows: dict[str, list[list[object] | None]] = {c: frame[c].to_list() for c in lists}
    matching_entries, n = frozenset(matching_cells), 0
    for row, entries in enumerate(rows[column_name]):
        if entries is None or matching_entries.isdisjoint(entries):
            continue
        kept_positions = [k for k, entry in enumerate(entries) if entry not in matching_entries]
        n += len(entries) - len(kept_positions)
        for column_lists in rows.values():
            neighbour_list = column_lists[row]
            if neighbour_list is not None and len(neighbour_list) == len(entries):
                column_lists[row] = [neighbour_list[k] for k in kept_positions]
    new_columns = [pl.Series(c, rows[c], dtype=frame.schema[c]) for c in lists]
    return frame.with_columns(new_columns), n


def read_parquet_or_arrow(file_bytes: bytes) -> tuple[pl.DataFrame, str]:
    """Read a table, and return its form: parquet, or Arrow file or stream."""
    with silence_panics():
        refuse_damaged(file_bytes)
        if file_bytes[:4] == b"PAR1":
            return pl.read_parquet(io.BytesIO(file_bytes)), "parquet"
        return read_arrow(file_bytes), "file" if file_bytes[:6] == b"ARROW1" else "stream"


def rewrite_parquet_or_arrow(file_bytes: bytes, terms: IdentifyingTerms) -> RewriteResult:
    """Remove the people's rows from a Parquet or Arrow table."""
    try:
        frame, form = read_parquet_or_arrow(file_bytes)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise UnsearchableFile(f"it cannot be read: {first_error_line(error)[:80]}") from error
    remaining, n = remove_rows_and_list_entries(frame, terms)
    buffer = io.BytesIO()
    if form == "parquet":
        remaining.write_parquet(buffer, statistics=False)
    elif form == "file":
        remaining.write_ipc(buffer)
    else:
        remaining.write_ipc_stream(buffer)
    return buffer.getvalue(), n


@contextmanager
def open_copy_of_sqlite(file_bytes: bytes) -> Iterator[tuple[sqlite3.Connection, Path]]:
    """Open a copy of a database."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.sqlite"
        copy.write_bytes(file_bytes)
        connection = sqlite3.connect(copy)
        try:
            yield connection, copy
        finally:
            connection.close()


def iterate_sqlite_tables(
    connection: sqlite3.Connection, selected_columns: str = "*"
) -> Iterator[tuple[str, list[str], list[tuple[Any, ...]]]]:
    """Read each table of a database: its name in SQL, its columns' names and its rows."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    for (name,) in connection.execute(query).fetchall():
        if selected_columns == "*" or not name.startswith("sqlite_"):
            quoted = '"' + name.replace('"', '""') + '"'
            cursor = connection.execute(f"SELECT {selected_columns} FROM {quoted}")  # noqa: S608 (the file's name)
            names = [column[0] for column in cursor.description]
            names = [f"column {k}" if n in names[:k] else n for k, n in enumerate(names)]
            yield quoted, names, cursor.fetchall()


def rewrite_sqlite(file_bytes: bytes, terms: IdentifyingTerms) -> RewriteResult:
    """Remove the people's rows from a copy of an SQLite database, which replaces it."""
    try:
        with open_copy_of_sqlite(file_bytes) as (connection, copy):
            n = 0
            for name, columns, rows in iterate_sqlite_tables(connection, "rowid, *"):
                is_person_row = flag_rows_naming_people(
                    build_frame_of_sqlite_rows(columns[1:], [row[1:] for row in rows]), terms
                )
                row_ids = [
                    row[:1] for row, is_theirs in zip(rows, is_person_row, strict=True) if is_theirs
                ]
                connection.executemany(f"DELETE FROM {name} WHERE rowid = ?", row_ids)  # noqa: S608
                n += len(row_ids)
            connection.commit()
            connection.execute("VACUUM")  # free pages hold what was deleted
            connection.close()  # before that, changes may be in the write-ahead log
            new_bytes = copy.read_bytes()
    except sqlite3.Error as error:
        raise UnsearchableFile(f"the database cannot be read: {error}") from error
    return new_bytes, n or _count_names_in_unused_pages(file_bytes, new_bytes, terms)


def _count_names_in_unused_pages(
    file_bytes: bytes, new_bytes: bytes, terms: IdentifyingTerms
) -> int:
    """Count removed names in pages that no row uses (rows deleted earlier)."""
    names = [term.encode("utf-8", "surrogatepass") for term in terms.distinctive_names]
    return sum(max(0, file_bytes.count(name) - new_bytes.count(name)) for name in names)


def build_frame_of_sqlite_rows(
    columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> pl.DataFrame:
    """Build a table from a database's cells, each with its own type: text, and bytes separately.

    Examples
    --------
    >>> build_frame_of_sqlite_rows(["a"], [["x"], [b"y"]]).to_dict(as_series=False)
    {'a': ['x', None], 'a (bytes)': [None, b'y']}
    """
    columns_by_name: dict[str, pl.Series] = {}
    for k, name in enumerate(columns):
        cells = [row[k] for row in rows]
        text = [None if isinstance(cell, bytes | None) else str(cell) for cell in cells]
        columns_by_name[name] = pl.Series(name, text, dtype=pl.String)
        if any(isinstance(cell, bytes) for cell in cells):
            packed = [cell if isinstance(cell, bytes) else None for cell in cells]
            columns_by_name[f"{name} (bytes)"] = pl.Series(
                f"{name} (bytes)", packed, dtype=pl.Binary
            )
    return pl.DataFrame(columns_by_name)


def rewrite_numpy_arrays(file_bytes: bytes, terms: IdentifyingTerms) -> RewriteResult:
    """Remove entries from arrays of ids, and from arrays of the same length next to them."""
    buffer = io.BytesIO()
    try:
        if file_bytes[:6] == b"\x93NUMPY":
            array = np.load(io.BytesIO(file_bytes), allow_pickle=False)
            _refuse_unsearchable_array("", array, frozenset(), terms)
            is_theirs = _flag_array_entries_naming_people("id", array, terms)
            np.save(buffer, array[~is_theirs] if is_theirs.any() else array)
            return buffer.getvalue(), int(is_theirs.sum())
        with np.load(io.BytesIO(file_bytes), allow_pickle=False) as npz_file:
            arrays = {name: npz_file[name] for name in npz_file.files}
        with zipfile.ZipFile(io.BytesIO(file_bytes)) as archive:
            is_compressed = any(member.compress_type for member in archive.infolist())
    except (ValueError, OSError, zipfile.BadZipFile, EOFError, KeyError) as error:
        raise UnsearchableFile(
            f"arrays cannot be read: {str(error).splitlines()[0][:80]}"
        ) from error
    id_lengths = {
        len(array)
        for name, array in arrays.items()
        if _can_hold_ids(name, array)
        and (parse_id_column_or_none(name) is not None or len(np.unique(array)) == len(array))
    }  # labels repeat, and tell nobody's rows
    removed_by_length: dict[int, npt.NDArray[np.bool_]] = {}
    for name, array in arrays.items():
        _refuse_unsearchable_array(name, array, id_lengths, terms)
        is_theirs = _flag_array_entries_naming_people(name, array, terms)
        if is_theirs.any():
            removed_by_length[len(array)] = (
                removed_by_length.get(len(array), np.zeros(len(array), bool)) | is_theirs
            )
    remaining = {
        name: array[~removed_by_length[len(array)]]
        if array.ndim and len(array) in removed_by_length
        else array
        for name, array in arrays.items()
    }
    (np.savez_compressed if is_compressed else np.savez)(buffer, **remaining)
    return buffer.getvalue(), int(sum(mask.sum() for mask in removed_by_length.values()))


def _can_hold_ids(array_name: str, array: npt.NDArray[np.generic]) -> bool:
    """Check whether an array holds text, or integers that are ids by its name."""
    dtype_kind = array.dtype.kind
    return array.ndim == 1 and (
        dtype_kind in "US"
        or (dtype_kind in "iu" and parse_id_column_or_none(array_name) is not None)
    )


_MIN_PIXELS = 24 * 24  # of the smallest picture in which anyone could be recognised


def _refuse_unsearchable_array(
    array_name: str,
    array: npt.NDArray[np.generic],
    id_lengths: AbstractSet[int],
    terms: IdentifyingTerms,
) -> None:
    """Refuse an array in which a person cannot be found."""
    if array.dtype.kind == "V":
        raise UnsearchableFile("an array of records")
    row_axes = array.shape if array.ndim == 2 else array.shape[:1]  # weights may be transposed
    may_be_pixels = array.ndim > 1 or (array.dtype == np.uint8 and array.size >= _MIN_PIXELS)
    if array.dtype.kind not in "US" and may_be_pixels and id_lengths.isdisjoint(row_axes):
        raise UnsearchableFile(
            "numbers (pixels, vectors), and beside them no ids of the same length"
        )
    is_bare = array.dtype.kind in "iu" and re.fullmatch(r"(arr_\d+)?", array_name)
    if is_bare and any(term.isdigit() and np.any(array == int(term)) for term in terms.all_names):
        raise UnsearchableFile("an array without a name holds numbers that are spelt as their ids")


def _flag_array_entries_naming_people(
    array_name: str, array: npt.NDArray[np.generic], terms: IdentifyingTerms
) -> npt.NDArray[np.bool_]:
    if not _can_hold_ids(array_name, array):
        return np.zeros(array.shape, bool)
    rule = build_cell_test(terms, array_name, [array_name])
    cells = [c.decode("utf-8", "replace") if isinstance(c, bytes) else str(c) for c in array]
    return np.array([rule(cell) for cell in cells], bool)
