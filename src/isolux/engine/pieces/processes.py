"""The executor of one machine's processes: each has a piece at a time, and a time limit.

A process that is lost (killed, out of memory) or late is replaced, and its piece tried again.
Nothing is pickled: a piece is a line of JSON, and its tables go to the store.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from isolux.engine.pieces.piece import Piece, error_of
from isolux.engine.pieces.work import Work
from isolux.io.cores import CORES, cores

_THREADS = "POLARS_MAX_THREADS"


class Processes:
    """Computes pieces in processes of this machine.

    Parameters
    ----------
    workers : int
        How many at a time.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def __call__(self, work: Work) -> None:
        """Compute all pieces; see ``Executor``."""
        count = min(self.workers, work.count)
        waiting = _Waiting(work)
        ended: queue.SimpleQueue[Piece | BaseException | None] = queue.SimpleQueue()
        slots = [_Slot(work, waiting, ended, count) for _ in range(count)]
        for slot in slots:
            slot.start()
        busy = count
        try:
            while busy:
                said = ended.get()
                if said is None:
                    busy -= 1
                elif isinstance(said, Piece):
                    work.done(said)
                else:
                    raise said
        finally:
            for slot in slots:
                slot.stop()


class _Waiting:
    """The pieces that no process has yet, each with how often it may still be tried."""

    def __init__(self, work: Work) -> None:
        self._coming: Iterator[Piece] = iter(work.pieces)
        self._again: list[tuple[Piece, int]] = []
        self._work = work
        self._lock = threading.Lock()

    def take(self) -> tuple[Piece, int] | None:
        with self._lock:
            if self._work.stop():
                return None
            if self._again:
                return self._again.pop()
            piece = next(self._coming, None)
            return None if piece is None else (piece, self._work.limits.retries)

    def give_back(self, piece: Piece, left: int) -> None:
        with self._lock:
            self._again.append((piece, left))


class _Slot(threading.Thread):
    """One process at a time, and the thread that gives it pieces."""

    def __init__(
        self, work: Work, waiting: _Waiting, ended: queue.SimpleQueue[Any], count: int
    ) -> None:
        super().__init__(daemon=True)
        self.work, self.waiting, self.ended = work, waiting, ended
        self.share = max(1, cores() // count)
        self.child: subprocess.Popen[str] | None = None
        self.said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.stopped = False

    def run(self) -> None:
        """Give pieces to the process until there are no more."""
        try:
            while not self.stopped and (taken := self.waiting.take()) is not None:
                piece, left = taken
                why, late = self._asked(piece)
                left = self.work.limits.left(left, late=late)
                if why is None:
                    self.ended.put(piece)
                elif left and not self.stopped:
                    self.waiting.give_back(piece, left - 1)
                elif not self.stopped:
                    self.work.give_up(piece, why, late=late)
                    self.ended.put(piece)
        except BaseException as error:  # noqa: BLE001 - raised again where the work is waited for
            self.ended.put(error)
        else:
            self.ended.put(None)

    def _asked(self, piece: Piece) -> tuple[str | None, bool]:
        """Have a piece computed: None when it is there, or why it is not, and whether it was late.

        Raises
        ------
        IsoluxError
            The piece's own error, or that of what comes first.
        """
        seconds = self.work.limits.seconds
        first = self.work.first
        if self.child is None or self.child.poll() is not None:
            self._start()
            why = None if first is None else self._answer(first, None)
            if why is not None:
                self._kill()
                return why, False
        try:
            return self._answer(piece, seconds), False
        except queue.Empty:
            self._kill()
            return f"no end within {seconds:g} s", True

    def _answer(self, piece: Piece, seconds: float | None) -> str | None:
        child = self.child
        assert child is not None  # noqa: S101 - it was started
        assert child.stdin is not None  # noqa: S101 - it is a pipe
        try:
            child.stdin.write(json.dumps(asdict(piece)) + "\n")
            child.stdin.flush()
            line = self.said.get(timeout=seconds)
        except (OSError, ValueError):
            line = None
        if line is None:
            self._kill()
            return f"its process ended with {child.returncode}"
        answer = json.loads(line)
        if "error" in answer:
            raise error_of(answer["error"])
        lost: str | None = answer.get("lost")
        return lost

    def _start(self) -> None:
        self._kill()  # of one that ended by itself, the pipes are open
        self.said = queue.SimpleQueue()
        self.child = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "isolux.engine.pieces.worker", str(self.work.store.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, _THREADS: str(self.share), CORES: str(self.share)},
            process_group=0,  # a Ctrl-C is for the command, which finishes what is at hand
        )
        threading.Thread(target=_listen, args=(self.child, self.said), daemon=True).start()

    def _kill(self) -> None:
        child, self.child = self.child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.stopped = True
        self._kill()


def _listen(child: subprocess.Popen[str], said: queue.SimpleQueue[str | None]) -> None:
    assert child.stdout is not None  # noqa: S101 - it is a pipe
    with suppress(OSError, ValueError):  # the pipe is closed where the process is ended
        for line in child.stdout:
            said.put(line)
    said.put(None)
