"""The distribution isolux-curate: its plugins are entry points, and isolux says where it is not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import isolux_curate
from isolux.core import registry
from tests.cli._run import isolux as run

HERE = Path(isolux_curate.__file__).parent
PROJECT = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_rule_is_an_entry_point() -> None:
    files = {f.stem for f in (HERE / "intake" / "rules").glob("[!_]*.py")}
    points = PROJECT["project"]["entry-points"]["isolux.rules"]
    assert points == {name: f"isolux_curate.intake.rules.{name}" for name in files}
    assert registry.names("rules") == sorted(files)


@pytest.mark.parametrize("name", isolux_curate.__all__)
def test_each_public_name_is_there_and_explains_itself(name: str) -> None:
    assert (getattr(isolux_curate, name).__doc__ or "").strip()


def test_a_name_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match=r"isolux_curate.*no attribute 'debias'"):
        _ = isolux_curate.debias


@pytest.mark.parametrize("rest", [[], ["--help"], ["init", "faces", "--help"], ["--nonsense", "3"]])
@pytest.mark.parametrize("command", ["curate", "withdraw"])
def test_without_the_package_a_command_says_how_to_install_it(
    monkeypatch, capsys, command: str, rest: list[str]
) -> None:
    monkeypatch.setattr("isolux.cli.app.entry_points", lambda group: ())
    told = run(monkeypatch, capsys, command, *rest)
    assert told.code == (0 if "--help" in rest else 2)
    assert "isolux-curate" in told.err + told.out
    assert "pip install . ./packages/curate" in told.err + told.out


def test_without_the_package_help_does_not_name_its_commands(monkeypatch, capsys) -> None:
    monkeypatch.setattr("isolux.cli.app.entry_points", lambda group: ())
    told = run(monkeypatch, capsys, "--help")
    assert told.code == 0
    assert "withdraw" not in told.out
