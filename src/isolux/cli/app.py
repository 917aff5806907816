"""The program and its commands; other packages add theirs as entry points ``isolux.commands``."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

import typer

from isolux.cli.audit import audit
from isolux.cli.check import check
from isolux.cli.compare import compare
from isolux.cli.convert import convert
from isolux.cli.describe import describe
from isolux.cli.explain import explain
from isolux.cli.export import export
from isolux.cli.listing import listing
from isolux.cli.report import report
from isolux.cli.sample import sample

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


_OF_WORLDS = ("demo", "synthesize")


def _add_commands_of_others() -> None:
    """Add what other packages bring; a command of isolux-worlds that is not installed says so."""
    found = {point.name: point for point in entry_points(group="isolux.commands")}
    for name, point in sorted(found.items()):
        app.command(name)(point.load())
    for name in _OF_WORLDS:
        if name not in found:
            app.command(name, hidden=True, context_settings=_ANYTHING)(_not_installed)


_ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}


def _not_installed(context: typer.Context) -> None:
    from isolux.vocabulary.errors import SpecError

    raise SpecError(
        f"`isolux {context.info_name}` comes with the package isolux-worlds",
        expected="isolux-worlds installed",
        found="not installed",
        hint="`pip install ./worlds` in the repository",
    )


app.command("audit")(audit)
app.command("compare")(compare)
app.command("convert")(convert)
app.command("explain")(explain)
app.command("report")(report)
app.command("export")(export)
app.command("list")(listing)
app.command("describe")(describe)
app.command("sample")(sample)
app.command("check")(check)
_add_commands_of_others()
