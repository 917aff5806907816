"""Unpack files: members of archives, compressed bytes, base64, and files embedded in others.

Every byte of an archive must belong to a part that was unpacked; else it is unsearchable.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import io
import lzma
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

from isolux_curate.proof.pictures import read_picture_metadata
from isolux_curate.proof.unsearchable import (
    UNREADABLE_MAGIC,
    decode_wide_text_or_none,
    is_searchable_text,
)
from isolux_curate.withdrawal.rewriting import UnsearchableFile
from isolux_curate.withdrawal.table_references import build_grey_thumbnail_or_none

_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b\x08"
IMAGE_MAGIC = (b"\xff\xd8\xff", b"\x89PNG", b"II*\x00", b"MM\x00*", b"GIF8", b"BM", b"RIFF")
FILE_MAGIC = (
    *IMAGE_MAGIC[:2],
    *(b"\x1f\x8b", _ZIP, b"PAR1", b"RIFF", b"GIF8", b"BZh", b"\xfd7zXZ", b"SQLite"),
    *(b"\x93NUMPY", b"ARROW1"),
    *(magic_bytes for magic_bytes in UNREADABLE_MAGIC if len(magic_bytes) > 3),
)
"""The first bytes by which a file within a cell, or within text, is recognised."""
_EMBEDDED = re.compile(
    rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n|GIF8[79]a|RIFF(?=....WEBP)|\x1f\x8b\x08|PK\x03\x04"
    rb"|BZh(?=[1-9]1AY&SY)|\xfd7zXZ\0|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|\x28\xb5\x2f\xfd|%PDF-"
    rb"|SQLite format 3\0",
    re.DOTALL,
)
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{40,}={0,2}(?:\r?\n[ \t]*[A-Za-z0-9+/_-]{2,}={0,2})*")
_HEX = re.compile(
    rb"(?<![0-9A-Za-z])(?:[\\0]x)?((?:[0-9A-Fa-f]{2}){16,}(?:\r?\n(?:[0-9A-Fa-f]{2})+)*)(?![0-9A-Za-z])"
)
_HASH_LENGTHS = (32, 40, 56, 64, 96, 128)  # digits, of a hash in each line
_MIN_UNKNOWN_BYTES = 96  # keys, hashes and signatures are shorter
_MIN_PIXEL_BYTES = 24 * 24  # of lines of digits, which may be a list of other things
_ESCAPED_ADDRESS = re.compile(rb"data:[\w/+.;=-]*,([^\"'\s)<>%]*+%[^\"'\s)<>]+)")
_ZLIB_LEVELS = (b"\x01", b"\x5e", b"\x9c", b"\xda")
_ZIP_END_BYTES = 22  # of an archive's last record, without its comment
_MAX_ZIP_END_BYTES = _ZIP_END_BYTES + (1 << 16)
_MAX_DESCRIPTOR_BYTES = 24  # sizes and a checksum after a part of a ZIP archive
_MAX_UNPACKED_BYTES = 1 << 31  # bytes that one file may become
_ARCHIVE_GAP = "bytes in it belong to none of its parts: it was changed, or two files are in one"


def iterate_inner_files_or_raise(file_name: str, file_bytes: bytes) -> Iterator[tuple[str, bytes]]:
    """Iterate over the files inside a file: names below it, and bytes."""
    if file_bytes.startswith((_ZIP, b"PK\x05\x06")) or _has_appended_zip(file_bytes):
        yield from _iterate_zip_members_or_raise(file_name, file_bytes)
    elif file_bytes[257:262] == b"ustar":
        yield from _iterate_tar_members_or_raise(file_name, file_bytes)
    else:
        for magic_bytes, create_decompressor in _DECOMPRESSORS_BY_MAGIC.items():
            if file_bytes.startswith(magic_bytes):
                unpacked = _decompress_all_streams(create_decompressor, file_bytes)
                yield f"{file_name}!unpacked", unpacked
        if file_bytes[:1] == b"\x78" and file_bytes[1:2] in _ZLIB_LEVELS:
            yield from _iterate_inflated_zlib(file_name, file_bytes)
    if file_bytes.startswith(IMAGE_MAGIC) and (metadata := read_picture_metadata(file_bytes)):
        yield f"{file_name}!metadata", metadata
    if b"\0" in file_bytes and (text := decode_wide_text_or_none(file_bytes)) is not None:
        yield f"{file_name}!text", text.encode("utf-8", "replace")
    elif is_searchable_text(file_bytes):
        yield from _iterate_files_in_text(file_name, file_bytes)
    if file_bytes.startswith((*IMAGE_MAGIC, b"\x93NUMPY")) and not is_embedded_part(file_name):
        yield from _iterate_embedded_files(file_name, file_bytes)


def is_embedded_part(file_name: str) -> bool:
    """Check whether a part was found by its first bytes, so that it may end anywhere."""
    return "!at byte " in file_name.rpartition("/")[2]


def _decompress_all_streams(create_decompressor: Callable[[], Any], file_bytes: bytes) -> bytes:
    """Decompress one stream after another, until no byte is left."""
    chunks: list[bytes] = []
    while file_bytes.strip(b"\0"):
        decompressor = create_decompressor()
        n_free = _MAX_UNPACKED_BYTES - sum(map(len, chunks))
        try:
            chunks.append(decompressor.decompress(file_bytes, n_free + 1))
        except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
            raise UnsearchableFile(f"it is packed and damaged: {error}") from error
        if len(chunks[-1]) > n_free:
            raise UnsearchableFile(
                f"it is packed, and becomes more than {_MAX_UNPACKED_BYTES:,} bytes"
            )
        if not decompressor.eof:
            raise UnsearchableFile("it is packed and damaged: its end is missing")
        file_bytes = decompressor.unused_data
    return b"".join(chunks)


_DECOMPRESSORS_BY_MAGIC: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=31),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lzma.LZMADecompressor,
    b"\x5d\x00\x00": lzma.LZMADecompressor,
}


def _iterate_inflated_zlib(file_name: str, file_bytes: bytes) -> Iterator[tuple[str, bytes]]:
    """Decompress bare zlib streams; bytes that begin like one may be something else."""
    try:
        zlib.decompressobj().decompress(file_bytes, 1)
    except zlib.error:
        return
    yield f"{file_name}!unpacked", _decompress_all_streams(zlib.decompressobj, file_bytes)


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
            _refuse_gaps_between_members(archive, file_bytes)
    except (zipfile.BadZipFile, NotImplementedError, OSError, RuntimeError, EOFError,
            ValueError, zlib.error, lzma.LZMAError) as error:  # fmt: skip
        raise UnsearchableFile(f"the archive cannot be opened: {error}") from error


def _refuse_gaps_between_members(archive: zipfile.ZipFile, file_bytes: bytes) -> None:
    """Refuse bytes that no entry of the directory accounts for, such as those of a removed part."""
    end = file_bytes.rfind(b"PK\5\6") + _ZIP_END_BYTES + len(archive.comment)
    if file_bytes[end:].strip(b"\0"):
        raise UnsearchableFile(_ARCHIVE_GAP)
    offset = 0 if file_bytes.startswith(b"PK") else None  # behind a picture it may begin anywhere
    for member in sorted(archive.infolist(), key=lambda entry: entry.header_offset):
        if offset is not None and member.header_offset - offset > _MAX_DESCRIPTOR_BYTES:
            raise UnsearchableFile(_ARCHIVE_GAP)
        sizes = file_bytes[member.header_offset + 26 : member.header_offset + 30]
        n_name, n_extra = struct.unpack("<HH", sizes)
        offset = member.header_offset + 30 + n_name + n_extra + member.compress_size
    if (offset or 0) + _MAX_DESCRIPTOR_BYTES < archive.start_dir:
        raise UnsearchableFile(_ARCHIVE_GAP)


def _has_appended_zip(file_bytes: bytes) -> bool:
    """Check whether a ZIP archive is appended to another file, such as an image."""
    return b"PK\x05\x06" in file_bytes[-_MAX_ZIP_END_BYTES:] and zipfile.is_zipfile(
        io.BytesIO(file_bytes)
    )


def _iterate_tar_members_or_raise(file_name: str, file_bytes: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(file_bytes), mode="r:") as archive:
            for member in archive.getmembers():
                texts = (member.linkname, member.uname, member.gname, *member.pax_headers.values())
                yield f"{file_name}!{member.name}!metadata", "\n".join(texts).encode()
                if stream := archive.extractfile(member) if member.isfile() else None:
                    yield f"{file_name}!{member.name}", stream.read()
            if file_bytes[archive.offset :].strip(b"\0"):
                raise UnsearchableFile(_ARCHIVE_GAP)
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise UnsearchableFile(f"the archive cannot be opened: {error}") from error


def _iterate_files_in_text(file_name: str, file_bytes: bytes) -> Iterator[tuple[str, bytes]]:
    """Decode addresses that hold files, and blocks of base64 and hexadecimal digits."""
    for k, address_match in enumerate(_ESCAPED_ADDRESS.finditer(file_bytes)):
        yield f"{file_name}!address {k}", unquote_to_bytes(address_match[1])
    file_bytes, has_unknown = _ESCAPED_ADDRESS.sub(b"", file_bytes), False
    blocks = [*_iterate_base64_blocks(file_bytes)]
    for digits_match in _HEX.finditer(file_bytes):
        lines = digits_match[1].split()
        inner = bytes.fromhex(b"".join(lines).decode())
        is_list_of_hashes = {len(line) for line in lines}.issubset(_HASH_LENGTHS)
        is_dense = not is_list_of_hashes and (len(lines) == 1 or len(inner) >= _MIN_PIXEL_BYTES)
        blocks.append((inner, is_dense))
    for k, (inner, is_dense) in enumerate(blocks):
        if inner.startswith(FILE_MAGIC) or is_searchable_text(inner):
            yield f"{file_name}!block {k}", inner
        elif not inner.startswith(_FONT_MAGIC):
            has_unknown |= is_dense and len(inner) >= _MIN_UNKNOWN_BYTES
    if has_unknown:
        raise UnsearchableFile("coded bytes in it are of no format that isolux can read")


def _iterate_base64_blocks(file_bytes: bytes) -> Iterator[tuple[bytes, bool]]:
    """Decode base64; and whether the letters are those of coded bytes, and not of a long word."""
    for block_match in _BASE64.finditer(file_bytes):
        block = re.sub(rb"\s", b"", block_match[0]).translate(bytes.maketrans(b"-_", b"+/"))
        unpadded = block.rstrip(b"=")
        try:
            inner = base64.b64decode(unpadded + b"=" * (-len(unpadded) % 4))
        except binascii.Error:
            continue
        has_all_letters = all(re.search(letters, block) for letters in (b"[a-z]", b"[A-Z]", b"\\d"))
        yield inner, has_all_letters and len(block) % 4 == 0 and _HEX.fullmatch(block) is None


_FONT_MAGIC = (b"wOFF", b"wOF2", b"\0\1\0\0\0")  # pages embed fonts, which hold nobody


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
        elif inner.startswith(IMAGE_MAGIC) and build_grey_thumbnail_or_none(inner) is None:
            continue
        yield f"{file_name}!at byte {magic_match.start()}", inner
