"""However a command ends: no result in part, none lost, nothing left after the next command.

The suite kills each of the four commands by each of the four signals; ``ISOLUX_FAULTS=whole
pytest -s tests/faults`` kills 1,000, and prints what it saw.
"""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from tests.faults._kills import kill_many

KILLS = 1_000 if os.environ.get("ISOLUX_FAULTS") == "whole" else 16


@pytest.mark.skipif(sys.platform != "linux", reason="forks a process that has imported polars")
def test_killed_commands_leave_whole_results_and_nothing_else(tmp_path, server, prepared):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    (tmp_path / "out").mkdir()
    tally = kill_many(server, tmp_path, KILLS)
    print(tally)
    assert (tally.partial, tally.lost, tally.left_after_next) == (0, 0, 0)
    assert tally.odd == ()
    assert tally.kills == KILLS
    assert tally.left_by_kill_9 > 0  # else nothing was killed in the middle of its work
    assert tally.finished < KILLS / 2
