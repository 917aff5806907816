"""What a file may become when it is unpacked: beyond that the search says that it cannot look."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib

import pytest

from isolux_curate.proof import archives
from isolux_curate.proof.archives import iterate_inner_files_or_raise
from isolux_curate.withdrawal.rewriting import UnsearchableFile

LARGE = bytes(1 << 16)


def png_that_says(text: bytes) -> bytes:
    held = b"Comment\0\0" + zlib.compress(text)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(held)) + b"zTXt" + held + bytes(4)


PDF = b"%PDF-1.7\n<< /FlateDecode >>\nstream\n" + zlib.compress(LARGE) + b"\nendstream"
BOMBS = {
    "gzip": gzip.compress(LARGE), "bzip2": bz2.compress(LARGE), "xz": lzma.compress(LARGE),
    "zlib": zlib.compress(LARGE), "PNG": png_that_says(LARGE), "PDF": PDF,
}  # fmt: skip


@pytest.mark.parametrize("kind", BOMBS)
def test_what_becomes_too_large_is_not_taken_for_clean(kind, monkeypatch):
    monkeypatch.setattr(archives, "_MAX_UNPACKED_BYTES", 1 << 10)
    monkeypatch.setattr(archives, "_MAX_TEXT_BYTES", 1 << 10)
    with pytest.raises(UnsearchableFile, match="1,024 bytes"):
        list(iterate_inner_files_or_raise("file", BOMBS[kind]))


@pytest.mark.parametrize("kind", BOMBS)
def test_what_is_within_the_limit_is_unpacked(kind):
    assert any(LARGE in part for _, part in iterate_inner_files_or_raise("file", BOMBS[kind]))
