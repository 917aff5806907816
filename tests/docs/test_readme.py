"""The README's commands run as they stand on what `make demo` leaves; its Python fits a screen."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from isolux import cli
from tests.cli._run import isolux
from tests.docs import _pages as pages
from tests.docs.test_tutorials import commands

README = pages.ROOT / "README.md"
NOT_HERE = ("make", "cat")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, demo: Path) -> Path:
    """Run every command of a block that can run, in order, in the folder where `demo/` lies."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(demo, folder, dirs_exist_ok=True)
    known = [words for words in commands(README) if words[0] not in NOT_HERE]
    assert len(known) >= 12
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for words in known:
            if "synthesize" in words and "--out" in words:
                continue  # a minute; tests/worlds and the tutorial's test run it
            patch.setattr("sys.argv", words)
            code: str | int | None = 0
            try:
                cli.main()
            except SystemExit as done:
                code = done.code
            assert not code, shlex.join(words)
    return folder


def test_the_commands_leave_what_the_page_names(folder: Path) -> None:
    for name in ("aurora", "borealis", "both"):
        assert (folder / "runs" / name / "report.html").exists()
    assert (folder / "p.html").exists()
    table = README.read_text(encoding="utf-8").partition("| file | what it holds |")[2]
    for line in table.partition("\n\n")[0].splitlines()[2:]:
        named = line.split("|")[1].replace("`", "").split(",")
        assert all((folder / "runs" / "aurora" / one.strip()).exists() for one in named), line


def test_what_python_prints_fits_a_screen_and_shows_group_value_and_interval(folder: Path) -> None:
    block = next(b for b in pages.blocks(README) if b.kind == "python")
    done = subprocess.run(
        [sys.executable, "-c", block.body], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) < 40
    assert max(map(len, told)) <= 80
    assert told[0].startswith("Audit of ")
    heads = next(line for line in told if line.startswith("│ group"))
    for name in ("group", "n_units", "value", "low", "high"):
        assert name in heads
    assert "…" not in heads


def test_the_first_audit_prints_what_the_page_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = next(words for words in commands(README) if words[:2] == ["isolux", "audit"])
    monkeypatch.chdir(folder)
    ran = isolux(monkeypatch, capsys, *first[1:], "--overwrite", width=80)
    shown = next(b.body for b in pages.blocks(README) if b.kind == "text")
    assert ran.out.replace("\N{NO-BREAK SPACE}", " ").strip() == shown.strip()
