"""The program and its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from isolux.cli.audit import audit
from isolux.cli.check import check
from isolux.cli.compare import compare
from isolux.cli.convert import convert
from isolux.cli.demo import demo
from isolux.cli.describe import describe
from isolux.cli.explain import explain
from isolux.cli.export import export
from isolux.cli.listing import listing
from isolux.cli.report import report
from isolux.cli.sample import sample
from isolux.cli.synthesize import synthesize

__all__ = ["app"]

app = typer.Typer(
    help="Audit vision models: for whom a model is worse, by how much, and how sure that is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"isolux {version('isolux')}")
        raise typer.Exit


@app.callback()
def _main(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Audit vision models: for whom a model is worse, by how much, and how sure that is."""
    del version


app.command("audit")(audit)
app.command("compare")(compare)
app.command("convert")(convert)
app.command("explain")(explain)
app.command("report")(report)
app.command("export")(export)
app.command("list")(listing)
app.command("demo")(demo)
app.command("describe")(describe)
app.command("sample")(sample)
app.command("check")(check)
app.command("synthesize")(synthesize)
