"""Profiles of colours without what they say beside the colours: of whom, of which screen, when.

A profile may name a screen by its serial number, and its text may be anyone's. What colours are
reckoned by stays to the bit; the rest is written anew, alike in every file.
"""

from __future__ import annotations

import struct

__all__ = ["trimmed"]

_KEPT = frozenset(
    {
        b"wtpt", b"bkpt", b"rXYZ", b"gXYZ", b"bXYZ", b"rTRC", b"gTRC", b"bTRC", b"kTRC", b"chad",
        b"A2B0", b"A2B1", b"A2B2", b"B2A0", b"B2A1", b"B2A2", b"D2B0", b"D2B1", b"D2B2", b"D2B3",
        b"B2D0", b"B2D1", b"B2D2", b"B2D3", b"gamt", b"cicp",
    }
)  # fmt: skip
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
    tags = _tags(profile)
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
        bytes(4) + profile[8:24] + _DAY + b"acsp" + bytes(4) + profile[44:48] + bytes(16)
        + profile[64:80] + bytes(48)
    )  # fmt: skip
    rest = head + struct.pack(">I", len(tags)) + table + body
    return struct.pack(">I", len(rest) + 4) + rest


def _tags(profile: bytes) -> dict[bytes, bytes]:
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
