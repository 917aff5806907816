"""WIDER FACE's text of detections to columns: an image's name, how many, a line for each.

One file for each image, as its evaluation code takes them, or many images in one file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import IO, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.predictions.widerface_text.pieces import Piece, pieces
from isolux.vocabulary.errors import FileError, TableError

__all__ = ["read_texts"]

_PICTURE = re.compile(r"\.(jpe?g|png|bmp|webp)$", re.IGNORECASE)
_COUNT = re.compile(rb"[ \t]*([0-9]{1,9})[ \t]*\r?(?:\n|$)")
_ZEROS = re.compile(rb"[ \t]*0( +0)*[ \t]*\r?(?:\n|$)")
_ROOM = 1 << 16  # boxes for which there is room at first
_BOX_LINE = "x y width height score"


def read_texts(files: Iterable[tuple[str, bytes | IO[bytes]]], where: str) -> pl.DataFrame:
    """Read files of detections, each a few megabytes at a time."""
    found = _Found()
    for name, content in files:
        stream = io.BytesIO(content) if isinstance(content, bytes) else content
        file = _File(found)
        for piece in pieces(stream, name, f"{where}: {name}" if name else where):
            file.read(piece)
    if not found.images:
        raise FileError("there is no file of detections", expected="*.txt", where=where)
    return found.frame()


class _Found:
    """The images so far and their boxes, in long arrays whose unwritten pages take no memory."""

    def __init__(self) -> None:
        self.images: list[str] = []
        self.counts: list[int] = []
        self.origin: dict[str, str] = {}
        self.boxes = np.empty((5, _ROOM))
        self.filled = 0

    def open(self, image: str, where: str) -> None:
        """Begin an image; refuse one that was there before."""
        if image in self.origin:
            raise TableError(
                "two lists of detections are of the same image",
                expected="one list for each image",
                found=f"{image!r}, also in {self.origin[image]}",
                where=where,
            )
        self.origin[image] = where
        self.images.append(image)
        self.counts.append(0)

    def room(self, rows: int) -> npt.NDArray[np.float64]:
        """Return where the next boxes belong, ``[rows, 5]``."""
        if self.filled + rows > self.boxes.shape[1]:
            longer = np.empty((5, 2 * (self.filled + rows)))
            longer[:, : self.filled] = self.boxes[:, : self.filled]
            self.boxes = longer
        return self.boxes[:, self.filled : self.filled + rows].T

    def add(self, rows: int) -> None:
        """Count boxes that were written there."""
        self.filled += rows
        self.counts[-1] += rows

    def frame(self) -> pl.DataFrame:
        """Give one row a box."""
        named = pl.Series(self.images, dtype=pl.String)
        named = named.gather(np.repeat(np.arange(len(self.images)), self.counts))
        names = ("box_x", "box_y", "box_w", "box_h", "score")
        columns = {n: pl.Series(self.boxes[k, : self.filled]) for k, n in enumerate(names)}
        return pl.DataFrame({"image_id": named, **columns})


class _File:
    """How far one file was read: what its next line must be."""

    def __init__(self, found: _Found) -> None:
        self.found = found
        self.next: Literal["name", "count", "boxes", "dummy"] = "name"
        self.count = self.left = 0  # boxes announced for the image, and those to come
        self.begun = False

    def read(self, piece: Piece) -> None:
        """Read the lines of a piece."""
        steps = {
            "name": self._name,
            "count": self._count,
            "boxes": self._boxes,
            "dummy": self._dummy,
        }
        at = 0
        while at < len(piece.data):
            at = steps[self.next](piece, at)
        if piece.last and self.next == "count":
            raise _uncounted(piece, at)
        if piece.last and self.next == "boxes":
            raise _miscounted(piece, at, self.count, self.count - self.left)

    def _name(self, piece: Piece, at: int) -> int:
        at = _not_blank(piece.data, at) if self.begun else at
        if at == len(piece.data):
            return at
        end = piece.data.find(b"\n", at)
        name = piece.data[at:end].decode("utf-8").strip() if end >= 0 else ""
        _refuse_no_name(piece, at, name)
        self.found.open(_image_id(name, piece), piece.where)
        self.next, self.begun = "count", True
        return end + 1

    def _count(self, piece: Piece, at: int) -> int:
        counted = _COUNT.match(piece.data, at)
        if counted is None:
            raise _uncounted(piece, at)
        self.count = self.left = int(counted[1])
        self.next = "boxes" if self.count else "dummy"
        return counted.end()

    def _dummy(self, piece: Piece, at: int) -> int:
        """Pass over the line of zeros that some write for an image without boxes."""
        self.next = "name"
        if not _ZEROS.match(piece.data, at):
            return at
        return piece.data.find(b"\n", at) + 1 or len(piece.data)

    def _boxes(self, piece: Piece, at: int) -> int:
        from isolux.predictions.widerface_text.kernels import read_lines

        most = (len(piece.data) - at) // 9 + 1  # "0 0 0 0 0" is the shortest line
        room = self.found.room(min(self.left, most))
        rows, at = read_lines(piece.numbers, at, room)
        if rows < len(room) and at < len(piece.data):
            # a line that the quick reader does not take: 1e400, nan, +1, a blank
            stop = piece.data.find(b"\n", at)
            line = piece.data[at : stop if stop >= 0 else len(piece.data)]
            room[rows] = _five(piece, at, line, self.count - self.left + rows, self.count)
            rows, at = rows + 1, min(at + len(line) + 1, len(piece.data))
        self.found.add(rows)
        self.left -= rows
        self.next = "boxes" if self.left else "name"
        return at


def _five(text: Piece, at: int, line: bytes, row: int, count: int) -> list[float]:
    try:
        numbers = [float(cell) for cell in line.split()]
    except ValueError:
        numbers = []
    if not line.strip() or (len(line.split()) == 1 and not numbers):
        raise _miscounted(text, at, count, row)
    if len(numbers) != 5 or b"_" in line or not np.isfinite(numbers).all():
        raise TableError(
            "a box cannot be read",
            expected=f"five finite numbers: {_BOX_LINE}",
            found=text.shown(at),
            where=text.at(at),
        )
    return numbers


def _miscounted(text: Piece, at: int, count: int, found: int) -> TableError:
    return TableError(
        "an image has fewer boxes than it says",
        expected=f"{count:,} lines: {_BOX_LINE}",
        found=f"{found:,}, then {text.shown(at)}",
        where=text.at(at),
    )


def _uncounted(text: Piece, at: int) -> FileError:
    return FileError(
        "the number of boxes is missing",
        expected="a whole number in the line after the image's name",
        found=text.shown(at),
        where=text.at(at),
    )


def _refuse_no_name(text: Piece, at: int, name: str) -> None:
    cells = name.split()
    if name and not (len(cells) == 5 and all(re.match(r"[-+.\d]", cell) for cell in cells)):
        return
    if not name:
        raise FileError(
            "an image's name or its number of boxes is missing",
            expected="a line with the name, then a line with the number of boxes",
            found=text.shown(at),
            where=text.at(at),
        )
    later = text.before + at > 0
    raise TableError(
        "an image has more boxes than it says" if later else "the file begins with a box",
        expected="an image's name" + (" after as many boxes as were announced" if later else ""),
        found=repr(name[:60]),
        where=text.at(at),
    )


def _image_id(name: str, text: Piece) -> str:
    """Name the image as WIDER FACE does: event, slash, picture."""
    if "/" not in name:
        parent = PurePosixPath(text.name).parent.name
        name = f"{parent}/{name}" if parent else name
    return name if _PICTURE.search(name) else f"{name}.jpg"


def _not_blank(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in b" \t\r\n":
        at += 1
    return at
