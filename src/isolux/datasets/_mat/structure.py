"""Is a variable of a MATLAB file built as the format says? Asked before scipy reads it.

scipy's reader trusts the file: a tag that names no type, or a length that leads out of its parent,
makes it read memory that is not its own, and the process ends without an exception. The walk below
looks at every tag, and keeps nothing. MathWorks, MAT-File Format (R2024a), version 5.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

SOUND, OBJECT = -1, -2
_DEEPEST = 32  # arrays within arrays; a file that nests deeper is built to exhaust the stack
_MOST = 1 << 31  # bytes of an element: MATLAB 5 writes its length into 32 bits with a sign

_Bytes = npt.NDArray[np.uint8]


@njit(nogil=True)
def _word(data: _Bytes, at: int, big: bool) -> int:
    a, b, c, d = int(data[at]), int(data[at + 1]), int(data[at + 2]), int(data[at + 3])
    if big:
        return (a << 24) | (b << 16) | (c << 8) | d
    return (d << 24) | (c << 16) | (b << 8) | a


@njit(nogil=True)
def _tag(data: _Bytes, at: int, end: int, big: bool, tag: npt.NDArray[np.int64]) -> bool:
    """Read a tag: its type, its bytes, where they begin, where what follows begins."""
    if at + 8 > end:
        return False
    first = _word(data, at, big)
    if first >> 16:  # a small one holds up to four bytes itself
        tag[0], tag[1], tag[2], tag[3] = first & 0xFFFF, first >> 16, at + 4, at + 8
        return bool(tag[1] <= 4)
    size = _word(data, at + 4, big)
    tag[0], tag[1], tag[2], tag[3] = first, size, at + 8, at + 8 + (size + 7) // 8 * 8
    if first == 14:  # a matrix is as long as it says
        tag[3] = at + 8 + size
    return bool(tag[3] <= end)


@njit(nogil=True)
def _is_data(kind: int) -> bool:
    """Whether a type is one of numbers or text: others stand for nothing in scipy's tables."""
    return 1 <= kind <= 7 or kind in (9, 12, 13) or 16 <= kind <= 18


@njit(nogil=True)
def _items(data: _Bytes, tag: npt.NDArray[np.int64], big: bool) -> int:
    """Multiply the sizes of a matrix; -1 where they cannot be."""
    n = tag[1] // 4
    if tag[0] != 5 or tag[1] % 4 or n < 2 or n > _DEEPEST:
        return -1
    items, empty = 1, False
    for k in range(n):
        size = _word(data, tag[2] + 4 * k, big)
        if size >= _MOST:
            return -1
        empty |= size == 0
        items = min(items * max(size, 1), 2 * _MOST)
    return 0 if empty else (items if items < _MOST else -1)


@njit(nogil=True)
def _fields(data: _Bytes, at: int, end: int, big: bool, tag: npt.NDArray[np.int64]) -> int:
    """Count a structure's fields and leave where its values begin in ``tag``; -1: damaged."""
    if not _tag(data, at, end, big, tag) or tag[0] != 5 or tag[1] != 4:
        return -1
    longest = _word(data, tag[2], big)
    if not _tag(data, tag[3], end, big, tag) or tag[0] != 1 or not 0 < longest < 4096:
        return -1
    return -1 if tag[1] % longest else tag[1] // longest


@njit(nogil=True)
def _leaf(
    data: _Bytes, at: int, end: int, big: bool, parts: int, tag: npt.NDArray[np.int64]
) -> bool:
    """Whether a matrix of numbers or text holds as many arrays as it should, and nothing else."""
    for _ in range(parts):
        if not _tag(data, at, end, big, tag) or not _is_data(tag[0]):
            return False
        at = tag[3]
    return at == end


@njit(nogil=True)
def _head(data: _Bytes, start: int, end: int, big: bool, tag: npt.NDArray[np.int64]) -> int:
    """Read flags, sizes and name, leave ``tag`` at the name; the items, -1: damaged."""
    if not _tag(data, start, end, big, tag) or tag[0] != 6 or tag[1] != 8:
        return -1
    if not _tag(data, tag[3], end, big, tag):
        return -1
    items = _items(data, tag, big)
    return items if _tag(data, tag[3], end, big, tag) and tag[0] == 1 else -1


@njit(nogil=True)
def _inside(
    data: _Bytes, start: int, end: int, big: bool, tag: npt.NDArray[np.int64]
) -> tuple[int, int, int]:
    """Look at one matrix: how it is (``SOUND`` …), the matrices in it, where they begin."""
    items = _head(data, start, end, big, tag)
    if items < 0:
        return start, 0, 0
    flags, sound, inner = _word(data, start + 8, big), True, 0
    kind, is_complex = flags & 0xFF, (flags >> 11) & 1
    if kind < 1 or kind > 15:
        return OBJECT, 0, 0
    if kind > 3:
        parts = 1 + is_complex + (2 if kind == 5 else 0)
        return (SOUND if _leaf(data, tag[3], end, big, parts, tag) else start), 0, end
    if kind == 3:
        sound = _tag(data, tag[3], end, big, tag) and tag[0] == 1
    fields = 1 if kind == 1 or not sound else _fields(data, tag[3], end, big, tag)
    inner = items * fields
    sound = sound and fields >= 0 and inner * 8 <= end - tag[3]
    return (SOUND if sound else start), inner, tag[3]


@njit(nogil=True)
def damaged_byte(data: _Bytes, big: bool) -> int:
    """Walk through one variable: ``SOUND``, ``OBJECT``, or the byte of the matrix at fault."""
    left, ends = np.zeros(_DEEPEST + 1, np.int64), np.zeros(_DEEPEST + 1, np.int64)
    left[0], ends[0] = 1, len(data)
    tag = np.zeros(4, np.int64)
    at, depth = 0, 0
    while True:
        while depth and not left[depth]:
            if at != ends[depth]:
                return at
            depth -= 1
        if not left[depth]:
            return SOUND
        left[depth] -= 1
        if not _tag(data, at, ends[depth], big, tag) or tag[0] != 14 or tag[2] != at + 8:
            return at
        end = tag[3]
        if tag[1]:
            how, inner, begin = _inside(data, at + 8, end, big, tag)
            if how != SOUND or depth == _DEEPEST:
                return how if how != SOUND else at
            depth += 1
            left[depth], ends[depth], at = inner, end, begin
        else:
            at = end
