"""Archives: parts of theirs go, other parts are rewritten, the rest stays byte by byte."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable

from isolux.curation.withdrawal.rewriting.tables import Rewritten

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
        return Rewritten(content, 0)

    if data.startswith(b"PK\x03\x04"):
        rewrite_zip(data, keep)
    elif data[257:262] == b"ustar":
        rewrite_tar(data, keep)
    elif data.startswith(PACKED):
        rewrite_packed(data, name.rpartition(".")[0] or name, keep)
    return parts


def rewrite_zip(data: bytes, part: Part) -> Rewritten:
    """Rewrite a zip archive's parts."""
    out, n, why = io.BytesIO(), 0, ""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
            names = old.namelist()
            for info in old.infolist():
                if info.flag_bits & 1:
                    return Rewritten(data, 0, why="a part of the archive is encrypted")
                held = old.read(info)
                done = Rewritten(held, 0) if info.is_dir() else part(info.filename, held, names)
                why, n = why or done.why, n + done.n
                if done.data is not None:
                    new.writestr(info, done.data, info.compress_type)
    except Exception as error:  # noqa: BLE001  (tarfile raises many)
        return Rewritten(data, 0, why=f"the archive cannot be opened: {error}")
    if why:
        return Rewritten(data, 0, why=why)
    return Rewritten(out.getvalue(), n) if n else Rewritten(data, 0)


def rewrite_tar(data: bytes, part: Part) -> Rewritten:
    """Rewrite a tar archive's parts."""
    out, n, why = io.BytesIO(), 0, ""
    try:
        with (
            tarfile.open(fileobj=io.BytesIO(data), mode="r:") as old,
            tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as new,
        ):
            names = old.getnames()
            for info in old.getmembers():
                stream = old.extractfile(info) if info.isfile() else None
                if stream is None:
                    new.addfile(info)
                    continue
                held = stream.read()
                done = part(info.name, held, names)
                why, n = why or done.why, n + done.n
                if done.data is not None:
                    info.size = len(done.data)
                    info.pax_headers = {}
                    new.addfile(info, io.BytesIO(done.data))
    except Exception as error:  # noqa: BLE001  (tarfile raises many)
        return Rewritten(data, 0, why=f"the archive cannot be opened: {error}")
    if why:
        return Rewritten(data, 0, why=why)
    return Rewritten(out.getvalue(), n) if n else Rewritten(data, 0)


def rewrite_packed(data: bytes, name: str, part: Part) -> Rewritten:
    """Rewrite what one file was packed into (gzip, bzip2, xz)."""
    unpack, pack = _PACKED[next(mark for mark in _PACKED if data.startswith(mark))]
    try:
        held = unpack(data)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        return Rewritten(data, 0, why=f"it cannot be unpacked: {error}")
    done = part(name, held, [])
    if done.why or not done.n or done.data is None:
        return Rewritten(None if done.data is None else data, done.n, done.why)
    return Rewritten(pack(done.data), done.n)


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


_PACKED: dict[bytes, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": (gzip.decompress, _gzip),
    b"BZh": (bz2.decompress, bz2.compress),
    b"\xfd7zXZ\x00": (lzma.decompress, lzma.compress),
}
PACKED = tuple(_PACKED)
