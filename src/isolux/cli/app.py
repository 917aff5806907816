"""The program and its commands; other packages add theirs as entry points ``isolux.commands``.

An entry point names a function that typer reads, or a module made as the files of this room are.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command

from isolux.cli._flags import generated
from isolux.cli._help import Command
from isolux.cli.audit import audit, audit_command
from isolux.cli.document import FLAG as JSON
from isolux.cli.document import asked as asks_json
from isolux.cli.listing import listing
from isolux.cli.streams import say

_COMMANDS = (
    "predict",
    "crop",
    "compare",
    "gate",
    "card",
    "monitor",
    "explain",
    "report",
    "view",
    "export",
    "describe",
    "sample",
    "check",
    "train",
)
"""Files of this room, each with a function of its own name; ``VERB`` names the public function
whose settings are its flags too."""
WITH_JSON = ("gate",)
"""Commands whose ``--json`` prints a document of their own, by a schema of its own."""
_CURATE = ("isolux-curate", "packages/curate")
_WORLDS = ("isolux-worlds", "worlds")
_OF_PACKAGES = {"curate": _CURATE, "demo": _WORLDS, "synthesize": _WORLDS, "withdraw": _CURATE}
"""Commands of this repository's other packages, and the folders of these."""
_JSON_HELP = "print one JSON document, for scripts (docs/schemas/command-1.json)"
_ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def program(args: Sequence[str], *, everything: bool = False) -> TyperGroup:
    """Make the program for one call: the command that it names, and the others' names and help.

    ``isolux audit`` has the flags of the task that the arguments name.

    Parameters
    ----------
    args : sequence of str
        The command line, without the program's own name.
    everything : bool
        Whether help shows every flag.
    """
    app = typer.Typer(
        help="Audit vision models: for whom a model is worse, by how much, and how certain that "
        "is.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_main)
    at = next((i for i, text in enumerate(args) if not text.startswith("-")), len(args))
    asked = args[at] if at < len(args) else ""
    if asked == "audit":
        command = audit_command(args[at + 1 :], everything=everything)
        app.command(asked, cls=Command)(command)
    elif asked == "list":
        app.command(asked, cls=Command)(listing)
    elif asked == "predict":
        app.command(asked, cls=Command)(_module(asked).predict_command())
    elif asked in _COMMANDS:
        _add_command(app, asked, _module(asked))
    else:  # our own need nothing of other packages
        _add_commands_of_others(app, asked)
    group = cast("TyperGroup", get_command(app))
    ours = {"audit": audit, **{name: getattr(_module(name), name) for name in _COMMANDS}}
    named = {name: _name_only(name, one) for name, one in {**ours, "list": listing}.items()}
    group.commands = {**named, **group.commands}
    _add_json(group, _json_flag())
    return group


def without_json(args: Sequence[str]) -> list[str]:
    """Take ``--json`` out of a command line; one with a document of its own has it at its end."""
    if not asks_json(args):
        return list(args)
    end = args.index("--") if "--" in args else len(args)
    kept = [text for text in args[:end] if text != JSON]
    own = next((text for text in kept if not text.startswith("-")), "") in WITH_JSON
    return [*kept, *([JSON] if own else []), *args[end:]]


def _json_flag() -> Any:
    """Make the flag as typer makes flags; what it asks for is read before any command runs."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def shown(
        *, json: Annotated[bool, typer.Option(JSON, help=_JSON_HELP, expose_value=False)] = False
    ) -> None:
        del json

    return next(one for one in get_command(app).params if JSON in one.opts)


def _add_json(command: Any, flag: Any) -> None:
    """Give a command, and those below it, the flag in its help, whoever wrote the command."""
    if not any(JSON in parameter.opts for parameter in command.params):
        command.params.append(flag)
    for one in getattr(command, "commands", {}).values():
        _add_json(one, flag)


def is_group(name: str) -> bool:
    """Tell whether a command has commands of its own."""
    module = _module(name) if name in _COMMANDS else _of_others().get(name)
    return hasattr(module.load() if isinstance(module, EntryPoint) else module, "STEPS")


def _add_command(app: typer.Typer, name: str, module: ModuleType) -> None:
    """Add the command of a file, with the settings of the public function that it names.

    One that has commands of its own has them in the files of its folder.
    """
    command = getattr(module, name)
    if not hasattr(module, "STEPS"):
        verb = _verb(getattr(module, "VERB", None))
        app.command(name, cls=Command)(generated(command, verb))
        return
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=command.__doc__)
    group.callback()(command)
    for step, file in module.STEPS.items():
        part = importlib.import_module(f"{module.__name__}.{file}")
        verb = _verb(getattr(part, "VERBS", {}).get(step))
        example = getattr(part, "EXAMPLES", {}).get(step)
        made = generated(getattr(part, step), verb, group=name)
        group.command(step, cls=Command, epilog=example)(made)
    app.add_typer(group, name=name)


def _verb(name: str | Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Load a public function that is named as MODULE:FUNCTION."""
    if not isinstance(name, str):
        return name
    module, _, function = name.partition(":")
    return cast("Callable[..., Any]", getattr(importlib.import_module(module), function))


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"isolux.cli.{name}")


def _name_only(name: str, command: Callable[..., None]) -> Command:
    """Describe a command that is not asked for, so that what it needs is not imported."""
    return Command(name=name, help=inspect.getdoc(command))


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        say(f"isolux {version('isolux')}")
        raise typer.Exit


def _main(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Audit vision models: for whom a model is worse, by how much, and how certain that is."""
    del version


def _of_others() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="isolux.commands")}


def _add_commands_of_others(app: typer.Typer, asked: str) -> None:
    """Add what other packages bring; a command whose package is not installed says so."""
    found = _of_others()
    for name, point in sorted(found.items()):
        command = point.load()
        if not isinstance(command, ModuleType):
            app.command(name, cls=Command)(command)
        elif name == asked:
            _add_command(app, name, command)
        else:
            app.command(name, cls=Command, help=getattr(command, name).__doc__)(_name_alone)
    for name in _OF_PACKAGES:
        if name not in found:
            app.command(name, hidden=True, context_settings=_ANYTHING)(_not_installed)


def _name_alone() -> None:
    """Stand for a command that is not asked for, so that what it needs is not imported."""


def _not_installed(context: typer.Context) -> None:
    from isolux.verbs.synthesize import not_installed

    name = str(context.info_name)
    raise not_installed(f"isolux {name}", *_OF_PACKAGES[name])
