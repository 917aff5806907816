"""Under a limit of addresses a command ends by name; a run's tables are safe without figures."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from isolux.io import run_directory
from tests.faults._kills import commands

WHOLE = os.environ.get("ISOLUX_FAULTS") == "whole"
GIB = (0.3, 0.6, 1.0, 1.4, 1.5, 2.0, 4.0, 8.0, 20.0, 40.0, 60.0) if WHOLE else (0.5, 1.5, 60.0)
PROGRAM = (
    "import resource, sys\n"
    "limit = int(float(sys.argv.pop(1)) * 2**30)\n"
    "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
    "from isolux.cli import main\n"
    "main()\n"
)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit addresses")
def test_a_limit_of_memory_is_named_and_spares_the_tables(tmp_path, prepared):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    (tmp_path / "out").mkdir()
    for gib in GIB:
        out = tmp_path / "out" / f"run-{gib}"
        argv = [*commands(tmp_path)[0].argv[:-2], str(out), "--metric", "balanced_accuracy"]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(gib), *argv],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        if gib < 1.5:
            assert done.returncode == 2, (gib, done.stderr)
            assert "there is not enough memory to start" in done.stderr
            assert not out.exists()
            continue
        assert done.returncode == 0, (gib, done.stderr)
        assert "It has no figures, only tables: the engine that draws them" in done.stdout
        assert f"isolux report {out}" in done.stdout
        assert run_directory.load_run(out).group_metrics.height > 0
        page = (out / "report.html").read_text()
        assert "This page has no figures" in page
        assert page.endswith("</html>")
    assert [p.name for p in (tmp_path / "out").iterdir() if p.name.startswith(".")] == []
    mended = subprocess.run(
        [sys.executable, "-c", "from isolux.cli import main; main()", "report", str(out)],
        capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert mended.returncode == 0
    assert "This page has no figures" not in (out / "report.html").read_text()
