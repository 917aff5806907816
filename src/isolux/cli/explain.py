"""``isolux explain``: analyses of a finished run, into its findings and report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["explain"]


def explain(
    run: Annotated[str, typer.Argument(help="a run directory, as `isolux audit --out` wrote it")],
    *,
    analysis: Annotated[
        list[str] | None,
        typer.Option(help="what to run, one of `isolux list analyses`; none: all that fit"),
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            help="what an attribute is to the gap, for confounders, as light=mediator: before, "
            "mediator, after or unknown"
        ),
    ] = None,
    analysis_option: Annotated[
        list[str] | None,
        typer.Option(help="a setting of an analysis, ANALYSIS.NAME=VALUE"),
    ] = None,
    out: Annotated[
        str | None, typer.Option(help="a new run directory; none: the run itself is replaced")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="replace --out if it exists")] = False,
) -> None:
    """Say why groups differ: confounders, error models, patterns, slices, power.

    The run keeps its tables; findings and report are written anew.
    """
    from isolux.cli.screen import show_audit
    from isolux.io import run_directory
    from isolux.io.atomic import refuse_existing
    from isolux.report.html import write_report
    from isolux.verbs.explain import explain_run, explain_with_all, role_options

    if out is not None:
        refuse_existing(out, overwrite=overwrite)
    loaded = run_directory.load(run)
    refused: dict[str, str] = {}
    options = [*(analysis_option or []), *role_options(role or [], analysis)]
    if analysis:
        explained = explain_run(loaded, analysis, options)
    else:
        explained, refused = explain_with_all(loaded, options)

    def fill(folder: Path) -> None:
        run_directory.carry_over(run, folder)
        write_report(explained, folder / "report.html")

    where = run_directory.save(
        explained, out or run, overwrite=overwrite or out is None, extra=fill
    )
    show_audit(explained, Path(where) / "report.html")
    for name, why in refused.items():
        typer.echo(f"{name} did not run: {why}")
