"""JSON annotation files into typed rows, with the byte or the row of whatever is wrong in them.

msgspec checks each value against a declared type while it parses, and leaves as raw text what is
declared so (a mask's polygons), which keeps a file of 860,000 annotations quick to read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import polars as pl

from isolux.io.text import decodable
from isolux.vocabulary.errors import FileError, TableError, place

Decoded = TypeVar("Decoded")
Field = msgspec.Raw | msgspec.UnsetType
"""A value left as raw text; unset where the file does not have it."""

_ROW = re.compile(r"(?P<list>\.\w+|)\[(?P<row>\d+)\](?P<rest>.*)")


def decode(data: bytes, kind: type[Decoded], where: str) -> Decoded:
    """Parse JSON as ``kind``."""
    data = decodable(data, where)
    if not data.strip():
        raise FileError("the file is empty", where=where)
    try:
        _refuse_repeated(data, kind, where)
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise _wrong_value(error, where) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _not_finite(data, error, kind, where) or _no_json(data, error, where) from error
    except RecursionError as error:
        raise FileError("the JSON is nested too deep", where=where) from error


class _Key:
    """A name in an object; no two are equal, so that a mapping holds each that the file has."""

    def __init__(self, name: str) -> None:
        self.name = name


def _refuse_repeated(data: bytes, kind: type[Any], where: str) -> None:
    """Refuse a field that the file gives twice, of which a decoder takes the last."""
    fields = getattr(kind, "__struct_encode_fields__", ())
    if all(data.count(f'"{field}"'.encode()) < 2 for field in fields):
        return
    there = msgspec.json.decode(
        data, type=dict[_Key, msgspec.Raw], dec_hook=lambda _, name: _Key(name)
    )
    names = [key.name for key in there]
    for field in fields:
        if names.count(field) > 1:
            raise TableError(
                f"`{field}` occurs more than once",
                expected="each name once in an object",
                found=f"{names.count(field):,} of them",
                where=where,
                hint="keep one of them",
            )


def _no_json(data: bytes, error: Exception, where: str) -> FileError:
    text = str(error)
    if "truncated" in text:
        return FileError(
            "the file is cut off: its JSON ends in the middle of a value",
            expected="JSON that is closed, with a ] or } for each [ or {",
            found=f"the end at byte {len(data)}",
            where=where,
        )
    byte = re.search(r"byte (\d+)", text)
    near = ""
    if byte:
        at = int(byte[1])
        near = f", at {data[at : at + 20].decode('utf-8', 'replace')!r}"
    return FileError("this is not valid JSON", found=text + near, where=where)


def _not_finite(data: bytes, error: Exception, kind: type[Any], where: str) -> TableError | None:
    """Say whose value is NaN or Infinity, which Python writes; None: neither is wrong here."""
    byte = re.search(r"byte (\d+)", str(error))
    at = int(byte[1]) if byte else 0
    at -= data[at - 1 : at + 1] == b"-I"
    word = re.match(rb"-?(NaN|Infinity)", data[at : at + 9])
    if word is None:
        return None
    try:  # what no number can be, in its place, has the decoder say the place
        msgspec.json.decode(data[:at] + b"[[]]" + data[at + len(word[0]) :], type=kind)
    except msgspec.ValidationError as told:
        where = _wrong_value(told, where).where or where
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return TableError(
        "a number is not finite, which JSON does not know",
        expected="finite numbers",
        found=f"{word[0].decode()} at byte {at}",
        where=where,
        hint="leave such values out when the file is written",
    )


def _wrong_value(error: Exception, where: str) -> TableError:
    problem, _, at = str(error).partition(" - at ")
    path = at.strip("`$ ")
    found = _ROW.match(path)
    row = int(found["row"]) + 1 if found else None
    field = f"{found['list']}{found['rest']}" if found else path
    return TableError(
        "the JSON does not hold what it should",
        found=problem,
        where=place(where, row, field.strip(".") or None),
    )


def raw_texts(values: Sequence[Any], where: str) -> pl.Series:
    """Write raw values as a column of JSON text; null where unset or the file says ``null``."""
    blocks = [values[i : i + _BLOCK] for i in range(0, len(values), _BLOCK)]
    return pl.concat([_texts(block, where) for block in blocks]) if blocks else _NO_TEXT


_BLOCK = 50_000  # rows: bounds the copies that are held at once
_NO_TEXT = pl.Series([], dtype=pl.String)


def _texts(values: Sequence[Any], where: str) -> pl.Series:
    try:
        # str() reads a raw value where it lies in the file, without a copy as bytes.
        texts = [None if value is msgspec.UNSET else str(value, "utf-8") for value in values]
    except UnicodeDecodeError as error:
        raise FileError("the file is not UTF-8 text", found=str(error), where=where) from error
    column = pl.Series(texts, dtype=pl.String)
    nothing = (column == "null").fill_null(value=False)
    return column.set(nothing, None) if nothing.any() else column
