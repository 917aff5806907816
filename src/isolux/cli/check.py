"""``isolux check``: what is wrong with a dataset, before anything is measured with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import polars as pl

    from isolux.verbs.check import Checked

__all__ = ["check"]

_EXAMPLES = 3
_PROBLEMS = 1


def check(
    data: Annotated[str, typer.Argument(help="NAME:PATH, such as coco:instances.json")],
    *,
    only: Annotated[list[str] | None, typer.Option(help="a check to run; none: all")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="a check to leave out")] = None,
    images: Annotated[
        Path | None, typer.Option(help="the folder below which pictures lie; none: looked for")
    ] = None,
    no_images: Annotated[
        bool, typer.Option("--no-images", help="check the annotation alone, open no picture")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="warnings set the exit code too")
    ] = False,
    check_option: Annotated[
        list[str] | None, typer.Option(help="a check's setting: boxes.slack_px=2")
    ] = None,
    data_option: Annotated[
        list[str] | None, typer.Option(help="a setting of the dataset's own, NAME=VALUE")
    ] = None,
    id: Annotated[str | None, typer.Option(help="the column that identifies a row")] = None,  # noqa: A002
    separator: Annotated[str | None, typer.Option(help="parts several values in one cell")] = None,
    out: Annotated[Path | None, typer.Option(help="a file for all problems: .csv or .json")] = None,
) -> None:
    """Look for broken files, boxes, masks, ids, duplicate photos, private metadata.

    Exit code 0: no error. 1: at least one problem of severity error; with --strict, any problem. 2:
    bad settings, or nothing at the path.
    """
    from isolux.people.loading import load_people
    from isolux.verbs.check import Checked, check_dataset, check_loading
    from isolux.vocabulary.spec import parse_spec

    _refuse_out(out)
    spec = parse_spec(
        {"data": data, "data_option": data_option or (), "id": id,
         "separator": separator}
    )  # fmt: skip
    name, _, path = data.partition(":")
    loaded = check_loading(lambda: load_people(spec.people, whole_images=True), path, name)
    found = (
        loaded
        if isinstance(loaded, Checked)
        else check_dataset(
            loaded, only=only or (), skip=skip or (), pictures=not no_images, root=images,
            options=check_option or (),
        )
    )  # fmt: skip
    _show(found, strict=strict)
    if out is not None:
        from isolux.io.atomic import write_text

        typer.echo(f"problems: {write_text(out, _written(found.problems, out))}")
    if found.failed(strict=strict):
        raise typer.Exit(_PROBLEMS)


def _show(found: Checked, *, strict: bool) -> None:
    """Print each kind of problem with its count and first cases, notes, and what it comes to."""
    import polars as pl

    from isolux.cli.screen import show_table

    groups = found.problems.group_by("severity", "check", "problem", maintain_order=True).agg(
        n=pl.len(),
        units=pl.concat_str("unit_kind", "unit_id", separator=" ").head(_EXAMPLES),
        found=pl.col("found").drop_nulls().first(),
        hint=pl.col("hint").first(),
    )
    if groups.height:
        rows = [
            [severity, check, problem, f"{n:,}",
             "\n".join([*(unit[:80] for unit in units), *(["…"] if n > _EXAMPLES else [])]),
             (first or "")[:100]]
            for severity, check, problem, n, units, first in groups.select(
                "severity", "check", "problem", "n", "units", "found"
            ).iter_rows()
        ]  # fmt: skip
        show_table("", ["", "check", "problem", "n", "such as", "found (the first)"], rows)
        hints = groups.select("problem", "hint").drop_nulls().unique("hint", maintain_order=True)
        if hints.height:
            typer.echo("\nwhat to do")
        for problem, hint in hints.iter_rows():
            typer.echo(f"  {problem}: {hint}")
    typer.echo("")
    for note in found.notes:
        typer.echo(f"note: {note}")
    errors = found.problems.filter(severity="error").height
    warnings = found.problems.height - errors
    typer.echo(
        f"{_count(errors, 'error')}, {_count(warnings, 'warning')}"
        f" from {len(found.checks)} check(s): {', '.join(found.checks)}"
    )
    code = _PROBLEMS if found.failed(strict=strict) else 0
    counted = "errors and warnings (--strict)" if strict else "errors"
    typer.echo(f"exit code {code}, set by {counted}")


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _written(problems: pl.DataFrame, out: Path) -> str:
    if out.suffix.lower() == ".csv":
        return problems.write_csv()
    import json

    return json.dumps(problems.to_dicts(), ensure_ascii=False, indent=1) + "\n"


def _refuse_out(out: Path | None) -> None:
    """Refuse, before anything is loaded, a file of another kind."""
    from isolux.vocabulary.errors import OutputError

    if out is not None and out.suffix.lower() not in {".csv", ".json"}:
        raise OutputError(
            "problems are written as CSV or JSON",
            expected="a path that ends in .csv or .json",
            found=repr(str(out)),
        )
    if out is not None and out.expanduser().is_dir():
        raise OutputError("this path is a folder", expected="a file's path", where=str(out))
