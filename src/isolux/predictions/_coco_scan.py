"""COCO results JSON to one frame: the scanner of its schema, and the general reader behind it.

A file is read through a window of a few megabytes and its rows go straight into columns, so that
the memory taken is that of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.errors import FileError
from isolux.predictions._coco_rows import decode_rows, raise_damage
from isolux.predictions._window import CUT, END, FULL, UNUSUAL, Window

__all__ = ["COLUMNS", "scan"]

COLUMNS: dict[str, Any] = {
    "image_id": pl.String(),
    "label": pl.String(),
    **dict.fromkeys(("box_x", "box_y", "box_w", "box_h", "score"), pl.Float64()),
    "mask_counts": pl.String(),
    "mask_height": pl.Int64(),
    "mask_width": pl.Int64(),
    "keypoints": pl.List(pl.Float64()),
}
_CATEGORY, _BOX, _MASK, _POINTS = 2, 4, 16, 32  # of the fields' numbers in _coco_kernels
_ROWS = 1 << 17  # rows scanned together
_FEW = 4096  # rows that the general reader takes together


class _Buffers:
    """What the scanner fills; pages that it does not touch take no memory."""

    def __init__(self, size: int) -> None:
        self.bytes = size
        self.wholes = np.empty((_ROWS, 4), np.int64)  # image, category, height, width
        self.numbers = np.empty((_ROWS, 5))  # x, y, width, height, score
        self.counts, self.points = np.empty(size, np.uint8), np.empty(size // 2)
        self.state = np.array([0, 0, -1])  # used of counts, of points; keypoints' numbers a row

    def frame(self, rows: int, fields: int) -> pl.DataFrame:
        """Copy what was filled into columns."""
        columns: dict[str, pl.Series] = {"image_id": _id_text(self.wholes[:rows, 0])}
        if fields & _CATEGORY:
            columns["label"] = _id_text(self.wholes[:rows, 1])
        if fields & _BOX:
            for k, name in enumerate(("box_x", "box_y", "box_w", "box_h")):
                columns[name] = pl.Series(self.numbers[:rows, k].copy())
        columns["score"] = pl.Series(self.numbers[:rows, 4].copy())
        if fields & _MASK:
            text = self.counts[: self.state[0] - 1].tobytes().decode("ascii")
            columns["mask_counts"] = pl.Series([text]).str.split("\0").explode()
            columns["mask_height"] = pl.Series(self.wholes[:rows, 2].copy())
            columns["mask_width"] = pl.Series(self.wholes[:rows, 3].copy())
        if fields & _POINTS:
            points = self.points[: rows * self.state[2]].reshape(rows, -1).copy()
            columns["keypoints"] = pl.Series(points).cast(COLUMNS["keypoints"])
        return pl.DataFrame(columns)


def scan(window: Window, *, general: bool = False) -> pl.DataFrame:
    """Read a list of results.

    Parameters
    ----------
    window : Window
        At the start of the file.
    general : bool
        Read all of it by the general reader. The result is the same.

    Returns
    -------
    polars.DataFrame
        ``COLUMNS``, a row for each result, in the order of the file; columns that no result has
        are absent.
    """
    parts = list(_parts(window, general=general))
    if not parts:
        return pl.DataFrame(schema={name: COLUMNS[name] for name in ("image_id", "score")})
    names = [name for name in COLUMNS if any(name in part.columns for part in parts)]
    if any(part.columns != names for part in parts):
        parts = [
            part.with_columns(
                pl.lit(None, dtype=COLUMNS[n]).alias(n) for n in names if n not in part.columns
            ).select(names)
            for part in parts
        ]
    return pl.concat(parts, rechunk=False)


def _parts(window: Window, *, general: bool) -> Iterator[pl.DataFrame]:
    at = _opened(window)
    if at < 0:
        return
    buffers, row, fields = _Buffers(len(window.data)), 0, 0
    while True:
        if buffers.bytes < len(window.data):
            buffers = _Buffers(len(window.data))
        rows, why = 0, UNUSUAL
        if not general:
            rows, at, why, fields = _scan(window, at, buffers, fields)
        if rows:
            row += rows
            yield buffers.frame(rows, fields)
        if why == UNUSUAL:
            frame, at, why = _general(window, at, row)
            if frame.height:
                row += frame.height
                yield frame
        if why == END:
            _refuse_more(window, at)
            return
        if why == CUT:
            at = _more(window, at)


def _scan(window: Window, at: int, buffers: _Buffers, fields: int) -> tuple[int, int, int, int]:
    """Read the next rows by the scanner: how many, where it stopped, why, and their fields."""
    from isolux.predictions._coco_kernels import scan_rows

    wholes, numbers = buffers.wholes.reshape(-1), buffers.numbers.reshape(-1)
    b = buffers
    found: tuple[int, int, int, int] = scan_rows(
        window.data, at, wholes, numbers, b.counts, b.points, b.state, fields
    )
    return found


def _general(window: Window, at: int, row: int) -> tuple[pl.DataFrame, int, int]:
    """Read the next rows by msgspec: the rows, where it stopped, and why."""
    from isolux.predictions._coco_kernels import rows_end

    if at < window.end and window.data[at] != ord("{"):
        raise FileError(
            "an item of the list is no object",
            expected='{"image_id": …}',
            found=repr(window.text(at, at + 20).decode("utf-8", "replace"))
            + f" at byte {window.base + at}",
            where=window.where,
        )
    rows, stop, after, why = rows_end(window.data, at, window.end, _FEW)
    if rows == 0 and why == CUT and not window.whole:
        return pl.DataFrame(), at, CUT
    if rows == 0:
        raise_damage(window.text(at, window.end), window.where, byte=window.base + at)
    text = window.text(at, stop)
    frame = decode_rows(text, window.where, row=row, byte=window.base + at)
    if frame.height != rows:
        raise_damage(window.text(at, window.end), window.where, byte=window.base + at)
    if why == UNUSUAL:
        raise_damage(window.text(stop, window.end), window.where, byte=window.base + stop)
    empty = [name for name in frame.columns if frame[name].null_count() == frame.height]
    return frame.drop(empty), after, FULL if why == FULL else why


def _opened(window: Window) -> int:
    """Return where the first object begins; -1 for an empty list."""
    at = _blank(window, window.begin())
    if at < window.end and window.data[at] == ord("["):
        at = _blank(window, at + 1)
        if at < window.end and window.data[at] == ord("]"):
            _refuse_more(window, at + 1)
            return -1
        return at
    raise FileError(
        "this is no list of results",
        expected='[{"image_id": 1, "category_id": 1, "bbox": [x, y, width, height],'
        ' "score": 0.9}, …]',
        found=repr(window.text(at, at + 40).decode("utf-8", "replace")),
        where=f"{window.where}, byte {window.base + at}",
        hint="an object may be annotations (isolux reads them with coco:PATH) or BDD100K's labels"
        " (--format scalabel)",
    )


def _blank(window: Window, at: int) -> int:
    while at < window.end and window.data[at] in b" \t\r\n":
        at += 1
    return at


def _more(window: Window, at: int) -> int:
    """Read on; the place from which nothing was taken yet is then the window's first."""
    if window.whole:
        text = window.text(at, window.end)
        raise_damage(text, window.where, byte=window.base + at)
    window.move(at)
    return _blank(window, 0)


def _refuse_more(window: Window, at: int) -> None:
    """Refuse anything but white space behind the list."""
    while True:
        at = _blank(window, at)
        if at < window.end:
            raise FileError(
                "something follows the list of results",
                expected="the end of the file",
                found=repr(window.text(at, at + 20).decode("utf-8", "replace")),
                where=f"{window.where}, byte {window.base + at}",
            )
        if window.whole:
            return
        window.move(at)
        at = 0


def _id_text(ids: npt.NDArray[np.int64]) -> pl.Series:
    """Write ids as text; each of few, or of a run of equal ones, only once."""
    least, span = int(ids.min()), int(ids.max()) - int(ids.min())
    if span < len(ids) // 4:
        words = pl.int_range(least, least + span + 1, eager=True).cast(pl.String)
        return words.gather(ids - least)
    begins = np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))
    if len(begins) > len(ids) // 4:
        return pl.Series(ids).cast(pl.String)
    lengths = np.diff(begins, append=len(ids))
    words = pl.Series(ids[begins]).cast(pl.String)
    return words.gather(np.repeat(np.arange(len(begins)), lengths))
