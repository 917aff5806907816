"""Every reader meets damaged files: each is read or refused by name, in bounded time and memory.

The suite reads several hundred; ``make fuzz`` a million (``FUZZ=N``: N; ``FUZZ_FIRST``: from
which seed), and prints what it saw.
"""

from __future__ import annotations

import os
import sys

import pytest

from tests.faults._fuzz import fuzz
from tests.faults._fuzz_readers import readers

INPUTS = int(os.environ.get("FUZZ") or 700)
FIRST = int(os.environ.get("FUZZ_FIRST") or 0)
WORKERS = (os.cpu_count() or 1) if INPUTS > 50_000 else 1


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and limits of POSIX")
def test_damaged_inputs_are_read_or_refused_by_name():
    seen = fuzz(readers(), INPUTS, first=FIRST, workers=WORKERS, show=10_000)
    print(seen)
    assert seen.faults == []
    assert seen.inputs == INPUTS
    assert seen.refused > INPUTS / 4  # else little was damaged
    assert seen.slowest < 60
