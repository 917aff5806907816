"""WIDER FACE's text of detections to columns: an image's name, how many, a line for each.

One file for each image, as its evaluation code takes them, or many images in one file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.errors import FileError, TableError
from isolux.io._text import decodable

__all__ = ["read_texts"]

_PICTURE = re.compile(r"\.(jpe?g|png|bmp|webp)$", re.IGNORECASE)
_COUNT = re.compile(rb"[ \t]*([0-9]{1,9})[ \t]*\r?(?:\n|$)")
_BOX_LINE = "x y width height score"


@dataclass(slots=True)
class _Text:
    """One file: its bytes, and what to call it in messages."""

    data: bytes
    numbers: npt.NDArray[np.uint8]
    name: str
    where: str

    def line(self, at: int) -> int:
        """Count lines from 1."""
        return self.data.count(b"\n", 0, at) + 1

    def at(self, byte: int) -> str:
        return f"{self.where}, line {self.line(byte)}"

    def shown(self, at: int) -> str:
        line = self.data[at : at + 200].split(b"\n", 1)[0].decode("utf-8", "replace").strip()
        return repr(line[:60]) if line else "the end of the file"


def read_texts(files: Iterable[tuple[str, bytes]], where: str) -> pl.DataFrame:
    """Read files of detections.

    Parameters
    ----------
    files : iterable of (str, bytes)
        Name below the folder (``31--Waiter/31_Waiter_276.txt``) and content.
    where : str
        The folder or archive.

    Returns
    -------
    polars.DataFrame
        ``image_id`` (``31--Waiter/31_Waiter_276.jpg``), ``box_x, box_y, box_w, box_h, score``.

    Raises
    ------
    FileError, TableError
        With file and line (from 1).
    """
    images: list[str] = []
    counts: list[int] = []
    parts: list[npt.NDArray[np.float64]] = []
    origin: dict[str, str] = {}
    for name, data in files:
        place = f"{where}: {name}" if name else where
        data = decodable(data, place)  # noqa: PLW2901
        if not data.strip():
            raise FileError(
                "the file is empty", expected="an image's name, a count, boxes", where=place
            )
        text = _Text(data, np.frombuffer(data + b"\0\0", dtype=np.uint8), name, place)
        at = 0
        while at >= 0:
            image, found, at = _image(text, at)
            if image in origin:
                raise TableError(
                    "two lists of detections are of the same image",
                    expected="one list for each image",
                    found=f"{image!r}, also in {origin[image]}",
                    where=place,
                )
            origin[image] = place
            images.append(image)
            counts.append(len(found))
            parts.append(found)
    if not images:
        raise FileError("there is no file of detections", expected="*.txt", where=where)
    boxes = np.concatenate(parts)
    named = pl.Series(images, dtype=pl.String).gather(np.repeat(np.arange(len(images)), counts))
    names = ("box_x", "box_y", "box_w", "box_h", "score")
    columns = {n: pl.Series(np.ascontiguousarray(boxes[:, k])) for k, n in enumerate(names)}
    return pl.DataFrame({"image_id": named, **columns})


def _image(text: _Text, at: int) -> tuple[str, npt.NDArray[np.float64], int]:
    """Read one image from its name on: its id, boxes [N, 5], the next name or -1."""
    end = text.data.find(b"\n", at)
    name = text.data[at:end].decode("utf-8").strip() if end >= 0 else ""
    _refuse_no_name(text, at, name)
    counted = _COUNT.match(text.data, end + 1)
    if counted is None:
        raise FileError(
            "the number of boxes is missing",
            expected="a whole number in the line after the image's name",
            found=text.shown(end + 1),
            where=text.at(end + 1),
        )
    found, at = _boxes(text, counted.end(), int(counted[1]))
    following = _not_blank(text.data, at)
    return _image_id(name, text), found, following if following < len(text.data) else -1


def _boxes(text: _Text, start: int, count: int) -> tuple[npt.NDArray[np.float64], int]:
    from isolux.predictions._wider_kernels import read_lines

    room = (len(text.data) - start) // 9 + 1  # "0 0 0 0 0" is the shortest line
    if count > room:
        raise _miscounted(text, start, count, int(text.data.count(b"\n", start)))
    found = np.empty((count, 5))
    rows, at = read_lines(text.numbers, start, found)
    while rows < count:  # a line that the quick reader does not take: 1e400, nan, +1, a blank
        stop = text.data.find(b"\n", at)
        line = text.data[at : stop if stop >= 0 else len(text.data)]
        found[rows] = _five(text, at, line, rows, count)
        at += len(line) + 1
        more, at = read_lines(text.numbers, at, found[rows + 1 :])
        rows += more + 1
    if count == 0 and re.match(rb"[ \t]*0( +0)*[ \t]*\r?(\n|$)", text.data[at : at + 80]):
        at = text.data.find(b"\n", at) + 1 or len(text.data)  # the dummy line of an empty image
    return found, at


def _five(text: _Text, at: int, line: bytes, row: int, count: int) -> list[float]:
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


def _miscounted(text: _Text, at: int, count: int, found: int) -> TableError:
    return TableError(
        "an image has fewer boxes than it says",
        expected=f"{count:,} lines: {_BOX_LINE}",
        found=f"{found:,}, then {text.shown(at)}",
        where=text.at(at),
    )


def _refuse_no_name(text: _Text, at: int, name: str) -> None:
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
    raise TableError(
        "an image has more boxes than it says" if at else "the file begins with a box",
        expected="an image's name" + (" after as many boxes as were announced" if at else ""),
        found=repr(name[:60]),
        where=text.at(at),
    )


def _image_id(name: str, text: _Text) -> str:
    """Name the image as WIDER FACE does: event, slash, picture."""
    if "/" not in name:
        parent = PurePosixPath(text.name).parent.name
        name = f"{parent}/{name}" if parent else name
    return name if _PICTURE.search(name) else f"{name}.jpg"


def _not_blank(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in b" \t\r\n":
        at += 1
    return at
