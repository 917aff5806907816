"""How much a compressed buffer can hold at most: its blocks are counted, not unpacked.

A frame of zstd (RFC 8878) or of LZ4 (lz4_Frame_format.md) is a header and blocks; each block begins
with its own length, and none unpacks to more than the format or the header allows.
"""

from __future__ import annotations

from typing import Any

from isolux.io.thrift_compact import DamagedError

__all__ = ["LZ4", "ZSTD", "most_unpacked"]

LZ4, ZSTD = 0, 1
"""Codecs, as Message.fbs in apache/arrow numbers them."""

_MAGIC = {LZ4: b"\x04\x22\x4d\x18", ZSTD: b"\x28\xb5\x2f\xfd"}
_BLOCK = 128 << 10  # the largest block of zstd
_PADDING = 64  # bytes that a writer may add to a buffer, all 0


def most_unpacked(data: Any, at: int, end: int, codec: int) -> tuple[int, bool]:
    """Tell what a buffer's frames can unpack to.

    Examples
    --------
    An LZ4 frame of one stored block, the text "hi":

    >>> frame = bytes.fromhex("04224d18 6040 82 02000080") + b"hi" + bytes(4)
    >>> most_unpacked(frame, 0, len(frame), LZ4)
    (2, False)
    """
    walk = {LZ4: _lz4, ZSTD: _zstd}[codec]
    most, exact = 0, True
    while True:
        _inside(at, end, 4)
        if data[at : at + 4] != _MAGIC[codec]:
            raise DamagedError(f"no compressed data at byte {at:,}")
        at, bound, said = walk(data, at + 4, end)
        exact = exact and said is not None
        most += bound if said is None else said
        if said is not None and said > bound:
            raise DamagedError(f"{said:,} bytes at byte {at:,}, where {bound:,} fit at most")
        if end - at < _PADDING and not any(data[at:end]):
            return most, exact


def _inside(at: int, end: int, size: int) -> int:
    if at + size > end:
        raise DamagedError(f"compressed data goes past its end at byte {end:,}")
    return at + size


def _number(data: Any, at: int, end: int, size: int) -> int:
    return int.from_bytes(data[at : _inside(at, end, size)], "little")


def _zstd(data: Any, at: int, end: int) -> tuple[int, int, int | None]:
    """Walk a frame from behind its magic number: its end, its bound, and what its header says."""
    told = _number(data, at, end, 1)
    single, flag = told >> 5 & 1, told >> 6
    at += 1 + (not single) + (0, 1, 2, 4)[told & 3]  # a window's size, a dictionary's id
    size = (single, 2, 4, 8)[flag]
    said = _number(data, at, end, size) + (256 if size == 2 else 0) if size else None
    at, most, last = at + size, 0, 0
    while not last:
        head = _number(data, at, end, 3)
        last, kind, length = head & 1, head >> 1 & 3, head >> 3
        if kind == 3 or length > _BLOCK:
            raise DamagedError(f"no block of compressed data at byte {at:,}")
        most += _BLOCK if kind == 2 else length
        at = _inside(at + 3, end, 1 if kind == 1 else length)
    return _inside(at, end, 4 * (told >> 2 & 1)), most, said


def _lz4(data: Any, at: int, end: int) -> tuple[int, int, int | None]:
    flags, block = _number(data, at, end, 1), _number(data, at + 1, end, 1) >> 4 & 7
    if flags >> 6 != 1 or block < 4:
        raise DamagedError(f"no compressed data at byte {at:,}")
    largest = 1 << (2 * block + 8)  # 64 KiB to 4 MiB
    at += 2
    said = _number(data, at, end, 8) if flags & 8 else None
    at = _inside(at, end, (8 if flags & 8 else 0) + (4 if flags & 1 else 0) + 1)
    most = 0
    while head := _number(data, at, end, 4):
        length = head & 0x7FFFFFFF
        # a byte of LZ4 stands for 255 at most
        most += min(length if head >> 31 else 255 * length, largest)
        if length > largest:
            raise DamagedError(f"no block of compressed data at byte {at:,}")
        at = _inside(at + 4, end, length + (4 if flags & 16 else 0))
    return _inside(at + 4, end, 4 if flags & 4 else 0), most, said
