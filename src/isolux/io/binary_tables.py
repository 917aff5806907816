"""Parquet and Arrow files, read by polars; where pyarrow is installed, it looks at them first.

polars ends the process over some damaged files, reads past the checksums of pages, and prints what
its engine makes of others. What reaches the user from here names the file, and the column where
there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.errors import FileError, extract_first_line
from isolux.io.polars_panics import silence_panics

_FEATHER_1 = b"FEA1"
_PARQUET = b"PAR1"
_ARROW_FILE = b"ARROW1"
_CONTINUATION_MARKER = b"\xff\xff\xff\xff"  # what each message begins with, since Arrow 0.15
_MAX_CELLS = 1_000_000_000
"""Rows times columns: a larger table would not fit most memories."""


def refuse_damaged(source: Path | bytes, columns: Collection[str] | None = None) -> None:
    """Refuse a damaged Parquet or Arrow table by pyarrow, where that is installed."""
    if find_spec("pyarrow") is None or not (
        source if isinstance(source, bytes) else source.stat().st_size
    ):
        return
    import pyarrow as pa

    try:
        with _open_arrow_source(source) as file:
            if _has_magic(file, _PARQUET):
                _refuse_damaged_parquet(file, columns)
            else:
                _refuse_damaged_arrow(file)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(first_error_line(error)) from error


def _open_arrow_source(source: Path | bytes) -> Any:
    import pyarrow as pa

    return pa.BufferReader(source) if isinstance(source, bytes) else pa.OSFile(str(source))


def _has_magic(file: Any, magic: bytes) -> bool:
    head = file.read(len(magic))
    file.seek(0)
    return bool(head == magic)


def _refuse_damaged_parquet(file: Any, columns: Collection[str] | None) -> None:
    """Read the values of some columns, or of all, a group of rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(file, page_checksum_verification=True)
    names = table.schema_arrow.names
    _refuse_huge(table.metadata.num_rows, len(names))
    for name in names if columns is None else columns:
        for group in range(table.num_row_groups):
            try:
                table.read_row_group(group, columns=[name]).validate(full=True)
            except (pa.ArrowException, OSError) as error:
                raise ValueError(f"column {name!r}: {first_error_line(error)}") from error


def _refuse_damaged_arrow(file: Any) -> None:
    """Read the batches of a file or stream one after another."""
    import pyarrow as pa

    n_rows = 0
    for batch in _iterate_batches(file):
        n_rows += batch.num_rows
        _refuse_huge(n_rows, batch.num_columns)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.validate(full=True)
            except pa.ArrowException as error:
                raise ValueError(f"column {name!r}: {first_error_line(error)}") from error


def _iterate_batches(file: Any) -> Iterator[Any]:
    import pyarrow as pa

    if _has_magic(file, _ARROW_FILE):
        reader = pa.ipc.open_file(file)
        yield from map(reader.get_batch, range(reader.num_record_batches))
        return
    yield from pa.ipc.open_stream(file)
    if any(trailing := file.read()):
        raise ValueError(f"{len(trailing):,} bytes follow its end")


def _refuse_huge(n_rows: int, n_columns: int) -> None:
    """Refuse more cells than fit into memory; repeated values compress to almost nothing."""
    if n_rows * n_columns > _MAX_CELLS:
        raise ValueError(
            f"{n_rows:,} rows of {n_columns:,} columns are more than {_MAX_CELLS:,} cells"
        )


def read_parquet_file(path: Path) -> pl.DataFrame:
    """Read a Parquet file."""

    def read() -> pl.DataFrame:
        refuse_damaged(path)
        lazy = pl.scan_parquet(path, glob=False)
        _refuse_huge(lazy.select(pl.len()).collect().item(), len(lazy.collect_schema()))
        return pl.read_parquet(path, use_pyarrow=False, glob=False)

    return _read_table(path, "Parquet", read)


def read_arrow_file(path: Path) -> pl.DataFrame:
    """Read an Arrow file or stream, which is Feather's second version as well."""
    content = path.read_bytes()
    if content.startswith(_FEATHER_1):
        raise FileError(
            "this is a Feather file of version 1, which nothing but old libraries reads",
            expected="Feather of version 2, which is Arrow",
            where=str(path),
            hint="read it with pyarrow.feather.read_table and write it with "
            "pyarrow.feather.write_feather, or save it as Parquet",
        )

    def read() -> pl.DataFrame:
        refuse_damaged(content)
        return read_arrow(content)

    return _read_table(path, "Arrow", read)


def read_arrow(content: bytes) -> pl.DataFrame:
    """Read an Arrow file, or a stream that was written to its end."""
    if content.startswith(_ARROW_FILE):
        return pl.read_ipc(content)
    if content.startswith(_CONTINUATION_MARKER) and not content.rstrip(b"\0").endswith(
        _CONTINUATION_MARKER
    ):
        raise ValueError("it is cut off: nothing says at its end that no batch follows")
    return pl.read_ipc_stream(content)  # what a stream writer makes, as Hugging Face's does


def read_table_schema(path: Path, format_name: str) -> dict[str, pl.DataType]:
    """Read the column names and types of a Parquet or Arrow file, without values."""
    with silence_panics():
        if format_name == "parquet":
            refuse_damaged(path, ())
            return dict(pl.read_parquet_schema(path))
        return dict(pl.read_ipc_schema(path))


def _read_table(path: Path, name: str, read: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    if path.stat().st_size == 0:
        raise FileError("the file is empty", expected=f"a table as {name}", where=str(path))
    try:
        with silence_panics():
            return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise find_unreadable_column(path) or FileError(
            f"this is not a valid {name} file, or it is damaged",
            expected="a whole file, as its writer left it",
            found=first_error_line(error),
            where=str(path),
            hint="download it again, or write it again",
        ) from error


def find_unreadable_column(path: Path) -> FileError | None:
    """Find the first column whose type polars does not support, after reading failed."""
    if find_spec("pyarrow") is None:
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with _open_arrow_source(path) as file:
            if _has_magic(file, _PARQUET):
                schema = pq.read_schema(file)
            elif _has_magic(file, _ARROW_FILE):
                schema = pa.ipc.open_file(file).schema
            else:
                schema = pa.ipc.open_stream(file).schema
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # the last: damaged names
        return None
    for field in schema:
        try:
            with silence_panics():
                pl.from_arrow(pa.table({"values": pa.nulls(1, field.type)}))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException):
            return FileError(
                "a column has a type that isolux cannot read",
                expected="numbers, text, true or false, dates and times, lists or structs of these",
                found=f"the column {field.name!r} is {field.type}",
                where=str(path),
                hint="cast it to one of these and write the file again, or leave the column out",
            )
    return None


def first_error_line(error: BaseException) -> str:
    """Return the first line of an error; a fixed text for a panic of polars' engine."""
    if isinstance(error, pl.exceptions.PanicException):
        return "polars, which reads it, cannot make sense of it"
    return extract_first_line(error)
