"""Tables that users fill in (columns, cells as text, the first faulty row), and their functions."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.errors import SpecError, TableError, UnknownNameError, format_location
from isolux.io.cell_parsing import as_text
from isolux.io.frames import read_table


def refuse_missing_columns(
    frame: pl.DataFrame, required_columns: Iterable[str], source: str | None = None
) -> None:
    """Refuse a table without a required column."""
    for name in required_columns:
        if name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where=source)


def convert_columns_to_text(
    frame: pl.DataFrame, columns: Iterable[str] | None = None
) -> pl.DataFrame:
    """Convert columns to text; a requested column that is missing is empty."""
    return frame.select(
        as_text(frame[name]).alias(name)
        if name in frame.columns
        else pl.lit(None, dtype=pl.String).alias(name)
        for name in (frame.columns if columns is None else columns)
    )


def read_table_as_text(path: str | Path, *required_columns: str) -> pl.DataFrame:
    """Read a table as text, and refuse it without the required columns."""
    frame = read_table(Path(path).expanduser())
    refuse_missing_columns(frame, required_columns, str(path))
    return convert_columns_to_text(frame)


def refuse_faulty_rows(
    is_faulty: pl.Series,
    problem: str,
    source: str,
    *,
    expected: str,
    cells: pl.Series | None = None,
    column: str | None = None,
    hint: str | None = None,
) -> None:
    """Refuse a table with faulty rows; the error names the first one and its cell."""
    rows = is_faulty.arg_true()
    if len(rows):
        row = int(rows[0])
        cell_text = None if cells is None else repr(cells[row])
        cell_source = format_location(source, row + 1, column)
        raise TableError(problem, expected=expected, found=cell_text, where=cell_source, hint=hint)


def import_user_function(function_address: str, problem: str, *, expected: str, source: str) -> Any:
    """Import a user's function: ``python:MODULE:FUNCTION``."""
    scheme, _, function_path = function_address.partition(":")
    module, _, name = function_path.partition(":")
    if scheme != "python" or not module or not name or ":" in name:
        raise SpecError(problem, expected=expected, found=repr(function_address), where=source)
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SpecError(
            "there is no such function",
            expected="an importable module and a function in it",
            found=str(error),
            where=source,
        ) from error
