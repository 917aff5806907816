"""Damaged Parquet files found before polars reads them: it ends the process over some.

A page whose header counts fewer than 0 values makes polars ask for 2^61 bytes, which no exception
reports. So what a file says of its pages is held against the file first: the footer, and the
header of each page. Values themselves are not looked at; polars does that, and says so.

Where a page has a checksum, it is held against the page: of any page that its header gives one
(pyarrow does where it is asked to), and the one at the end of gzip, which polars reads past. That
means unpacking such a page once more.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from isolux.io.gzip_members import refuse_damaged_gzip
from isolux.io.thrift_compact import DamagedError, read_struct

__all__ = ["refuse_damaged_pages"]

_MAGIC = b"PAR1"
_DATA, _DICTIONARY, _DATA_2 = 5, 7, 8  # fields of a page's header that tell of its values
_LENGTHS = (5, 6)  # of a page of version 2: bytes of its levels
_IS_PACKED = 7  # of the same: its values, where they are not stored
_CHECKSUM = 4
_GZIP = 2  # a codec, as parquet.thrift numbers it


def refuse_damaged_pages(source: Path | bytes, columns: Collection[str] | None = None) -> None:
    """Refuse a Parquet file whose pages are not what its footer says.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.parquet"
    ...     pl.DataFrame({"age": [31, 8]}).write_parquet(path)
    ...     refuse_damaged_pages(path)
    """
    if isinstance(source, bytes):
        _look_through(source, columns)
    elif source.stat().st_size:
        with (
            source.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            _look_through(data, columns)


def _look_through(data: mmap.mmap | bytes, columns: Collection[str] | None) -> None:
    if len(data) < 12 or data[:4] != _MAGIC or data[-4:] != _MAGIC:
        return
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    if start < 4:
        raise ValueError("the footer is longer than the file")
    for name, chunk in _chunks(data, start):
        if columns is None or name in columns:
            _look(data, start, name, chunk)


def _chunks(data: mmap.mmap | bytes, start: int) -> Iterator[tuple[str, Mapping[int, Any]]]:
    """Yield each column's part in each group of rows: FileMetaData 4, RowGroup 1, ColumnChunk 3."""
    footer, _ = read_struct(data, start, len(data) - 8, _FOOTER)
    for group in footer.get(4, ()):
        for column in group.get(1, ()):
            chunk = column.get(3, {})
            name = next(iter(chunk.get(3, ())), b"")
            yield name.decode("utf-8", "replace"), chunk


_TOLD = {1: bytes, 2: bytes}  # a key and its value
_LIMITS = {1: bytes, 2: bytes, 5: bytes, 6: bytes}
_CHUNK = {
    2: [int], 3: [bytes], 4: int, 5: int, 7: int, 8: [_TOLD], 9: int, 11: int, 12: _LIMITS,
    13: [{}], 16: {2: [int], 3: [int]}, 17: {2: [int]},
}  # fmt: skip
_FOOTER = {
    2: [{4: bytes, 10: {}}],
    4: [{1: [{1: bytes, 3: _CHUNK, 8: {}, 9: bytes}], 4: [{}]}],
    5: [_TOLD],
    6: bytes,
    7: [{}],
    8: {},
    9: bytes,
}
"""The fields that are read, by their numbers in parquet.thrift, and all that have a length.

polars takes the length of a list where it expects one, whatever type the file says is there.
"""
_VALUES = {1: int, 5: int, 6: int, _IS_PACKED: bool}
_PAGE = {2: int, 3: int, _CHECKSUM: int, _DATA: {1: int}, _DICTIONARY: {1: int}, _DATA_2: _VALUES}


def _look(data: mmap.mmap | bytes, footer: int, name: str, chunk: Mapping[int, Any]) -> None:
    values, size, at = (chunk.get(key, 0) for key in (5, 7, 9))
    at = min(at, chunk.get(11) or at)
    end = at + size
    if not values:
        return
    if not (4 <= at <= end <= footer) or values < 0:
        raise ValueError(
            f"column {name!r}: {values:,} values in the bytes {at:,} to {end:,} of {footer:,}"
        )
    seen = 0
    while at < end and seen < values:
        try:
            page, body = read_struct(data, at, end, _PAGE)
        except DamagedError as error:
            raise ValueError(
                f"column {name!r}: no page's header at byte {at:,}: {error}"
            ) from error
        seen += _count(name, at, page, values - seen)
        at = body + page.get(3, -1)
        if not body <= at <= end or page.get(2, -1) < 0:
            raise ValueError(f"column {name!r}: a page's size at byte {body:,} is not a valid size")
        _refuse_other_checksum(name, data, (body, at), page, gzip=chunk.get(4) == _GZIP)


def _count(name: str, at: int, page: Mapping[int, Any], left: int) -> int:
    """Return how many of the column's values a page holds; a dictionary holds none of them."""
    said = page.get(_DATA) or page.get(_DATA_2) or {}
    told = said or page.get(_DICTIONARY, {})
    count = told.get(1, 0)
    lengths = [told.get(key, 0) for key in _LENGTHS] if page.get(_DATA_2) else []
    most = left if said else page.get(2, 0)  # an entry of a dictionary is at least a byte
    if not 0 <= count <= most or min(lengths, default=0) < 0 or sum(lengths) > page.get(3, 0):
        raise ValueError(
            f"column {name!r}: the page at byte {at:,} says that it has {count:,} values"
        )
    return int(count) if said else 0


def _refuse_other_checksum(
    name: str,
    data: mmap.mmap | bytes,
    place: tuple[int, int],
    page: Mapping[int, Any],
    *,
    gzip: bool,
) -> None:
    at, end = place
    said = page.get(_CHECKSUM)
    if said is not None and zlib.crc32(data[at:end]) != said & 0xFFFFFFFF:
        raise ValueError(f"column {name!r}: the page at byte {at:,} has another checksum")
    second = page.get(_DATA_2)
    if not gzip or at == end or (second and not second.get(_IS_PACKED, True)):
        return
    levels = sum(second.get(key, 0) for key in _LENGTHS) if second else 0
    try:
        refuse_damaged_gzip(data[at + levels : end], page.get(2, 0) - levels)
    except DamagedError as error:
        raise ValueError(f"column {name!r}: the page at byte {at:,}: {error}") from error
