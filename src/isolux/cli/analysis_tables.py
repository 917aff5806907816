"""The tables of analyses that were asked for, on the screen or in a script's document."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines
from isolux.core.containers import Run

_MAX_ROWS = 12


def print_analysis_tables(run: Run, analysis_names: Sequence[str]) -> None:
    """Print what analyses wrote: short tables whole, of long ones the first rows and a count."""
    from isolux.cli.table_output import print_table_in_column_blocks

    tables = run.record.get("explained") or {}
    for name in analysis_names:
        has_finding = not run.findings.filter(analysis=name).is_empty()
        if not command_output.is_json_active() and not has_finding:
            print_clean_lines(
                f"{name}: no finding; tables:" if tables.get(name) else f"{name}: no finding."
            )
        for caption, table in (tables.get(name) or {}).items():
            frame = pl.DataFrame(
                table["rows"], schema=table["columns"], orient="row", infer_schema_length=None
            )
            if command_output.is_json_active():
                print_table_in_column_blocks(caption, frame)
                continue
            constant_columns = [
                c for c in ("model", "status") if c in frame.columns and frame[c].n_unique() == 1
            ]
            print_table_in_column_blocks(caption, frame.drop(constant_columns).head(_MAX_ROWS))
            if frame.height > _MAX_ROWS:
                print_clean_lines(f"… and {frame.height - _MAX_ROWS:,} more rows in the report.")
