"""``isolux report``: render a run's report again from its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["report"]


def report(
    run: Annotated[str, typer.Argument(help="a run directory, as `isolux audit --out` wrote it")],
    *,
    out: Annotated[
        str | None, typer.Option(help="where to write the page; none: report.html in the run")
    ] = None,
) -> None:
    """Render the report of a finished run again, from its tables alone."""
    from isolux.io import run_directory
    from isolux.report.html import write_report

    loaded = run_directory.load(run)
    path = Path(out) if out is not None else Path(run) / "report.html"
    write_report(loaded, path)
    typer.echo(f"report: {path}")
