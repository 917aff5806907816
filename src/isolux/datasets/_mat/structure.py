"""Is a variable of a MATLAB file built as the format says? Asked before scipy reads it.

scipy's reader trusts the file: a tag that names no type, or a length that leads out of its parent,
makes it read memory that is not its own, and the process ends without an exception. The walk below
looks at every tag, and keeps nothing. MathWorks, MAT-File Format (R2024a), version 5.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

INTACT, HAS_OBJECT = -1, -2
_MAX_DEPTH = 32  # arrays within arrays; a file that nests deeper is built to exhaust the stack
_MAX_ELEMENT_BYTES = (
    1 << 31
)  # bytes of an element: MATLAB 5 writes its length into 32 bits with a sign

_Bytes = npt.NDArray[np.uint8]


@njit(nogil=True)
def _read_uint32(buffer: _Bytes, offset: int, is_big_endian: bool) -> int:
    a = int(buffer[offset])
    b = int(buffer[offset + 1])
    c = int(buffer[offset + 2])
    d = int(buffer[offset + 3])
    if is_big_endian:
        return (a << 24) | (b << 16) | (c << 8) | d
    return (d << 24) | (c << 16) | (b << 8) | a


@njit(nogil=True)
def _read_element_tag(
    buffer: _Bytes, offset: int, end: int, is_big_endian: bool, tag: npt.NDArray[np.int64]
) -> bool:
    """Read a tag: its type, its bytes, where they begin, where what follows begins."""
    if offset + 8 > end:
        return False
    first = _read_uint32(buffer, offset, is_big_endian)
    if first >> 16:  # a small one holds up to four bytes itself
        tag[0], tag[1], tag[2], tag[3] = first & 0xFFFF, first >> 16, offset + 4, offset + 8
        return bool(tag[1] <= 4)
    size = _read_uint32(buffer, offset + 4, is_big_endian)
    tag[0], tag[1], tag[2], tag[3] = first, size, offset + 8, offset + 8 + (size + 7) // 8 * 8
    if first == 14:  # a matrix is as long as it says
        tag[3] = offset + 8 + size
    return bool(tag[3] <= end)


@njit(nogil=True)
def _is_number_or_text_type(type_code: int) -> bool:
    """Whether a type is one of numbers or text: others stand for nothing in scipy's tables."""
    return 1 <= type_code <= 7 or type_code in (9, 12, 13) or 16 <= type_code <= 18


@njit(nogil=True)
def _count_matrix_items(buffer: _Bytes, tag: npt.NDArray[np.int64], is_big_endian: bool) -> int:
    """Multiply the sizes of a matrix; -1 where they cannot be."""
    n = tag[1] // 4
    if tag[0] != 5 or tag[1] % 4 or n < 2 or n > _MAX_DEPTH:
        return -1
    items, is_empty = 1, False
    for k in range(n):
        size = _read_uint32(buffer, tag[2] + 4 * k, is_big_endian)
        if size >= _MAX_ELEMENT_BYTES:
            return -1
        is_empty |= size == 0
        items = min(items * max(size, 1), 2 * _MAX_ELEMENT_BYTES)
    return 0 if is_empty else (items if items < _MAX_ELEMENT_BYTES else -1)


@njit(nogil=True)
def _count_struct_fields(
    buffer: _Bytes, offset: int, end: int, is_big_endian: bool, tag: npt.NDArray[np.int64]
) -> int:
    """Count a structure's fields and leave where its values begin in ``tag``; -1: damaged."""
    if not _read_element_tag(buffer, offset, end, is_big_endian, tag) or tag[0] != 5 or tag[1] != 4:
        return -1
    longest = _read_uint32(buffer, tag[2], is_big_endian)
    if (
        not _read_element_tag(buffer, tag[3], end, is_big_endian, tag)
        or tag[0] != 1
        or not 0 < longest < 4096
    ):
        return -1
    return -1 if tag[1] % longest else tag[1] // longest


@njit(nogil=True)
def _is_leaf_matrix_intact(
    buffer: _Bytes,
    offset: int,
    end: int,
    is_big_endian: bool,
    n_arrays: int,
    tag: npt.NDArray[np.int64],
) -> bool:
    """Whether a matrix of numbers or text holds as many arrays as it should, and nothing else."""
    for _ in range(n_arrays):
        if not _read_element_tag(
            buffer, offset, end, is_big_endian, tag
        ) or not _is_number_or_text_type(tag[0]):
            return False
        offset = tag[3]
    return offset == end


@njit(nogil=True)
def _read_matrix_header(
    buffer: _Bytes, start: int, end: int, is_big_endian: bool, tag: npt.NDArray[np.int64]
) -> int:
    """Read flags, sizes and name, leave ``tag`` at the name; the items, -1: damaged."""
    if not _read_element_tag(buffer, start, end, is_big_endian, tag) or tag[0] != 6 or tag[1] != 8:
        return -1
    if not _read_element_tag(buffer, tag[3], end, is_big_endian, tag):
        return -1
    items = _count_matrix_items(buffer, tag, is_big_endian)
    return (
        items if _read_element_tag(buffer, tag[3], end, is_big_endian, tag) and tag[0] == 1 else -1
    )


@njit(nogil=True)
def _check_one_matrix(
    buffer: _Bytes, start: int, end: int, is_big_endian: bool, tag: npt.NDArray[np.int64]
) -> tuple[int, int, int]:
    """Look at one matrix: how it is (``INTACT`` …), the matrices in it, where they begin."""
    items = _read_matrix_header(buffer, start, end, is_big_endian, tag)
    if items < 0:
        return start, 0, 0
    flags, is_intact, n_inner = _read_uint32(buffer, start + 8, is_big_endian), True, 0
    class_code, is_complex = flags & 0xFF, (flags >> 11) & 1
    if class_code < 1 or class_code > 15:
        return HAS_OBJECT, 0, 0
    if class_code > 3:
        n_arrays = 1 + is_complex + (2 if class_code == 5 else 0)
        return (
            (
                INTACT
                if _is_leaf_matrix_intact(buffer, tag[3], end, is_big_endian, n_arrays, tag)
                else start
            ),
            0,
            end,
        )
    if class_code == 3:
        is_intact = _read_element_tag(buffer, tag[3], end, is_big_endian, tag) and tag[0] == 1
    fields = (
        1
        if class_code == 1 or not is_intact
        else _count_struct_fields(buffer, tag[3], end, is_big_endian, tag)
    )
    n_inner = items * fields
    is_intact = is_intact and fields >= 0 and n_inner * 8 <= end - tag[3]
    return (INTACT if is_intact else start), n_inner, tag[3]


@njit(nogil=True)
def find_damage_in_variable(buffer: _Bytes, is_big_endian: bool) -> int:
    """Walk through one variable: ``INTACT``, ``HAS_OBJECT``, or the byte of the matrix at fault."""
    n_remaining = np.zeros(_MAX_DEPTH + 1, np.int64)
    end_offsets = np.zeros(_MAX_DEPTH + 1, np.int64)
    n_remaining[0], end_offsets[0] = 1, len(buffer)
    tag = np.zeros(4, np.int64)
    offset, depth = 0, 0
    while True:
        while depth and not n_remaining[depth]:
            if offset != end_offsets[depth]:
                return offset
            depth -= 1
        if not n_remaining[depth]:
            return INTACT
        n_remaining[depth] -= 1
        if (
            not _read_element_tag(buffer, offset, end_offsets[depth], is_big_endian, tag)
            or tag[0] != 14
            or tag[2] != offset + 8
        ):
            return offset
        end = tag[3]
        if tag[1]:
            status, n_inner, begin = _check_one_matrix(buffer, offset + 8, end, is_big_endian, tag)
            if status != INTACT or depth == _MAX_DEPTH:
                return status if status != INTACT else offset
            depth += 1
            n_remaining[depth], end_offsets[depth], offset = n_inner, end, begin
        else:
            offset = end
