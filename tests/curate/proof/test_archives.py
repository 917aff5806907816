"""What a file may become when it is unpacked: beyond that the search says that it cannot look."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib

import pytest
from PIL import Image, PngImagePlugin

from isolux_curate.proof import archives
from isolux_curate.proof.archives import iterate_inner_files_or_raise
from isolux_curate.withdrawal.rewriting import UnsearchableFile

LARGE = bytes(1 << 16)


def png_that_says(text: bytes) -> bytes:
    said, out = PngImagePlugin.PngInfo(), io.BytesIO()
    said.add_text("Comment", text.decode(), zip=True)
    Image.new("L", (1, 1)).save(out, "PNG", pnginfo=said)
    return out.getvalue()


BOMBS = {
    "gzip": gzip.compress(LARGE), "bzip2": bz2.compress(LARGE), "xz": lzma.compress(LARGE),
    "zlib": zlib.compress(LARGE), "PNG": png_that_says(b"n" * len(LARGE)),
}  # fmt: skip


@pytest.mark.parametrize("kind", BOMBS)
def test_what_becomes_too_large_is_not_taken_for_clean(kind, monkeypatch):
    monkeypatch.setattr(archives, "_MAX_UNPACKED_BYTES", 1 << 10)
    monkeypatch.setattr(PngImagePlugin, "MAX_TEXT_CHUNK", 1 << 10)
    with pytest.raises(UnsearchableFile, match=r"1,024 bytes|too large"):
        list(iterate_inner_files_or_raise("file", BOMBS[kind]))


@pytest.mark.parametrize("kind", BOMBS)
def test_what_is_within_the_limit_is_unpacked(kind):
    parts = [part for _, part in iterate_inner_files_or_raise("file", BOMBS[kind])]
    assert any(len(part) >= len(LARGE) for part in parts)
