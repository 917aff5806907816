"""Damaged Arrow files found before polars reads them: it ends the process over some.

A compressed buffer begins with the length that it unpacks to, and polars asks for as much memory,
be it 2^61 bytes, which no exception reports. So what a file says of itself is held against the file
first: its messages, one after another; the footer; of each batch the lengths of its columns and
the places of their buffers. Values themselves are not looked at, nor unpacked.

A byte too few or too many anywhere moves what follows it, so that the next message is not where it
should be; that is found. A changed byte within values is not: Arrow keeps no checksums.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from isolux.io.arrow_buffers import refuse_damaged_batch
from isolux.io.arrow_schema import Column, columns_of, refuse_unread
from isolux.io.flatbuffers import Table, root
from isolux.io.thrift_compact import DamagedError

__all__ = ["CELLS", "columns_of_message", "refuse_damaged_batches"]

_MAGIC = b"ARROW1"
_CONTINUES = b"\xff\xff\xff\xff"
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3  # what a message is about: MessageHeader in Message.fbs
_LEAST = 64  # bytes that no message is shorter than
_PADDING = 64  # bytes that a writer may add, all 0
CELLS = 1_000_000_000
"""Rows times columns: a larger table would not fit most memories."""


@dataclass(frozen=True, slots=True)
class _Message:
    at: int
    kind: int
    header: Table
    body: int
    end: int


def refuse_damaged_batches(source: Path | bytes) -> tuple[Column, ...]:
    """Refuse an Arrow file or stream whose batches are not what its metadata says.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.arrow"
    ...     pl.DataFrame({"age": [31, 8]}).write_ipc(path)
    ...     [column.name for column in refuse_damaged_batches(path)]
    ['age']
    """
    if isinstance(source, bytes):
        return _look_through(memoryview(source))
    if not source.stat().st_size:
        raise ValueError("it is empty")
    with source.open("rb") as file:
        # not closed by hand: an error that is on its way keeps views of it
        return _look_through(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))


def _look_through(data: memoryview) -> tuple[Column, ...]:
    footer: Table | None = None
    messages: Iterator[_Message] = _messages(data, 0, len(data))
    if data[:6] == _MAGIC:
        footer, end = _footer(data)
        messages = _messages_of_file(data, footer, end)
    columns: tuple[Column, ...] | None = None
    seen: dict[int, set[tuple[int, int]]] = {_DICTIONARY: set(), _BATCH: set()}
    rows = 0
    for message in messages:
        if message.kind == _SCHEMA and columns is None:
            columns = columns_of(message.header)
            refuse_unread(columns)
            inside = _by_dictionary(columns)
            continue
        if message.kind not in seen or columns is None:
            raise ValueError(f"the message at byte {message.at:,} is none that belongs there")
        seen[message.kind].add((message.at, message.end))
        rows += _look(data, message, columns, inside)
        if rows * len(columns) > CELLS:  # a column of one value packs to nothing
            raise ValueError(f"{rows:,} rows and more, of {len(columns):,} columns, are too many")
    if columns is None:
        raise ValueError("it has no schema")
    if footer is not None:
        _refuse_other_footer(footer, columns, seen)
    return columns


def columns_of_message(data: bytes) -> tuple[Column, ...]:
    """Read the columns from a message of a schema, as pyarrow leaves one in Parquet files."""
    for message in _messages(memoryview(data), 0, len(data)):
        if message.kind == _SCHEMA:
            return columns_of(message.header)
    raise ValueError("it has no schema")


def _footer(data: memoryview) -> tuple[Table, int]:
    end = len(data) - len(_MAGIC) - 4
    if end < 8 or data[-6:] != _MAGIC:
        raise ValueError("it is cut off: it does not end as Arrow files do")
    size = int.from_bytes(data[end : end + 4], "little", signed=True)
    if not 0 < size <= end - 8:
        raise ValueError(f"its footer has {size:,} bytes of {end:,}")
    return root(data[end - size : end]), end - size


def _messages_of_file(data: memoryview, footer: Table, end: int) -> Iterator[_Message]:
    """Yield the messages between a file's magic and its footer."""
    at = 8
    if int.from_bytes(data[at : at + 4], "little") < _LEAST:
        # polars writes no length before the schema; what follows is where the footer says
        at = min((at for field in (2, 3) for at, *_ in _blocks(footer, field)), default=end - 8)
        if not 8 < at < end:
            raise ValueError(f"its footer says that its first batch is at byte {at:,}")
        yield _message(data, 8, (8, at), end)
    yield from _messages(data, at, end)


def _blocks(footer: Table, field: int) -> list[tuple[int, ...]]:
    return footer.structs(field, "<qi4xq")


def _messages(data: memoryview, at: int, end: int) -> Iterator[_Message]:
    """Yield the messages of a stream."""
    while at < end:
        start = at
        at += 4 if data[at : at + 4] == _CONTINUES else 0  # before 0.15 the length came first
        size = int.from_bytes(data[at : min(at + 4, end)], "little", signed=True)
        at += 4
        if not size and at <= end:
            if any(data[at:end]) or end - at > _PADDING:
                raise ValueError(f"{end - at:,} bytes follow its end at byte {at:,}")
            return
        if size < 0 or at + size > end:
            raise ValueError(f"no message at byte {start:,}, or it is cut off")
        message = _message(data, start, (at, at + size), end)
        yield message
        at = message.end
    raise ValueError(f"it is cut off: nothing says at byte {end:,} that no batch follows")


def _message(data: memoryview, start: int, told_in: tuple[int, int], end: int) -> _Message:
    told, body = root(data[slice(*told_in)]), told_in[1]
    kind, header, length = told.number(1, "<B"), told.table(2), told.number(3, "<q")
    left = end - body
    if header is None or not 0 <= length <= left:
        raise ValueError(f"the message at byte {start:,} has {length:,} bytes of {left:,}")
    return _Message(start, kind, header, body, body + length)


def _by_dictionary(columns: tuple[Column, ...]) -> dict[int, Column]:
    found = {}
    for column in columns:
        found.update(_by_dictionary(column.children))
        if column.words is not None:
            found[column.words] = column
    return found


def _look(
    data: memoryview,
    message: _Message,
    columns: tuple[Column, ...],
    words: dict[int, Column],
) -> int:
    batch = message.header
    if message.kind == _DICTIONARY:
        number, inner = batch.number(0, "<q"), batch.table(1)
        if number not in words or inner is None:
            raise ValueError(f"byte {message.at:,}: words of no column")
        batch, columns = inner, (words[number].plain(),)
    try:
        return refuse_damaged_batch(data, message.body, message.end, batch, columns)
    except DamagedError as error:
        raise ValueError(f"the batch at byte {message.at:,}: {error}") from error


def _refuse_other_footer(
    footer: Table, columns: tuple[Column, ...], seen: dict[int, set[tuple[int, int]]]
) -> None:
    schema = footer.table(1)
    if schema is None or columns_of(schema) != columns:
        raise ValueError("its footer says other columns than its beginning")
    for field, kind, name in ((2, _DICTIONARY, "dictionaries"), (3, _BATCH, "batches")):
        blocks = _blocks(footer, field)
        said = {(at, at + metadata + body) for at, metadata, body in blocks}
        if said != seen[kind] or len(blocks) != len(said):
            raise ValueError(f"its footer says other {name} than there are")
