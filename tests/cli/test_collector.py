"""The command line collects garbage seldom; the library leaves that to its host."""

from __future__ import annotations

import subprocess
import sys

_LOOK = "print(gc.get_threshold()[0], gc.get_freeze_count() > 0)"


def looked(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout.split()


def test_the_library_does_not_change_how_its_host_collects():
    usual = looked(f"import gc; {_LOOK}")
    assert looked(f"import gc, isolux; isolux.score; {_LOOK}") == usual


def test_the_command_line_collects_seldom_and_freezes_at_the_end():
    # What is registered first runs last.
    found = looked(
        f"import atexit, gc; from isolux import cli; atexit.register(lambda: {_LOOK});"
        "cli.reduce_garbage_collection()"
    )
    assert found == ["250000", "True"]
