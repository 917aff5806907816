"""How many cores this process may keep busy: the machine's, or its share where it is one of some.

A worker beside others that took all of the machine's cores would take them from the others.
"""

from __future__ import annotations

import os

CORES_VARIABLE = "ISOLUX_CORES"
"""The variable by which a command tells a worker its share."""


def count_cores() -> int:
    """Count the cores of this process: at least 1."""
    setting = os.environ.get(CORES_VARIABLE, "")
    return max(1, int(setting) if setting.isdigit() else os.cpu_count() or 1)
