"""The files beside an ONNX file that hold its weights.

A tensor may name a file instead of holding its numbers (``external_data``). onnxruntime opens these
files and does not list them, so the names are read here. ONNX is protocol buffers; field numbers
are those of onnx.proto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path

from isolux.core.errors import FileError
from isolux.io.paths import resolve_inside

_MESSAGES: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
"""Of each message, the fields that may hold a tensor, and the message that each is."""
_ENTRY, _DATA_LOCATION, _EXTERNAL = 13, 14, 1  # of a tensor
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def list_external_data_files(path: Path) -> dict[str, Path]:
    """List the files that a network's tensors name: each name, and where the file is."""
    if path.suffix == ".ort":  # onnxruntime's own format, which names no file
        return {}
    try:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as buffer:
            names = set(_iterate_external_file_names(buffer))
    except (IndexError, ValueError) as error:  # mmap refuses an empty file by ValueError
        raise FileError(
            "this file cannot be run as an ONNX network",
            expected="protocol buffers",
            found="other bytes",
            where=str(path),
        ) from error
    files = {}
    for name in sorted(names):
        # A link is followed, as a hub's cache links a network and its weights to one folder.
        files[name] = resolve_inside(path.resolve().parent, path.parent.resolve() / name)
        if not files[name].is_file():
            raise FileError(
                "a file with weights of this network is not there",
                expected=name,
                found="no such file",
                where=str(path),
            )
    return files


def _iterate_external_file_names(buffer: mmap) -> Iterator[str]:
    """Yield the name of each file that holds a tensor's values."""
    pending = [("model", 0, len(buffer))]
    while pending:
        message, start, end = pending.pop()
        entries, is_external = [], False
        for field, first, last in _iterate_protobuf_fields(buffer, start, end):
            if message == "tensor":
                is_external |= field == _DATA_LOCATION and first == _EXTERNAL and last < 0
                entries += [(first, last)] if field == _ENTRY and last >= 0 else []
            elif field in _MESSAGES[message] and last >= 0:
                pending.append((_MESSAGES[message][field], first, last))
        for first, last in entries if is_external else ():
            entry = {
                field: buffer[a:b]
                for field, a, b in _iterate_protobuf_fields(buffer, first, last)
                if b >= 0
            }
            if entry.get(1) == b"location":
                yield entry.get(2, b"").decode()


def _iterate_protobuf_fields(
    buffer: mmap, position: int, end: int
) -> Iterator[tuple[int, int, int]]:
    """Give a message's fields: number, and where its bytes are; of a number its value and -1."""
    while position < end:
        key, position = _read_varint_and_position(buffer, position)
        wire_type, size = key & 7, 0
        if wire_type == _VARINT:
            number, position = _read_varint_and_position(buffer, position)
            yield key >> 3, number, -1
            continue
        if wire_type == _BYTES:
            size, position = _read_varint_and_position(buffer, position)
        elif wire_type in (_FIXED32, _FIXED64):
            size = 4 if wire_type == _FIXED32 else 8
        else:
            raise IndexError
        if position + size > end:
            raise IndexError
        if wire_type == _BYTES:
            yield key >> 3, position, position + size
        position += size


def _read_varint_and_position(buffer: mmap, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        number |= (buffer[position] & 127) << shift
        if buffer[position] < 128:
            return number, position + 1
        position += 1
    raise IndexError
