"""Where objects of JSON end, by their braces alone, compiled; what is in them is not looked at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.predictions._scan.numbers import compiled, inlined
from isolux.predictions._scan.window import CUT, END, FULL, UNUSUAL

__all__ = ["blank", "object_end", "rows_end"]

_QUOTE, _BACKSLASH, _OPEN, _CLOSE, _COMMA = 34, 92, 91, 93, 44
_CURLY, _CURLY_END = 123, 125

_Bytes = npt.NDArray[np.uint8]


@inlined
def blank(data: _Bytes, at: int) -> int:
    """Return the first byte from ``at`` that is not white space."""
    while data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9:
        at += 1
    return at


@compiled
def object_end(data: _Bytes, at: int, end: int) -> int:
    """Return the byte after the brace that closes the one at ``at``; -1: the data end first."""
    depth, quoted = 0, False
    while at < end:
        byte = data[at]
        at += 1
        if quoted:
            at += byte == _BACKSLASH
            quoted = byte != _QUOTE
        elif byte == _QUOTE:
            quoted = True
        elif byte in (_CURLY, _OPEN):
            depth += 1
        elif byte in (_CURLY_END, _CLOSE):
            depth -= 1
            if depth == 0:
                return at
    return -1


@compiled
def rows_end(data: _Bytes, at: int, end: int, limit: int) -> tuple[int, int, int, int]:
    """Find where objects end, by their braces alone, from the ``{`` at ``at``."""
    rows, stop, after = 0, at, at
    while rows < limit:
        whole = object_end(data, after, end)
        following = blank(data, whole) if whole >= 0 else end
        if following >= end:
            return rows, stop, after, CUT
        rows, stop = rows + 1, whole
        if data[following] == _CLOSE:
            return rows, stop, following + 1, END
        if data[following] != _COMMA:
            return rows, stop, following, UNUSUAL
        after = blank(data, following + 1)
        if after >= end:
            return rows, stop, after, CUT
        if data[after] != _CURLY:
            break
    return rows, stop, after, FULL
