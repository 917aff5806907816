r"""A table as CSV that no spreadsheet takes for formulas."""

from __future__ import annotations

import polars as pl

_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"


def csv_text(table: pl.DataFrame) -> str:
    """Write a table as CSV, with an apostrophe before what a spreadsheet would run."""

    def safe(cells: pl.Expr) -> pl.Expr:
        runs = cells.str.contains(_FORMULA) & ~cells.str.contains(_NUMBER)
        return pl.when(runs).then(pl.lit("'") + cells).otherwise(cells)

    text = [name for name, kind in table.schema.items() if kind in (pl.String, pl.Categorical)]
    escaped = table.with_columns(safe(pl.col(name).cast(pl.String)).alias(name) for name in text)
    named = pl.Series(table.columns, dtype=pl.String).to_frame("name")
    heads = named.select(safe(pl.col("name")).alias("name"))["name"].to_list()
    return escaped.rename(dict(zip(table.columns, heads, strict=True))).write_csv()
