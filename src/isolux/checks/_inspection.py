"""Open each picture once: what it is, whether it is whole, what its EXIF tells, a thumbnail.

A file from elsewhere is not trusted: Pillow's own decoders alone are used, a picture that would
unpack to more than ``io.images.LARGEST_PIXELS`` is refused by its header, and one that ends early
or cannot be decoded is a row of the table, never an exception. JPEGs are decoded at the smallest
scale that a thumbnail needs, which still reads every byte. Threads open pictures a block at a time;
large ones one at a time, so that memory stays below a gigabyte; about one and a half kilobytes
remain of each image.
"""

from __future__ import annotations

import io
import os
import struct
import threading
import warnings
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.checks._pictures import SEEN, Pictures
from isolux.io.images import LARGEST_PIXELS, Pixels

_SIDE = 32  # pixels of a thumbnail's side, as phash takes them
_ENOUGH = 4 * _SIDE  # pixels a side from which a thumbnail loses nothing
_LARGEST_BYTES = 1 << 29  # of a file: unpacking a larger one could exhaust the memory
_BLOCK = 512  # pictures handed out together, so that threads seldom wait
_MUCH_BYTES, _MUCH_PIXELS = 1 << 25, 1 << 24  # from here on one picture at a time
_ALONE = threading.RLock()
_READ = ("PNG", "JPEG", "MPO", "WEBP", "BMP", "TIFF")
_KNOWN = (*_READ[:2], *_READ[3:], "GIF")
_DAMAGE = (
    OSError,
    SyntaxError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    EOFError,
    OverflowError,
    MemoryError,
    RuntimeError,
    struct.error,
    zlib.error,
)

_ORIENTATION, _EXIF, _GPS = 0x0112, 0x8769, 0x8825
_PLACE_TAGS = range(1, 32)  # GPSVersionID, 0, says nothing of where
_SERIALS = (0xA431, 0xA435, 0xC62F)  # of the body, the lens, the camera (DNG)
_OWNERS = (0xA430,)
_AUTHORS = (0x013B, 0x9C9D, 0xFDE8)  # Artist, XPAuthor, OwnerName as Canon's tools write it
_XMP = {
    "gps": (b"exif:GPSLatitude", b"exif:GPSLongitude"),
    "serial_number": (b"aux:SerialNumber", b"exifEX:BodySerialNumber"),
    "owner": (b"aux:OwnerName", b"exifEX:CameraOwnerName"),
}


def inspect(pictures: Pictures) -> Pictures:
    """Open every file that may be opened, and return what was seen."""
    paths = pictures.rows["path"].to_list()
    seen: list[dict[str, Any]] = []
    thumbnails: list[Pixels] = []
    workers = max(1, min(os.cpu_count() or 1, 8))
    with ThreadPoolExecutor(workers) as pool, warnings.catch_warnings():
        # Of bombs below LARGEST_PIXELS and of damaged EXIF: what matters is looked at here.
        warnings.simplefilter("ignore")
        for start in range(0, len(paths), _BLOCK):
            for facts, thumbnail in pool.map(_look, paths[start : start + _BLOCK]):
                if thumbnail is not None:
                    facts["thumbnail"] = len(thumbnails)
                    thumbnails.append(thumbnail)
                seen.append(facts)
    columns = pl.DataFrame(seen, schema=SEEN, orient="row")
    stacked = np.stack(thumbnails) if thumbnails else pictures.thumbnails
    return replace(pictures, rows=pictures.rows.hstack(columns), thumbnails=stacked, opened=True)


def _look(path: str | None) -> tuple[dict[str, Any], Pixels | None]:
    """Open one picture; what goes wrong is said, not raised."""
    facts: dict[str, Any] = dict.fromkeys(SEEN)
    if path is None:
        return facts, None
    try:
        file = Path(path)
        size = file.stat().st_size
        if not size:
            return facts | {"trouble": "unreadable", "said": "the file is empty"}, None
        if size > _LARGEST_BYTES:
            return facts | {"trouble": "too large", "said": f"{size >> 20:,} MiB"}, None
        with _ALONE if size > _MUCH_BYTES else nullcontext():
            return _decode(file.read_bytes(), facts)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        return facts | {"trouble": "unreadable", "said": said}, None


def _decode(data: bytes, facts: dict[str, Any]) -> tuple[dict[str, Any], Pixels | None]:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=_KNOWN) as image:
            facts |= _header(image)
            pixels = image.size[0] * image.size[1]
            if pixels > LARGEST_PIXELS:
                said = f"{image.size[0]:,} × {image.size[1]:,} pixels"
                return facts | {"trouble": "too large", "said": said}, None
            if facts["format"] not in _READ:
                return facts | {"trouble": "another format", "said": facts["format"]}, None
            with _ALONE if pixels > _MUCH_PIXELS else nullcontext():
                thumbnail, damage = _thumbnail(image, data)
    except (*_DAMAGE, Image.DecompressionBombError) as error:
        return facts | _trouble(error), None
    turned = _turn(thumbnail, facts["orientation"])
    return facts | ({"trouble": "damaged", "said": damage} if damage else {}), turned


def _header(image: Any) -> dict[str, Any]:
    facts = {
        "format": image.format,
        "stored_width": image.size[0],
        "stored_height": image.size[1],
        # A telephone's MPO holds the same photo at other sizes: no animation.
        "frames": 1 if image.format == "MPO" else int(getattr(image, "n_frames", 1)),
    }
    return facts | _told_by_exif(image)


def _told_by_exif(image: Any) -> dict[str, Any]:
    """Say which private things are there; their values are never read."""
    try:
        exif = image.getexif()
        inner = {**exif, **exif.get_ifd(_EXIF)}
        place = exif.get_ifd(_GPS)
    except _DAMAGE:
        return {}
    xmp = image.info.get("xmp") or b""
    xmp = xmp if isinstance(xmp, bytes) else str(xmp).encode()
    return {
        "orientation": _orientation(exif),
        "gps": any(_said(place, tag) for tag in _PLACE_TAGS) or _in_xmp(xmp, "gps"),
        "serial_number": any(_said(inner, t) for t in _SERIALS) or _in_xmp(xmp, "serial_number"),
        "owner": any(_said(inner, t) for t in _OWNERS) or _in_xmp(xmp, "owner"),
        "author": any(_said(inner, t) for t in _AUTHORS),
    }


def _orientation(exif: Mapping[int, Any]) -> int:
    value = exif.get(_ORIENTATION)
    return value if isinstance(value, int) and value in range(1, 9) else 1


def _said(tags: Mapping[int, Any], tag: int) -> bool:
    """Tell whether a tag holds more than blanks, which some tools leave in a value's place."""
    value = tags.get(tag)
    if isinstance(value, bytes | str):
        return bool(value.strip("\0 ") if isinstance(value, str) else value.strip(b"\0 "))
    return value is not None and value != ()


def _in_xmp(xmp: bytes, what: str) -> bool:
    return any(word in xmp for word in _XMP[what])


def _thumbnail(image: Any, data: bytes) -> tuple[Pixels, str | None]:
    """Decode all of a picture to a grey thumbnail; also say what a lenient decoder passes over."""
    from PIL import Image

    damage = None
    if image.format in {"JPEG", "MPO"} and image.mode in {"L", "RGB"}:
        import simplejpeg

        try:
            grey = simplejpeg.decode_jpeg(
                data, "GRAY", fastdct=True, min_height=_ENOUGH, min_width=_ENOUGH
            )[:, :, 0]
            return _reduced(Image.fromarray(grey)), None
        except ValueError as error:
            damage = str(error)[:120]
        image.draft("L", (_ENOUGH, _ENOUGH))
    image.load()
    return _reduced(image.convert("L") if image.mode != "L" else image), damage


def _reduced(image: Any) -> Pixels:
    from PIL import Image

    return np.array(image.resize((_SIDE, _SIDE), Image.Resampling.LANCZOS), dtype=np.uint8)


def _turn(thumbnail: Pixels, orientation: int | None) -> Pixels:
    """Turn a square as EXIF's orientation, 1 to 8, says; 2, 4, 5 and 7 are mirrored as well."""
    if orientation in {2, 5, 7, 4}:
        thumbnail = thumbnail[:, ::-1]
        orientation = {2: 1, 4: 3, 5: 8, 7: 6}[orientation]
    quarters = {3: 2, 6: 3, 8: 1}.get(orientation or 1, 0)
    return np.ascontiguousarray(np.rot90(thumbnail, quarters))


def _trouble(error: BaseException) -> dict[str, str]:
    said = (str(error).splitlines() or [""])[0].partition(" <_io.")[0][:120]
    short = ("truncated", "premature", "unexpected end", "not enough", "incomplete", "broken PNG")
    if type(error).__name__ == "DecompressionBombError":
        return {"trouble": "too large", "said": "more pixels than a photograph has"}
    cut_off = any(word.lower() in said.lower() for word in short)
    kind = "cut off" if cut_off else "unreadable"
    return {"trouble": kind, "said": said or type(error).__name__}
