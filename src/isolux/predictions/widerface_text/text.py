"""WIDER FACE's text of detections to columns: an image's name, how many, a line for each.

One file for each image, as its evaluation code takes them, or many images in one file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import IO

import numpy as np
import polars as pl

from isolux.io.text import decodable
from isolux.vocabulary.errors import FileError, TableError

_PICTURE = re.compile(r"\.(jpe?g|png|bmp|webp)$", re.IGNORECASE)
_COUNT = re.compile(rb"[ \t]*([0-9]{1,9})[ \t]*\r?\n?")
_ZEROS = re.compile(rb"[ \t]*0( +0)*[ \t]*\r?\n?")
_MAX_LINE_BYTES = 1 << 24
_BOXES_TOGETHER = 1 << 14
_BOX_LINE = "x y width height score"
_COLUMNS = ("box_x", "box_y", "box_w", "box_h", "score")


def read_texts(files: Iterable[tuple[str, bytes | IO[bytes]]], where: str) -> pl.DataFrame:
    """Read files of detections, line by line, so that any length takes little memory."""
    detections = _Detections()
    for name, content in files:
        stream = io.BytesIO(content) if isinstance(content, bytes) else content
        lines = _Lines(stream, name, f"{where}: {name}" if name else where)
        n_before = len(detections.files)
        while lines.read_on():
            if lines.line.strip():
                detections.add_image(lines)
        if len(detections.files) == n_before:
            raise FileError(
                "the file is empty", expected="an image's name, a count, boxes", where=lines.where
            )
    if not detections.files:
        raise FileError("there is no file of detections", expected="*.txt", where=where)
    return detections.frame()


class _Lines:
    """A line of a file, and those that follow."""

    def __init__(self, stream: IO[bytes], name: str, where: str) -> None:
        self.name, self.where = name, where
        self.line, self.number, self.is_unread = b"", 0, False
        self._lines = iter(lambda: stream.readline(_MAX_LINE_BYTES + 1), b"")

    def read_on(self) -> bool:
        """Go to the next line; false at the end of the file."""
        if self.is_unread:
            self.is_unread = False
            return bool(self.line)
        line = next(self._lines, b"")
        if len(line) > _MAX_LINE_BYTES:
            raise FileError(
                "a line is longer than any line is",
                expected=f"at most {_MAX_LINE_BYTES >> 20} MiB",
                where=f"{self.where}, line {self.number + 1}",
            )
        self.line = line if self.number else decodable(line, self.where)
        self.number += 1
        return bool(line)

    def next_lines(self, n_lines: int) -> list[bytes]:
        """Read lines without going to them."""
        return list(islice(self._lines, n_lines))

    def place(self) -> str:
        """Say where the line is."""
        return f"{self.where}, line {self.number}"

    def shown(self) -> str:
        """Show the line."""
        text = self.line[:200].decode("utf-8", "replace").strip()
        return repr(text[:60]) if text else "the end of the file"


class _Detections:
    """The images so far, in which file each is, and their boxes."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.counts: list[int] = []
        self.boxes = [np.empty((0, 5))]

    def add_image(self, lines: _Lines) -> None:
        """Read an image's name, the number of its boxes, and these."""
        image = _image_id(_name(lines), lines.name)
        if image in self.files:
            raise TableError(
                "two lists of detections are of the same image",
                expected="one list for each image",
                found=f"{image!r}, also in {self.files[image]}",
                where=lines.where,
            )
        self.files[image] = lines.where
        lines.read_on()
        count = _COUNT.fullmatch(lines.line)
        if count is None:
            raise FileError(
                "the number of boxes is missing",
                expected="a whole number in the line after the image's name",
                found=lines.shown(),
                where=lines.place(),
            )
        self.counts.append(int(count[1]))
        if self.counts[-1]:
            self._add_boxes(lines, self.counts[-1])
        else:  # some write a line of zeros for an image without boxes
            lines.read_on()
            lines.is_unread = not _ZEROS.fullmatch(lines.line)

    def _add_boxes(self, lines: _Lines, n_boxes: int) -> None:
        for start in range(0, n_boxes, _BOXES_TOGETHER):
            n_lines = min(n_boxes - start, _BOXES_TOGETHER)
            texts = lines.next_lines(n_lines)
            boxes = _boxes(texts)
            if boxes is None or len(texts) < n_lines:
                for row, text in enumerate([*texts, b""], start):
                    lines.line, lines.number = text, lines.number + 1
                    _refuse_no_box(lines, row, n_boxes)
            else:
                self.boxes.append(boxes)
                lines.number += n_lines

    def frame(self) -> pl.DataFrame:
        """Give one row a box."""
        images = pl.Series(list(self.files), dtype=pl.String)
        boxes = np.concatenate(self.boxes)
        self.boxes.clear()
        return pl.DataFrame(
            {
                "image_id": images.gather(np.repeat(np.arange(len(images)), self.counts)),
                **{name: pl.Series(boxes[:, k]) for k, name in enumerate(_COLUMNS)},
            }
        )


def _boxes(lines: list[bytes]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]] | None:
    """Read lines of five finite numbers, [N, 5]; none where a line is something else."""
    cells = [line.split() for line in lines]
    if any(len(row) != 5 for row in cells) or any(b"_" in line for line in lines):
        return None
    try:
        boxes = np.fromiter(map(float, chain.from_iterable(cells)), float).reshape(-1, 5)
    except ValueError:
        return None
    return boxes if np.isfinite(boxes).all() else None


def _refuse_no_box(lines: _Lines, n_read: int, n_boxes: int) -> None:
    cells = lines.line.split()
    if not cells or (len(cells) == 1 and _boxes([lines.line * 5]) is None):
        raise TableError(
            "an image has fewer boxes than it says",
            expected=f"{n_boxes:,} lines: {_BOX_LINE}",
            found=f"{n_read:,}, then {lines.shown()}",
            where=lines.place(),
        )
    if _boxes([lines.line]) is None:
        raise TableError(
            "a box cannot be read",
            expected=f"five finite numbers: {_BOX_LINE}",
            found=lines.shown(),
            where=lines.place(),
        )


def _name(lines: _Lines) -> str:
    """Read an image's name; refuse a line that is none."""
    try:
        text = lines.line.decode().strip() if lines.line.endswith(b"\n") else ""
    except UnicodeDecodeError as error:
        raise FileError(
            "the file is not UTF-8 text",
            expected="UTF-8",
            found=f"byte 0x{lines.line[error.start]:02X}",
            where=lines.place(),
        ) from error
    cells = text.split()
    if not text:
        raise FileError(
            "an image's name or its number of boxes is missing",
            expected="a line with the name, then a line with the number of boxes",
            found=lines.shown(),
            where=lines.place(),
        )
    if len(cells) == 5 and all(re.match(r"[-+.\d]", cell) for cell in cells):
        is_later = lines.number > 1
        raise TableError(
            "an image has more boxes than it says" if is_later else "the file begins with a box",
            expected="an image's name"
            + (" after as many boxes as were announced" if is_later else ""),
            found=repr(text[:60]),
            where=lines.place(),
        )
    return text


def _image_id(name: str, file: str) -> str:
    """Name the image as WIDER FACE does: event, slash, picture."""
    event = PurePosixPath(file).parent.name
    if "/" not in name and event:
        name = f"{event}/{name}"
    return name if _PICTURE.search(name) else f"{name}.jpg"
