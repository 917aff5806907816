"""Tables that users fill in (columns, cells as text, the first faulty row), and their functions."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.cell_parsing import as_text
from isolux.io.frames import read_table
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError, format_location


def refuse_missing(frame: pl.DataFrame, names: Iterable[str], source: str | None = None) -> None:
    """Refuse a table without a required column."""
    for name in names:
        if name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where=source)


def to_text(frame: pl.DataFrame, names: Iterable[str] | None = None) -> pl.DataFrame:
    """Convert columns to text; a requested column that is missing is empty."""
    return frame.select(
        as_text(frame[name]).alias(name)
        if name in frame.columns
        else pl.lit(None, dtype=pl.String).alias(name)
        for name in (frame.columns if names is None else names)
    )


def read_text(path: str | Path, *required_columns: str) -> pl.DataFrame:
    """Read a table as text, and refuse it without the required columns."""
    frame = read_table(Path(path).expanduser())
    refuse_missing(frame, required_columns, str(path))
    return to_text(frame)


def refuse_rows(
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


def import_user_function(text: str, problem: str, *, expected: str, source: str) -> Any:
    """Import a user's function: ``python:MODULE:FUNCTION``."""
    scheme, _, function_path = text.partition(":")
    module, _, name = function_path.partition(":")
    if scheme != "python" or not module or not name or ":" in name:
        raise SpecError(problem, expected=expected, found=repr(text), where=source)
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SpecError(
            "there is no such function",
            expected="an importable module and a function in it",
            found=str(error),
            where=source,
        ) from error
