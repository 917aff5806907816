"""How much memory a process took."""

from __future__ import annotations

import resource
from pathlib import Path


def peak_mib() -> int:
    """The most memory that this process held so far, in MiB.

    Not ``ru_maxrss`` where Linux tells better: a process inherits that number from the one that
    started it, so under a large test run every reader would seem to need what the run needed.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
