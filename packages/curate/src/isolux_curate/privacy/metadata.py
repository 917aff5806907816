"""Strip metadata from image files; pixels stay identical to the bit.

JPEG, PNG and WebP files are split into their segments and never encoded anew. Previews, positions,
names, editing history, and appended sound and video are removed with their segments.

A colour profile may name a screen by its serial number. Tags that colours are calculated from stay
to the bit; all others are replaced by the same content in every file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator

from isolux.core.errors import FileError, SpecError
from isolux.io.bounded_zlib import decompress_bounded

_KEPT_PROFILE_TAGS = frozenset(
    {
        b"wtpt",
        b"bkpt",
        b"rXYZ",
        b"gXYZ",
        b"bXYZ",
        b"rTRC",
        b"gTRC",
        b"bTRC",
        b"kTRC",
        b"chad",
        b"A2B0",
        b"A2B1",
        b"A2B2",
        b"B2A0",
        b"B2A1",
        b"B2A2",
        b"D2B0",
        b"D2B1",
        b"D2B2",
        b"D2B3",
        b"B2D0",
        b"B2D1",
        b"B2D2",
        b"B2D3",
        b"gamt",
        b"cicp",
    }
)
_HEADER_BYTES, _ENTRY_BYTES, _MAX_TAGS = 128, 12, 200  # bytes, bytes, tags
_LAST_VERSION_2 = 2  # ICC version 2 and earlier encode text differently
_PROFILE_TEXT = "colours"
_FIXED_DATE = struct.pack(">6H", 2000, 1, 1, 0, 0, 0)


def strip_icc_profile_or_empty(icc_profile: bytes) -> bytes:
    """Return an ICC profile without names, text, dates and device numbers.

    Examples
    --------
    >>> from PIL import ImageCms
    >>> whole = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    >>> b"rTRC" in strip_icc_profile_or_empty(whole), strip_icc_profile_or_empty(b"of Ann's screen")
    (True, b'')
    """
    tags = _read_kept_icc_tags(icc_profile)
    if not tags:
        return b""
    texts = _encode_neutral_icc_texts(icc_profile[8])
    tags |= {b"desc": texts[0], b"cprt": texts[1]}
    data_offset = _HEADER_BYTES + 4 + _ENTRY_BYTES * len(tags)
    table, body, offset_by_value = b"", b"", dict[bytes, int]()
    for name, tag_bytes in sorted(tags.items()):
        if tag_bytes not in offset_by_value:  # tags with equal content share it: often three curves
            offset_by_value[tag_bytes] = data_offset + len(body)
            body += tag_bytes + bytes(-len(tag_bytes) % 4)
        table += name + struct.pack(">II", offset_by_value[tag_bytes], len(tag_bytes))
    head = (
        bytes(4)
        + icc_profile[8:24]
        + _FIXED_DATE
        + b"acsp"
        + bytes(4)
        + icc_profile[44:48]
        + bytes(16)
        + icc_profile[64:80]
        + bytes(48)
    )
    remainder = head + struct.pack(">I", len(tags)) + table + body
    return struct.pack(">I", len(remainder) + 4) + remainder


def _read_kept_icc_tags(icc_profile: bytes) -> dict[bytes, bytes]:
    """Read the tags to keep; none if it is no profile."""
    if len(icc_profile) < _HEADER_BYTES + 4 or icc_profile[36:40] != b"acsp":
        return {}
    (count,) = struct.unpack_from(">I", icc_profile, _HEADER_BYTES)
    if count > _MAX_TAGS or len(icc_profile) < _HEADER_BYTES + 4 + _ENTRY_BYTES * count:
        return {}
    tags: dict[bytes, bytes] = {}
    for k in range(count):
        name, start, size = struct.unpack_from(
            ">4sII", icc_profile, _HEADER_BYTES + 4 + _ENTRY_BYTES * k
        )
        if name in _KEPT_PROFILE_TAGS and start + size <= len(icc_profile):
            tags[name] = icc_profile[start : start + size]
    return tags


def _encode_neutral_icc_texts(icc_version: int) -> tuple[bytes, bytes]:
    """Encode the description and copyright that every profile must have."""
    ascii_text = _PROFILE_TEXT.encode() + b"\0"
    if icc_version <= _LAST_VERSION_2:
        ascii_description = (
            b"desc" + bytes(4) + struct.pack(">I", len(ascii_text)) + ascii_text + bytes(8 + 3 + 67)
        )
        return ascii_description, b"text" + bytes(4) + ascii_text
    utf16_text = _PROFILE_TEXT.encode("utf-16-be")
    unicode_description = (
        b"mluc"
        + bytes(4)
        + struct.pack(">II4sII", 1, 12, b"enUS", len(utf16_text), 28)
        + utf16_text
    )
    return unicode_description, unicode_description


EXIF_TAGS = {"Make": 0x010F, "Model": 0x0110, "Orientation": 0x0112}
"""Exif tags that may be kept; the orientation always is, so that the image stays upright."""
_ICC_MARKER = b"ICC_PROFILE\x00"
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KEPT_PNG_CHUNKS = {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT"}
_KEPT_WEBP_CHUNKS = {b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ICCP", b"EXIF"}
_MAX_SEGMENT_BYTES = 65_519  # bytes of a profile in one JPEG segment
_MAX_PROFILE_BYTES = 1 << 24  # limit of a decompressed profile
_EXIF = b"Exif\0\0"
_SOS, _EOI, _COM = 0xDA, 0xD9, 0xFE
_APP0, _APP1, _APP2, _APP14 = 0xE0, 0xE1, 0xE2, 0xEE
_MARKERS_WITHOUT_LENGTH = {0x01, *range(0xD0, 0xD9)}  # markers without a length


def strip_image_metadata(
    image_bytes: bytes, kept_exif_tags: Collection[str] = (), *, source: str = "a picture"
) -> bytes:
    """Return an image file without metadata.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> file, exif = io.BytesIO(), Image.Exif()
    >>> exif[0x013B] = "Ann Example"
    >>> Image.new("RGB", (8, 8)).save(file, "JPEG", exif=exif)
    >>> b"Ann Example" in file.getvalue(), b"Ann Example" in strip_image_metadata(file.getvalue())
    (True, False)
    """
    for name in kept_exif_tags:
        if name not in EXIF_TAGS:
            raise SpecError(
                "this is not an Exif tag that may be kept",
                expected=", ".join(EXIF_TAGS),
                found=repr(name),
            )
    try:
        if image_bytes[:2] == b"\xff\xd8":
            return _strip_jpeg_metadata(image_bytes, kept_exif_tags)
        if image_bytes[:8] == _PNG_SIGNATURE:
            return _strip_png_metadata(image_bytes, kept_exif_tags)
        if image_bytes[:4] == b"RIFF" and image_bytes[8:12] == b"WEBP":
            return _strip_webp_metadata(image_bytes, kept_exif_tags)
    except (IndexError, OSError, SyntaxError, struct.error, ValueError, zlib.error) as error:
        raise FileError(
            "a picture is damaged",
            expected="a whole JPEG, PNG or WebP file",
            found=str(error),
            where=source,
        ) from error
    raise FileError(
        "the metadata of this format is not known",
        expected="JPEG, PNG or WebP",
        found=repr(image_bytes[:8]),
        where=source,
        hint="save it as PNG first: no pixel changes",
    )


def _strip_jpeg_metadata(jpeg_bytes: bytes, kept_exif_tags: Collection[str]) -> bytes:
    segments = [
        b"\xff\xd8",
        _build_kept_exif_segment(jpeg_bytes, kept_exif_tags),
        _build_trimmed_jpeg_profile(jpeg_bytes),
    ]
    segments += [
        _trim_jpeg_segment_or_empty(marker, segment)
        for marker, segment in _iterate_jpeg_segments(jpeg_bytes)
    ]
    return b"".join(segments)


def _trim_jpeg_segment_or_empty(marker: int, segment: bytes) -> bytes:
    """Return a segment if decoding needs it: tables, frames, scans, JFIF, Adobe's transform."""
    if marker == _APP0:  # keep JFIF's resolution, drop its preview
        return (
            b"\xff\xe0\x00\x10" + segment[4:16].ljust(14, b"\0")
            if segment[4:9] == b"JFIF\0"
            else b""
        )
    if marker == _APP14:
        return (
            b"\xff\xee\x00\x0e" + segment[4:16].ljust(12, b"\0")
            if segment[4:9] == b"Adobe"
            else b""
        )
    return b"" if _APP0 <= marker <= 0xEF or marker == _COM else segment


def _build_trimmed_jpeg_profile(jpeg_bytes: bytes) -> bytes:
    """Build the segments of the trimmed ICC profile from its numbered parts."""
    numbered_parts = sorted(
        (segment[16], segment[18:])
        for marker, segment in _iterate_jpeg_segments(jpeg_bytes)
        if marker == _APP2 and segment[4:16] == _ICC_MARKER
    )
    profile = strip_icc_profile_or_empty(b"".join(segment for _, segment in numbered_parts))
    profile_parts = [
        profile[start : start + _MAX_SEGMENT_BYTES]
        for start in range(0, len(profile), _MAX_SEGMENT_BYTES)
    ]
    return b"".join(
        b"\xff\xe2"
        + struct.pack(">H", len(profile_part) + 16)
        + _ICC_MARKER
        + bytes([k, len(profile_parts)])
        + profile_part
        for k, profile_part in enumerate(profile_parts, 1)
    )


def _iterate_jpeg_segments(jpeg_bytes: bytes) -> Iterator[tuple[int, bytes]]:
    """Split a JPEG at its markers, up to its end; appended bytes are dropped."""
    offset = 2
    while True:
        if jpeg_bytes[offset] != 0xFF:
            raise ValueError(f"no marker at byte {offset}")
        while jpeg_bytes[offset + 1] == 0xFF:  # fill bytes
            offset += 1
        marker = jpeg_bytes[offset + 1]
        if marker == _EOI:
            yield marker, jpeg_bytes[offset : offset + 2]
            return
        if marker in _MARKERS_WITHOUT_LENGTH:
            yield marker, jpeg_bytes[offset : offset + 2]
            offset += 2
            continue
        end = offset + 2 + struct.unpack_from(">H", jpeg_bytes, offset + 2)[0]
        if end > len(jpeg_bytes):
            raise ValueError("cut off")
        if marker == _SOS:
            end = _find_jpeg_scan_end(jpeg_bytes, end)
        yield marker, jpeg_bytes[offset:end]
        offset = end


def _find_jpeg_scan_end(jpeg_bytes: bytes, offset: int) -> int:
    """Find the marker that ends a scan's compressed bytes."""
    while True:
        offset = jpeg_bytes.index(b"\xff", offset)
        if jpeg_bytes[offset + 1] == 0 or 0xD0 <= jpeg_bytes[offset + 1] <= 0xD7:
            offset += 2
        elif jpeg_bytes[offset + 1] == 0xFF:
            offset += 1
        else:
            return offset


def _build_kept_exif_segment(jpeg_bytes: bytes, kept_exif_tags: Collection[str]) -> bytes:
    """Build an Exif segment with the kept tags; empty if there are none."""
    exif_parts = (
        segment[4:]
        for marker, segment in _iterate_jpeg_segments(jpeg_bytes)
        if marker == _APP1 and segment[4:10] == _EXIF
    )
    body = _reencode_kept_exif_or_empty(next(exif_parts, b""), kept_exif_tags)
    return b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body if body else b""


def _reencode_kept_exif_or_empty(exif_bytes: bytes, kept_exif_tags: Collection[str]) -> bytes:
    """Encode Exif with the kept tags only; empty if there are none."""
    from PIL import Image

    exif, kept_exif = Image.Exif(), Image.Exif()
    if exif_bytes:
        exif.load(_EXIF + exif_bytes.removeprefix(_EXIF))
    for name in {"Orientation", *kept_exif_tags}:
        tag_value = exif.get(EXIF_TAGS[name])
        if tag_value is not None and (name != "Orientation" or tag_value in range(2, 9)):
            kept_exif[EXIF_TAGS[name]] = tag_value
    return _EXIF + kept_exif.tobytes().removeprefix(_EXIF) if len(kept_exif) else b""


def _strip_png_metadata(png_bytes: bytes, kept_exif_tags: Collection[str]) -> bytes:
    chunks, offset, chunk_type = [_PNG_SIGNATURE], 8, b""
    while chunk_type != b"IEND":
        length, chunk_type = struct.unpack_from(">I4s", png_bytes, offset)
        end = offset + 12 + length
        if end > len(png_bytes):
            raise ValueError("cut off")
        if chunk_type == b"iCCP":
            chunks.append(_build_trimmed_png_profile(png_bytes[offset + 8 : end - 4]))
        elif chunk_type == b"eXIf":
            tags = _reencode_kept_exif_or_empty(
                png_bytes[offset + 8 : end - 4], kept_exif_tags
            ).removeprefix(_EXIF)
            chunks.append(_build_png_chunk(chunk_type, tags) if tags else b"")
        elif chunk_type in _KEPT_PNG_CHUNKS:
            chunks.append(png_bytes[offset:end])
        elif chunk_type == b"acTL":
            raise ValueError("an animation")
        offset = end
    return b"".join(chunks)


def _build_trimmed_png_profile(chunk_bytes: bytes) -> bytes:
    _, _, packed = chunk_bytes.partition(b"\0")
    profile = strip_icc_profile_or_empty(decompress_bounded(packed[1:], _MAX_PROFILE_BYTES))
    if not profile:
        return b""
    return _build_png_chunk(b"iCCP", b"colours\0\0" + zlib.compress(profile))


def _build_png_chunk(chunk_type: bytes, chunk_bytes: bytes) -> bytes:
    """Build a PNG chunk."""
    return (
        struct.pack(">I", len(chunk_bytes))
        + chunk_type
        + chunk_bytes
        + struct.pack(">I", zlib.crc32(chunk_type + chunk_bytes))
    )


def _strip_webp_metadata(webp_bytes: bytes, kept_exif_tags: Collection[str]) -> bytes:
    end = 8 + struct.unpack_from("<I", webp_bytes, 4)[0]
    if end > len(webp_bytes):
        raise ValueError("cut off")
    chunks, offset = [], 12
    while offset + 8 <= end:
        chunk_type, length = struct.unpack_from("<4sI", webp_bytes, offset)
        next_offset = offset + 8 + length + (length & 1)
        if chunk_type in {b"ANIM", b"ANMF"}:
            raise ValueError("an animation")
        if chunk_type in _KEPT_WEBP_CHUNKS:
            chunk = webp_bytes[offset:next_offset]
            if chunk_type == b"ICCP":
                chunk = _build_riff_chunk_or_empty(
                    chunk_type, strip_icc_profile_or_empty(chunk[8 : 8 + length])
                )
            elif chunk_type == b"EXIF":
                chunk = _build_riff_chunk_or_empty(
                    chunk_type,
                    _reencode_kept_exif_or_empty(
                        chunk[8 : 8 + length], kept_exif_tags
                    ).removeprefix(_EXIF),
                )
            chunks.append(chunk)
        offset = next_offset
    remaining_types = {
        chunk[:4] for chunk in chunks
    }  # else the flags would promise XMP, Exif or colours
    removed_flags = (
        0x04
        | (0 if b"EXIF" in remaining_types else 0x08)
        | (0 if b"ICCP" in remaining_types else 0x20)
    )
    chunks = [
        chunk[:8] + bytes([chunk[8] & ~removed_flags]) + chunk[9:]
        if chunk.startswith(b"VP8X")
        else chunk
        for chunk in chunks
    ]
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _build_riff_chunk_or_empty(chunk_type: bytes, chunk_bytes: bytes) -> bytes:
    """Build a WebP chunk; empty without content."""
    if not chunk_bytes:
        return b""
    return (
        struct.pack("<4sI", chunk_type, len(chunk_bytes))
        + chunk_bytes
        + bytes(len(chunk_bytes) & 1)
    )
