"""``isolux compare --datasets``: models on several datasets, as FairFace's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines


def print_dataset_comparison(runs: Sequence[str], *, out: str | None, **settings: Any) -> None:
    """Print the tables of models on several datasets, and write them where a folder is named."""
    from isolux.api.across import across as lay_out
    from isolux.cli.table_output import print_unbroken_table

    cross_dataset = lay_out(_parse_named_runs(runs), out=out, **settings)
    for text in cross_dataset.warnings:
        command_output.report_warning(text)
    command_output.add_table_to_json("values", cross_dataset.values, run_dir=cross_dataset.folder)
    for caption, table in cross_dataset.tables.items():
        print_clean_lines()
        rows = [
            ["–" if cell is None else _format_cell(cell) for cell in row]
            for row in table.iter_rows()
        ]
        print_unbroken_table(caption, table.columns, rows)
    if cross_dataset.folder is not None:
        print_clean_lines()
        command_output.report_file("tables", cross_dataset.folder)


def _format_cell(cell: object) -> str:
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def _parse_named_runs(runs: Sequence[str]) -> dict[str, list[str]]:
    from isolux.core.errors import SpecError

    paths_by_dataset: dict[str, list[str]] = {}
    for text in runs:
        name, equals, paths = text.partition("=")
        if not equals or not name.strip():
            raise SpecError(
                "it is not said which dataset a run is of", expected="DATASET=RUN", found=repr(text)
            )
        paths_by_dataset.setdefault(name.strip(), []).extend(
            path.strip() for path in paths.split(",") if path.strip()
        )
    return paths_by_dataset
