"""The layout that a program gives to all of its rows, learnt from one and then followed, compiled.

A file of boxes is written by one loop: between its numbers stand the same bytes in every row. To
compare these takes a third of the time that reading them does. A row that differs is left to the
scanner of ``_coco_kernels``, so that nothing is accepted here that is not accepted there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.predictions._number_kernels import (
    READ,
    compiled,
    inlined,
    read_digits,
    read_number,
)

__all__ = ["follow", "learn", "whole", "worth_learning"]

_COLUMN, _END = 2, 16
_TRIES = 16  # a file without one layout is not followed for ever
_NAMES = (b"bbox", b"score", b"image_id", b"category_id")
_NAME_COLUMNS = np.array([0, 4, 5, 6])  # of a box the first of four
_WHOLE = 5  # from this column on, whole numbers
_NAME_BYTES = np.frombuffer(b"".join(_NAMES), dtype=np.uint8)
_NAME_STARTS = np.cumsum([0, *map(len, _NAMES)])
_NUMBERS = 7
_QUOTE = 34
_int: Any = np.int64  # numba's int() leaves an unsigned number unsigned
_TENS = np.array([10.0**i for i in range(16)])  # all of them exact

_Bytes = npt.NDArray[np.uint8]
_Wholes = npt.NDArray[np.int64]
_Numbers = npt.NDArray[np.float64]


@inlined
def whole(data: _Bytes, at: int) -> tuple[int, int]:
    """Read a whole number of at most 18 digits; the next byte is -1 where it is none."""
    negative = data[at] == 45
    if negative:
        at += 1
    begin = at
    at, value = read_digits(data, at, np.uint64(0))
    digits = at - begin
    more = data[at] == 46 or data[at] | 32 == 101
    if digits == 0 or digits > 18 or more or (data[begin] == 48 and digits > 1):
        return 0, -1
    return (-_int(value) if negative else _int(value)), at


@inlined
def _short(data: _Bytes, at: int) -> tuple[float, int]:
    """Read a decimal of at most 15 digits, which one division rounds right; -1: another number."""
    negative = data[at] == 45
    if negative:
        at += 1
    begin, w = at, np.uint64(0)
    at, w = read_digits(data, at, w)
    wholes, behind = at - begin, 0
    if data[at] == 46:
        point = at + 1
        at, w = read_digits(data, point, w)
        behind = at - point
        if behind == 0:
            return 0.0, -1
    wrong = wholes == 0 or (wholes > 1 and data[begin] == 48) or wholes + behind > 15
    if wrong or data[at] | 32 == 101:
        return 0.0, -1
    value = float(w) / _TENS[behind]
    return (-value if negative else value), at


@compiled
def _of_number(byte: int) -> bool:
    """Tell the bytes of numbers; e too, which begins none: so true, false and null are literals."""
    return bool(48 <= byte <= 57 or byte in (43, 45, 46) or byte | 32 == 101)


@compiled
def _column(data: _Bytes, begin: int, end: int, nth: int) -> int:
    """Tell the column of the number that is the ``nth`` under the name from ``begin`` to ``end``.

    -1: none, for the name is not one of COCO's.
    """
    for k in range(len(_NAME_COLUMNS)):
        start, length = _NAME_STARTS[k], _NAME_STARTS[k + 1] - _NAME_STARTS[k]
        if end - begin == length:
            i = 0
            while i < length and data[begin + i] == _NAME_BYTES[start + i]:
                i += 1
            if i == length:
                return int(_NAME_COLUMNS[k] + nth)
    return -1


@compiled
def learn(data: _Bytes, at: int, stop: int, literals: _Bytes, layout: _Wholes) -> None:
    """Learn from the row that lies from its ``{`` at ``at`` to the next's at ``stop``.

    The scanner has read it, and of COCO's names it has image_id, category_id, bbox and score.
    Nothing is learnt where there are numbers under other names.
    """
    layout[0], numbers, used = 0, 0, 0
    layout[1] += 1
    name, end, nth = at, at, 0
    while at < stop:
        byte = data[at]
        if byte == _QUOTE:
            begin = at + 1
            at = begin
            while data[at] != _QUOTE:
                at += 1
            name, end, nth = begin, at, 0
            if used + end - begin + 2 > len(literals):
                return
            for k in range(begin - 1, at + 1):
                literals[used] = data[k]
                used += 1
            at += 1
        elif 48 <= byte <= 57 or byte == 45:
            column = _column(data, name, end, nth)
            if column < 0 or numbers == _NUMBERS:
                return
            layout[_COLUMN + numbers], layout[_END + numbers] = column, used
            numbers, nth = numbers + 1, nth + 1
            while _of_number(data[at]):
                at += 1
        else:
            if used == len(literals):
                return
            literals[used] = byte
            used, at = used + 1, at + 1
    layout[_END + numbers] = used
    layout[0] = numbers if numbers == _NUMBERS else 0


@compiled
def follow(
    data: _Bytes, at: int, row: int, wholes: _Wholes, numbers: _Numbers, literals: _Bytes,
    layout: _Wholes,
) -> int:  # fmt: skip
    """Read a row of the layout into its columns: where the next begins; -1: it differs."""
    rows, n, begin = len(numbers) // 5, layout[0], 0
    for k in range(n + 1):
        end = layout[_END + k]
        length = end - begin
        if at + length >= len(data):
            return -1
        different = np.uint8(0)
        for i in range(length):  # without a way out, so that it is done many bytes at once
            different |= data[at + i] ^ literals[begin + i]
        if different != 0:
            return -1
        at, begin = at + length, end
        if k == n:
            return at
        column = layout[_COLUMN + k]
        if column >= _WHOLE:
            wholes[(column - _WHOLE) * rows + row], at = whole(data, at)
            if at < 0:
                return -1
        else:
            value, after = _short(data, at)
            if after < 0:
                value, after, status = read_number(data, at)
                if status != READ:
                    return -1
            numbers[column * rows + row], at = value, after
    return -1


@compiled
def worth_learning(layout: _Wholes) -> bool:
    """Tell whether another layout may be learnt."""
    return bool(layout[1] < _TRIES)
