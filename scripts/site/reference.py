"""The reference: functions and classes from their docstrings, tables' columns, commands' help."""

from __future__ import annotations

import inspect
from pathlib import Path

import isolux
import isolux_curate
from isolux.cli.app import build_cli_program, is_command_group
from isolux.core import tables
from isolux.core.schema import Table
from scripts.site.words import code, plain, table

__all__ = ["write_reference"]

_WIDTH = 98
_MENU = """```{toctree}
:hidden:
:glob:

reference/function_*
reference/class_*
reference/tables
reference/command_*
```"""


def write_reference(source: Path) -> None:
    """Write ``reference.md`` and the pages below it."""
    functions, classes = _write_api(source / "reference")
    commands = _write_commands(source / "reference")
    (source / "reference" / "tables.md").write_text(_tables(), encoding="utf-8")
    parts = [
        "# Reference",
        "## Functions", table(["function", "what it does"], functions),
        "## Classes", table(["class", "what it is"], classes),
        "## Tables", "What each column of a run's files means: [tables](reference/tables.md).",
        "## Commands", table(["command", "what it does"], commands),
        "Each has `--json`: [scripts](docs/how_to/scripts.md).",
        _MENU,
    ]  # fmt: skip
    (source / "reference.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _write_api(folder: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Write a page for each public name, and return the rows of functions and of classes."""
    folder.mkdir()
    rows: tuple[list[list[str]], list[list[str]]] = ([], [])
    packages = [(package, name) for package in (isolux, isolux_curate) for name in package.__all__]
    for package, name in packages:
        if name.startswith("_"):
            continue
        one, full = getattr(package, name), f"{package.__name__}.{name}"
        kind = "class" if isinstance(one, type) else "function"
        members = "\n   :members:" if kind == "class" else ""
        first = (inspect.getdoc(one) or "").partition("\n\n")[0]
        docstring = f".. auto{kind}:: {full}{members}"
        page = f"# {full}\n\n```{{eval-rst}}\n{docstring}\n```\n"
        (folder / f"{kind}_{name}.md").write_text(page, encoding="utf-8")
        told = [f"[`{name}`](reference/{kind}_{name}.md)", plain(first.replace("``", ""))]
        rows[kind == "class"].append(told)
    return rows


def _write_commands(folder: Path) -> list[list[str]]:
    """Write a page for each command with its help, and return their rows."""
    rows = []
    for name in sorted(build_cli_program([]).commands):
        group = build_cli_program([name], shows_all=True).commands[name]
        below = sorted(group.commands) if is_command_group(name) else []
        calls = [[name, one] for one in below] or [[name]]
        parts = [f"# isolux {name}"]
        for call in calls:
            parts += [f"## isolux {' '.join(call)}"] if below else []
            parts.append(f"```text\n{_help(call)}\n```")
        (folder / f"command_{name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        first = (group.help or "").partition("\n\n")[0]
        rows.append([f"[`isolux {name}`](reference/command_{name}.md)", plain(first)])
    return rows


def _help(call: list[str]) -> str:
    """Return a command's help with every flag, as a wide screen shows it."""
    command = build_cli_program(call, shows_all=True).commands[call[0]]
    for name in call[1:]:
        command = command.commands[name]
    context = command.make_context(f"isolux {' '.join(call)}", [], resilient_parsing=True,
                                   terminal_width=_WIDTH, max_content_width=_WIDTH)  # fmt: skip
    return str(command.get_help(context)).strip()


def _tables() -> str:
    told = "The columns of a run's Parquet files, and of what functions take and give."
    parts = ["# Tables", told]
    for one in vars(tables).values():
        if isinstance(one, Table):
            rows = [
                [code(column.name), plain(column.dtype), plain(column.meaning),
                 "yes" if column.nullable else ""]
                for column in one.columns
            ]  # fmt: skip
            parts += [f"## {one.name}", f"One row is {plain(one.one_row)}.",
                      table(["column", "type", "meaning", "may be null"], rows)]  # fmt: skip
    return "\n\n".join(parts) + "\n"
