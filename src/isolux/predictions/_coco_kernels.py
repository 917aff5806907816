"""COCO results straight from the bytes of the JSON into columns, compiled.

A scanner of one schema: a list of flat objects whose names are COCO's. It accepts a part of JSON
only (ASCII, numbers of at most 19 digits, no nesting beyond COCO's own), and stops at the first
object outside of that part, which a general reader then takes. Whatever it accepts it reads as
that reader would.

The data must be followed by bytes of zero, which JSON never holds: every loop ends there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from isolux.predictions._number_kernels import READ, read_number
from isolux.predictions._window import CUT, END, FULL, UNUSUAL

__all__ = ["rows_end", "scan_rows"]

_IMAGE, _CATEGORY, _BOX, _SCORE, _MASK, _POINTS = 1, 2, 4, 8, 16, 32
_NAMES = (b"image_id", b"category_id", b"bbox", b"score", b"segmentation", b"keypoints")
_NAME_BYTES = np.frombuffer(b"".join(_NAMES), dtype=np.uint8)
_NAME_STARTS = np.cumsum([0, *map(len, _NAMES)])
_QUOTE, _BACKSLASH, _OPEN, _CLOSE, _COMMA, _COLON = 34, 92, 91, 93, 44, 58
_CURLY, _CURLY_END = 123, 125


@njit(cache=True, inline="always")
def _blank(data: npt.NDArray[np.uint8], at: int) -> int:
    """Return the first byte from ``at`` that is no white space."""
    while data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9:
        at += 1
    return at


@njit(cache=True)
def _word(data: npt.NDArray[np.uint8], at: int) -> int:
    """Return the byte after a string of plain ASCII that begins behind ``at - 1``, or -1."""
    while data[at] != _QUOTE:
        if data[at] < 32 or data[at] > 126 or data[at] == _BACKSLASH:
            return -1
        at += 1
    return at + 1


@njit(cache=True)
def _field(data: npt.NDArray[np.uint8], at: int, end: int) -> int:
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


@njit(cache=True)
def _skip(data: npt.NDArray[np.uint8], at: int) -> int:
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
    _, after, status, _ = read_number(data, at)
    return after if status == READ else -1


@njit(cache=True)
def _whole(data: npt.NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Read a whole number of at most 18 digits; the next byte is -1 where it is none."""
    negative = data[at] == 45
    if negative:
        at += 1
    begin, value = at, 0
    while 48 <= data[at] <= 57 and at < begin + 18:
        value = value * 10 + np.int64(data[at] - 48)
        at += 1
    more = data[at] == 46 or data[at] | 32 == 101 or 48 <= data[at] <= 57
    if at == begin or more or (data[begin] == 48 and at > begin + 1):
        return 0, -1
    return (-value if negative else value), at


@njit(cache=True)
def _numbers(
    data: npt.NDArray[np.uint8], at: int, out: npt.NDArray[np.float64], used: int
) -> tuple[int, int]:
    """Read a list of numbers into ``out`` from ``used`` on: the byte after it, or -1; the use."""
    at = _blank(data, at + 1)
    if data[at] == _CLOSE:
        return at + 1, used
    while used < len(out):
        value, at, status, _ = read_number(data, at)
        if status != READ:
            return -1, used
        out[used] = value
        used += 1
        at = _blank(data, at)
        if data[at] == _CLOSE:
            return at + 1, used
        if data[at] != _COMMA:
            return -1, used
        at = _blank(data, at + 1)
    return -1, used


@njit(cache=True)
def _mask(
    data: npt.NDArray[np.uint8],
    at: int,
    size: npt.NDArray[np.int64],
    counts: npt.NDArray[np.uint8],
    used: int,
) -> tuple[int, int]:
    """Read ``{"size": [h, w], "counts": "…"}``, in either order, a zero byte after the counts."""
    seen = 0
    at = _blank(data, at + 1)
    while True:
        end = _word(data, at + 1) if data[at] == _QUOTE else -1
        if end < 0:
            return -1, used
        length, letter = end - at - 2, data[at + 1]
        of_size = length == 4 and letter == 115 and data[at + 2] == 105 and data[at + 3] == 122
        of_size = of_size and data[at + 4] == 101
        of_counts = length == 6 and letter == 99 and data[at + 2] == 111 and data[at + 3] == 117
        of_counts = (
            of_counts and data[at + 4] == 110 and data[at + 5] == 116 and data[at + 6] == 115
        )
        at = _blank(data, end)
        if data[at] != _COLON:
            return -1, used
        at = _blank(data, at + 1)
        if of_size and data[at] == _OPEN:
            for k in range(2):
                size[k], at = _whole(data, _blank(data, at + 1))
                if at < 0:
                    return -1, used
                at = _blank(data, at)
                if data[at] != (_CLOSE if k else _COMMA):
                    return -1, used
            at += 1
            seen |= 1
        elif of_counts and data[at] == _QUOTE and not seen & 2:
            at, used = _counts(data, at + 1, counts, used)
            if at < 0:
                return -1, used
            seen |= 2
        else:
            return -1, used
        at = _blank(data, at)
        if data[at] == _CURLY_END:
            return (at + 1 if seen == 3 else -1), used
        if data[at] != _COMMA:
            return -1, used
        at = _blank(data, at + 1)


@njit(cache=True)
def _counts(
    data: npt.NDArray[np.uint8], at: int, counts: npt.NDArray[np.uint8], used: int
) -> tuple[int, int]:
    """Copy run lengths; the only escape in them is a doubled backslash, which COCO does use."""
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


@njit(cache=True)
def scan_rows(  # noqa: C901, PLR0912, PLR0915  (one pass over the bytes, all of it inline)
    data: npt.NDArray[np.uint8],
    at: int,
    ids: npt.NDArray[np.int64],
    boxes: npt.NDArray[np.float64],
    scores: npt.NDArray[np.float64],
    sizes: npt.NDArray[np.int64],
    counts: npt.NDArray[np.uint8],
    points: npt.NDArray[np.float64],
    per_row: int,
    fields: int,
) -> tuple[int, int, int, int, int, int]:
    """Read objects from ``at``, which is a ``{``, until the data end or something is unusual.

    Parameters
    ----------
    data : [bytes] uint8
        Followed by zeros.
    ids : [2, R] int64
        Filled with image_id and category_id.
    boxes : [4, R], scores : [R], sizes : [2, R]
        Filled: x, y, width, height; the score; height and width of the mask.
    counts : [C] uint8
        Filled with run lengths, a zero after each. At least as long as the data.
    points : [K] float64
        Filled with the numbers of the keypoints, ``per_row`` of them in each row (-1: of the first
        row).
    fields : int
        The fields that every row must have, as the sum of their numbers; 0: those of the first.

    Returns
    -------
    rows, at, why, per_row, fields, used
        ``at`` is the ``{`` of the first object that was not read, or the byte after the list.
        ``used`` bytes of ``counts`` are filled.
    """
    row, used, points_used = 0, 0, 0
    box = np.empty(5)
    size = np.empty(2, np.int64)
    start = at
    while row < len(scores):
        start, seen, used_before, points_before = at, 0, used, points_used
        if data[at] != _CURLY:
            return row, start, UNUSUAL, per_row, fields, used
        at = _blank(data, at + 1)
        while True:  # one name and its value
            if data[at] != _QUOTE:
                at = -1
                break
            name = at + 1
            end = _word(data, name)
            if end < 0:
                at = -1
                break
            at = _blank(data, end)
            if data[at] != _COLON:
                at = -1
                break
            at = _blank(data, at + 1)
            field = _field(data, name, end - 1)
            if field & seen:
                at = -1
                break
            seen |= field
            if field == _SCORE:
                scores[row], at, status, _ = read_number(data, at)
                if status != READ:
                    at = -1
            elif field == _BOX:
                if data[at] != _OPEN:
                    at = -1
                    break
                at, found = _numbers(data, at, box, 0)
                if found != 4:
                    at = -1
                for k in range(4):
                    boxes[k, row] = box[k]
            elif field == _IMAGE:
                ids[0, row], at = _whole(data, at)
            elif field == _CATEGORY:
                ids[1, row], at = _whole(data, at)
            elif field == _MASK:
                if data[at] != _CURLY:
                    at = -1
                    break
                at, used = _mask(data, at, size, counts, used)
                sizes[0, row], sizes[1, row] = size[0], size[1]
            elif field == _POINTS:
                if data[at] != _OPEN:
                    at = -1
                    break
                at, points_used = _numbers(data, at, points, points_used)
                found = points_used - points_before
                if per_row < 0:
                    per_row = found
                if found != per_row or found == 0:
                    at = -1
            else:
                at = _skip(data, at)
            if at < 0:
                break
            at = _blank(data, at)
            if data[at] == _COMMA:
                at = _blank(data, at + 1)
                continue
            at = at + 1 if data[at] == _CURLY_END else -1
            break
        if fields == 0:
            fields = seen
        if at < 0 or seen != fields or not (seen & _IMAGE and seen & _SCORE):
            return row, start, UNUSUAL, per_row, fields, used_before
        at = _blank(data, at)
        if data[at] == _COMMA:
            at = _blank(data, at + 1)
            row += 1
        elif data[at] == _CLOSE:
            return row + 1, at + 1, END, per_row, fields, used
        else:
            return row, start, UNUSUAL, per_row, fields, used_before
    return row, at, FULL, per_row, fields, used


@njit(cache=True)
def rows_end(
    data: npt.NDArray[np.uint8], at: int, end: int, limit: int
) -> tuple[int, int, int, int]:
    """Find where objects end, by their braces alone, from the ``{`` at ``at``.

    Returns
    -------
    rows, stop, next, why
        The objects (at most ``limit``) that are whole, the byte after the last of them, the byte
        where the next begins, and FULL, END (the list is closed), CUT (the data end first) or
        UNUSUAL (something else than a comma and an object follows).
    """
    rows, stop, after = 0, at, at
    while rows < limit:
        depth, quoted, i = 0, False, after
        while i < end:
            byte = data[i]
            i += 1
            if quoted:
                if byte == _BACKSLASH:
                    i += 1
                elif byte == _QUOTE:
                    quoted = False
            elif byte == _QUOTE:
                quoted = True
            elif byte in (_CURLY, _OPEN):
                depth += 1
            elif byte in (_CURLY_END, _CLOSE):
                depth -= 1
                if depth == 0:
                    break
        else:
            return rows, stop, after, CUT
        whole = i
        i = _blank(data, i)
        if i >= end:
            return rows, stop, after, CUT
        rows, stop = rows + 1, whole
        if data[i] == _CLOSE:
            return rows, stop, i + 1, END
        if data[i] != _COMMA:
            return rows, stop, i, UNUSUAL
        after = _blank(data, i + 1)
        if after >= end:
            return rows, stop, after, CUT
        if data[after] != _CURLY:
            return rows, stop, after, UNUSUAL
    return rows, stop, after, FULL
