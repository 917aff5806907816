"""Cells of the captioning-bias annotations: ids, lists that Python printed, answers with votes."""

from __future__ import annotations

import polars as pl

from isolux.datasets._refusals import require_columns
from isolux.io.cells import as_text, row_of
from isolux.vocabulary.errors import TableError, place
from isolux.vocabulary.tables import ATTRIBUTES

_UNKNOWN = ("unsure", "nan", "none", "null", "unknown")
_ITEM = r"[^\[\](){},'\"]+"


def keyed(table: pl.DataFrame, column: str, where: str) -> pl.DataFrame:
    """Add ``key``, the id as COCO writes it: a whole number without leading zeros."""
    require_columns(table, (column,), where)
    digits = as_text(table[column]).str.extract(r"^(?:.*_)?([0-9]{1,18})(?:\.0|\.jpg)?$", 1)
    keys = digits.cast(pl.Int64).cast(pl.String).alias("key")
    bad = keys.is_null() | ~keys.is_first_distinct()
    if bad.any():
        row = row_of(bad)
        raise TableError(
            "an id is not a whole number" if keys[row] is None else "an id occurs twice",
            expected="COCO's number, such as 42, once",
            found=repr(table[column][row])[:60],
            where=place(where, row + 1, column),
        )
    return table.drop("key", strict=False).hstack([keys])


def items_of(cells: pl.Series) -> pl.Series:
    """List the items of cells such as ``['Light', 'Dark']``; a plain cell is one item."""
    parts = as_text(cells).str.extract_all(_ITEM)
    return parts.list.eval(pl.element().str.strip_chars()).list.eval(
        pl.element().filter(pl.element() != "")
    )


def label_rows(
    ids: pl.Series, cells: pl.Series, name: str, kind: str, number: pl.Series | None = None
) -> pl.DataFrame:
    """Make a row of each different value; several in a cell count as votes."""
    items = items_of(cells)
    table = pl.DataFrame([ids.alias("unit_id"), items.alias("value")])
    if number is not None:
        table = table.with_columns(number=number)
    lists = (items.list.len() > 1).fill_null(value=False).any()
    known = pl.col("value").list.eval(
        pl.when(~pl.element().str.to_lowercase().is_in(_UNKNOWN)).then(pl.element())
    )
    nothing = pl.lit([None], dtype=pl.List(pl.String))
    filled = pl.when(pl.col("value").list.len().fill_null(0) > 0).then(known).otherwise(nothing)
    long = table.with_columns(value=filled).explode("value")
    counted = long.group_by(long.columns, maintain_order=True).agg(votes=pl.len().cast(pl.Float64))
    if not lists:
        counted = counted.with_columns(votes=pl.lit(None, dtype=pl.Float64))
    return ATTRIBUTES.conform(counted.with_columns(unit_kind=pl.lit(kind), attribute=pl.lit(name)))
