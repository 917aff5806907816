"""What files say besides what they show: text in pictures, names in the heads of packed files."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from isolux.curation.proof.blind import Blind
from isolux.io.inflating import TooLargeError, inflated

if TYPE_CHECKING:
    from PIL.Image import Exif

__all__ = ["said_in"]

_BETWEEN = b"\0\0\n\0\0"  # no value is a part of the next, in whatever coding
_IFDS = (1, 0x8769, 0x8825, 0xA005)  # the thumbnail's, Exif's, the place's, of interoperation
_EXIF = b"Exif\0\0"
_NAME, _COMMENT, _EXTRA = 8, 16, 4  # flags of gzip
_MOST = 1 << 26  # bytes that a picture's packed text may become


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
            yield from _unpacked(kind, held)


def _unpacked(kind: bytes, held: bytes) -> Iterator[bytes]:
    _, _, rest = held.partition(b"\0")
    if kind == b"iTXt":  # two flags, a language and a translation, each ended by a zero
        rest = b"x" + rest[2:].partition(b"\0")[2].partition(b"\0")[2]
    try:
        yield inflated(rest[1:], _MOST)
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
