"""The folder of several models side by side: a page, and each table as Parquet, CSV and LaTeX."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.atomic import staged_directory, write_parquet, write_text
from isolux.io.csv_text import csv_text
from isolux.report.side_by_side import latex_table, wide, write_page

_MARK = "side_by_side.json"
_CAPTION = "Value and interval of each group under each model; fractions in percent."


def write_side_by_side(
    tables: Mapping[str, pl.DataFrame],
    record: Mapping[str, Any],
    out: str | Path,
    *,
    overwrite: bool,
) -> Path:
    """Write the folder, whole or not at all, and return the page's path."""
    kept = {"overwrite": overwrite, "marks": (_MARK,), "what": "comparison of models"}
    with staged_directory(out, **kept) as stage:  # type: ignore[arg-type]
        for name, table in tables.items():
            write_parquet(stage / f"{name}.parquet", table)
            nested = [c for c, kind in table.schema.items() if kind == pl.List(pl.String)]
            write_text(stage / f"{name}.csv", csv_text(table.drop(nested)))
        models = list(record["models"])
        shown = wide(tables["values"], models)
        write_text(stage / "values.tex", latex_table(shown, _CAPTION))
        if tables["ranks"].height:
            ranks = tables["ranks"].with_columns(pl.selectors.float().round(4))
            write_text(stage / "ranks.tex", latex_table(ranks, "Classes by disparity."))
        if "models" in tables:
            trained = tables["models"].with_columns(pl.selectors.float().round(4))
            write_text(stage / "models.tex", latex_table(trained, "Models and their training."))
        write_text(stage / _MARK, json.dumps(dict(record), indent=1, default=str) + "\n")
        write_page(tables, record, stage / "report.html")
    return Path(out) / "report.html"
