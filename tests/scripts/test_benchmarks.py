"""The benchmarks' command: help and mistakes write nothing, and what is imported is there."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
_IMPORT = re.compile(r"from (isolux[\w.]*) import (\([^)]*\)|[^\n;\"]+)")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--help"], 0, "--quick"),
        (["nothing"], 2, "no benchmark is called 'nothing'"),
        (["--quik"], 2, "unrecognized arguments: --quik"),
    ],
)
def test_help_and_mistakes_run_and_write_nothing(arguments, code, said):
    before = RESULTS.read_bytes(), RESULTS.stat().st_mtime_ns
    command = [sys.executable, "-m", "benchmarks", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert (RESULTS.read_bytes(), RESULTS.stat().st_mtime_ns) == before
    assert not RESULTS.with_suffix(".tmp").exists()


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.stem)
def test_a_benchmark_names_no_module_of_isolux_that_is_gone(path):
    """In the scripts that it starts as text, too."""
    for module, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
        found = importlib.import_module(module)
        for name in re.findall(r"(\w+)(?: as \w+)?\s*(?:,|$)", names.strip("() \n")):
            if not hasattr(found, name):
                importlib.import_module(f"{module}.{name}")
