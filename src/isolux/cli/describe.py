"""``isolux describe``: what one or several datasets hold, before any model is judged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["describe"]


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

    People are the dataset's instances; of a set of objects --only chooses who is a person
    (--only category=pedestrian). Several datasets stand side by side, with sampling intervals.
    """
    from isolux._description_balance import read_target
    from isolux.cli._people import groupings_over, load_only, show_wide
    from isolux.description import describe as described
    from isolux.report.description import write_description
    from isolux.spec import parse_spec

    held = None if target is None else read_target(target)
    said = {
        "by": by or (), "derive": derive or (), "bins": bins or (), "votes": votes,
        "data_option": data_option or (), "id": id, "cluster": cluster, "separator": separator,
    }  # fmt: skip
    specs = {name: parse_spec({"data": text, **said}) for name, text in _names(data).items()}
    datasets = {name: load_only(spec, only or []) for name, spec in specs.items()}
    first = next(iter(specs.values()))
    by_all = [*(by or []), *((derive or []) if by else [])]
    found = described(datasets, by_all, groupings_over(first, datasets, by_all), target=held)
    for caption, table in found.tables.items():
        show_wide(caption, table)
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
