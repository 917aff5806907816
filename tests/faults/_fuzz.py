"""Damaged inputs to every reader, in processes that are watched: ``make fuzz``."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
SECONDS, MIB = 60.0, 1024
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where damaged files need no disk
_AT_ONCE, _MANY = 200, 50_000  # inputs of one reader after another, where there are many


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


def _cpu_seconds(pid: int) -> float:
    """Return how long a process has computed; 0 where the system does not say."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(said[11]) + int(said[12])) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process that reads damaged inputs, started anew when one has ended it."""

    def __init__(self) -> None:
        self.process = self._started()
        self.text = b""

    def _started(self) -> subprocess.Popen[bytes]:
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(CHECKOUT)]),
            "POLARS_MAX_THREADS": "1",  # inputs are small, and each worker has a core
        }
        if SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK):
            env.setdefault("TMPDIR", str(SHARED_MEMORY))
        return subprocess.Popen(
            [sys.executable, "-m", "tests.faults._fuzz_worker"], cwd=CHECKOUT, env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
        )  # fmt: skip

    def ask(self, reader: str, seeds: list[int]) -> Iterator[dict[str, Any]]:
        """Have damaged inputs read, one after another without a word between them.

        The end of the process, or 60 seconds of work without an answer, is the answer of the input
        that it was at; a new process takes the others.
        """
        left = list(seeds)
        while left:
            assert self.process.stdin is not None
            with suppress(BrokenPipeError):
                self.process.stdin.write(
                    (json.dumps({"reader": reader, "seeds": left}) + "\n").encode()
                )
            while left:
                told = self._line()
                if isinstance(told, str):
                    yield self._again(left.pop(0), told)
                    break
                left.pop(0)
                yield told

    def _line(self) -> dict[str, Any] | str:
        """Wait for an answer, or say how the process ended.

        Seconds are the process's own, since others may have the machine; ten times as many where
        it does nothing.
        """
        assert self.process.stdout is not None
        began, spent = time.monotonic(), _cpu_seconds(self.process.pid)
        while b"\n" not in self.text:
            if not select.select([self.process.stdout], [], [], SECONDS / 4)[0]:
                own = _cpu_seconds(self.process.pid) - spent
                if own > SECONDS or time.monotonic() - began > 10 * SECONDS:
                    return f"over {SECONDS:g} seconds"
                continue
            part = self.process.stdout.read(1 << 16)
            if not part:
                return f"ended with {self.process.wait()}"
            self.text += part
        line, _, self.text = self.text.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _again(self, seed: int, said: str) -> dict[str, Any]:
        self.close()
        self.process, self.text = self._started(), b""
        return {"seed": seed, "did": "unnamed", "said": said, "seconds": SECONDS, "mib": 0}

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def fuzz(
    readers: list[str], inputs: int, *, first: int = 0, workers: int = 1, show: int = 0
) -> Seen:
    """Give so many damaged inputs to the readers in turn.

    ``first`` is the seed of the first; each input is made of its seed alone, so that a fault can be
    seen again. ``show``: after how many inputs a worker says how far it is; 0: never.
    """
    at_once = _AT_ONCE if inputs > _MANY else 1
    together: list[list[int]] = [
        list(range(start, min(start + at_once, first + inputs)))
        for start in range(first, first + inputs, at_once)
    ]

    def work(shares: list[list[int]]) -> Seen:
        seen, worker = Seen(), Worker()
        try:
            for seeds in shares:
                reader = readers[(seeds[0] // at_once) % len(readers)]
                for told in worker.ask(reader, seeds):
                    seen.add(reader, told)
                    if show and seen.inputs % show == 0:
                        print(f"{seen.inputs:,} inputs of this worker, {len(seen.faults)} faults")
        finally:
            worker.close()
        return seen

    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(work, [together[at::workers] for at in range(workers)]))
    return Seen(
        inputs=sum(p.inputs for p in parts),
        refused=sum(p.refused for p in parts),
        slowest=max(p.slowest for p in parts),
        largest_mib=max(p.largest_mib for p in parts),
        faults=[fault for p in parts for fault in p.faults],
    )
