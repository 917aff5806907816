"""The tutorial ``docs/tutorials/build_a_dataset.md``: its commands are there, and run.

All of them take three minutes: ``ISOLUX_STORY=whole`` runs them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml

from isolux.cli.app import build_cli_program
from isolux_worlds.rehearsal.__main__ import app
from tests.docs import _pages as pages
from tests.docs.test_tutorials import commands

PAGE = pages.ROOT / "docs" / "tutorials" / "build_a_dataset.md"
_REHEARSAL = ["python", "-m", "isolux_worlds.rehearsal"]


def test_every_command_of_the_page_is_there() -> None:
    known = {"curate": set(build_cli_program(["curate"]).commands["curate"].commands)}
    ours = {one.callback.__name__ for one in app.registered_commands if one.callback}
    words = commands(PAGE)
    assert len(words) > 40
    for one in words:
        if one[:3] == _REHEARSAL:
            assert one[3] in ours, one
        elif one[:2] == ["isolux", "curate"]:
            assert one[2] in known["curate"], one


@pytest.mark.skipif(
    os.environ.get("ISOLUX_STORY") != "whole",
    reason="the commands take three minutes: ISOLUX_STORY=whole runs them",
)
def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    settings = next(yaml.safe_load(b.body) for b in pages.blocks(PAGE) if b.kind == "yaml")
    for words in commands(PAGE):
        if words[0] not in ("isolux", "python"):
            continue  # a server's own
        program_of = ["-m", "isolux"] if words[0] == "isolux" else []
        done = subprocess.run(
            [sys.executable, *program_of, *words[1:]], cwd=tmp_path, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stderr)
        if words[1:3] == ["curate", "init"]:
            mark = tmp_path / "faces" / "project.yaml"
            mark.write_text(yaml.safe_dump(yaml.safe_load(mark.read_text()) | settings))
    assert pl.read_csv(tmp_path / "public" / "people.csv").height > 150
