"""What users fill or name: tables' columns, cells as text, the first wrong row; their functions."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.cells import as_text
from isolux.io.frames import read_table
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError, place


def refuse_missing(frame: pl.DataFrame, names: Iterable[str], where: str | None = None) -> None:
    """Refuse a table without a column that it needs."""
    for name in names:
        if name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where=where)


def to_text(frame: pl.DataFrame, names: Iterable[str] | None = None) -> pl.DataFrame:
    """Write cells as text; a column that is named and not there is empty."""
    return frame.select(
        as_text(frame[name]).alias(name)
        if name in frame.columns
        else pl.lit(None, dtype=pl.String).alias(name)
        for name in (frame.columns if names is None else names)
    )


def read_text(path: str | Path, *needed: str) -> pl.DataFrame:
    """Read a table whose cells are text, with the columns that it needs."""
    frame = read_table(Path(path).expanduser())
    refuse_missing(frame, needed, str(path))
    return to_text(frame)


def refuse_rows(
    wrong: pl.Series,
    problem: str,
    where: str,
    *,
    expected: str,
    cells: pl.Series | None = None,
    column: str | None = None,
    hint: str | None = None,
) -> None:
    """Refuse a table by the first row that is wrong, with what stands there."""
    rows = wrong.arg_true()
    if len(rows):
        row = int(rows[0])
        found = None if cells is None else repr(cells[row])
        at = place(where, row + 1, column)
        raise TableError(problem, expected=expected, found=found, where=at, hint=hint)


def import_function(text: str, problem: str, *, expected: str, where: str) -> Any:
    """Import a function of the user's: ``python:MODULE:FUNCTION``."""
    scheme, _, rest = text.partition(":")
    module, _, name = rest.partition(":")
    if scheme != "python" or not module or not name or ":" in name:
        raise SpecError(problem, expected=expected, found=repr(text), where=where)
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SpecError(
            "there is no such function",
            expected="an importable module and a function in it",
            found=str(error),
            where=where,
        ) from error
