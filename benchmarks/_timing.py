"""CPU seconds, and the last line of every benchmark."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # spinning threads would be counted as work
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def quick() -> bool:
    """Read the one flag that all benchmarks take."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="within 60 s")
    return parser.parse_args().quick


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Run once and return the CPU seconds of this process, all threads, and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def last_line(name: str, ours_s: float, peer: str, peer_s: float, **more: Any) -> None:
    """Print the JSON object that a benchmark ends with."""
    ratio = peer_s / ours_s if ours_s > 0 else None
    row = {"name": name, "ours_s": ours_s, "peer": peer, "peer_s": peer_s, "ratio": ratio}
    print(json.dumps(row | more))
