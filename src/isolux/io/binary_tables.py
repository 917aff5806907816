"""Parquet and Arrow files, read by polars once what they say of themselves was looked at.

polars ends the process over some damaged files and prints what its engine makes of others; what
reaches the user from here names the file, and the column where there is one.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import polars as pl

from isolux.io.arrow_batches import CELLS, columns_of_message, refuse_damaged_batches
from isolux.io.arrow_schema import UnreadTypeError, refuse_unread
from isolux.io.panics import panics_unprinted
from isolux.io.parquet_pages import refuse_damaged_pages
from isolux.vocabulary.errors import FileError

__all__ = ["first_line", "read_arrow_file", "read_parquet_file", "schema_of", "unread_column"]

_FEATHER_1 = b"FEA1"


def read_parquet_file(path: Path) -> pl.DataFrame:
    """Read a Parquet file."""

    def read() -> pl.DataFrame:
        refuse_damaged_pages(path)
        lazy = pl.scan_parquet(path, glob=False)
        rows, columns = lazy.select(pl.len()).collect().item(), len(lazy.collect_schema())
        if rows * columns > CELLS:  # a column of one value packs to nothing
            raise FileError(
                "this table is too large to be read whole",
                expected=f"at most {CELLS:,} cells",
                found=f"{rows:,} rows of {columns:,} columns",
                where=str(path),
            )
        return pl.read_parquet(path, use_pyarrow=False, glob=False)

    return _binary(path, "Parquet", read)


def read_arrow_file(path: Path) -> pl.DataFrame:
    """Read an Arrow file or stream, which is Feather's second version as well."""
    data = path.read_bytes()
    if data.startswith(_FEATHER_1):
        raise FileError(
            "this is a Feather file of version 1, which nothing but old libraries reads",
            expected="Feather of version 2, which is Arrow",
            where=str(path),
            hint="read it with pyarrow.feather.read_table and write it with "
            "pyarrow.feather.write_feather, or save it as Parquet",
        )
    # Feather and IPC files begin with this; what a stream writer makes (Hugging Face) does not.
    reader = pl.read_ipc if data.startswith(b"ARROW1") else pl.read_ipc_stream

    def read() -> pl.DataFrame:
        refuse_damaged_batches(data)
        return reader(data)

    return _binary(path, "Arrow", read)


def schema_of(path: Path, form: str) -> dict[str, pl.DataType]:
    """Tell the columns of a file, Parquet or Arrow, and their types; no value is read."""
    with panics_unprinted():
        if form == "parquet":
            refuse_damaged_pages(path, ())
            return dict(pl.read_parquet_schema(path))
        refuse_damaged_batches(path)
        return dict(pl.read_ipc_schema(path))


def _binary(path: Path, name: str, read: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    if path.stat().st_size == 0:
        raise FileError("the file is empty", expected=f"a table as {name}", where=str(path))
    try:
        with panics_unprinted():
            return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise unread_column(error, path) or FileError(
            f"this is not a valid {name} file, or it is damaged",
            expected="a whole file, as its writer left it",
            found=first_line(error),
            where=str(path),
            hint="download it again, or write it again",
        ) from error


def unread_column(error: Exception, path: Path) -> FileError | None:
    """Say which column polars cannot read, where that is what an error comes from."""
    if isinstance(error, pl.exceptions.PolarsError | pl.exceptions.PanicException):
        error = _unread_in_parquet(path) or error
    if not isinstance(error, UnreadTypeError):
        return None
    return FileError(
        "a column has a type that isolux cannot read",
        expected="numbers, text, true or false, dates and times, lists or structs of these",
        found=str(error),
        where=str(path),
        hint=f"{error.hint} and write the file again, or leave the column out",
    )


def _unread_in_parquet(path: Path) -> UnreadTypeError | None:
    try:
        with panics_unprinted():
            refuse_damaged_pages(path, ())
            said = pl.read_parquet_metadata(path).get("ARROW:schema", "")
        refuse_unread(columns_of_message(base64.b64decode(said)))
    except UnreadTypeError as error:
        return error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        return None
    return None


def first_line(error: BaseException) -> str:
    r"""Return an error's first line; of a panic of polars' engine, what it amounts to.

    Examples
    --------
    >>> first_line(ValueError("one\ntwo"))
    'one'
    """
    if isinstance(error, pl.exceptions.PanicException):
        return "polars, which reads it, cannot make sense of it"
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
