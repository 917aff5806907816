"""Threads that read ahead: a few, never waited for at the end, and replaced when they are stuck.

``ThreadPoolExecutor`` waits for its threads when the process ends; a read that hangs on a network
disk would keep the whole command. These are daemons.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

__all__ = ["Readers"]


class Readers:
    """Threads that do what they are given, in order.

    Examples
    --------
    >>> readers = Readers(2)
    >>> readers.submit(lambda: 6 * 7).result(timeout=5)
    42
    >>> readers.close()
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._jobs = queue.SimpleQueue()
        self.more()

    def more(self) -> None:
        """Start as many threads again: those there are may be stuck."""
        for _ in range(self._count):
            threading.Thread(target=_work, args=(self._jobs,), daemon=True).start()

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Have something done; the future holds what came of it."""
        future: Future[Any] = Future()
        self._jobs.put((future, call))
        return future

    def close(self) -> None:
        """Let the threads end when they have done what was given to them."""
        for _ in range(self._count):
            self._jobs.put(None)


def _work(jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]) -> None:
    while (job := jobs.get()) is not None:
        future, call = job
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
            future.set_exception(error)
        del job, future, call  # and what was read, while there is nothing to do
