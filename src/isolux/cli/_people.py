"""What ``describe`` and ``sample`` share: people to count, how they group, tables on a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from isolux.containers import Dataset
    from isolux.spec import AuditSpec

__all__ = ["groupings_over", "load_only", "show_wide"]

_ROWS = 60


def load_only(spec: AuditSpec, only: list[str]) -> Dataset:
    """Load people and keep those of ``--only``, where ages that are ranges compare too."""
    from isolux._pipeline_inputs import load_people
    from isolux._range_conditions import spell_out_ranges
    from isolux.derive import add
    from isolux.people_filter import keep_only, parse_conditions

    dataset = load_people(spec)
    dataset = add(dataset, [condition.attribute for condition in parse_conditions(only)])
    return keep_only(dataset, spell_out_ranges(dataset, only), whole_images=False)


def groupings_over(spec: AuditSpec, datasets: dict[str, Dataset], by: list[str]) -> dict[str, Any]:
    """Read votes and bins over all datasets: an attribute that one of them lacks is no mistake."""
    import polars as pl

    from isolux.groups.settings import groupings

    tables = [dataset.instance_attributes() for dataset in datasets.values()]
    attributes = pl.concat(tables, how="diagonal_relaxed")
    named = by or attributes["attribute"].unique(maintain_order=True).to_list()
    return groupings(spec.model_copy(update={"by": tuple(named)}), attributes)


def show_wide(caption: str, table: pl.DataFrame) -> None:
    """Print a table in as many blocks of columns as the screen needs, each with the row's name."""
    from rich.console import Console

    from isolux.cli._screen import show_table
    from isolux.report.wording import cell_text, decimals

    typer.echo(f"\n{caption}")
    head = table.head(_ROWS)
    cells = []
    for name in head.columns:
        values = head[name].to_list()
        places = 1 if "%" in name else decimals(values)
        cells.append([name, *(cell_text(value, places) for value in values)])
    keys = min(len(table.columns), 2 if table.columns[0] == "dataset" else 1)
    for block in _blocks(cells, keys, Console().width):
        columns, *rows = (list(row) for row in zip(*block, strict=True))
        show_table("", columns, rows)
    if table.height > _ROWS:
        typer.echo(f"… and {table.height - _ROWS:,} more rows; --out writes all of them.")


def _blocks(cells: list[list[str]], keys: int, width: int) -> list[list[list[str]]]:
    """Part columns into blocks that fit the screen; the first ``keys`` stand in each of them."""
    wide = [max(len(cell) for cell in column) + 2 for column in cells]
    blocks, block, used = [], cells[:keys], sum(wide[:keys])
    for column, needs in zip(cells[keys:], wide[keys:], strict=True):
        if used + needs > width and len(block) > keys:
            blocks.append(block)
            block, used = cells[:keys], sum(wide[:keys])
        block, used = [*block, column], used + needs
    return [*blocks, block]
