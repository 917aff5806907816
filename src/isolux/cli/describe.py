"""``isolux describe``: what one or several datasets hold, before any model is judged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from isolux.containers import Dataset
    from isolux.spec import AuditSpec

__all__ = ["describe"]

_ROWS = 60


def describe(
    data: Annotated[
        list[str], typer.Argument(help="NAME:PATH, such as table:people.csv; several: side by side")
    ],
    *,
    by: Annotated[
        list[str] | None,
        typer.Option(help='attribute or intersection, "race*gender"; none: every attribute'),
    ] = None,
    derive: Annotated[
        list[str] | None, typer.Option(help="also count by a computed attribute (box_size)")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help='whom to count: "age>=20"')] = None,
    bins: Annotated[
        list[str] | None, typer.Option(help='"age=edges:18,30,45" or "income=quantile:4"')
    ] = None,
    votes: Annotated[
        str, typer.Option(help="any, any+unknown, majority, top, top-or-none, at-least:K")
    ] = "any",
    target: Annotated[
        str | None,
        typer.Option(help="table of attribute, value, share to hold the groups against"),
    ] = None,
    data_option: Annotated[
        list[str] | None, typer.Option(help="a setting of the dataset's own, NAME=VALUE")
    ] = None,
    id: Annotated[str | None, typer.Option(help="the column that identifies a row")] = None,  # noqa: A002
    cluster: Annotated[
        str | None, typer.Option(help="what was sampled independently (subject); none: rows")
    ] = None,
    separator: Annotated[str | None, typer.Option(help="parts several values in one cell")] = None,
    out: Annotated[Path | None, typer.Option(help="an HTML page to write, with figures")] = None,
) -> None:
    """Count people, images and subjects by attribute, intersection, size and crowding.

    With several datasets their compositions stand side by side, with sampling intervals.
    """
    from isolux._description_balance import read_target
    from isolux.description import describe as described
    from isolux.report.description import write_description
    from isolux.spec import parse_spec

    held = None if target is None else read_target(target)
    said = {
        "by": by or (), "derive": derive or (), "bins": bins or (), "votes": votes,
        "data_option": data_option or (), "id": id, "cluster": cluster, "separator": separator,
    }  # fmt: skip
    specs = {name: parse_spec({"data": text, **said}) for name, text in _names(data).items()}
    datasets = {name: _load(spec, only or []) for name, spec in specs.items()}
    first = next(iter(specs.values()))
    by_all = [*(by or []), *((derive or []) if by else [])]
    found = described(datasets, by_all, _groupings(first, datasets, by_all), target=held)
    for caption, table in found.tables.items():
        _show(caption, table)
    typer.echo("")
    for note in found.notes:
        typer.echo(f"note: {note}")
    if out is not None:
        infos = {name: dataset.info for name, dataset in datasets.items()}
        typer.echo(f"page: {write_description(out, found.tables, infos, found.notes)}")


def _names(data: list[str]) -> dict[str, str]:
    """Name each dataset by its loader where that tells them apart, else by its file."""
    loaders = [text.partition(":")[0] for text in data]
    files = [Path(text.partition(":")[2]).name for text in data]
    both = [f"{loader}:{file}" for loader, file in zip(loaders, files, strict=True)]
    for names in (loaders, files, both, data):
        if len(set(names)) == len(data):
            return dict(zip(names, data, strict=True))
    from isolux.errors import SpecError

    twice = next(text for text, n in Counter(data).items() if n > 1)
    raise SpecError("a dataset is named twice", expected="each once", found=repr(twice))


def _load(spec: AuditSpec, only: list[str]) -> Dataset:
    from isolux._pipeline_inputs import load_people
    from isolux._range_conditions import spell_out_ranges
    from isolux.derive import add
    from isolux.people_filter import keep_only, parse_conditions

    dataset = load_people(spec)
    dataset = add(dataset, [condition.attribute for condition in parse_conditions(only)])
    return keep_only(dataset, spell_out_ranges(dataset, only), whole_images=False)


def _groupings(spec: AuditSpec, datasets: dict[str, Dataset], by: list[str]) -> dict[str, Any]:
    """Read votes and bins over all datasets: an attribute that one of them lacks is no mistake."""
    import polars as pl

    from isolux.groups.settings import groupings

    tables = [dataset.instance_attributes() for dataset in datasets.values()]
    attributes = pl.concat(tables, how="diagonal_relaxed")
    named = by or attributes["attribute"].unique(maintain_order=True).to_list()
    return groupings(spec.model_copy(update={"by": tuple(named)}), attributes)


def _show(caption: str, table: pl.DataFrame) -> None:
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
        typer.echo(f"… and {table.height - _ROWS:,} more rows in the page that --out writes.")


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
