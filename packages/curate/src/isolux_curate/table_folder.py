"""A folder of CSV tables and a JSON record of how they were made.

The output of ``isolux curate consensus``, ``shapes``, ``quality`` and ``consistency``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.atomic import staged_directory, write_text
from isolux.io.csv_text import to_safe_csv


def write_csv_tables_and_record(
    out_dir: str | Path,
    tables: Mapping[str, pl.DataFrame],
    record: Mapping[str, Any],
    *,
    record_file: str,
    folder_kind: str,
    text_by_file: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write tables and their record into a folder, completely or not at all."""
    with staged_directory(
        out_dir, overwrite=overwrite, marks=(record_file,), folder_kind=folder_kind
    ) as staging_dir:
        for name, table in tables.items():
            write_text(staging_dir / f"{name}.csv", to_safe_csv(table))
        for name, text in (text_by_file or {}).items():
            write_text(staging_dir / name, text)
        write_text(
            staging_dir / record_file, json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        )
    return Path(out_dir)
