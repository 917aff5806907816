"""What messages advise exists: flags, settings, and the commands as they are written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from isolux.cli._flags import list_settings_without_flag
from isolux.cli.app import build_cli_program
from isolux.core import registry
from isolux.core.spec import list_task_options
from tests.cli._run import isolux

SOURCES = Path(__file__).resolve().parents[2] / "src" / "isolux"
OTHER_PROGRAMS = {"--no-deps", "--upgrade", "--head", "--isolux"}  # pip's, Ray's; a style's name
ROOT = {"--help", "--help-all", "--version", "--json"}


def list_flags(command: object) -> Iterator[str]:
    for parameter in command.params:
        yield from (name for name in (*parameter.opts, *parameter.secondary_opts))
    for member in getattr(command, "commands", {}).values():
        yield from list_flags(member)


@pytest.fixture(scope="module")
def flags() -> set[str]:
    program = build_cli_program([])
    calls = [[name] for name in program.commands]
    calls += [["audit", "table:x", "--task", task] for task in registry.names("tasks")]
    groups = [(call[0], build_cli_program(call, shows_all=True)) for call in calls]
    return {flag for name, group in groups for flag in list_flags(group.commands[name])}


def list_message_texts() -> Iterator[tuple[Path, int, str]]:
    """Yield the string literals of the sources that are no docstrings."""
    for file in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        docstrings = {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }  # fmt: skip
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and id(node) not in docstrings:
                yield file, node.lineno, node.value


def test_every_flag_that_a_message_names_is_one_of_a_command(flags):
    unknown = [
        f"{file.name}:{line} {flag}"
        for file, line, text in list_message_texts()
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z](?![a-z-])", text)
        if flag not in flags | OTHER_PROGRAMS | ROOT
        and not any(known.startswith(flag + "-") for known in flags)  # a part of a flag
    ]
    assert unknown == []


def test_every_setting_that_a_message_sets_by_option_is_one():
    names = {setting.name for setting in list_settings_without_flag()}
    names |= {name for task in registry.names("tasks") for name in list_task_options(task)}
    unknown = [
        f"{file.name}:{line} {name}"
        for file, line, text in list_message_texts()
        for name in re.findall(r"(?<![\w-])--option ([a-z_]+)=", text)
        if name not in names
    ]
    assert unknown == []


@pytest.mark.parametrize("command", ["describe", "check", "predict", "sample"])
def test_an_argument_is_not_taken_for_a_flag(command, monkeypatch, capsys):
    ran = isolux(monkeypatch, capsys, command, "--data", "table:x.csv")
    assert ran.code == 2
    assert f"leave the flag out: `isolux {command} NAME:PATH`" in ran.plain


def test_no_flag_is_suggested_that_is_not_near(monkeypatch, capsys):
    ran = isolux(monkeypatch, capsys, "describe", "table:x.csv", "--threshold", "3")
    assert "did you mean" not in ran.plain
    near = isolux(monkeypatch, capsys, "describe", "table:x.csv", "--seperator", ";")
    assert "did you mean --separator?" in near.plain


DAMAGED = "id,age\n" + "".join(f"{k},{age}\n" for k, age in enumerate(["3-9", "9-Mar"] * 3))


@pytest.mark.parametrize(
    "command",
    [("describe", "--by", "age"), ("check",),
     ("sample", "--balance", "age", "--per-cell", "1", "--out", "ids.csv")],
)  # fmt: skip
def test_damaged_ages_are_repaired_as_advised(command, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(DAMAGED)
    verb, *more = command
    refused = isolux(monkeypatch, capsys, verb, "table:people.csv", "--id", "id", *more)
    text = refused.err + refused.out
    advice = re.search(r"turned back with (--data-option) (repair_ages=yes)", text)
    assert advice is not None, text
    ran = isolux(
        monkeypatch, capsys, verb, "table:people.csv", "--id", "id", *more, *advice.groups()
    )
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("command", ["curate", "withdraw", "demo"])
def test_help_of_a_command_whose_package_is_absent(command, monkeypatch, capsys):
    monkeypatch.setattr("isolux.cli.app._list_entry_points", dict)
    ran = isolux(monkeypatch, capsys, command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "which is not installed" in ran.out
    assert "pip install . ./" in ran.out
    assert isolux(monkeypatch, capsys, command).code == 2
