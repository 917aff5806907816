"""Read the cells of tables and arrays: texts, numbers, files in cells, and cells that hide people.

A column of pixels, vectors or packed bytes can only be searched by the ids in the same rows.
"""

from __future__ import annotations

import io
import re
import sqlite3
from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.binary_tables import first_error_line
from isolux_curate.id_columns import parse_id_column_or_none
from isolux_curate.proof.archives import FILE_MAGIC
from isolux_curate.proof.unsearchable import is_searchable_text
from isolux_curate.withdrawal.rewriting import UnsearchableFile
from isolux_curate.withdrawal.rewriting.tables import (
    build_frame_of_sqlite_rows,
    iterate_sqlite_tables,
    open_copy_of_sqlite,
    read_parquet_or_arrow,
)
from isolux_curate.withdrawal.rewriting.text import read_delimited_or_none

_GENERIC_COLUMN = re.compile(
    r"(?i)(arr|col|column|f|field|unnamed)?[ _:]*\d*|index|__index_level_\d+__"
)
_MIN_VECTOR_LENGTH = 64  # shorter lists of numbers are coordinates or counts
_NO_IDS = "numbers (pixels, vectors), and beside them no ids"
_MAX_EXACT_FLOAT = 2**53


def iterate_file_tables(file_name: str, file_bytes: bytes) -> Iterator[pl.DataFrame]:
    """Read the tables of a file."""
    lower = file_name.lower()
    try:
        if file_bytes.startswith((b"PAR1", b"ARROW1")) or lower.endswith((".arrow", ".feather")):
            table, form = read_parquet_or_arrow(file_bytes)
            yield table
            dtypes = [column.dtype for _, column in iterate_leaf_columns(table)]
            if any(dtype in (pl.Categorical, pl.Enum) for dtype in dtypes):
                yield _read_categories(file_bytes, form)
        elif file_bytes.startswith(b"SQLite format 3\0"):
            with open_copy_of_sqlite(file_bytes) as (connection, _):
                for _, names, rows in iterate_sqlite_tables(connection):
                    yield build_frame_of_sqlite_rows(names, rows)
            if _has_deleted_pages(file_bytes):
                raise UnsearchableFile("it has pages of deleted rows: VACUUM takes them out")
        elif file_bytes.startswith(b"\x93NUMPY"):
            yield _build_frame_of_array(np.load(io.BytesIO(file_bytes), allow_pickle=False))
        elif (
            lower.endswith((".csv", ".tsv"))
            and (frame := read_delimited_or_none(file_bytes)) is not None
        ):
            yield frame
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError,
            TypeError, sqlite3.Error, EOFError) as error:  # fmt: skip
        raise UnsearchableFile(
            f"the table cannot be read: {first_error_line(error)[:80]}"
        ) from error


def _read_categories(file_bytes: bytes, form: str) -> pl.DataFrame:
    """Read the values of categorical columns, also those that no row has any more.

    pandas keeps them when rows are removed; polars does not read them.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UnsearchableFile(
            "categories, whose unused values only pyarrow reads: pip install pyarrow"
        ) from error
    source = io.BytesIO(file_bytes)
    if form == "parquet":
        table = pq.read_table(source)
    else:
        table = (pa.ipc.open_file if form == "file" else pa.ipc.open_stream)(source).read_all()
    categories: list[str] = []
    for column in table.columns:
        if pa.types.is_nested(column.type) and "dictionary" in str(column.type):
            raise UnsearchableFile("categories within lists, of which some may be unused")
        for chunk in column.chunks if pa.types.is_dictionary(column.type) else ():
            categories += map(str, chunk.dictionary.to_pylist())
    return pl.DataFrame({"categories": categories}, schema={"categories": pl.String})


def _build_frame_of_array(array: npt.NDArray[np.generic]) -> pl.DataFrame:
    """Build a table of an array's entries: of text, or of the numbers that stand for the rest."""
    if array.dtype.kind in "US":
        return pl.DataFrame({"id": [str(word) for word in array.flat]}, schema={"id": pl.String})
    if array.dtype.kind in "mM":  # dates and times count units
        array = array.astype(np.int64)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag])
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    return pl.DataFrame({"numbers": array.ravel()})


def _has_deleted_pages(file_bytes: bytes) -> bool:
    """Check whether unused pages of an SQLite file still hold content (``freelist`` in its format).

    What is deleted goes to such pages unless ``secure_delete`` is on.
    """

    def read_number(offset: int) -> int:
        return int.from_bytes(file_bytes[offset : offset + 4], "big")

    page_size = int.from_bytes(file_bytes[16:18], "big")
    page_size = 1 << 16 if page_size == 1 else page_size
    trunk = read_number(32)
    for _ in range(read_number(36)):
        if trunk == 0:
            return False
        start = (trunk - 1) * page_size
        leaves = [read_number(start + 8 + 4 * k) for k in range(read_number(start + 4))]
        pages = [file_bytes[(leaf - 1) * page_size : leaf * page_size] for leaf in leaves]
        rest_of_trunk = file_bytes[start + 8 + 4 * len(leaves) : start + page_size]
        if any(page.strip(b"\0") for page in (*pages, rest_of_trunk)):
            return True
        trunk = read_number(start)
    return False


def _iterate_leaf_columns(column: pl.Series, name: str) -> Iterator[tuple[str, pl.Series]]:
    """Iterate over the simple columns within a column of lists or records, with their names."""
    if isinstance(column.dtype, pl.List | pl.Array):
        yield from _iterate_leaf_columns(column.explode(), name)
    elif isinstance(column.dtype, pl.Struct):
        for field in column.struct.fields:
            yield from _iterate_leaf_columns(column.struct.field(field), f"{name} {field}")
    elif column.dtype.is_nested() or column.dtype == pl.Object:  # maps
        yield name, pl.Series([str(cell) for cell in column], dtype=pl.String)
    else:
        yield name, column


def iterate_leaf_columns(table: pl.DataFrame) -> Iterator[tuple[str, pl.Series]]:
    """Iterate over a table's simple columns, also those within lists and records."""
    for column in table:
        yield from _iterate_leaf_columns(column, column.name)


def join_texts(table: pl.DataFrame) -> bytes:
    """Join the names of a table's columns, and its cells of text, each once, as bytes."""
    cells: list[str] = []
    for _, column in iterate_leaf_columns(table):
        if column.dtype in (pl.String, pl.Categorical, pl.Enum):
            cells += column.cast(pl.String).drop_nulls().unique().to_list()
    names = ",".join(name for name, _ in iterate_leaf_columns(table))
    text = "\n\n".join([names, *cells])  # one line end would join lines of base64
    return text.encode("utf-8", "surrogatepass")


def list_numbers_in_cells(table: pl.DataFrame, numbers: Collection[str]) -> list[str]:
    """List the numbers, given as text, that are cells of a table; 20417.0 is 20417."""
    cells: set[str] = set()
    for _, column in iterate_leaf_columns(table):
        if column.dtype.is_float():
            is_exact = column.is_finite() & (column.abs() < _MAX_EXACT_FLOAT)
            integers = column.filter(is_exact & (column == column.floor())).cast(pl.Int64)
        elif column.dtype.is_integer() or column.dtype.is_decimal():
            integers = column
        else:
            continue
        texts = integers.unique().drop_nulls().cast(pl.String)
        cells.update(texts.str.replace(r"\.0*$", ""))
    return sorted(cells.intersection(numbers))


def iterate_files_in_cells(file_name: str, table: pl.DataFrame) -> Iterator[tuple[str, bytes]]:
    """Iterate over files in a table's cells, such as images in Parquet and databases."""
    for name, column in iterate_leaf_columns(table):
        for row, content in enumerate(column if column.dtype == pl.Binary else ()):
            if content and (content.startswith((*FILE_MAGIC, b"\x78")) or not _has_ids(table)):
                yield f"{file_name}!{name} {row}", content


def _has_ids(table: pl.DataFrame) -> bool:
    """Check whether a table's rows have ids that lead to people; a row number leads to nobody."""
    for cells in table:
        parsed = parse_id_column_or_none(cells.name)
        is_text = cells.dtype in (pl.String, pl.Categorical)
        if parsed is None or not (is_text or cells.dtype.is_integer()):
            continue
        if parsed[1] or cells.cast(pl.String).str.contains(r"\D").any():
            return True
    return False


def explain_unread_cells_or_empty(table: pl.DataFrame, numeric_ids: Collection[str]) -> str:
    """Find why a table may hold the people though no cell names them; empty if it cannot."""
    if _has_ids(table):
        return ""
    if sum(dtype.is_numeric() for dtype in table.dtypes) >= _MIN_VECTOR_LENGTH:
        return _NO_IDS
    for name, column in iterate_leaf_columns(table):
        dtype = column.dtype
        if dtype.is_numeric() and len(column) >= _MIN_VECTOR_LENGTH * max(1, table.height):
            return _NO_IDS
        is_bare = _GENERIC_COLUMN.fullmatch(name) and (dtype.is_integer() or dtype == pl.String)
        if is_bare and not set(numeric_ids).isdisjoint(column.cast(pl.String)):
            return "a column without a name holds numbers that are spelt as their ids"
        if dtype == pl.Binary and any(map(_is_unreadable_cell, column)):
            return "bytes that are of no format that isolux can read, and beside them no ids"
    return ""


def _is_unreadable_cell(content: bytes | None) -> bool:
    if not content:
        return False
    return not (content.startswith((*FILE_MAGIC, b"\x78")) or is_searchable_text(content))
