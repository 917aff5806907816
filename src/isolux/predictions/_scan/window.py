"""A window that moves over the bytes of a file, so that a file of any length takes little memory.

Readers take the whole records that lie in the window, and say how far they came; what is left is
moved to the front and more is read behind it.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np
import numpy.typing as npt

from isolux.io.text import decodable
from isolux.vocabulary.errors import FileError

__all__ = ["CUT", "END", "FULL", "UNUSUAL", "Window", "open_bytes"]

CUT, UNUSUAL, END, FULL = 0, 1, 2, 3
"""Why a scanner stopped: the data end first; it does not read such a thing; the list is closed;
it has read as much as it was to."""

_BLOCK = 1 << 24  # bytes read together
_LONGEST = 1 << 28  # bytes of one record, at most
_NOT_ASCII = bytes(range(0x80, 0x100))
_ZEROS = 16  # bytes behind the data: no scanner looks further ahead


@contextmanager
def open_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file, unpacked on the way if its name says that it is gzipped."""
    path = Path(path).expanduser()
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # A pipe would be waited for.
            raise FileError("this is neither a file nor a folder", where=str(path))
        raw = path.open("rb")
        stream = (
            cast("IO[bytes]", gzip.open(raw)) if path.suffix.lower() == ".gz" else raw  # noqa: SIM115
        )
        with raw, stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileError(
            "this gzip file is damaged or cut off", found=str(error), where=str(path)
        ) from error
    except FileNotFoundError as error:
        raise FileError("there is no such file", where=str(path)) from error
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise FileError("the file cannot be read", found=found, where=str(path)) from error


class Window:
    """Some bytes of a stream; bytes of zero follow them.

    Attributes
    ----------
    data : [bytes] uint8
        The window, zeros at its end.
    end : int
        Where the zeros begin.
    base : int
        How many bytes of the file lie before the window.
    whole : bool
        The file ends where the window ends.
    size : int
        Bytes of the file, packed if it is so; 0 where that is not known.
    """

    def __init__(self, stream: IO[bytes], where: str, block: int = _BLOCK) -> None:
        self.stream, self.where = stream, where
        self.data: npt.NDArray[np.uint8] = np.zeros(block + _ZEROS, dtype=np.uint8)
        self.end, self.base, self.whole = 0, 0, False
        self.size = _size(stream)
        self.move(0)
        head = self.data[: min(self.end, 4096)].tobytes()
        if not head.strip() and not self.data[: self.end].tobytes().strip():
            raise FileError("the file is empty", expected="a model's answers", where=where)

    def move(self, used: int) -> None:
        """Leave the first ``used`` bytes behind and fill the window up again."""
        left = self.end - used
        if left > (len(self.data) - _ZEROS) // 2:
            if left > _LONGEST:
                raise FileError(
                    "one answer is longer than any answer is",
                    expected=f"at most {_LONGEST >> 20} MiB",
                    where=f"{self.where}, from byte {self.base + used}",
                )
            larger = np.zeros(2 * len(self.data), dtype=np.uint8)
            larger[:left] = self.data[used : self.end]
            self.data = larger
        else:
            self.data[:left] = self.data[used : self.end]  # numpy copies overlaps rightly
        self.base, self.end = self.base + used, left
        room = memoryview(self.data)  # type: ignore[arg-type]
        while not self.whole and self.end < len(self.data) - _ZEROS:
            read = self.stream.readinto(room[self.end : -_ZEROS])  # type: ignore[attr-defined]
            self.whole = not read
            self.end += read
        self.data[self.end :] = 0

    def begin(self) -> int:
        """Return where the text begins, behind a byte order mark; refuse what is not text."""
        head = self.data[: min(self.end, 4096)].tobytes()
        head = head.rstrip(_NOT_ASCII)  # a character may be cut in two where the head ends
        return len(head) - len(decodable(head, self.where))

    def text(self, start: int, stop: int) -> bytes:
        """Return a part of the window."""
        return self.data[start : min(stop, self.end)].tobytes()


def _size(stream: IO[bytes]) -> int:
    try:
        return os.fstat(stream.fileno()).st_size
    except (OSError, ValueError):  # bytes in memory have no file
        return 0
