"""A batch of an Arrow file: its columns' buffers must be where, and as long as, it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from isolux.io.arrow_schema import (
    FIXED_LIST,
    NULL,
    OFFSETS,
    STRUCT,
    VIEWS,
    Column,
)
from isolux.io.flatbuffers import Table
from isolux.io.packed_frames import LZ4, ZSTD, most_unpacked
from isolux.io.thrift_compact import DamagedError

__all__ = ["refuse_damaged_batch"]

_VIEW = 16  # bytes of one
_PREFIX = 8  # bytes that say what a compressed buffer unpacks to; -1: it is not compressed
_PADDING = 64
_LONGEST = 1 << 40  # items of a list without bytes of their own: nulls


@dataclass(slots=True)
class _Batch:
    data: Any
    body: int
    end: int
    codec: int | None
    nodes: Iterator[tuple[int, ...]]
    buffers: Iterator[tuple[int, ...]]
    variadic: Iterator[tuple[int, ...]]
    reached: int

    def node(self, column: Column) -> tuple[int, int]:
        """Return how many values the next column has, and how many of them are null."""
        length, nulls = next(self.nodes, (-1, 0))
        if not 0 <= nulls <= length <= _LONGEST:
            raise DamagedError(
                f"column {column.name!r} has {length:,} values, {nulls:,} of them null"
            )
        return length, nulls

    def buffer(self, column: Column, least: int) -> memoryview | None:
        """Look at the next buffer; its bytes, where they are not compressed."""
        offset, size = next(self.buffers, (0, -1))
        at = self.body + offset
        # one lies behind the other, with less than a cache line between them
        apart = size and not 0 <= at - self.reached < _PADDING
        if offset < 0 or size < 0 or at + size > self.end or apart:
            raise DamagedError(
                f"column {column.name!r}: {size:,} bytes at byte {offset:,} of "
                f"{self.end - self.body:,}"
            )
        self.reached = max(self.reached, at + size)
        plain: memoryview | None = self.data[at : at + size]
        length = size
        if size and self.codec is not None:
            plain, length = self._unpacked(column, at, at + size, self.codec)
        if length < least:
            raise DamagedError(
                f"column {column.name!r}: {length:,} bytes, where {least:,} are needed"
            )
        return plain

    def _unpacked(
        self, column: Column, at: int, end: int, codec: int
    ) -> tuple[memoryview | None, int]:
        if end - at < _PREFIX:
            raise DamagedError(f"column {column.name!r}: {end - at} bytes are not compressed data")
        said = int.from_bytes(self.data[at : at + _PREFIX], "little", signed=True)
        at += _PREFIX
        if said == -1:
            return self.data[at:end], end - at
        try:
            most, exact = most_unpacked(self.data, at, end, codec)
        except DamagedError as error:
            raise DamagedError(f"column {column.name!r}: {error}") from error
        if not 0 <= said <= most or (exact and said != most):
            raise DamagedError(
                f"column {column.name!r}: {said:,} bytes to be unpacked from {end - at:,}, which "
                f"hold {most:,}{'' if exact else ' at most'}"
            )
        return None, said


def refuse_damaged_batch(
    data: Any, body: int, end: int, batch: Table, columns: tuple[Column, ...]
) -> int:
    """Refuse a batch whose buffers cannot be those of its columns."""
    rows = batch.number(0, "<q")
    looked = _Batch(
        data,
        body,
        end,
        _codec(batch),
        iter(batch.structs(1, "<qq")),
        iter(batch.structs(2, "<qq")),
        iter(batch.structs(4, "<q")),
        body,
    )
    for column in columns:
        _look(looked, column, rows)
    left = (looked.nodes, looked.buffers, looked.variadic)
    if any(next(one, None) for one in left) or end - looked.reached >= _PADDING:
        raise DamagedError("it has buffers of no column")
    return rows


def _look(batch: _Batch, column: Column, rows: int | None) -> None:
    """Look at a column, or at what its lists hold: of those nobody says how many there are."""
    length, nulls = batch.node(column)
    if rows is not None and length != rows:
        raise DamagedError(f"column {column.name!r} has {length:,} values, not {rows:,}")
    if column.kind == NULL and column.words is None:
        return
    known = batch.buffer(column, _bytes(length) if nulls else 0)
    if known is not None and len(known):
        _refuse_other_nulls(column, known, length, nulls)
    if column.words is not None:
        batch.buffer(column, _bytes(length * column.keys))
    else:
        _look_within(batch, column, length)
    inside = {STRUCT: length, FIXED_LIST: length * column.size}.get(column.kind)
    for child in column.children:
        _look(batch, child, inside)


def _look_within(batch: _Batch, column: Column, length: int) -> None:
    """Look at the buffers of a column's values."""
    if column.kind in VIEWS:
        batch.buffer(column, _VIEW * length)
        for _ in range(*next(batch.variadic, (0,))):
            batch.buffer(column, 0)
    elif column.kind in OFFSETS:
        batch.buffer(column, (length + 1) * OFFSETS[column.kind] if length else 0)
        if not column.children:
            batch.buffer(column, 0)
    elif column.bits:
        batch.buffer(column, _bytes(length * column.bits))


def _bytes(bits: int) -> int:
    return -(-bits // 8)


def _refuse_other_nulls(column: Column, known: memoryview, length: int, nulls: int) -> None:
    """Count the nulls, a bit each: where none are said to be there, polars reads them as values."""
    bits = int.from_bytes(known[: _bytes(length)], "little") & ((1 << length) - 1)
    if length - bits.bit_count() != nulls:
        raise DamagedError(
            f"column {column.name!r} says that {nulls:,} of its values are null, and marks "
            f"{length - bits.bit_count():,}"
        )


def _codec(batch: Table) -> int | None:
    packed = batch.table(3)
    if packed is None:
        return None
    codec = packed.number(0, "<b")
    if codec not in (LZ4, ZSTD) or packed.number(1, "<b"):
        raise DamagedError(f"no such compression: {codec}")
    return codec
