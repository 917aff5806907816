"""``python -m isolux`` is the command ``isolux``."""

from __future__ import annotations

import subprocess
import sys


def test_python_runs_the_package_as_a_command():
    said = [sys.executable, "-m", "isolux", "--version"]
    done = subprocess.run(said, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("isolux ")
