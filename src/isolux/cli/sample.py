"""``isolux sample``: draw a test set with as many people of every combination of attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["sample"]


def sample(
    data: Annotated[str, typer.Argument(help="NAME:PATH, such as fairface:labels.csv")],
    *,
    balance: Annotated[list[str], typer.Option(help="attributes: race,gender,age")],
    per_cell: Annotated[int, typer.Option(help="people of each combination of values")],
    out: Annotated[Path, typer.Option(help="the CSV file of ids to write")],
    seed: Annotated[int, typer.Option(help="the same seed draws the same people")] = 0,
    purpose: Annotated[
        str, typer.Option(help="evaluation, or training: a set for evaluation alone refuses that")
    ] = "evaluation",
    withdrawn: Annotated[
        str | None, typer.Option(help="file with the ids of people who withdrew: never drawn")
    ] = None,
    allow_unmatched: Annotated[
        bool,
        typer.Option("--allow-unmatched", help="go on where an id of --withdrawn names no one"),
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help='who may be drawn: "age>=20"')] = None,
    bins: Annotated[
        list[str] | None, typer.Option(help='"age=edges:18,30,45" or "income=quantile:4"')
    ] = None,
    votes: Annotated[
        str, typer.Option(help="any, majority, top, top-or-none, at-least:K: whose value counts")
    ] = "any",
    split_subjects: Annotated[
        bool, typer.Option("--split-subjects", help="draw some of a subject's photos, not all")
    ] = False,
    data_option: Annotated[
        list[str] | None, typer.Option(help="a setting of the dataset's own, NAME=VALUE")
    ] = None,
    id: Annotated[str | None, typer.Option(help="the column that identifies a row")] = None,  # noqa: A002
    separator: Annotated[str | None, typer.Option(help="parts several values in one cell")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the file")] = False,
) -> None:
    """Draw a balanced test set; cells that have too few people are taken whole, and named.

    A subject's photos are drawn all or none, where the dataset names subjects.
    """
    from isolux.cli._people import groupings_over, load_only, show_wide
    from isolux.io.atomic import write_text
    from isolux.io.csv_text import csv_text
    from isolux.verbs.sample import draw_balanced
    from isolux.vocabulary.spec import parse_spec

    _refuse_out(out, data, overwrite=overwrite)
    _refuse_purpose(purpose, data)
    names = [name.strip() for text in balance for name in text.split(",") if name.strip()]
    spec = parse_spec(
        {"data": data, "by": names, "bins": bins or (), "votes": votes, "id": id,
         "data_option": data_option or (), "separator": separator, "withdrawn": withdrawn,
         "allow_unmatched": allow_unmatched}
    )  # fmt: skip
    dataset = load_only(spec, only or [])
    known = set(dataset.attributes["attribute"].unique())
    groupings = groupings_over(spec, {"data": dataset}, names) if known >= set(names) else {}
    drawn = draw_balanced(
        dataset, names, per_cell, seed=seed, groupings=groupings, split_subjects=split_subjects
    )
    short = drawn.cells.filter(drawn.cells["short"] > 0)
    if short.height:
        show_wide(f"Short of {per_cell:,} people", short)
        typer.echo("")
    for note in drawn.notes:
        typer.echo(f"note: {note}")
    few = f", {short.height:,} of them short" if short.height else ""
    typer.echo(f"{drawn.people.height:,} people of {drawn.cells.height:,} cells{few}")
    typer.echo(f"ids: {write_text(out, csv_text(drawn.people))}")


def _refuse_purpose(purpose: str, data: str) -> None:
    from isolux.datasets import refuse_training
    from isolux.vocabulary import registry
    from isolux.vocabulary.errors import UnknownNameError

    if purpose not in ("evaluation", "training"):
        raise UnknownNameError("purpose", purpose, ("evaluation", "training"))
    if purpose == "training":
        refuse_training(registry.dataset_info(data.partition(":")[0]))


def _refuse_out(out: Path, data: str, *, overwrite: bool) -> None:
    """Refuse, before people are loaded, a file that must not be replaced."""
    from isolux.vocabulary.errors import OutputError

    target, read = out.expanduser(), Path(data.partition(":")[2]).expanduser()
    if target.is_dir():
        raise OutputError("this path is a folder", expected="a file's path", where=str(target))
    if target.exists() and read.exists() and target.samefile(read):
        raise OutputError(
            "this is the file that is to be read", where=str(target), hint="choose another path"
        )
    if target.exists() and not overwrite:
        raise OutputError(
            "this file exists already",
            expected="a path where nothing is",
            where=str(target),
            hint="choose another path, or replace it with --overwrite",
        )
