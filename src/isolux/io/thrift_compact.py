"""Thrift's compact encoding, read as far as Parquet's footer and page headers need it.

Written after the specification (apache/thrift, thrift-compact-protocol.md): a struct is fields of
a number and a type, integers are zigzag varints, and a type that nobody asked for is passed over.
"""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["DamagedError", "read_struct"]

_DEEPEST = 32
_TRUE, _FALSE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 8, 9, 10, 11, 12
_WIDTHS = {1: 1, 2: 1, 3: 1, 7: 8}  # truth values (in a list, a byte each), a byte, a double
_PAST = "it goes past its end"
_SHIFTS = range(0, 70, 7)
_INTEGERS = (4, 5, 6)  # of 16, 32 and 64 bits, all alike


Asked = dict[int, Any]


class DamagedError(ValueError):
    """Bytes that are no struct."""


class _Bytes(Protocol):
    def __getitem__(self, index: Any, /) -> Any: ...


def read_struct(
    data: _Bytes, at: int, end: int, asked: Asked | None, deep: int = 0
) -> tuple[dict[int, Any], int]:
    """Read a struct; the fields that were asked for by number, and where it ends.

    Examples
    --------
    Field 1 is the number 3, field 2 the text "hi":

    >>> read_struct(bytes([0x15, 6, 0x18, 2]) + b"hi" + bytes([0]), 0, 7, {1: int, 2: bytes})
    ({1: 3, 2: b'hi'}, 7)
    """
    asked = asked if isinstance(asked, dict) else {}
    found: dict[int, Any] = {}
    field = 0
    while True:
        if at >= end:  # written out: a wide file's footer has millions of fields
            raise DamagedError(_PAST)
        head = data[at]
        at += 1
        if not head:
            return found, at
        step, kind = head >> 4, head & 15
        if step:
            field += step
        else:
            field, at = _integer(data, at, end)
        if kind in _INTEGERS:
            value: Any
            value, at = _integer(data, at, end)
        elif kind in (_TRUE, _FALSE):
            value = kind == _TRUE
        else:
            value, at = _value(data, at, end, kind, asked.get(field), deep + 1)
        if field in asked:
            if not _fits(value, asked[field]):
                raise DamagedError(f"field {field} is of another type")
            found[field] = value


def _fits(value: Any, asked: Any) -> bool:
    if asked is int or asked is bytes:
        return isinstance(value, asked)
    if isinstance(asked, list):
        return isinstance(value, list) and all(_fits(item, asked[0]) for item in value)
    return isinstance(value, dict if isinstance(asked, dict) else asked)


def _value(data: _Bytes, at: int, end: int, kind: int, asked: Any, deep: int) -> tuple[Any, int]:
    if deep > _DEEPEST:
        raise DamagedError("structs within structs without end")
    if kind in _INTEGERS:
        return _integer(data, at, end)
    if kind == _STRUCT:
        return read_struct(data, at, end, asked, deep)
    if kind == _BINARY:
        size, at = _varint(data, at, end)
        return data[at : _inside(at + size, end)], at + size
    if kind in (_LIST, _SET):
        return _items(data, at, end, asked, deep)
    if kind == _MAP:
        return _pairs(data, at, end, deep)
    if kind not in _WIDTHS:
        raise DamagedError(f"no such type: {kind}")
    return None, _inside(at + _WIDTHS[kind], end)


def _items(data: _Bytes, at: int, end: int, asked: Any, deep: int) -> tuple[list[Any], int]:
    head = _byte(data, at, end)
    at, size = at + 1, head >> 4
    if size == 15:
        size, at = _varint(data, at, end)
    _inside(at + size, end)  # an item is at least a byte
    of = asked[0] if isinstance(asked, list) else None
    items = []
    for _ in range(size):
        item, at = _value(data, at, end, head & 15, of, deep + 1)
        items.append(item)
    return items, at


def _pairs(data: _Bytes, at: int, end: int, deep: int) -> tuple[None, int]:
    size, at = _varint(data, at, end)
    if not size:
        return None, at
    kinds = _byte(data, at, end)
    at += 1
    _inside(at + 2 * size, end)
    for _ in range(size):
        for kind in (kinds >> 4, kinds & 15):
            _, at = _value(data, at, end, kind, None, deep + 1)
    return None, at


def _integer(data: _Bytes, at: int, end: int) -> tuple[int, int]:
    value, at = _varint(data, at, end)
    return (value >> 1) ^ -(value & 1), at


def _varint(data: _Bytes, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in _SHIFTS:
        if at >= end:
            raise DamagedError(_PAST)
        byte = data[at]
        at += 1
        if byte < 128:
            return value | byte << shift, at
        value |= (byte & 127) << shift
    raise DamagedError("a number of more than ten bytes")


def _byte(data: _Bytes, at: int, end: int) -> int:
    if at >= end:
        raise DamagedError(_PAST)
    return int(data[at])


def _inside(at: int, end: int) -> int:
    if at > end:
        raise DamagedError(_PAST)
    return at
