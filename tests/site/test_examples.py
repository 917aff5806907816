"""Commands of the guides run as they stand, by a shell, on what `isolux demo` leaves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.docs import _pages as pages
from tests.site import _built as built

GUIDES = [("docs/start.md",)] + [
    # the viewer's page reads the runs that the engineer's guide leaves
    (pages.name(page), *(["docs/how_to/viewer.md"] if page.stem == "ml_engineer" else []))
    for page in pages.PAGES if page.parent.name == "guides"
]  # fmt: skip


def commands(name: str) -> str:
    """Put a page's blocks that can run into one script; one command that fails ends it."""
    every = pages.blocks(pages.ROOT / name)
    return "set -e\n" + "\n".join(block.body for block in every if block.kind == "bash")


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Make a folder in which `isolux demo` was run, with the program by its name."""
    built.site()
    folder = tmp_path_factory.mktemp("guides")
    (folder / "bin").mkdir()
    program = folder / "bin" / "isolux"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m isolux "$@"\n')
    program.chmod(0o755)
    done = shell("isolux demo", folder)
    assert done.returncode == 0, done.stderr
    return folder


def shell(script: str, folder) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("names", GUIDES, ids=lambda names: names[0])
def test_the_commands_of_a_guide_run(start, tmp_path, names):
    folder = tmp_path / "here"
    shutil.copytree(start, folder)
    script = "\n".join(map(commands, names))
    if "isolux demo" in script:
        shutil.rmtree(folder / "demo")
    done = shell(script, folder)
    assert done.returncode == 0, done.stdout + done.stderr
