"""What ``import isolux`` costs beside ``import polars, numpy``, each in a process of its own."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys

from benchmarks._timing import last_line, quick

OURS, PEER = "import isolux", "import polars, numpy"
FIRST = "import isolux; isolux.load, isolux.read_predictions, isolux.score, isolux.audit"


def child_seconds(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def main() -> None:
    times: dict[str, list[float]] = {code: [] for code in (OURS, PEER, FIRST)}
    for code in times:
        child_seconds(code)  # byte code and file caches
    for _ in range(5 if quick() else 15):
        for code, found in times.items():
            found.append(child_seconds(code))
    middle = {code: statistics.median(found) for code, found in times.items()}
    for code, seconds in middle.items():
        print(f"{seconds:.3f} s  {code}")
    last_line(
        "imports", middle[OURS], PEER, middle[PEER], times_peer=middle[OURS] / middle[PEER],
        first_use_s=middle[FIRST],
    )  # fmt: skip


if __name__ == "__main__":
    main()
