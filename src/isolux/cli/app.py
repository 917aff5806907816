"""The program and its commands; other packages add theirs as entry points ``isolux.commands``.

An entry point names a function that typer reads, or a module made as the files of this package are.
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

from isolux.cli._flags import build_command
from isolux.cli._help import Command
from isolux.cli.audit import audit, build_audit_command
from isolux.cli.command_output import JSON_FLAG as JSON
from isolux.cli.command_output import is_json_requested as asks_json
from isolux.cli.listing import listing
from isolux.cli.streams import print_clean_lines

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
"""Files of this package, each with a function of its own name; ``VERB`` names the public function
whose settings are its flags too."""
WITH_JSON = ("gate",)
"""Commands whose ``--json`` prints a document of their own, by a schema of its own."""
_CURATE_PACKAGE = ("isolux-curate", "packages/curate")
_WORLDS_PACKAGE = ("isolux-worlds", "worlds")
_PACKAGE_BY_COMMAND = {
    "curate": _CURATE_PACKAGE,
    "demo": _WORLDS_PACKAGE,
    "synthesize": _WORLDS_PACKAGE,
    "withdraw": _CURATE_PACKAGE,
}
"""Commands of this repository's other packages, and the folders of these."""
_JSON_HELP = "print one JSON document, for scripts (docs/schemas/command-1.json)"
_ACCEPT_ANY_ARGUMENT = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}


def build_cli_program(args: Sequence[str], *, shows_all: bool = False) -> TyperGroup:
    """Build the program for one call: the named command, and the others' names and help.

    ``isolux audit`` has the flags of the task that the arguments name.

    Parameters
    ----------
    args : sequence of str
        The command line, without the program's own name.
    shows_all : bool
        Whether help shows every flag.
    """
    app = typer.Typer(
        help="Audit vision models: for whom a model is worse, by how much, and how certain that "
        "is.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root_command)
    command_index = next((i for i, text in enumerate(args) if not text.startswith("-")), len(args))
    command_name = args[command_index] if command_index < len(args) else ""
    if command_name == "audit":
        command = build_audit_command(args[command_index + 1 :], shows_all=shows_all)
        app.command(command_name, cls=Command)(command)
    elif command_name == "list":
        app.command(command_name, cls=Command)(listing)
    elif command_name == "predict":
        app.command(command_name, cls=Command)(
            _import_command_module(command_name).build_predict_command()
        )
    elif command_name in _COMMANDS:
        _add_command(app, command_name, _import_command_module(command_name))
    else:  # our own need nothing of other packages
        _add_external_commands(app, command_name)
    group = cast("TyperGroup", get_command(app))
    own_commands = {
        "audit": audit,
        **{name: getattr(_import_command_module(name), name) for name in _COMMANDS},
    }
    name_only_commands = {
        name: _build_command_stub(name, function)
        for name, function in {**own_commands, "list": listing}.items()
    }
    group.commands = {**name_only_commands, **group.commands}
    _add_json_option(group, _build_json_option())
    return group


def strip_json_flag(args: Sequence[str]) -> list[str]:
    """Strip ``--json`` from a command line; commands with their own document get it last."""
    if not asks_json(args):
        return list(args)
    end = args.index("--") if "--" in args else len(args)
    remaining_args = [text for text in args[:end] if text != JSON]
    has_own_document = (
        next((text for text in remaining_args if not text.startswith("-")), "") in WITH_JSON
    )
    return [*remaining_args, *([JSON] if has_own_document else []), *args[end:]]


def _build_json_option() -> Any:
    """Build the ``--json`` flag for help texts; it is read before any command runs."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def placeholder(
        *, json: Annotated[bool, typer.Option(JSON, help=_JSON_HELP, expose_value=False)] = False
    ) -> None:
        del json

    return next(parameter for parameter in get_command(app).params if JSON in parameter.opts)


def _add_json_option(command: Any, flag: Any) -> None:
    """Add the ``--json`` flag to the help of a command and its subcommands."""
    if not any(JSON in parameter.opts for parameter in command.params):
        command.params.append(flag)
    for subcommand in getattr(command, "commands", {}).values():
        _add_json_option(subcommand, flag)


def is_command_group(name: str) -> bool:
    """Tell whether a command has commands of its own."""
    module = _import_command_module(name) if name in _COMMANDS else _list_entry_points().get(name)
    return hasattr(module.load() if isinstance(module, EntryPoint) else module, "STEPS")


def _add_command(app: typer.Typer, name: str, module: ModuleType) -> None:
    """Add the command of a file, with the settings of the public function that it names.

    One that has commands of its own has them in the files of its folder.
    """
    command = getattr(module, name)
    if not hasattr(module, "STEPS"):
        public_function = _load_public_function(getattr(module, "VERB", None))
        app.command(name, cls=Command)(build_command(command, public_function))
        return
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=command.__doc__)
    group.callback()(command)
    for step, file in module.STEPS.items():
        step_module = importlib.import_module(f"{module.__name__}.{file}")
        public_function = _load_public_function(getattr(step_module, "VERBS", {}).get(step))
        example = getattr(step_module, "EXAMPLES", {}).get(step)
        step_command = build_command(getattr(step_module, step), public_function, group=name)
        group.command(step, cls=Command, epilog=example)(step_command)
    app.add_typer(group, name=name)


def _load_public_function(name: str | Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Load a public function that is named as MODULE:FUNCTION."""
    if not isinstance(name, str):
        return name
    module, _, function = name.partition(":")
    return cast("Callable[..., Any]", getattr(importlib.import_module(module), function))


def _import_command_module(name: str) -> ModuleType:
    return importlib.import_module(f"isolux.cli.{name}")


def _build_command_stub(name: str, command: Callable[..., None]) -> Command:
    """Build a command with name and help alone, so that its imports are not needed."""
    return Command(name=name, help=inspect.getdoc(command))


def _print_version_and_exit(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version

        print_clean_lines(f"isolux {version('isolux')}")
        raise typer.Exit


def _root_command(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version_and_exit, is_eager=True, help="print the version"
        ),
    ] = False,
) -> None:
    """Audit vision models: for whom a model is worse, by how much, and how certain that is."""
    del version


def _list_entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="isolux.commands")}


def _add_external_commands(app: typer.Typer, command_name: str) -> None:
    """Add what other packages bring; a command whose package is not installed says so."""
    points = _list_entry_points()
    for name, point in sorted(points.items()):
        command = point.load()
        if not isinstance(command, ModuleType):
            app.command(name, cls=Command)(command)
        elif name == command_name:
            _add_command(app, name, command)
        else:
            app.command(name, cls=Command, help=getattr(command, name).__doc__)(_not_loaded)
    for name in _PACKAGE_BY_COMMAND:
        if name not in points:
            app.command(name, hidden=True, context_settings=_ACCEPT_ANY_ARGUMENT)(_not_installed)


def _not_loaded() -> None:
    """Stand in for a command that is not run, so that its imports are not needed."""


def _not_installed(context: typer.Context) -> None:
    from isolux.api.synthesize import missing_package_error

    name = str(context.info_name)
    error = missing_package_error(f"isolux {name}", *_PACKAGE_BY_COMMAND[name])
    if "--help" not in context.args:
        raise error
    print_clean_lines(f"{error.problem}, which is not installed.", f"To install it: {error.hint}.")
