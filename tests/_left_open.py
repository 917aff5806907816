"""Whether code closes what it opens: what is left to the garbage collector fails some other test.

A warning of an open file is an error here, and it is told of whenever the collector comes by.
"""

from __future__ import annotations

import gc
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock


@contextmanager
def nothing_left_open() -> Iterator[None]:
    """Hold the code to having closed its files, also where it ended in an error."""
    gc.collect()  # what others left
    told: list[str] = []
    with mock.patch.object(sys, "unraisablehook", lambda it: told.append(str(it.exc_value))):
        yield
        gc.collect()
    assert not told


def open_below(folder: Path) -> list[str]:
    """Name the files below a folder that Python has open now; none where no Linux lists them.

    Asked while an error is held, and with it all frames that it came through: a file that only the
    end of those would close is one that the collector closes. Maps into memory do not count.
    """
    held = {}
    for handle in Path("/proc/self/fd").iterdir() if sys.platform == "linux" else ():
        with suppress(OSError):  # that of this list
            held[int(handle.name)] = handle.readlink()
    below = {number: str(file) for number, file in held.items() if file.is_relative_to(folder)}
    if not below:
        return []
    files = [one for one in gc.get_objects() if isinstance(one, io.FileIO) and not one.closed]
    return sorted(below[number] for one in files if (number := one.fileno()) in below)
