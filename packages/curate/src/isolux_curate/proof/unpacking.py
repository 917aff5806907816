"""What a file holds in itself, and what it says besides what it shows.

Parts of archives, packed bytes, tables, text in base64; text in pictures, names in the heads of
packed files.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import gzip
import io
import lzma
import re
import sqlite3
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

import numpy as np
import polars as pl

from isolux.io.binary_tables import first_line
from isolux.io.inflating import TooLargeError, inflated
from isolux_curate.withdrawal.gathering import thumbnail
from isolux_curate.withdrawal.rewriting.tables import (
    Blind,
    database_of,
    frame_of,
    held_bytes,
    read_frame,
    read_tables,
)
from isolux_curate.withdrawal.rewriting.text import read_delimited

if TYPE_CHECKING:
    from PIL.Image import Exif

_BETWEEN = b"\0\0\n\0\0"  # no value is a part of the next, in whatever coding
_IFDS = (1, 0x8769, 0x8825, 0xA005)  # the thumbnail's, Exif's, the place's, of interoperation
_EXIF = b"Exif\0\0"
_NAME, _COMMENT, _EXTRA = 8, 16, 4  # flags of gzip
_MAX_TEXT_BYTES = 1 << 26  # bytes that a picture's packed text may become


def said_in(data: bytes) -> bytes:
    """Give what a picture or a gzip file says in its metadata, value by value, unpacked."""
    if data.startswith(b"\x89PNG"):
        parts = list(_png(data))
    elif data.startswith(b"\xff\xd8"):
        parts = list(_jpeg(data))
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        parts = list(_webp(data))
    elif data.startswith((b"GIF8", b"II*\0", b"MM\0*")):
        parts = list(_by_pillow(data))
    elif data.startswith(b"\x1f\x8b"):
        parts = list(_gzip(data))
    else:
        parts = []
    return _BETWEEN.join(one for one in parts if one)


def _png(data: bytes) -> Iterator[bytes]:
    at = 8
    while at + 8 <= len(data):
        (size,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        held, at = data[at + 8 : at + 8 + size], at + 12 + size
        if kind == b"IEND":  # what hangs on it is no part of the picture
            return
        if kind in (b"IDAT", b"IHDR", b"PLTE", b"fdAT"):
            continue
        yield held
        if kind == b"eXIf":
            yield from _of_exif(held)
        elif kind in (b"zTXt", b"iTXt", b"iCCP"):
            yield from _unpacked_text(kind, held)


def _unpacked_text(kind: bytes, held: bytes) -> Iterator[bytes]:
    _, _, rest = held.partition(b"\0")
    if kind == b"iTXt":  # two flags, a language and a translation, each ended by a zero
        rest = b"x" + rest[2:].partition(b"\0")[2].partition(b"\0")[2]
    try:
        yield inflated(rest[1:], _MAX_TEXT_BYTES)
    except zlib.error:
        return  # it was not packed
    except TooLargeError as error:
        raise Blind(f"the picture's text cannot be unpacked: {error}") from error


def _jpeg(data: bytes) -> Iterator[bytes]:
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        mark, size = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if mark == 0xDA:  # from here on it is the picture
            return
        held, at = data[at + 4 : at + 2 + size], at + 2 + max(size, 2)
        if mark == 0xFE or 0xE1 <= mark <= 0xEF:
            yield held
            if held.startswith(_EXIF):
                yield from _of_exif(held)


def _webp(data: bytes) -> Iterator[bytes]:
    at = 12
    while at + 8 <= len(data):
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        held, at = data[at + 8 : at + 8 + size], at + 8 + size + size % 2
        if kind not in (b"VP8 ", b"VP8L", b"ALPH", b"ANMF"):
            yield held
        if kind == b"EXIF":
            yield from _of_exif(held)


def _of_exif(held: bytes) -> Iterator[bytes]:
    from PIL import Image

    exif = Image.Exif()
    try:
        exif.load(held if held.startswith(_EXIF) else _EXIF + held)
    except (SyntaxError, ValueError, OSError, struct.error):
        return  # its bytes are searched as they are
    yield from _values(exif)


def _values(exif: Exif) -> Iterator[bytes]:
    for table in (exif, *(exif.get_ifd(one) for one in _IFDS)):
        yield from (_bytes(value) for value in table.values())


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, tuple):
        if value and all(isinstance(one, int) and 0 <= one < 256 for one in value):
            return bytes(value)
        return _BETWEEN.join(_bytes(one) for one in value)
    return b""


def _by_pillow(data: bytes) -> Iterator[bytes]:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as opened:
            for k in range(getattr(opened, "n_frames", 1)):
                opened.seek(k)
                yield from (_bytes(one) for one in opened.info.values())
                yield from _values(opened.getexif())
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
        return  # that it cannot be opened is told elsewhere


def _gzip(data: bytes) -> Iterator[bytes]:
    flags, at = data[3] if len(data) > 10 else 0, 10
    if flags & _EXTRA:
        size = int.from_bytes(data[10:12], "little")
        yield data[12 : 12 + size]
        at = 12 + size
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            text, _, _ = data[at:].partition(b"\0")
            at += len(text) + 1
            yield text


_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{40,}={0,2}(?:\r?\n[A-Za-z0-9+/_-]{2,}={0,2})*")
_STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.DOTALL)
_HEADS = (
    b"\x1f\x8b",
    b"PK\x03\x04",
    b"\xff\xd8\xff",
    b"\x89PNG",
    b"PAR1",
    b"RIFF",
    b"GIF8",
    b"BZh",
    b"\xfd7zXZ",
    b"SQLite",
    b"\x93NUMPY",
    b"%PDF",
    b"ARROW1",
)
_ZIP, _GZIP, _PICTURES = (
    b"PK\x03\x04",
    b"\x1f\x8b\x08",
    (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF"),
)
_RAW = (*_PICTURES, b"II*\x00", b"MM\x00*", b"BM", b"\x93NUMPY")  # other files may stand in these
_EMBEDDED = re.compile(
    rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n|GIF8[79]a|RIFF(?=....WEBP)|\x1f\x8b\x08|PK\x03\x04"
    rb"|BZh(?=[1-9]1AY&SY)|\xfd7zXZ\0|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|\x28\xb5\x2f\xfd|%PDF-"
    rb"|SQLite format 3\0",
    re.DOTALL,
)
_ADDRESS = re.compile(rb"data:[\w/+.;=-]*,([^\"'\s)<>]+)")
_ZLIB = (b"\x01", b"\x5e", b"\x9c", b"\xda")  # levels of packing
_END_OF_ZIP = 22 + (1 << 16)  # bytes of an archive's last record, with its comment
_MOST = 1 << 31  # bytes that one file may become


def inner_parts(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """List what is packed in a file: names below it, and bytes."""
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")) or _ends_in_zip(data):
        yield from _zip(name, data)
    elif data[257:262] == b"ustar":
        yield from _tar(name, data)
    else:
        for mark, unpack in _PACKED.items():
            if data.startswith(mark):
                yield f"{name}!unpacked", _unpacked(unpack, data)
    if said := said_in(data):
        yield f"{name}!metadata", said
    yield from _deflated(name, data)
    yield from _in_base64(name, data)
    yield from _in_addresses(name, data)
    if data.startswith(_RAW) and "!at byte " not in name.rpartition("/")[2]:
        yield from _embedded(name, data)
    if data.startswith(b"%PDF"):
        yield from _pdf(name, data)


def _unpacked(opened: Callable[..., Any], data: bytes) -> bytes:
    try:
        with opened(io.BytesIO(data)) as stream:
            found: bytes = stream.read(_MOST + 1)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise Blind(f"it is packed and damaged: {error}") from error
    if len(found) > _MOST:
        raise Blind(f"it is packed, and becomes more than {_MOST:,} bytes")
    return found


_PACKED: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x5d\x00\x00": lzma.open,
}


def _zip(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield f"{name}!comment", archive.comment
            for info in archive.infolist():
                if info.flag_bits & 1:
                    raise Blind("a part of it is encrypted")
                if info.file_size > _MOST:
                    raise Blind("a part of it is larger than 2 GB")
                yield f"{name}!{info.filename}", archive.read(info)
    except (zipfile.BadZipFile, NotImplementedError, OSError, RuntimeError, EOFError,
            ValueError, zlib.error, lzma.LZMAError) as error:  # fmt: skip
        raise Blind(f"the archive cannot be opened: {error}") from error


def _ends_in_zip(data: bytes) -> bool:
    """Tell whether an archive hangs on a file that is something else, as on a picture."""
    return b"PK\x05\x06" in data[-_END_OF_ZIP:] and zipfile.is_zipfile(io.BytesIO(data))


def _deflated(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Unpack bytes that zlib wrote without a head of its own."""
    if data[:1] == b"\x78" and data[1:2] in _ZLIB:
        try:
            yield f"{name}!unpacked", inflated(data, _MOST)
        except zlib.error:
            return  # two letters of something else
        except TooLargeError as error:
            raise Blind(f"it cannot be unpacked: {error}") from error


def _tar(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for info in archive.getmembers():
                stream = archive.extractfile(info) if info.isfile() else None
                yield f"{name}!{info.name}", stream.read() if stream else info.linkname.encode()
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise Blind(f"the archive cannot be opened: {error}") from error


def _pdf(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Give the parts of a document that zlib packed; whatever else it holds is not read."""
    for k, found in enumerate(_STREAM.finditer(data)):
        with suppress(zlib.error):
            try:
                yield f"{name}!stream {k}", inflated(found[1], _MOST)
            except TooLargeError as error:
                raise Blind(f"a part of the document cannot be unpacked: {error}") from error
    raise Blind("a PDF: its text may be coded, and its pictures are not compared")


def _in_base64(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Read what stands in base64, where it is a file of a known kind or holds text."""
    for k, found in enumerate(_BASE64.finditer(data)):
        block = re.sub(rb"[\r\n]", b"", found[0]).translate(bytes.maketrans(b"-_", b"+/"))
        plain = block.rstrip(b"=")
        try:
            inner = base64.b64decode(plain + b"=" * (-len(plain) % 4))
        except binascii.Error:
            continue
        if inner.startswith(_HEADS):
            yield f"{name}!base64 {k}", inner


def _in_addresses(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Read files that stand in addresses, escaped with percent signs."""
    for k, found in enumerate(_ADDRESS.finditer(data)):
        if b"%" in found[1]:
            yield f"{name}!address {k}", unquote_to_bytes(found[1])


def _embedded(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Give files that begin within a picture or an array, as thumbnails do, or hang on it."""
    has_zip = _ends_in_zip(data)
    for found in _EMBEDDED.finditer(data, 1):
        inner = data[found.start() :]
        if found[0] == _ZIP:
            if has_zip:
                continue
            has_zip = True  # the heads that follow are of its parts
        elif found[0] == _GZIP:
            try:
                zlib.decompressobj(31).decompress(inner, 64)
            except zlib.error:
                continue  # three bytes of something else
        elif inner.startswith(_PICTURES) and thumbnail(inner) is None:
            continue
        yield f"{name}!at byte {found.start()}", inner


def tables_of(name: str, data: bytes) -> Iterator[pl.DataFrame]:
    """Read the tables that a file is or holds."""
    lower = name.lower()
    try:
        if data[:4] == b"PAR1" or data[:6] == b"ARROW1" or lower.endswith((".arrow", ".feather")):
            yield read_frame(data)[0]
        elif data.startswith(b"SQLite format 3\0"):
            with database_of(data) as (connection, _):
                for _, names, rows in read_tables(connection):
                    yield frame_of(names, rows)
        elif data.startswith(b"\x93NUMPY"):
            array = np.load(io.BytesIO(data), allow_pickle=False)
            words = array.ravel() if array.dtype.kind in "US" else ()
            yield pl.DataFrame({"id": [str(one) for one in words]}, schema={"id": pl.String})
        elif lower.endswith((".csv", ".tsv")) and (frame := read_delimited(data)) is not None:
            yield frame
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError,
            sqlite3.Error, EOFError) as error:  # fmt: skip
        raise Blind(f"the table cannot be read: {first_line(error)[:80]}") from error


def inner_cells(name: str, table: pl.DataFrame) -> Iterator[tuple[str, bytes]]:
    """List files that cells of a table hold, as pictures in Parquet and in databases."""
    for column in table.columns:
        for row, cell in enumerate(held_bytes(table[column])):
            for one in cell:
                if one.startswith(_HEADS):
                    yield f"{name}!{column} {row}", one
