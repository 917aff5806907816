"""COCO results straight from the bytes of the JSON into columns, compiled.

A scanner of one schema: a list of flat objects whose names are COCO's. It accepts a part of JSON
only (ASCII, numbers of at most 19 digits, no nesting beyond COCO's own), and stops at the first
object outside of that part, which a general reader then takes. Whatever it accepts it reads as
that reader would.

The data must be followed by bytes of zero, which JSON never holds: every loop ends there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.predictions._scan.braces import blank
from isolux.predictions._scan.numbers import (
    READ,
    compiled,
    inlined,
    read_number,
    read_whole,
)
from isolux.predictions._scan.window import END, FULL, UNUSUAL
from isolux.predictions._scan.words import WHOLE
from isolux.predictions.coco_results.alike import alike
from isolux.predictions.coco_results.spelling import Spelling

__all__ = ["scan_rows"]

_IMAGE, _CATEGORY, _BOX, _SCORE, _MASK, _POINTS = 1, 2, 4, 8, 16, 32
_OF_SIZE, _OF_COUNTS = 64, 128  # names inside of a mask
_NAMES = (
    b"image_id", b"category_id", b"bbox", b"score", b"segmentation", b"keypoints", b"size",
    b"counts",
)  # fmt: skip
_OF_A_RESULT = 6
_int: Any = np.int64
_NAME_BYTES = np.frombuffer(b"".join(_NAMES), dtype=np.uint8)
_NAME_STARTS = np.cumsum([0, *map(len, _NAMES)])
_QUOTE, _BACKSLASH, _OPEN, _CLOSE, _COMMA, _COLON = 34, 92, 91, 93, 44, 58
_CURLY, _CURLY_END = 123, 125
_USED, _POINTS_USED, _PER_ROW = 0, 1, 2  # places in the state

_Wholes = npt.NDArray[np.int64]
_Numbers = npt.NDArray[np.float64]
_Bytes = npt.NDArray[np.uint8]


@compiled
def _word(data: _Bytes, at: int) -> int:
    """Return the byte after a string of plain ASCII that begins behind ``at - 1``, or -1."""
    while data[at] != _QUOTE:
        if data[at] < 32 or data[at] > 126 or data[at] == _BACKSLASH:
            return -1
        at += 1
    return at + 1


@compiled
def _field(data: _Bytes, at: int, end: int) -> int:
    """Tell which of COCO's names stands from ``at`` to ``end``: a power of two, or 0."""
    for k in range(len(_NAME_STARTS) - 1):
        start = _NAME_STARTS[k]
        length = _NAME_STARTS[k + 1] - start
        if end - at == length and data[at] == _NAME_BYTES[start]:
            i = 1
            while i < length and data[at + i] == _NAME_BYTES[start + i]:
                i += 1
            if i == length:
                return int(1 << k)
    return 0


@inlined
def _known(data: _Bytes, at: int) -> tuple[int, int]:
    """Tell which of a result's names stands in quotes at ``at``: its number, the byte after; or 0.

    What ``_name`` and ``_field`` find in two passes, byte by byte, in one, which stops at the first
    byte that differs.
    """
    if data[at] == _QUOTE:
        for k in range(_OF_A_RESULT):
            start, stop = _NAME_STARTS[k], _NAME_STARTS[k + 1]
            i = start
            while i < stop and data[at + 1 + i - start] == _NAME_BYTES[i]:
                i += 1
            after = at + 1 + stop - start
            if i == stop and data[after] == _QUOTE:
                return 1 << k, after + 1
    return 0, at


@compiled
def _skip(data: _Bytes, at: int) -> int:
    """Return the byte after a plain number, string, true, false or null; -1 for anything else."""
    first = data[at]
    if first == _QUOTE:
        return int(_word(data, at + 1))
    if first == 116 and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
        return at + 4
    if first == 110 and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108:
        return at + 4
    if first == 102 and data[at + 1] == 97 and data[at + 2] == 108 and data[at + 3] == 115:
        return at + 5 if data[at + 4] == 101 else -1
    _, after, status = read_number(data, at)
    return after if status == READ else -1


@compiled
def _numbers(
    data: _Bytes, at: int, out: _Numbers, used: int, limit: int, step: int
) -> tuple[int, int]:
    """Read a list of numbers into every ``step``-th of ``out`` from ``used`` to ``limit``."""
    if data[at] != _OPEN:
        return -1, used
    at = blank(data, at + 1)
    if data[at] == _CLOSE:
        return at + 1, used
    while used < limit:
        out[used], at, status = read_number(data, at)
        used += step
        if status != READ:
            break
        at = blank(data, at)
        if data[at] == _CLOSE:
            return at + 1, used
        if data[at] != _COMMA:
            break
        at = blank(data, at + 1)
    return -1, used


@compiled
def _name(data: _Bytes, at: int) -> tuple[int, int, int]:
    """Read ``"name" :`` at ``at``: where the name begins and ends, and the byte after; or -1."""
    if data[at] != _QUOTE:
        return 0, 0, -1
    begin = at + 1
    after = _word(data, begin)
    if after < 0:
        return 0, 0, -1
    at = blank(data, after)
    return begin, after - 1, (blank(data, at + 1) if data[at] == _COLON else -1)


@compiled
def _size(data: _Bytes, at: int, out: _Wholes, used: int) -> int:
    """Read ``[height, width]``, a column each, height at ``used``: the byte after it, or -1."""
    if data[at] != _OPEN:
        return -1
    for k in range(2):
        out[used + k * (len(out) // 4)], at = read_whole(data, blank(data, at + 1))
        if at < 0:
            return -1
        at = blank(data, at)
        if data[at] != (_CLOSE if k else _COMMA):
            return -1
    return at + 1


@compiled
def _counts(data: _Bytes, at: int, counts: _Bytes, used: int) -> tuple[int, int]:
    """Copy run lengths; the only escape in them is a doubled backslash, which COCO does use."""
    if data[at] != _QUOTE:
        return -1, used
    at += 1
    while data[at] != _QUOTE:
        if data[at] == _BACKSLASH:
            at += 1
            if data[at] != _BACKSLASH:
                return -1, used
        if data[at] < 32 or data[at] > 126:
            return -1, used
        counts[used] = data[at]
        used += 1
        at += 1
    counts[used] = 0
    return at + 1, used + 1


@compiled
def _mask(
    data: _Bytes, at: int, wholes: _Wholes, place: int, counts: _Bytes, used: int
) -> tuple[int, int]:
    """Read ``{"size": [h, w], "counts": "…"}``, in either order, a zero byte after the counts."""
    if data[at] != _CURLY:
        return -1, used
    seen = 0
    while at >= 0:
        begin, end, at = _name(data, blank(data, at + 1))
        field = _field(data, begin, end) if at >= 0 else 0
        if field == _OF_SIZE and not seen & _OF_SIZE:
            at = _size(data, at, wholes, place)
        elif field == _OF_COUNTS and not seen & _OF_COUNTS:
            at, used = _counts(data, at, counts, used)
        else:
            at = -1
        if at >= 0:
            seen |= field
            at = blank(data, at)
            if data[at] == _CURLY_END and seen == _OF_SIZE | _OF_COUNTS:
                return at + 1, used
            at = at if data[at] == _COMMA else -1
    return -1, used


@inlined
def _value(
    data: _Bytes,
    at: int,
    field: int,
    row: int,
    wholes: _Wholes,
    numbers: _Numbers,
    counts: _Bytes,
    points: _Numbers,
    state: _Wholes,
) -> int:
    """Read the value of a field into its column: the byte after it, or -1."""
    rows = len(numbers) // 5
    if field == _SCORE:
        numbers[4 * rows + row], at, status = read_number(data, at)
        at = at if status == READ else -1
    elif field == _BOX:
        at, found = _numbers(data, at, numbers, row, row + 4 * rows, rows)
        at = at if found == row + 4 * rows else -1
    elif field in (_IMAGE, _CATEGORY):
        wholes[(field - 1) * rows + row], at = read_whole(data, at)
    elif field == _MASK:
        at, state[_USED] = _mask(data, at, wholes, 2 * rows + row, counts, state[_USED])
    elif field == _POINTS:
        begin = state[_POINTS_USED]
        at, state[_POINTS_USED] = _numbers(data, at, points, begin, len(points), 1)
        found = state[_POINTS_USED] - begin
        if state[_PER_ROW] < 0:
            state[_PER_ROW] = found
        at = at if found == state[_PER_ROW] and found > 0 else -1
    else:
        at = _skip(data, at)
    return at


@inlined
def _object(
    data: _Bytes,
    at: int,
    row: int,
    wholes: _Wholes,
    numbers: _Numbers,
    counts: _Bytes,
    points: _Numbers,
    state: _Wholes,
) -> tuple[int, int]:
    """Read the object that begins at ``at``: the byte after it, or -1; its fields, as their sum."""
    seen, more = 0, data[at] == _CURLY
    after = -1
    while more:
        field, at = _known(data, blank(data, at + 1))
        if field:
            at = blank(data, at)
            at = blank(data, at + 1) if data[at] == _COLON else -1
        else:
            _, _, at = _name(data, at)
        if at < 0 or field & seen:
            break
        seen |= field
        at = _value(data, at, field, row, wholes, numbers, counts, points, state)
        if at < 0:
            break
        at = blank(data, at)
        more = data[at] == _COMMA
        after = at + 1 if data[at] == _CURLY_END else -1
    return after, seen


@compiled
def scan_rows(
    data: _Bytes,
    at: int,
    wholes: _Wholes,
    numbers: _Numbers,
    counts: _Bytes,
    points: _Numbers,
    state: _Wholes,
    asked: tuple[int, int, int],
    spelling: Spelling,
) -> tuple[int, int, int, int]:
    """Read objects from ``at``, which is a ``{``, until the data end or something is unusual.

    Shapes: ``wholes`` [4 R], ``numbers`` [5 R], ``points`` [K], ``state`` [3].
    """
    state[_USED], state[_POINTS_USED] = 0, 0
    start, stop, fields = asked
    for row in range(start, stop):
        used = state[_USED]
        after, seen = -1, spelling.fields
        if WHOLE and seen:
            after = alike(data, at, row, wholes, numbers, spelling)
        if after < 0:
            after, seen = _object(data, at, row, wholes, numbers, counts, points, state)
        if fields == 0:
            fields = seen
        good = after >= 0 and seen == fields and seen & _IMAGE and seen & _SCORE
        after = blank(data, after) if good else at
        if not good or (data[after] != _COMMA and data[after] != _CLOSE):
            state[_USED] = used
            return row, at, UNUSUAL, fields
        if data[after] == _CLOSE:
            return row + 1, after + 1, END, fields
        at = blank(data, after + 1)
    return stop, at, FULL, fields
