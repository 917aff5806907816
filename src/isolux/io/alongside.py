"""Work that another thread does meanwhile, and that is always waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from isolux.vocabulary.addresses import allowed_addresses

__all__ = ["alongside"]


@contextmanager
def alongside(work: Callable[[], object]) -> Iterator[None]:
    """Run ``work`` in a thread while the block runs, and wait for it however the block ends.

    For work that needs no Python, such as polars writing a file. What it raises is raised when the
    block has ended; an error of the block comes first. A signal during the wait is raised after it,
    so that nobody removes a folder in which a file still grows. Under a limit of addresses
    (``ulimit -v``) the work is done first.

    Examples
    --------
    >>> found = []
    >>> with alongside(lambda: found.append("work")):
    ...     pass
    >>> found
    ['work']
    """
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
            failed.append(error)

    if allowed_addresses() is not None:  # a thread reserves more of them than the work needs
        work()
        yield
        return
    thread = threading.Thread(target=run, name="isolux-alongside")
    thread.start()
    try:
        yield
    finally:
        _wait(thread)
    if failed:
        raise failed[0]


def _wait(thread: threading.Thread) -> None:
    stopped: BaseException | None = None
    while thread.is_alive():
        try:
            thread.join()
        except BaseException as error:  # noqa: BLE001 - a signal: raised once the thread is done
            stopped = error
    if stopped is not None:
        raise stopped
