"""Which column identifies a row, and which part of an id two tables have in common.

Datasets and predictions name the same picture ``fairface/val/1.jpg``, ``val/1.jpg`` or ``1``.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from isolux.core.errors import (
    SpecError,
    TableError,
    format_columns,
    format_location,
)
from isolux.io.cell_parsing import as_text, is_readable_dtype
from isolux.io.refusals import refuse_cells, require_columns

IdFrom = Literal["column", "basename", "stem"]
ID_FROM: tuple[IdFrom, ...] = ("column", "basename", "stem")

ID_COLUMNS = ("id", "instance_id", "image_id", "file", "filename", "path")
"""The columns that are looked for, in this order, where none is named."""


def choose_id_column(
    frame: pl.DataFrame, requested_column: str | None, source: str, *, description: str
) -> str:
    """Choose the column of ids: the requested one, else the first with a known name."""
    column = requested_column or next((name for name in ID_COLUMNS if name in frame.columns), None)
    if column is None:
        raise SpecError(
            f"no column says whom {description} is about",
            expected="one of " + ", ".join(ID_COLUMNS),
            found=format_columns(frame.columns),
            where=source,
            hint="name it: --prediction-id COLUMN of `isolux audit`, or id=COLUMN where a command"
            " has --prediction-option or --embedding-option",
        )
    return column


def read_ids(frame: pl.DataFrame, column: str, source: str) -> pl.Series:
    """Return a column's cells as ids: text, none of them empty."""
    require_columns(frame, (column,), source)
    ids = read_names(frame, column, source, noun="id")
    problem, hint = "{n} row(s) have no id", "fill it in, or leave the row out of the file"
    refuse_cells(
        ids.is_null(), ids, problem, "an id in every row", source, column=column, hint=hint
    )
    return ids.alias("instance_id")


def read_names(frame: pl.DataFrame, column: str, source: str, *, noun: str) -> pl.Series:
    """Return a column's cells as names, one in each row: ids, or names of models."""
    dtype = frame.schema[column]
    if dtype.is_nested() or not is_readable_dtype(dtype):
        raise TableError(
            f"the column of {noun}s holds " + ("lists" if dtype.is_nested() else "no text"),
            expected=f"one {noun} in each row",
            found=str(dtype),
            where=format_location(source, column=column),
        )
    return as_text(frame[column])


def reduce_ids(ids: pl.Series, id_from: str) -> pl.Series:
    """Reduce each id to the part that is joined: all of it, the file name, or its stem."""
    if id_from not in ID_FROM:
        raise SpecError(
            "ids cannot be taken that way", expected=f"one of {', '.join(ID_FROM)}", found=id_from
        )
    if id_from == "column":
        return ids
    base = ids.str.replace(r"(?s)^.*[/\\]", "")
    return base if id_from == "basename" else base.str.replace(r"(?s)^(.+)\.[^.]*$", "${1}")
