"""Archives: parts of theirs go, other parts are rewritten, the rest stays byte by byte."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from isolux_curate.withdrawal.rewriting.tables import Blind, Rewritten

Part = Callable[[str, bytes, list[str]], Rewritten]
"""Rewrites a part by its name, its bytes and the names beside it."""


def is_archive(data: bytes) -> bool:
    """Tell by its first bytes whether a file is an archive, or packed."""
    return data.startswith((b"PK\x03\x04", *_PACKED)) or data[257:262] == b"ustar"


def list_parts(name: str, data: bytes) -> list[tuple[str, bytes]]:
    """List the parts of an archive, or what one file was packed into; none of another file."""
    parts: list[tuple[str, bytes]] = []

    def keep(part: str, content: bytes, _: list[str]) -> Rewritten:
        parts.append((part, content))
        return content, 0

    with suppress(Blind):  # it is named when it is looked through
        rewrite_archive(name.rpartition(".")[0] or name, data, keep)
    return parts


def rewrite_archive(inner: str, data: bytes, part: Part) -> Rewritten:
    """Rewrite an archive's parts, or what one file was packed into, which is called ``inner``."""
    if data.startswith(b"PK\x03\x04"):
        return _rewrite_zip(data, part)
    if data[257:262] == b"ustar":
        return _rewrite_tar(data, part)
    ways = next((ways for mark, ways in _PACKED.items() if data.startswith(mark)), None)
    if ways is None:
        return data, 0
    unpack, pack = ways
    with refusing("it cannot be unpacked"):
        held = unpack(data)
    content, n = part(inner, held, [])
    return (pack(content) if n and content is not None else content), n


@contextmanager
def refusing(problem: str) -> Iterator[None]:
    """Refuse what cannot be opened, whatever a library raises of it."""
    try:
        yield
    except Blind:
        raise
    except Exception as error:  # zipfile, tarfile and the others raise many
        raise Blind(f"{problem}: {error}") from error


def _rewrite_zip(data: bytes, part: Part) -> Rewritten:
    out, n = io.BytesIO(), 0
    with (
        refusing("the archive cannot be opened"),
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(out, "w") as new,
    ):
        names = old.namelist()
        for info in old.infolist():
            if info.flag_bits & 1:
                raise Blind("a part of the archive is encrypted")
            held = old.read(info)
            content, gone = (held, 0) if info.is_dir() else part(info.filename, held, names)
            n += gone
            if content is not None:
                new.writestr(info, content, info.compress_type)
    return out.getvalue(), n


def _rewrite_tar(data: bytes, part: Part) -> Rewritten:
    out, n = io.BytesIO(), 0
    with (
        refusing("the archive cannot be opened"),
        tarfile.open(fileobj=io.BytesIO(data), mode="r:") as old,
        tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        names = old.getnames()
        for info in old.getmembers():
            stream = old.extractfile(info) if info.isfile() else None
            if stream is None:
                new.addfile(info)
                continue
            content, gone = part(info.name, stream.read(), names)
            n += gone
            if content is not None:
                info.size, info.pax_headers = len(content), {}
                new.addfile(info, io.BytesIO(content))
    return out.getvalue(), n


_PACKED: dict[bytes, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": (gzip.decompress, functools.partial(gzip.compress, mtime=0)),
    b"BZh": (bz2.decompress, bz2.compress),
    b"\xfd7zXZ\x00": (lzma.decompress, lzma.compress),
}
