"""Compressed frames: what their blocks can hold, held against what they do hold."""

from __future__ import annotations

import pyarrow as pa
import pytest

from isolux.io.packed_frames import LZ4, ZSTD, most_unpacked
from isolux.io.thrift_compact import DamagedError

CODECS = [(LZ4, "lz4"), (ZSTD, "zstd")]
TEXTS = [b"", b"a", b"hi" * 40, bytes(1_000_000), bytes(range(256)) * 3_000]


@pytest.mark.parametrize(("codec", "name"), CODECS)
@pytest.mark.parametrize("text", TEXTS)
def test_no_frame_holds_more_than_its_blocks_can(codec: int, name: str, text: bytes) -> None:
    packed = pa.compress(text, codec=name, asbytes=True)
    most, exact = most_unpacked(packed, 0, len(packed), codec)
    assert most == len(text) if exact else most >= len(text)
    twice = packed + packed + bytes(7)  # frames one after another, and padding
    assert most_unpacked(twice, 0, len(twice), codec) == (2 * most, exact)


def test_frames_of_a_known_shape() -> None:
    # no length in the header, a window of 1 KiB; blocks: stored 2, repeated 300, compressed 1 byte
    head = bytes.fromhex("28b52ffd 00 00")
    blocks = [(2 << 3, b"hi"), (300 << 3 | 1 << 1, b"x"), (1 << 3 | 2 << 1 | 1, b"?")]
    frame = head + b"".join(told.to_bytes(3, "little") + body for told, body in blocks)
    assert most_unpacked(frame, 0, len(frame), ZSTD) == (2 + 300 + (128 << 10), False)


@pytest.mark.parametrize(("codec", "name"), CODECS)
def test_frames_that_are_cut_or_followed_are_refused(codec: int, name: str) -> None:
    packed = pa.compress(b"people " * 200, codec=name, asbytes=True)
    for end in range(len(packed)):
        with pytest.raises(DamagedError, match="goes past its end"):
            most_unpacked(packed, 0, end, codec)
    for wrong in (b"?" + packed, packed + b"and more"):
        with pytest.raises(DamagedError, match="no compressed data"):
            most_unpacked(wrong, 0, len(wrong), codec)


def test_a_block_of_no_kind_is_refused() -> None:
    frame = bytes.fromhex("28b52ffd 00 00 070000")  # the last block, of kind 3
    with pytest.raises(DamagedError, match="no block of compressed data at byte 6"):
        most_unpacked(frame, 0, len(frame), ZSTD)
