r"""A table as CSV that no spreadsheet takes for formulas."""

from __future__ import annotations

import polars as pl

_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"


def to_safe_csv(table: pl.DataFrame) -> str:
    """Write a table as CSV, with an apostrophe before what a spreadsheet would run."""

    def escape_formulas(cells: pl.Expr) -> pl.Expr:
        is_formula = cells.str.contains(_FORMULA) & ~cells.str.contains(_NUMBER)
        return pl.when(is_formula).then(pl.lit("'") + cells).otherwise(cells)

    text_columns = [
        name for name, dtype in table.schema.items() if dtype in (pl.String, pl.Categorical)
    ]
    escaped = table.with_columns(
        escape_formulas(pl.col(name).cast(pl.String)).alias(name) for name in text_columns
    )
    header_names = pl.Series(table.columns, dtype=pl.String).to_frame("name")
    heads = header_names.select(name=escape_formulas(pl.col("name")))["name"].to_list()
    return escaped.rename(dict(zip(table.columns, heads, strict=True))).write_csv()
