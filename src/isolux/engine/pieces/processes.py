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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from isolux.engine.pieces.piece import Limits, Piece, error_of
from isolux.engine.pieces.store import PieceStore
from isolux.vocabulary.errors import IsoluxError

__all__ = ["Processes", "gave_up"]

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

    def __call__(
        self, pieces: Sequence[Piece], store: PieceStore, limits: Limits, done: Callable[[], None]
    ) -> None:
        """Compute all pieces; see ``Executor``."""
        count = min(self.workers, len(pieces))
        waiting: queue.SimpleQueue[tuple[Piece, int] | None] = queue.SimpleQueue()
        for piece in pieces:
            waiting.put((piece, limits.retries))
        ended: queue.SimpleQueue[IsoluxError | BaseException | None] = queue.SimpleQueue()
        slots = [_Slot(store, limits, waiting, ended, count) for _ in range(count)]
        for slot in slots:
            slot.start()
        try:
            for _ in pieces:
                said = ended.get()
                if said is not None:
                    raise said
                done()
        finally:
            for slot in slots:
                slot.stop()


class _Slot(threading.Thread):
    """One process at a time, and the thread that gives it pieces."""

    def __init__(
        self,
        store: PieceStore,
        limits: Limits,
        waiting: queue.SimpleQueue[tuple[Piece, int] | None],
        ended: queue.SimpleQueue[Any],
        count: int,
    ) -> None:
        super().__init__(daemon=True)
        self.store, self.limits, self.waiting, self.ended = store, limits, waiting, ended
        self.threads = max(1, (os.cpu_count() or 1) // count)
        self.child: subprocess.Popen[str] | None = None
        self.said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.stopped = False

    def run(self) -> None:
        """Give pieces to the process until there are no more."""
        try:
            while not self.stopped and (taken := self.waiting.get()) is not None:
                piece, left = taken
                why = self._asked(piece)
                if why is None or isinstance(why, IsoluxError):
                    self.ended.put(why)
                elif left and not self.stopped:
                    self.waiting.put((piece, left - 1))
                else:
                    self.ended.put(gave_up(piece, why, self.limits))
        except BaseException as error:  # noqa: BLE001 - raised again where the work is waited for
            self.ended.put(error)

    def _asked(self, piece: Piece) -> IsoluxError | str | None:
        """Have a piece computed: None when it is there, an error, or why the process is gone."""
        child = self._process()
        try:
            assert child.stdin is not None  # noqa: S101 - it is a pipe
            child.stdin.write(json.dumps(asdict(piece)) + "\n")
            child.stdin.flush()
            line = self.said.get(timeout=self.limits.seconds)
        except (OSError, ValueError):
            line = None
        except queue.Empty:
            self._kill()
            return f"no end within {self.limits.seconds:g} s"
        if line is None:
            self._kill()
            return f"its process ended with {child.returncode}"
        answer = json.loads(line)
        if "error" in answer:
            return error_of(answer["error"])
        lost: str | None = answer.get("lost")
        return lost

    def _process(self) -> subprocess.Popen[str]:
        if self.child is None or self.child.poll() is not None:
            self.said = queue.SimpleQueue()
            self.child = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "isolux.engine.pieces.worker", str(self.store.folder)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env={**os.environ, _THREADS: str(self.threads)},
            )  # fmt: skip
            threading.Thread(target=_listen, args=(self.child, self.said), daemon=True).start()
        return self.child

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
        self.waiting.put(None)
        self._kill()


def _listen(child: subprocess.Popen[str], said: queue.SimpleQueue[str | None]) -> None:
    assert child.stdout is not None  # noqa: S101 - it is a pipe
    with suppress(OSError, ValueError):  # the pipe is closed where the process is ended
        for line in child.stdout:
            said.put(line)
    said.put(None)


def gave_up(piece: Piece, why: str, limits: Limits) -> IsoluxError:
    """Make the error of a piece whose worker was lost or late too often."""
    return IsoluxError(
        "a shard was not computed",
        expected=f"its tables, in one of {limits.retries + 1} tries",
        found=why,
        where=piece.name,
        hint="what other shards gave is kept where --sums names a folder; --time-limit gives more "
        "seconds, smaller shards need less memory",
    )
