"""The viewer's own tools (npm, its pinned packages), for tests that build its page or check it."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "viewer"


@cache
def _installed() -> Path | str:
    npm = shutil.which("npm")
    if npm is None:
        return "NPM ABSENT: the viewer's page was NOT built again; `apt-get install npm` brings it"
    folder = Path(tempfile.mkdtemp(prefix="isolux-viewer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(
        SOURCES, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules")
    )
    ran = subprocess.run(
        [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    if ran.returncode:
        return f"NPM'S REGISTRY OUT OF REACH: the viewer's page was NOT built: {ran.stderr[-300:]}"
    return folder


def viewer_folder() -> Path:
    """Give a copy of the sources with their packages installed, once a session; else skip."""
    found = _installed()
    if isinstance(found, str):
        pytest.skip(found)
    return found
