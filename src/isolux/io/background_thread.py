"""Run work in a background thread that is always waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from isolux.core.address_space import read_address_space_limit_bytes

_START_TIMEOUT_S = 60.0  # seconds at most for work whose start a signal broke into


@contextmanager
def run_in_background(work: Callable[[], object]) -> Iterator[None]:
    """Run ``work`` in a thread while the block runs, and wait for it however the block ends."""
    if read_address_space_limit_bytes() is not None:  # and a thread would reserve a lot of them
        work()
        yield
        return
    failed: list[BaseException] = []
    finished = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
            failed.append(error)
        finally:
            finished.set()

    try:
        threading.Thread(target=run, name="isolux-alongside").start()
    except RuntimeError:  # this process may have no more threads
        run()
    except BaseException:  # a signal while it started
        finished.wait(_START_TIMEOUT_S)
        raise
    try:
        yield
    finally:
        _wait(finished)
    if failed:
        raise failed[0]


def _wait(finished: threading.Event) -> None:
    stopped: BaseException | None = None
    while not finished.is_set():
        try:
            finished.wait()
        except BaseException as error:  # noqa: BLE001 - a signal: raised once the work is done
            stopped = error
    if stopped is not None:
        raise stopped
