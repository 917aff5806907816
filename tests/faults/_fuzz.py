"""Damaged inputs to every reader, in processes that are watched: ``make fuzz``."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
SECONDS, MIB = 60.0, 1024
_AT_ONCE = 200


@dataclass
class Seen:
    """What became of the inputs; ``faults`` names reader, seed and what was wrong."""

    inputs: int = 0
    refused: int = 0
    slowest: float = 0.0
    largest_mib: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, reader: str, told: dict[str, Any]) -> None:
        """Count one answer."""
        self.inputs += 1
        self.refused += told["did"] == "refused"
        self.slowest = max(self.slowest, told["seconds"])
        self.largest_mib = max(self.largest_mib, told["mib"])
        if told["did"] == "unnamed" or told["said"]:
            self.faults.append(f"{reader} {told['seed']}: {told['said']}")
        if told["mib"] > MIB:
            self.faults.append(f"{reader} {told['seed']}: {told['mib']:,} MiB")


class Worker:
    """A process that reads damaged inputs, started anew when one has ended it."""

    def __init__(self) -> None:
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(CHECKOUT)]),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "tests.faults._fuzz_worker"], cwd=CHECKOUT, env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
        )  # fmt: skip

    def ask(self, reader: str, seed: int) -> dict[str, Any]:
        """Have one damaged input read; the end of the process is an answer too."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write((json.dumps({"reader": reader, "seed": seed}) + "\n").encode())
        line = b""
        until = time.monotonic() + SECONDS
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return self._again(seed, f"over {SECONDS:g} seconds")
            part = self.process.stdout.read(1 << 16)
            if not part:
                return self._again(seed, f"ended with {self.process.wait()}")
            line += part
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _again(self, seed: int, said: str) -> dict[str, Any]:
        self.close()
        self.process = self._started()
        return {"seed": seed, "did": "unnamed", "said": said, "seconds": SECONDS, "mib": 0}

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def fuzz(readers: list[str], inputs: int, *, first: int = 0, workers: int = 1) -> Seen:
    """Give so many damaged inputs to the readers in turn.

    ``first`` is the seed of the first; each input is made of its seed alone, so that a fault can be
    seen again.
    """
    shares: list[list[int]] = [
        list(range(first + at, first + inputs, workers)) for at in range(workers)
    ]

    def work(seeds: range) -> Seen:
        seen, worker = Seen(), Worker()
        try:
            for seed in seeds:
                # Some inputs of one reader after another: a sample is written once a process.
                reader = (
                    readers[(seed // _AT_ONCE) % len(readers)]
                    if inputs > 50_000
                    else readers[seed % len(readers)]
                )
                seen.add(reader, worker.ask(reader, seed))
        finally:
            worker.close()
        return seen

    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(work, shares))
    return Seen(
        inputs=sum(p.inputs for p in parts),
        refused=sum(p.refused for p in parts),
        slowest=max(p.slowest for p in parts),
        largest_mib=max(p.largest_mib for p in parts),
        faults=[fault for p in parts for fault in p.faults],
    )
