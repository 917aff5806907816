"""Unpack files: members of archives, compressed bytes, tables, base64, embedded files.

Also metadata: text in images, and names in the headers of compressed files.
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

from isolux.io.binary_tables import first_error_line
from isolux.io.bounded_zlib import TooLargeError, decompress_bounded
from isolux_curate.withdrawal.rewriting.tables import (
    UnsearchableFile,
    build_frame_of_sqlite_rows,
    iterate_cell_bytes,
    iterate_sqlite_tables,
    open_copy_of_sqlite,
    read_parquet_or_arrow,
)
from isolux_curate.withdrawal.rewriting.text import read_delimited_or_none
from isolux_curate.withdrawal.table_references import build_grey_thumbnail_or_none

if TYPE_CHECKING:
    from PIL.Image import Exif

_SEPARATOR = b"\0\0\n\0\0"  # separates values in every coding
_IFD_TAGS = (1, 0x8769, 0x8825, 0xA005)  # thumbnail, Exif, GPS, interoperability
_EXIF = b"Exif\0\0"
_NAME_FLAG, _COMMENT_FLAG, _EXTRA_FLAG = 8, 16, 4  # flags of gzip
_MAX_TEXT_BYTES = 1 << 26  # limit of an image's unpacked text


def read_image_or_gzip_metadata(file_bytes: bytes) -> bytes:
    """Read the metadata of an image or a gzip file as unpacked, separated values."""
    if file_bytes.startswith(b"\x89PNG"):
        values = list(_iterate_png_metadata(file_bytes))
    elif file_bytes.startswith(b"\xff\xd8"):
        values = list(_iterate_jpeg_metadata(file_bytes))
    elif file_bytes[:4] == b"RIFF" and file_bytes[8:12] == b"WEBP":
        values = list(_iterate_webp_metadata(file_bytes))
    elif file_bytes.startswith((b"GIF8", b"II*\0", b"MM\0*")):
        values = list(_iterate_pillow_metadata(file_bytes))
    elif file_bytes.startswith(b"\x1f\x8b"):
        values = list(_iterate_gzip_header_texts(file_bytes))
    else:
        values = []
    return _SEPARATOR.join(entry for entry in values if entry)


def _iterate_png_metadata(file_bytes: bytes) -> Iterator[bytes]:
    offset = 8
    while offset + 8 <= len(file_bytes):
        (size,), chunk_type = (
            struct.unpack(">I", file_bytes[offset : offset + 4]),
            file_bytes[offset + 4 : offset + 8],
        )
        chunk_bytes, offset = file_bytes[offset + 8 : offset + 8 + size], offset + 12 + size
        if chunk_type == b"IEND":  # appended bytes are searched separately
            return
        if chunk_type in (b"IDAT", b"IHDR", b"PLTE", b"fdAT"):
            continue
        yield chunk_bytes
        if chunk_type == b"eXIf":
            yield from _iterate_exif_values_or_none(chunk_bytes)
        elif chunk_type in (b"zTXt", b"iTXt", b"iCCP"):
            yield from _decompress_png_text_chunk(chunk_type, chunk_bytes)


def _decompress_png_text_chunk(chunk_type: bytes, chunk_bytes: bytes) -> Iterator[bytes]:
    _, _, packed = chunk_bytes.partition(b"\0")
    if chunk_type == b"iTXt":  # two flags, a language and a translation, each ended by a zero
        packed = b"x" + packed[2:].partition(b"\0")[2].partition(b"\0")[2]
    try:
        yield decompress_bounded(packed[1:], _MAX_TEXT_BYTES)
    except zlib.error:
        return  # not compressed
    except TooLargeError as error:
        raise UnsearchableFile(f"the picture's text cannot be unpacked: {error}") from error


def _iterate_jpeg_metadata(file_bytes: bytes) -> Iterator[bytes]:
    offset = 2
    while offset + 4 <= len(file_bytes) and file_bytes[offset] == 0xFF:
        marker, size = (
            file_bytes[offset + 1],
            int.from_bytes(file_bytes[offset + 2 : offset + 4], "big"),
        )
        if marker == 0xDA:  # the compressed image begins
            return
        segment_bytes, offset = (
            file_bytes[offset + 4 : offset + 2 + size],
            offset + 2 + max(size, 2),
        )
        if marker == 0xFE or 0xE1 <= marker <= 0xEF:
            yield segment_bytes
            if segment_bytes.startswith(_EXIF):
                yield from _iterate_exif_values_or_none(segment_bytes)


def _iterate_webp_metadata(file_bytes: bytes) -> Iterator[bytes]:
    offset = 12
    while offset + 8 <= len(file_bytes):
        chunk_type, size = (
            file_bytes[offset : offset + 4],
            int.from_bytes(file_bytes[offset + 4 : offset + 8], "little"),
        )
        chunk_bytes, offset = (
            file_bytes[offset + 8 : offset + 8 + size],
            offset + 8 + size + size % 2,
        )
        if chunk_type not in (b"VP8 ", b"VP8L", b"ALPH", b"ANMF"):
            yield chunk_bytes
        if chunk_type == b"EXIF":
            yield from _iterate_exif_values_or_none(chunk_bytes)


def _iterate_exif_values_or_none(exif_bytes: bytes) -> Iterator[bytes]:
    from PIL import Image

    exif = Image.Exif()
    try:
        exif.load(exif_bytes if exif_bytes.startswith(_EXIF) else _EXIF + exif_bytes)
    except (SyntaxError, ValueError, OSError, struct.error):
        return  # its bytes are searched as they are
    yield from _iterate_exif_tag_bytes(exif)


def _iterate_exif_tag_bytes(exif: Exif) -> Iterator[bytes]:
    for table in (exif, *(exif.get_ifd(ifd_tag) for ifd_tag in _IFD_TAGS)):
        yield from (_encode_tag_value_or_empty(tag_value) for tag_value in table.values())


def _encode_tag_value_or_empty(tag_value: object) -> bytes:
    if isinstance(tag_value, bytes):
        return tag_value
    if isinstance(tag_value, str):
        return tag_value.encode("utf-8", "surrogatepass")
    if isinstance(tag_value, tuple):
        if tag_value and all(isinstance(entry, int) and 0 <= entry < 256 for entry in tag_value):
            return bytes(tag_value)
        return _SEPARATOR.join(_encode_tag_value_or_empty(entry) for entry in tag_value)
    return b""


def _iterate_pillow_metadata(file_bytes: bytes) -> Iterator[bytes]:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(file_bytes)) as image:
            for frame in range(getattr(image, "n_frames", 1)):
                image.seek(frame)
                yield from (_encode_tag_value_or_empty(entry) for entry in image.info.values())
                yield from _iterate_exif_tag_bytes(image.getexif())
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
        return  # listed as unsearchable by the caller


def _iterate_gzip_header_texts(file_bytes: bytes) -> Iterator[bytes]:
    flags, offset = file_bytes[3] if len(file_bytes) > 10 else 0, 10
    if flags & _EXTRA_FLAG:
        size = int.from_bytes(file_bytes[10:12], "little")
        yield file_bytes[12 : 12 + size]
        offset = 12 + size
    for flag in (_NAME_FLAG, _COMMENT_FLAG):
        if flags & flag:
            text, _, _ = file_bytes[offset:].partition(b"\0")
            offset += len(text) + 1
            yield text


_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{40,}={0,2}(?:\r?\n[A-Za-z0-9+/_-]{2,}={0,2})*")
_STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.DOTALL)
_FILE_MAGIC = (
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
_ZIP, _GZIP, _IMAGE_MAGIC = (
    b"PK\x03\x04",
    b"\x1f\x8b\x08",
    (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF"),
)
_RAW_MAGIC = (
    *_IMAGE_MAGIC,
    b"II*\x00",
    b"MM\x00*",
    b"BM",
    b"\x93NUMPY",
)  # may contain other files
_EMBEDDED = re.compile(
    rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n|GIF8[79]a|RIFF(?=....WEBP)|\x1f\x8b\x08|PK\x03\x04"
    rb"|BZh(?=[1-9]1AY&SY)|\xfd7zXZ\0|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|\x28\xb5\x2f\xfd|%PDF-"
    rb"|SQLite format 3\0",
    re.DOTALL,
)
_DATA_ADDRESS = re.compile(rb"data:[\w/+.;=-]*,([^\"'\s)<>]+)")
_ZLIB = (b"\x01", b"\x5e", b"\x9c", b"\xda")  # levels of packing
_MAX_ZIP_END_BYTES = 22 + (1 << 16)  # bytes of an archive's last record, with its comment
_MAX_UNPACKED_BYTES = 1 << 31  # bytes that one file may become


def iterate_inner_files_or_raise(file_name: str, file_bytes: bytes) -> Iterator[tuple[str, bytes]]:
    """Iterate over the files inside a file: names below it, and bytes."""
    if file_bytes.startswith((b"PK\x03\x04", b"PK\x05\x06")) or _has_appended_zip(file_bytes):
        yield from _iterate_zip_members_or_raise(file_name, file_bytes)
    elif file_bytes[257:262] == b"ustar":
        yield from _iterate_tar_members_or_raise(file_name, file_bytes)
    else:
        for magic_bytes, unpack in _OPENERS_BY_MAGIC.items():
            if file_bytes.startswith(magic_bytes):
                yield f"{file_name}!unpacked", _decompress_or_raise_unsearchable(unpack, file_bytes)
    if metadata := read_image_or_gzip_metadata(file_bytes):
        yield f"{file_name}!metadata", metadata
    yield from _iterate_inflated_zlib(file_name, file_bytes)
    yield from _iterate_files_in_base64(file_name, file_bytes)
    yield from _iterate_files_in_data_urls(file_name, file_bytes)
    if file_bytes.startswith(_RAW_MAGIC) and "!at byte " not in file_name.rpartition("/")[2]:
        yield from _iterate_embedded_files(file_name, file_bytes)
    if file_bytes.startswith(b"%PDF"):
        yield from _iterate_pdf_streams_then_raise(file_name, file_bytes)


def _decompress_or_raise_unsearchable(open_stream: Callable[..., Any], file_bytes: bytes) -> bytes:
    try:
        with open_stream(io.BytesIO(file_bytes)) as stream:
            unpacked: bytes = stream.read(_MAX_UNPACKED_BYTES + 1)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise UnsearchableFile(f"it is packed and damaged: {error}") from error
    if len(unpacked) > _MAX_UNPACKED_BYTES:
        raise UnsearchableFile(f"it is packed, and becomes more than {_MAX_UNPACKED_BYTES:,} bytes")
    return unpacked


_OPENERS_BY_MAGIC: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x5d\x00\x00": lzma.open,
}


def _iterate_zip_members_or_raise(file_name: str, file_bytes: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(file_bytes)) as archive:
            yield f"{file_name}!comment", archive.comment
            for member in archive.infolist():
                if member.flag_bits & 1:
                    raise UnsearchableFile("a part of it is encrypted")
                if member.file_size > _MAX_UNPACKED_BYTES:
                    raise UnsearchableFile("a part of it is larger than 2 GB")
                yield f"{file_name}!{member.filename}", archive.read(member)
    except (zipfile.BadZipFile, NotImplementedError, OSError, RuntimeError, EOFError,
            ValueError, zlib.error, lzma.LZMAError) as error:  # fmt: skip
        raise UnsearchableFile(f"the archive cannot be opened: {error}") from error


def _has_appended_zip(file_bytes: bytes) -> bool:
    """Check whether a ZIP archive is appended to another file, such as an image."""
    return b"PK\x05\x06" in file_bytes[-_MAX_ZIP_END_BYTES:] and zipfile.is_zipfile(
        io.BytesIO(file_bytes)
    )


def _iterate_inflated_zlib(file_name: str, file_bytes: bytes) -> Iterator[tuple[str, bytes]]:
    """Decompress a bare zlib stream."""
    if file_bytes[:1] == b"\x78" and file_bytes[1:2] in _ZLIB:
        try:
            yield f"{file_name}!unpacked", decompress_bounded(file_bytes, _MAX_UNPACKED_BYTES)
        except zlib.error:
            return  # no zlib stream
        except TooLargeError as error:
            raise UnsearchableFile(f"it cannot be unpacked: {error}") from error


def _iterate_tar_members_or_raise(file_name: str, file_bytes: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(file_bytes), mode="r:") as archive:
            for member in archive.getmembers():
                stream = archive.extractfile(member) if member.isfile() else None
                yield (
                    f"{file_name}!{member.name}",
                    stream.read() if stream else member.linkname.encode(),
                )
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise UnsearchableFile(f"the archive cannot be opened: {error}") from error


def _iterate_pdf_streams_then_raise(
    file_name: str, file_bytes: bytes
) -> Iterator[tuple[str, bytes]]:
    """Decompress the zlib streams of a PDF; other contents are not read, so it is unsearchable."""
    for k, stream_match in enumerate(_STREAM.finditer(file_bytes)):
        with suppress(zlib.error):
            try:
                yield (
                    f"{file_name}!stream {k}",
                    decompress_bounded(stream_match[1], _MAX_UNPACKED_BYTES),
                )
            except TooLargeError as error:
                raise UnsearchableFile(
                    f"a part of the document cannot be unpacked: {error}"
                ) from error
    raise UnsearchableFile("a PDF: its text may be coded, and its pictures are not compared")


def _iterate_files_in_base64(file_name: str, file_bytes: bytes) -> Iterator[tuple[str, bytes]]:
    """Decode base64 blocks that are files of a known format."""
    for k, block_match in enumerate(_BASE64.finditer(file_bytes)):
        block = re.sub(rb"[\r\n]", b"", block_match[0]).translate(bytes.maketrans(b"-_", b"+/"))
        unpadded = block.rstrip(b"=")
        try:
            inner = base64.b64decode(unpadded + b"=" * (-len(unpadded) % 4))
        except binascii.Error:
            continue
        if inner.startswith(_FILE_MAGIC):
            yield f"{file_name}!base64 {k}", inner


def _iterate_files_in_data_urls(file_name: str, file_bytes: bytes) -> Iterator[tuple[str, bytes]]:
    """Decode files in data addresses with percent escapes."""
    for k, address_match in enumerate(_DATA_ADDRESS.finditer(file_bytes)):
        if b"%" in address_match[1]:
            yield f"{file_name}!address {k}", unquote_to_bytes(address_match[1])


def _iterate_embedded_files(file_name: str, file_bytes: bytes) -> Iterator[tuple[str, bytes]]:
    """Find files inside an image or array, such as thumbnails, or appended to it."""
    has_zip = _has_appended_zip(file_bytes)
    for magic_match in _EMBEDDED.finditer(file_bytes, 1):
        inner = file_bytes[magic_match.start() :]
        if magic_match[0] == _ZIP:
            if has_zip:
                continue
            has_zip = True  # later signatures belong to its members
        elif magic_match[0] == _GZIP:
            try:
                zlib.decompressobj(31).decompress(inner, 64)
            except zlib.error:
                continue  # no gzip stream
        elif inner.startswith(_IMAGE_MAGIC) and build_grey_thumbnail_or_none(inner) is None:
            continue
        yield f"{file_name}!at byte {magic_match.start()}", inner


def iterate_file_tables(file_name: str, file_bytes: bytes) -> Iterator[pl.DataFrame]:
    """Read the tables of a file."""
    lower = file_name.lower()
    try:
        if (
            file_bytes[:4] == b"PAR1"
            or file_bytes[:6] == b"ARROW1"
            or lower.endswith((".arrow", ".feather"))
        ):
            yield read_parquet_or_arrow(file_bytes)[0]
        elif file_bytes.startswith(b"SQLite format 3\0"):
            with open_copy_of_sqlite(file_bytes) as (connection, _):
                for _, names, rows in iterate_sqlite_tables(connection):
                    yield build_frame_of_sqlite_rows(names, rows)
        elif file_bytes.startswith(b"\x93NUMPY"):
            array = np.load(io.BytesIO(file_bytes), allow_pickle=False)
            words = array.ravel() if array.dtype.kind in "US" else ()
            yield pl.DataFrame({"id": [str(word) for word in words]}, schema={"id": pl.String})
        elif (
            lower.endswith((".csv", ".tsv"))
            and (frame := read_delimited_or_none(file_bytes)) is not None
        ):
            yield frame
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError,
            sqlite3.Error, EOFError) as error:  # fmt: skip
        raise UnsearchableFile(
            f"the table cannot be read: {first_error_line(error)[:80]}"
        ) from error


def iterate_files_in_cells(file_name: str, table: pl.DataFrame) -> Iterator[tuple[str, bytes]]:
    """Iterate over files in a table's cells, such as images in Parquet and databases."""
    for column in table.columns:
        for row, cell in enumerate(iterate_cell_bytes(table[column])):
            for content in cell:
                if content.startswith(_FILE_MAGIC):
                    yield f"{file_name}!{column} {row}", content
