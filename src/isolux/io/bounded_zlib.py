"""Bytes that zlib packed, unpacked as far as they may reach: a small file can hold gigabytes."""

from __future__ import annotations

import zlib
from io import BufferedIOBase

_MAX_RATIO, _MIN_LIMIT_BYTES = 200, 64 << 20  # text packs to a tenth; up to 64 MiB do no harm


class TooLargeError(ValueError):
    """Compressed bytes that would exceed the allowed size."""


def max_unpacked_bytes(n_bytes: int, max_bytes: int) -> int:
    """Return how many bytes a packed file may become: 200 times its own, and 64 MiB always."""
    return min(max_bytes, max(_MIN_LIMIT_BYTES, _MAX_RATIO * n_bytes))


def decompress_bounded(packed: bytes, max_bytes: int) -> bytes:
    """Unpack bytes that zlib packed."""
    unpacker = zlib.decompressobj()
    unpacked = unpacker.decompress(packed, max_bytes + 1)
    if len(unpacked) > max_bytes:
        raise TooLargeError(f"more than {max_bytes:,} bytes when unpacked")
    if not unpacker.eof:
        raise zlib.error("the packed bytes are cut off")
    return unpacked


class LimitedStream:
    """A stream that raises an error when more than ``limit`` bytes are read."""

    def __init__(self, stream: BufferedIOBase, limit: int) -> None:
        self.stream, self.limit, self.n_remaining = stream, limit, limit

    def read(self, size: int = -1) -> bytes:
        """Read as the stream does."""
        return self._count_bytes(self.stream.read(self._cap_size(size)))

    def readline(self, size: int = -1) -> bytes:
        """Read a line as the stream does."""
        return self._count_bytes(self.stream.readline(self._cap_size(size)))

    def _cap_size(self, size: int) -> int:
        return self.n_remaining + 1 if size < 0 else min(size, self.n_remaining + 1)

    def _count_bytes(self, chunk: bytes) -> bytes:
        self.n_remaining -= len(chunk)
        if self.n_remaining < 0:
            raise TooLargeError(f"more than {self.limit:,} bytes when unpacked")
        return chunk
