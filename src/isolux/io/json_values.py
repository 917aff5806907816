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

from isolux.core.errors import FileError, TableError, format_location
from isolux.io.text import check_utf8

Decoded = TypeVar("Decoded")
Field = msgspec.Raw | msgspec.UnsetType
"""A value left as raw text; unset where the file does not have it."""

_ROW_LOCATION = re.compile(r"(?P<list>\.\w+|)\[(?P<row>\d+)\](?P<rest>.*)")


def decode_json(content: bytes, target_type: type[Decoded], source: str) -> Decoded:
    """Parse JSON as ``target_type``."""
    content = check_utf8(content, source)
    if not content.strip():
        raise FileError("the file is empty", where=source)
    try:
        _refuse_repeated_fields(content, target_type, source)
        return msgspec.json.decode(content, type=target_type)
    except msgspec.ValidationError as error:
        raise _json_value_error(error, source) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _non_finite_error(content, error, target_type, source) or _json_syntax_error(
            content, error, source
        ) from error
    except RecursionError as error:
        raise FileError("the JSON is nested too deep", where=source) from error


class _Key:
    """A name in an object; no two are equal, so that a mapping holds each that the file has."""

    def __init__(self, name: str) -> None:
        self.name = name


def _refuse_repeated_fields(content: bytes, target_type: type[Any], source: str) -> None:
    """Refuse repeated fields, of which a JSON decoder would keep the last silently."""
    fields = getattr(target_type, "__struct_encode_fields__", ())
    if all(content.count(f'"{field}"'.encode()) < 2 for field in fields):
        return
    object_keys = msgspec.json.decode(
        content, type=dict[_Key, msgspec.Raw], dec_hook=lambda _, name: _Key(name)
    )
    names = [key.name for key in object_keys]
    for field in fields:
        if names.count(field) > 1:
            raise TableError(
                f"`{field}` occurs more than once",
                expected="each name once in an object",
                found=f"{names.count(field):,} of them",
                where=source,
                hint="keep one of them",
            )


def _json_syntax_error(content: bytes, error: Exception, source: str) -> FileError:
    text = str(error)
    if "truncated" in text:
        return FileError(
            "the file is cut off: its JSON ends in the middle of a value",
            expected="JSON that is closed, with a ] or } for each [ or {",
            found=f"the end at byte {len(content)}",
            where=source,
        )
    byte = re.search(r"byte (\d+)", text)
    near = ""
    if byte:
        offset = int(byte[1])
        near = f", at {content[offset : offset + 20].decode('utf-8', 'replace')!r}"
    return FileError("this is not valid JSON", found=text + near, where=source)


def _non_finite_error(
    content: bytes, error: Exception, target_type: type[Any], source: str
) -> TableError | None:
    """Build the error for NaN or Infinity, with its place; None if the fault is another."""
    byte = re.search(r"byte (\d+)", str(error))
    offset = int(byte[1]) if byte else 0
    offset -= content[offset - 1 : offset + 1] == b"-I"
    word = re.match(rb"-?(NaN|Infinity)", content[offset : offset + 9])
    if word is None:
        return None
    try:  # what no number can be, in its place, has the decoder say the place
        msgspec.json.decode(
            content[:offset] + b"[[]]" + content[offset + len(word[0]) :], type=target_type
        )
    except msgspec.ValidationError as type_error:
        source = _json_value_error(type_error, source).where or source
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return TableError(
        "a number is not finite, which JSON does not know",
        expected="finite numbers",
        found=f"{word[0].decode()} at byte {offset}",
        where=source,
        hint="leave such values out when the file is written",
    )


def _json_value_error(error: Exception, source: str) -> TableError:
    problem, _, location = str(error).partition(" - at ")
    path = location.strip("`$ ")
    regex_match = _ROW_LOCATION.match(path)
    row = int(regex_match["row"]) + 1 if regex_match else None
    field = f"{regex_match['list']}{regex_match['rest']}" if regex_match else path
    return TableError(
        "the JSON does not hold what it should",
        found=problem,
        where=format_location(source, row, field.strip(".") or None),
    )


def format_json_id(raw_id: float | str) -> str:
    """Write an id as text; ``42.0``, which pandas makes of 42, as ``42``."""
    # From 2^53 on a float skips whole numbers, so two ids could become one.
    if isinstance(raw_id, float) and raw_id.is_integer() and abs(raw_id) < 2**53:
        return str(int(raw_id))
    return str(raw_id)


def format_whole_ids(
    ids: Sequence[float | str | None], source: str, column: str
) -> list[str | None]:
    """Write ids as text; a number with a fraction is no id."""
    for row, raw_id in enumerate(ids, start=1):
        if isinstance(raw_id, float) and not raw_id.is_integer():
            raise TableError(
                "an id is not a whole number",
                expected="a whole number or text",
                found=str(raw_id),
                where=format_location(source, row, column),
            )
    return [None if raw_id is None else format_json_id(raw_id) for raw_id in ids]


def raw_values_to_text(values: Sequence[Any], source: str) -> pl.Series:
    """Write raw values as a column of JSON text; null where unset or the file says ``null``."""
    blocks = [values[i : i + _BLOCK_ROWS] for i in range(0, len(values), _BLOCK_ROWS)]
    return pl.concat([_block_to_text(block, source) for block in blocks]) if blocks else _NO_TEXT


_BLOCK_ROWS = 50_000  # rows: bounds the copies that are held at once
_NO_TEXT = pl.Series([], dtype=pl.String)


def _block_to_text(values: Sequence[Any], source: str) -> pl.Series:
    try:
        # str() reads a raw value where it lies in the file, without a copy as bytes.
        texts = [None if value is msgspec.UNSET else str(value, "utf-8") for value in values]
    except UnicodeDecodeError as error:
        raise FileError("the file is not UTF-8 text", found=str(error), where=source) from error
    column = pl.Series(texts, dtype=pl.String)
    is_null = (column == "null").fill_null(value=False)
    return column.set(is_null, None) if is_null.any() else column
