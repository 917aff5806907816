"""A text file a few megabytes at a time, in whole lines, so that any length takes little memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
import numpy.typing as npt

from isolux.io.text import decodable
from isolux.vocabulary.errors import FileError

__all__ = ["Piece", "pieces"]

_BLOCK = 1 << 22  # bytes read together
_LONGEST = 1 << 24  # bytes of one line, at most


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a file.

    Parameters
    ----------
    data : bytes
        The lines; only a file's last may lack its end.
    numbers : [bytes + 2] uint8
        The same, and zeros behind it.
    name, where : str
        The file's name below its folder; what to call it in messages.
    before : int
        Lines of the file before these.
    last : bool
        Nothing follows.
    """

    data: bytes
    numbers: npt.NDArray[np.uint8]
    name: str
    where: str
    before: int
    last: bool

    def line(self, at: int) -> int:
        """Count lines from 1."""
        return self.before + self.data.count(b"\n", 0, at) + 1

    def at(self, byte: int) -> str:
        """Say where in the file a byte of this piece is."""
        return f"{self.where}, line {self.line(byte)}"

    def shown(self, at: int) -> str:
        """Show the line that begins there."""
        line = self.data[at : at + 200].split(b"\n", 1)[0].decode("utf-8", "replace").strip()
        return repr(line[:60]) if line else "the end of the file"


def pieces(stream: IO[bytes], name: str, where: str, *, block: int = _BLOCK) -> Iterator[Piece]:
    r"""Part a file into whole lines; at least one piece, the last of which says so.

    Examples
    --------
    >>> import io
    >>> [piece.data for piece in pieces(io.BytesIO(b"ab\ncd\nef"), "a.txt", "a.txt", block=4)]
    [b'ab\n', b'cd\n', b'ef']
    """
    left, before, blank = b"", 0, True
    while True:
        more = stream.read(block)
        data = left + more
        stop = data.rfind(b"\n") + 1 if more else len(data)
        if not stop and more:
            left = data
            _refuse_endless(left, where, before)
            continue
        left = data[stop:]
        piece = _decodable(data[:stop], where, before)
        blank = blank and not piece.strip()
        if blank and not more:
            raise FileError(
                "the file is empty", expected="an image's name, a count, boxes", where=where
            )
        numbers = np.frombuffer(piece + b"\0\0", dtype=np.uint8)
        yield Piece(piece, numbers, name, where, before, last=not more)
        if not more:
            return
        before += piece.count(b"\n")


def _decodable(piece: bytes, where: str, before: int) -> bytes:
    """Refuse what is no UTF-8; the file's first bytes may also say what else it is."""
    if not before:
        return decodable(piece, where)
    if piece.isascii():
        return piece
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError as error:
        line = before + piece.count(b"\n", 0, error.start) + 1
        raise FileError(
            "the file is not UTF-8 text",
            expected="UTF-8",
            found=f"byte 0x{piece[error.start]:02X}",
            where=f"{where}, line {line}",
        ) from error
    return piece


def _refuse_endless(line: bytes, where: str, before: int) -> None:
    if not before:
        decodable(line[:4096].rstrip(bytes(range(0x80, 0x100))), where)
    if len(line) > _LONGEST:
        raise FileError(
            "a line is longer than any line is",
            expected=f"at most {_LONGEST >> 20} MiB",
            where=f"{where}, line {before + 1}",
        )
