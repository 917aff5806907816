"""A folder of tables as CSV, beside a JSON file that says how they were made.

What ``isolux curate consensus``, ``shapes``, ``quality`` and ``consistency`` write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.atomic import staged_directory, write_text
from isolux.io.csv_text import csv_text


def write_tables(
    out: str | Path,
    tables: Mapping[str, pl.DataFrame],
    told: Mapping[str, Any],
    *,
    mark: str,
    what: str,
    texts: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write tables and what is told of them into a folder, whole or not at all."""
    with staged_directory(out, overwrite=overwrite, marks=(mark,), what=what) as stage:
        for name, table in tables.items():
            write_text(stage / f"{name}.csv", csv_text(table))
        for name, text in (texts or {}).items():
            write_text(stage / name, text)
        write_text(stage / mark, json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    return Path(out)
