"""Pictures' files without what they say beside the picture; pixels stay as they are, to the bit.

JPEG, PNG and WebP are cut at their parts and never encoded anew. Previews, positions, names,
editing history, sound and film behind the picture go with the parts that held them.

A profile may name a screen by its serial number, and its text may be anyone's. What colours are
reckoned by stays to the bit; the rest is written anew, alike in every file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator

from isolux.io.inflating import inflated
from isolux.vocabulary.errors import FileError, SpecError

_KEPT = frozenset(
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
_HEAD, _ENTRY, _MOST = 128, 12, 200  # bytes, bytes, tags
_LATEST_OF_TWO = 2  # versions up to it write text in another way
_TEXT = "colours"
_DAY = struct.pack(">6H", 2000, 1, 1, 0, 0, 0)


def trimmed(profile: bytes) -> bytes:
    """Return a profile of colours without names, text, dates and numbers of devices.

    Examples
    --------
    >>> from PIL import ImageCms
    >>> whole = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    >>> b"rTRC" in trimmed(whole), trimmed(b"of Ann's screen")
    (True, b'')
    """
    tags = _profile_tags(profile)
    if not tags:
        return b""
    told = _text(profile[8])
    tags |= {b"desc": told[0], b"cprt": told[1]}
    at = _HEAD + 4 + _ENTRY * len(tags)
    table, body, places = b"", b"", dict[bytes, int]()
    for name, held in sorted(tags.items()):
        if held not in places:  # three curves are often one
            places[held] = at + len(body)
            body += held + bytes(-len(held) % 4)
        table += name + struct.pack(">II", places[held], len(held))
    head = (
        bytes(4)
        + profile[8:24]
        + _DAY
        + b"acsp"
        + bytes(4)
        + profile[44:48]
        + bytes(16)
        + profile[64:80]
        + bytes(48)
    )
    rest = head + struct.pack(">I", len(tags)) + table + body
    return struct.pack(">I", len(rest) + 4) + rest


def _profile_tags(profile: bytes) -> dict[bytes, bytes]:
    """Read the tags that stay; none where it is no profile."""
    if len(profile) < _HEAD + 4 or profile[36:40] != b"acsp":
        return {}
    (count,) = struct.unpack_from(">I", profile, _HEAD)
    if count > _MOST or len(profile) < _HEAD + 4 + _ENTRY * count:
        return {}
    found: dict[bytes, bytes] = {}
    for k in range(count):
        name, start, size = struct.unpack_from(">4sII", profile, _HEAD + 4 + _ENTRY * k)
        if name in _KEPT and start + size <= len(profile):
            found[name] = profile[start : start + size]
    return found


def _text(version: int) -> tuple[bytes, bytes]:
    """Write the description and the terms that every profile has to have."""
    plain = _TEXT.encode() + b"\0"
    if version <= _LATEST_OF_TWO:
        described = b"desc" + bytes(4) + struct.pack(">I", len(plain)) + plain + bytes(8 + 3 + 67)
        return described, b"text" + bytes(4) + plain
    wide = _TEXT.encode("utf-16-be")
    told = b"mluc" + bytes(4) + struct.pack(">II4sII", 1, 12, b"enUS", len(wide), 28) + wide
    return told, told


EXIF_TAGS = {"Make": 0x010F, "Model": 0x0110, "Orientation": 0x0112}
"""What may stay; how a picture is turned always does, for without it it would lie on its side."""
_COLOUR = b"ICC_PROFILE\x00"
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_KEPT = {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT"}
_WEBP_KEPT = {b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ICCP", b"EXIF"}
_PART = 65_519  # bytes of a profile in one segment
_PROFILE = 1 << 24  # bytes that a packed profile may become
_EXIF = b"Exif\0\0"
_SOS, _EOI, _COM = 0xDA, 0xD9, 0xFE
_APP0, _APP1, _APP2, _APP14 = 0xE0, 0xE1, 0xE2, 0xEE
_BARE = {0x01, *range(0xD0, 0xD9)}  # markers without a length


def stripped(content: bytes, keep: Collection[str] = (), *, where: str = "a picture") -> bytes:
    """Return a picture's file without metadata.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> file, exif = io.BytesIO(), Image.Exif()
    >>> exif[0x013B] = "Ann Example"
    >>> Image.new("RGB", (8, 8)).save(file, "JPEG", exif=exif)
    >>> b"Ann Example" in file.getvalue(), b"Ann Example" in stripped(file.getvalue())
    (True, False)
    """
    for name in keep:
        if name not in EXIF_TAGS:
            raise SpecError(
                "this is not an Exif tag that may be kept",
                expected=", ".join(EXIF_TAGS),
                found=repr(name),
            )
    try:
        if content[:2] == b"\xff\xd8":
            return _jpeg(content, keep)
        if content[:8] == _PNG:
            return _png(content, keep)
        if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            return _webp(content, keep)
    except (IndexError, OSError, SyntaxError, struct.error, ValueError, zlib.error) as error:
        raise FileError(
            "a picture is damaged",
            expected="a whole JPEG, PNG or WebP file",
            found=str(error),
            where=where,
        ) from error
    raise FileError(
        "the metadata of this format is not known",
        expected="JPEG, PNG or WebP",
        found=repr(content[:8]),
        where=where,
        hint="save it as PNG first: no pixel changes",
    )


def _jpeg(content: bytes, keep: Collection[str]) -> bytes:
    parts = [b"\xff\xd8", _exif(content, keep), _colours_of_jpeg(content)]
    parts += [_kept(marker, part) for marker, part in _segments(content)]
    return b"".join(parts)


def _kept(marker: int, part: bytes) -> bytes:
    """Keep what is needed to decode: tables, frames, scans, JFIF, Adobe's transform."""
    if marker == _APP0:  # of JFIF the resolution, and no preview
        return b"\xff\xe0\x00\x10" + part[4:16].ljust(14, b"\0") if part[4:9] == b"JFIF\0" else b""
    if marker == _APP14:
        return b"\xff\xee\x00\x0e" + part[4:16].ljust(12, b"\0") if part[4:9] == b"Adobe" else b""
    return b"" if _APP0 <= marker <= 0xEF or marker == _COM else part


def _colours_of_jpeg(content: bytes) -> bytes:
    """Write the profile of colours, whose parts are numbered, as segments of its own."""
    held = sorted(
        (part[16], part[18:])
        for marker, part in _segments(content)
        if marker == _APP2 and part[4:16] == _COLOUR
    )
    profile = trimmed(b"".join(part for _, part in held))
    cut = [profile[at : at + _PART] for at in range(0, len(profile), _PART)]
    return b"".join(
        b"\xff\xe2" + struct.pack(">H", len(one) + 16) + _COLOUR + bytes([k, len(cut)]) + one
        for k, one in enumerate(cut, 1)
    )


def _segments(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Cut a JPEG at its markers, up to its end; what stands behind that is left out."""
    at = 2
    while True:
        if content[at] != 0xFF:
            raise ValueError(f"no marker at byte {at}")
        while content[at + 1] == 0xFF:  # fill bytes
            at += 1
        marker = content[at + 1]
        if marker == _EOI:
            yield marker, content[at : at + 2]
            return
        if marker in _BARE:
            yield marker, content[at : at + 2]
            at += 2
            continue
        end = at + 2 + struct.unpack_from(">H", content, at + 2)[0]
        if end > len(content):
            raise ValueError("cut off")
        if marker == _SOS:
            end = _after_scan(content, end)
        yield marker, content[at:end]
        at = end


def _after_scan(content: bytes, at: int) -> int:
    """Find the marker that ends a scan's compressed bytes."""
    while True:
        at = content.index(b"\xff", at)
        if content[at + 1] == 0 or 0xD0 <= content[at + 1] <= 0xD7:
            at += 2
        elif content[at + 1] == 0xFF:
            at += 1
        else:
            return at


def _exif(content: bytes, keep: Collection[str]) -> bytes:
    """Write the tags that stay as a segment of their own; nothing where there are none."""
    held = (
        part[4:] for marker, part in _segments(content) if marker == _APP1 and part[4:10] == _EXIF
    )
    body = _tags(next(held, b""), keep)
    return b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body if body else b""


def _tags(held: bytes, keep: Collection[str]) -> bytes:
    """Write Exif anew with the tags that stay; nothing where there are none."""
    from PIL import Image

    given, kept = Image.Exif(), Image.Exif()
    if held:
        given.load(_EXIF + held.removeprefix(_EXIF))
    for name in {"Orientation", *keep}:
        value = given.get(EXIF_TAGS[name])
        if value is not None and (name != "Orientation" or value in range(2, 9)):
            kept[EXIF_TAGS[name]] = value
    return _EXIF + kept.tobytes().removeprefix(_EXIF) if len(kept) else b""


def _png(content: bytes, keep: Collection[str]) -> bytes:
    parts, at, kind = [_PNG], 8, b""
    while kind != b"IEND":
        length, kind = struct.unpack_from(">I4s", content, at)
        end = at + 12 + length
        if end > len(content):
            raise ValueError("cut off")
        if kind == b"iCCP":
            parts.append(_colours_of_png(content[at + 8 : end - 4]))
        elif kind == b"eXIf":
            tags = _tags(content[at + 8 : end - 4], keep).removeprefix(_EXIF)
            parts.append(_chunk(kind, tags) if tags else b"")
        elif kind in _PNG_KEPT:
            parts.append(content[at:end])
        elif kind == b"acTL":
            raise ValueError("an animation")
        at = end
    return b"".join(parts)


def _colours_of_png(held: bytes) -> bytes:
    _, _, packed = held.partition(b"\0")
    profile = trimmed(inflated(packed[1:], _PROFILE))
    if not profile:
        return b""
    return _chunk(b"iCCP", b"colours\0\0" + zlib.compress(profile))


def _chunk(kind: bytes, held: bytes) -> bytes:
    """Write a part of a PNG file."""
    return struct.pack(">I", len(held)) + kind + held + struct.pack(">I", zlib.crc32(kind + held))


def _webp(content: bytes, keep: Collection[str]) -> bytes:
    end = 8 + struct.unpack_from("<I", content, 4)[0]
    if end > len(content):
        raise ValueError("cut off")
    parts, at = [], 12
    while at + 8 <= end:
        kind, length = struct.unpack_from("<4sI", content, at)
        after = at + 8 + length + (length & 1)
        if kind in {b"ANIM", b"ANMF"}:
            raise ValueError("an animation")
        if kind in _WEBP_KEPT:
            part = content[at:after]
            if kind == b"ICCP":
                part = _riff(kind, trimmed(part[8 : 8 + length]))
            elif kind == b"EXIF":
                part = _riff(kind, _tags(part[8 : 8 + length], keep).removeprefix(_EXIF))
            parts.append(part)
        at = after
    left = {part[:4] for part in parts}  # else the flags would promise XMP, Exif or colours
    gone = 0x04 | (0 if b"EXIF" in left else 0x08) | (0 if b"ICCP" in left else 0x20)
    parts = [
        part[:8] + bytes([part[8] & ~gone]) + part[9:] if part.startswith(b"VP8X") else part
        for part in parts
    ]
    body = b"WEBP" + b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _riff(kind: bytes, held: bytes) -> bytes:
    """Write a part of a WebP file; nothing where it holds nothing."""
    if not held:
        return b""
    return struct.pack("<4sI", kind, len(held)) + held + bytes(len(held) & 1)
