"""How far the cells of an xls reach: its records, in the sectors of a compound file ([MS-CFB]).

A spreadsheet program writes 65,536 rows of 256 columns at most, but a record has room for as many
columns as rows, and calamine would make room for them all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["XLS_SIGNATURE", "xls_areas"]

XLS_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_STREAMS = ("Workbook".encode("utf-16-le"), "Book".encode("utf-16-le"))
_ENTRY_BYTES, _MINI_BYTES, _MINI_BELOW = 128, 64, 4096
_END = 0xFFFFFFFA  # from here on a number names no sector
# A new sheet; FORMULA, MULRK, RSTRING, LABELSST, NUMBER, LABEL, BOOLERR, RK; of [MS-XLS]
_BOF, _MULRK = 0x809, 0xBD
_CELLS = {0x06, _MULRK, 0xD6, 0xFD, 0x203, 0x204, 0x205, 0x206, 0x406, 0x27E}


def xls_areas(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Give the last row and column of each sheet, and how many cells; nothing of another file."""
    try:
        stream = _workbook_stream(data)
    except (struct.error, IndexError):
        return  # its reader says what is damaged
    at = last_row = last_column = n_values = 0
    while at + 8 <= len(stream):
        kind, n_bytes, row, column = struct.unpack_from("<4H", stream, at)
        at += 4 + n_bytes
        if kind == _BOF:
            yield last_row, last_column, n_values
            last_row = last_column = n_values = 0
        elif kind in _CELLS:
            first = column
            if kind == _MULRK and at <= len(stream):
                column = max(column, *struct.unpack_from("<H", stream, at - 2))
            last_row, last_column = max(last_row, row + 1), max(last_column, column + 1)
            n_values += column + 1 - first
    yield last_row, last_column, n_values


def _workbook_stream(data: bytes) -> bytes:
    """Collect the sectors of the workbook, in the order of the table of sectors."""
    size = 1 << struct.unpack_from("<H", data, 30)[0]
    directory, small_table, more_tables = (
        struct.unpack_from("<I", data, n)[0] for n in (48, 60, 68)
    )
    tables = list(struct.unpack_from("<109I", data, 76))
    while more_tables < _END and len(tables) * size <= len(data):
        *more, more_tables = _numbers(data[(more_tables + 1) * size : (more_tables + 2) * size])
        tables += more
    held = [data[(n + 1) * size : (n + 2) * size] for n in tables if n < _END]
    next_of = _numbers(b"".join(held))
    entries = _chain(data[size:], size, directory, next_of)
    root = struct.unpack_from("<I", entries, 116)[0]
    for at in range(0, len(entries) - _ENTRY_BYTES + 1, _ENTRY_BYTES):
        length, start, n_bytes = (struct.unpack_from(f, entries, at + n)[0]
                                  for f, n in (("<H", 64), ("<I", 116), ("<I", 120)))  # fmt: skip
        if entries[at : at + max(length - 2, 0)] not in _STREAMS:
            continue
        if n_bytes >= _MINI_BELOW:
            return _chain(data[size:], size, start, next_of)[:n_bytes]
        small = _numbers(_chain(data[size:], size, small_table, next_of))
        return _chain(_chain(data[size:], size, root, next_of), _MINI_BYTES, start, small)[:n_bytes]
    return b""


def _numbers(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])


def _chain(data: bytes, size: int, start: int, next_of: tuple[int, ...]) -> bytes:
    """Join sectors, each of which names the next one; a circle ends where every one was seen."""
    sectors: list[bytes] = []
    while start < _END and len(sectors) <= len(next_of):
        sectors.append(data[start * size : (start + 1) * size])
        start = next_of[start]
    return b"".join(sectors)
