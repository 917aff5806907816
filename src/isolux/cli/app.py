"""The program and its commands; other packages add theirs as entry points ``isolux.commands``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Annotated

import typer

from isolux.cli._help import Command
from isolux.cli.audit import audit_command
from isolux.cli.check import check
from isolux.cli.compare import compare
from isolux.cli.convert import convert
from isolux.cli.describe import describe
from isolux.cli.explain import explain
from isolux.cli.export import export
from isolux.cli.listing import listing
from isolux.cli.report import report
from isolux.cli.sample import sample

__all__ = ["program"]

_COMMANDS: dict[str, Callable[..., None]] = {
    "compare": compare,
    "convert": convert,
    "explain": explain,
    "report": report,
    "export": export,
    "list": listing,
    "describe": describe,
    "sample": sample,
    "check": check,
}
_OF_WORLDS = ("demo", "synthesize")
_ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}


def program(args: Sequence[str], *, everything: bool = False) -> typer.Typer:
    """Make the program for one call: ``isolux audit`` has the flags of the task that it names.

    Parameters
    ----------
    args : sequence of str
        The command line, without the program's own name.
    everything : bool
        Whether help shows every flag.
    """
    app = typer.Typer(
        help="Audit vision models: for whom a model is worse, by how much, and how sure that is.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_main)
    asked = list(args) if "audit" in args[:1] else []
    app.command("audit", cls=Command)(audit_command(asked[1:], everything=everything))
    for name, command in _COMMANDS.items():
        app.command(name, cls=Command)(command)
    _add_commands_of_others(app)
    return app


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"isolux {version('isolux')}")
        raise typer.Exit


def _main(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Audit vision models: for whom a model is worse, by how much, and how sure that is."""
    del version


def _add_commands_of_others(app: typer.Typer) -> None:
    """Add what other packages bring; a command of isolux-worlds that is not installed says so."""
    found = {point.name: point for point in entry_points(group="isolux.commands")}
    for name, point in sorted(found.items()):
        app.command(name)(point.load())
    for name in _OF_WORLDS:
        if name not in found:
            app.command(name, hidden=True, context_settings=_ANYTHING)(_not_installed)


def _not_installed(context: typer.Context) -> None:
    from isolux.vocabulary.errors import SpecError

    raise SpecError(
        f"`isolux {context.info_name}` comes with the package isolux-worlds",
        expected="isolux-worlds installed",
        found="not installed",
        hint="`pip install ./worlds` in the repository",
    )
