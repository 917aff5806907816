"""Damaged files without the fifty lines that polars' engine prints about itself.

A panic reaches Python as an exception, from which a reader makes an error that names the file. It
is also printed, with a stack, by the engine itself: on file descriptor 2, where Python's own
``sys.stderr`` has no say.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def silence_panics() -> Iterator[None]:
    """Drop what is printed on file descriptor 2 while the block runs; exceptions go on."""
    with suppress(OSError, ValueError, AttributeError):  # closed, or none at all
        sys.stderr.flush()
    try:
        stderr_copy = os.dup(2)
    except OSError:
        yield
        return
    try:
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, 2)
        os.close(null_device)
        yield
    finally:
        os.dup2(stderr_copy, 2)
        os.close(stderr_copy)
