"""Pieces of one computation, side by side in threads: numpy lets go of Python's lock as it counts.

What comes out does not depend on how many there are: each piece is independent of the others.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import TypeVar

from isolux.core.address_space import read_address_space_limit_bytes
from isolux.io.cpu_count import count_cores

_MAX_THREADS = 4
"""Threads at once: each holds a piece's own arrays."""
_WARNINGS = threading.RLock()

Piece = TypeVar("Piece")
Outcome = TypeVar("Outcome")


def release_free_memory() -> None:
    """Return freed memory to the system, where the C library supports it (glibc)."""
    import ctypes

    if os.name == "posix":
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)


def map_in_threads(
    work: Callable[[Piece], Outcome], pieces: Iterable[Piece], *, max_threads: int = _MAX_THREADS
) -> list[Outcome]:
    """Apply ``work`` to each piece in threads; results are in the order of the pieces."""
    piece_list = list(pieces)
    max_threads = min(count_cores(), max_threads, len(piece_list))
    if max_threads < 2 or read_address_space_limit_bytes() is not None:
        return [work(piece) for piece in piece_list]
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(max_threads, "isolux-piece")
    try:
        # In a copy of this thread's context, which holds numpy's ways with errors (``errstate``).
        futures = [pool.submit(copy_context().run, work, piece) for piece in piece_list]
        return [future.result() for future in futures]
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def ignore_runtime_warnings() -> Iterator[None]:
    """Ignore ``RuntimeWarning`` in the block; one such block runs at a time."""
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
