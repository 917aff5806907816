"""COCO results JSON to one frame: the scanner of its schema, and the general reader behind it.

A file is read through a window of a few megabytes and its rows go straight into columns, so that
the memory taken is that of the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.predictions._scan.damage import raise_damage
from isolux.predictions._scan.window import CUT, END, FULL, UNUSUAL, Window
from isolux.predictions.coco_results.rows import decode_rows
from isolux.predictions.coco_results.spelling import spelling_of
from isolux.vocabulary.errors import FileError

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
_MASK, _POINTS = 16, 32  # of the fields' numbers in kernels.py
_FIELD_OF = {
    "image_id": 1, "label": 2, **dict.fromkeys(("box_x", "box_y", "box_w", "box_h"), 4),
    "score": 8, "mask_height": _MASK, "mask_width": _MASK,
}  # fmt: skip
_PLACES = {
    **{name: ("wholes", k) for k, name in enumerate(("image_id", "label"))},
    **{name: ("wholes", k) for k, name in enumerate(("mask_height", "mask_width"), start=2)},
    **{
        name: ("numbers", k) for k, name in enumerate(("box_x", "box_y", "box_w", "box_h", "score"))
    },
}
_IDS = ("image_id", "label")
_ROWS = 1 << 17  # rows scanned together
_OBJECT = 1 << 10  # bytes in which an object ends as a rule
_FEW = 4096  # rows that the general reader takes together


class _Rows:
    """All rows read so far: numbers in long arrays, and what is not a number piece by piece.

    Pages of arrays that nothing was written to take no memory, so that the arrays may be longer
    than they need to be, and the columns are parts of them: no number is copied.
    """

    def __init__(self, room: int, size: int) -> None:
        self.wholes = np.empty((4, room), np.int64)  # image, category, height, width
        self.numbers = np.empty((5, room))  # x, y, width, height, score
        self.counts, self.points = np.empty(size, np.uint8), np.empty(size // 2)
        self.state = np.array([0, 0, -1])  # used of counts, of points; keypoints' numbers a row
        self.filled, self.fields = 0, 0
        self.pieces: list[_Piece] = []

    def scan(self, window: Window, at: int) -> tuple[int, int]:
        """Read the next rows by the scanner: where it stopped, and why."""
        from isolux.predictions.coco_results.kernels import scan_rows

        self._make_room(window, at)
        start = self.filled
        self.filled, at, why, self.fields = scan_rows(
            window.data,
            at,
            self.wholes.reshape(-1),
            self.numbers.reshape(-1),
            self.counts,
            self.points,
            self.state,
            (start, start + _ROWS, self.fields),
            spelling_of(window.text(at, at + _OBJECT)),
        )
        if self.filled > start:
            self.pieces.append(_Piece(start, self.filled, self._texts(self.filled - start)))
        return at, why

    def add(self, frame: pl.DataFrame) -> None:
        """Append rows of the general reader."""
        columns = dict(zip(frame.columns, frame.get_columns(), strict=True))
        self.pieces.append(_Piece(0, 0, columns, frame.height))

    def height(self) -> int:
        """Count the rows."""
        return sum(piece.rows for piece in self.pieces)

    def _make_room(self, window: Window, at: int) -> None:
        """Make room for the next rows, and at best for all: as many a byte as there were so far."""
        if len(self.counts) < len(window.data):
            size = len(window.data)
            self.counts, self.points = np.empty(size, np.uint8), np.empty(size // 2)
        room = self.wholes.shape[1]
        if self.filled + _ROWS > room:
            left = window.size - window.base - at
            # a little more than the rows so far suggest
            guess = int(1.05 * self.filled * left / max(1, window.base + at))
            room = max(self.filled + _ROWS + guess, 2 * room)
            self.wholes, self.numbers = (
                _longer(old, self.filled, room) for old in (self.wholes, self.numbers)
            )

    def _texts(self, rows: int) -> dict[str, pl.Series]:
        """Copy what is not a number out of the scanner's hands."""
        found = {}
        if self.fields & _MASK:
            text = self.counts[: self.state[0] - 1].tobytes().decode("ascii")
            found["mask_counts"] = pl.Series([text]).str.split("\0").explode()
        if self.fields & _POINTS:
            points = self.points[: rows * self.state[2]].reshape(rows, -1).copy()
            found["keypoints"] = pl.Series(points).cast(COLUMNS["keypoints"])
        return found

    def frame(self) -> pl.DataFrame:
        """Give all rows, in their order."""
        names = [name for name in COLUMNS if any(self._has(p, name) for p in self.pieces)]
        if not names:
            return pl.DataFrame(schema={name: COLUMNS[name] for name in ("image_id", "score")})
        once = {name: word for name in names for word in self._only(name)}
        frame = pl.DataFrame([self._column(name) for name in names if name not in once])
        # Not written out for every row.
        constant = {name: pl.lit(word) for name, word in once.items()}
        return frame.with_columns(**constant).select(names)

    def _only(self, name: str) -> list[str]:
        """Give the one id that all rows have, if there is but one."""
        if name not in _IDS or not all(p.stop and self._has(p, name) for p in self.pieces):
            return []
        kind, place = _PLACES[name]
        ids = getattr(self, kind)[place, : self.filled]
        return [str(ids[0])] if ids[0] == ids[-1] and (ids == ids[0]).all() else []

    def _has(self, piece: _Piece, name: str) -> bool:
        return name in piece.columns or bool(piece.stop and self.fields & _FIELD_OF.get(name, 0))

    def _column(self, name: str) -> pl.Series:
        if name in _PLACES and all(p.stop and self._has(p, name) for p in self.pieces):
            return self._numbers(name, 0, self.filled)
        parts = [self._part(name, piece) for piece in self.pieces]
        return pl.concat(parts, rechunk=True).alias(name)

    def _part(self, name: str, piece: _Piece) -> pl.Series:
        if name in piece.columns:
            return pl.Series("", piece.columns[name], COLUMNS[name])
        if self._has(piece, name):
            return self._numbers("", piece.start, piece.stop, name)
        return pl.Series("", [None], COLUMNS[name]).new_from_index(0, piece.rows)

    def _numbers(self, title: str, start: int, stop: int, name: str = "") -> pl.Series:
        kind, place = _PLACES[name or title]
        values = getattr(self, kind)[place, start:stop]
        whose = name or title
        return (_id_text(values) if whose in _IDS else pl.Series(values)).alias(title)


def _longer(old: npt.NDArray[Any], filled: int, room: int) -> npt.NDArray[Any]:
    longer = np.empty((len(old), room), old.dtype)
    longer[:, :filled] = old[:, :filled]
    return longer


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows read together: a part of the long arrays (``stop`` is 0: none), and further columns."""

    start: int
    stop: int
    columns: dict[str, pl.Series]
    others: int = 0

    @property
    def rows(self) -> int:
        return self.stop - self.start + self.others


def scan(window: Window, *, general: bool = False) -> pl.DataFrame:
    """Read a list of results."""
    rows = _Rows(_ROWS, len(window.data))
    at = _opened(window)
    while at >= 0:
        why = UNUSUAL
        if not general:
            at, why = rows.scan(window, at)
        if why == UNUSUAL:
            frame, at, why = _general(window, at, rows.height())
            if frame.height:
                rows.add(frame)
        if why == END:
            _refuse_more(window, at)
            break
        if why == CUT:
            at = _more(window, at)
    return rows.frame()


def _general(window: Window, at: int, row: int) -> tuple[pl.DataFrame, int, int]:
    """Read the next rows by msgspec: the rows, where it stopped, and why."""
    from isolux.predictions._scan.braces import rows_end

    if at < window.end and window.data[at] != ord("{"):
        raise FileError(
            "an item of the list is not an object",
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
        raise_damage(window.text(at, window.end), window.where, byte=window.base + at)
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
        "this is not a list of results",
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
        places = np.empty(len(ids), np.uint32)  # as polars counts rows
        np.subtract(ids, least, out=places, casting="unsafe")
        return words.gather(pl.Series(places))
    begins = np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))
    if len(begins) > len(ids) // 4:
        return pl.Series(ids).cast(pl.String)
    lengths = np.diff(begins, append=len(ids))
    words = pl.Series(ids[begins]).cast(pl.String)
    return words.gather(np.repeat(np.arange(len(begins)), lengths))
