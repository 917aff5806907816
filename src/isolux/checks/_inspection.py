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
import threading
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.checks._image_files import INSPECTION_COLUMNS, ImageFiles
from isolux.core.errors import extract_first_line
from isolux.io.images import DECODING_ERRORS, MAX_PIXELS, Pixels

_THUMBNAIL_SIDE_PX = 32  # pixels of a thumbnail's side, as phash takes them
_MIN_DECODED_PX = 4 * _THUMBNAIL_SIDE_PX  # pixels a side from which a thumbnail loses nothing
_MAX_FILE_BYTES = 1 << 29  # of a file: unpacking a larger one could exhaust the memory
_BATCH_SIZE = 512  # pictures handed out together, so that threads seldom wait
_LARGE_FILE_BYTES, _LARGE_IMAGE_PIXELS = 1 << 25, 1 << 24  # from here on one picture at a time
_LARGE_FILE_LOCK = threading.RLock()
_READABLE_FORMATS = ("PNG", "JPEG", "MPO", "WEBP", "BMP", "TIFF", "GIF")
_PIL_FORMATS = (*_READABLE_FORMATS[:2], *_READABLE_FORMATS[3:])
_DECODING_ERRORS = (*DECODING_ERRORS, RuntimeError)

_ORIENTATION, _EXIF, _GPS = 0x0112, 0x8769, 0x8825
_GPS_TAGS = range(1, 32)  # GPSVersionID, 0, says nothing of where
_SERIAL_NUMBER_TAGS = (0xA431, 0xA435, 0xC62F)  # of the body, the lens, the camera (DNG)
_OWNER_TAGS = (0xA430,)
_AUTHOR_TAGS = (0x013B, 0x9C9D, 0xFDE8)  # Artist, XPAuthor, OwnerName as Canon's tools write it
_XMP_KEYS = {
    "gps": (b"exif:GPSLatitude", b"exif:GPSLongitude"),
    "serial_number": (b"aux:SerialNumber", b"exifEX:BodySerialNumber"),
    "owner": (b"aux:OwnerName", b"exifEX:CameraOwnerName"),
}


def inspect_images(image_files: ImageFiles) -> ImageFiles:
    """Open every image file that may be opened, and add the columns of the inspection."""
    paths = image_files.rows["path"].to_list()
    rows: list[dict[str, Any]] = []
    thumbnails: list[Pixels] = []
    workers = max(1, min(os.cpu_count() or 1, 8))
    with ThreadPoolExecutor(workers) as pool, warnings.catch_warnings():
        # Of bombs below MAX_PIXELS and of damaged EXIF: what matters is looked at here.
        warnings.simplefilter("ignore")
        for start in range(0, len(paths), _BATCH_SIZE):
            for facts, thumbnail in pool.map(_inspect_file, paths[start : start + _BATCH_SIZE]):
                if thumbnail is not None:
                    facts["thumbnail"] = len(thumbnails)
                    thumbnails.append(thumbnail)
                rows.append(facts)
    columns = pl.DataFrame(rows, schema=INSPECTION_COLUMNS, orient="row")
    stacked = np.stack(thumbnails) if thumbnails else image_files.thumbnails
    return replace(
        image_files, rows=image_files.rows.hstack(columns), thumbnails=stacked, is_opened=True
    )


def _inspect_file(path: str | None) -> tuple[dict[str, Any], Pixels | None]:
    """Inspect one file; errors become values of the row, never exceptions."""
    facts: dict[str, Any] = dict.fromkeys(INSPECTION_COLUMNS)
    if path is None:
        return facts, None
    try:
        file = Path(path)
        size = file.stat().st_size
        if not size:
            return facts | {"trouble": "unreadable", "said": "the file is empty"}, None
        if size > _MAX_FILE_BYTES:
            return facts | {"trouble": "too large", "said": f"{size >> 20:,} MiB"}, None
        with _LARGE_FILE_LOCK if size > _LARGE_FILE_BYTES else nullcontext():
            return _decode(file.read_bytes(), facts)
    except (OSError, ValueError) as error:
        message = getattr(error, "strerror", None) or str(error)
        return facts | {"trouble": "unreadable", "said": message}, None


def _decode(encoded: bytes, facts: dict[str, Any]) -> tuple[dict[str, Any], Pixels | None]:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(encoded), formats=_PIL_FORMATS) as image:
            facts |= _read_header(image)
            pixels = image.size[0] * image.size[1]
            if pixels > MAX_PIXELS:
                message = f"{image.size[0]:,} × {image.size[1]:,} pixels"
                return facts | {"trouble": "too large", "said": message}, None
            if facts["format"] not in _READABLE_FORMATS:
                return facts | {"trouble": "another format", "said": facts["format"]}, None
            with _LARGE_FILE_LOCK if pixels > _LARGE_IMAGE_PIXELS else nullcontext():
                thumbnail, damage = _make_thumbnail(image, encoded)
    except (*_DECODING_ERRORS, Image.DecompressionBombError) as error:
        return facts | _classify_error(error), None
    upright = _apply_orientation(thumbnail, facts["orientation"])
    return facts | ({"trouble": "damaged", "said": damage} if damage else {}), upright


def _read_header(image: Any) -> dict[str, Any]:
    facts = {
        "format": image.format,
        "stored_width": image.size[0],
        "stored_height": image.size[1],
        # A telephone's MPO holds the same photo at other sizes: no animation.
        "frames": 1 if image.format == "MPO" else int(getattr(image, "n_frames", 1)),
    }
    return facts | _find_private_exif(image)


def _find_private_exif(image: Any) -> dict[str, Any]:
    """Detect private EXIF and XMP entries; their values are not returned."""
    try:
        exif = image.getexif()
        exif_tags = {**exif, **exif.get_ifd(_EXIF)}
        gps_tags = exif.get_ifd(_GPS)
    except _DECODING_ERRORS:
        return {}
    xmp = image.info.get("xmp") or b""
    xmp = xmp if isinstance(xmp, bytes) else str(xmp).encode()
    return {
        "orientation": _read_orientation(exif),
        "gps": any(_has_content(gps_tags, tag) for tag in _GPS_TAGS) or _has_xmp_key(xmp, "gps"),
        "serial_number": any(_has_content(exif_tags, t) for t in _SERIAL_NUMBER_TAGS)
        or _has_xmp_key(xmp, "serial_number"),
        "owner": any(_has_content(exif_tags, t) for t in _OWNER_TAGS) or _has_xmp_key(xmp, "owner"),
        "author": any(_has_content(exif_tags, t) for t in _AUTHOR_TAGS),
    }


def _read_orientation(exif: Mapping[int, Any]) -> int:
    orientation = exif.get(_ORIENTATION)
    return orientation if isinstance(orientation, int) and orientation in range(1, 9) else 1


def _has_content(tags: Mapping[int, Any], tag: int) -> bool:
    """Test whether a tag holds more than blanks, which some tools write for no value."""
    tag_value = tags.get(tag)
    if isinstance(tag_value, bytes | str):
        return bool(
            tag_value.strip("\0 ") if isinstance(tag_value, str) else tag_value.strip(b"\0 ")
        )
    return tag_value is not None and tag_value != ()


def _has_xmp_key(xmp: bytes, key: str) -> bool:
    return any(word in xmp for word in _XMP_KEYS[key])


def _make_thumbnail(image: Any, encoded: bytes) -> tuple[Pixels, str | None]:
    """Decode an image to a grey thumbnail; also return what a lenient decoder ignored."""
    from PIL import Image

    damage = None
    if image.format in {"JPEG", "MPO"} and image.mode in {"L", "RGB"}:
        import simplejpeg

        try:
            grey = simplejpeg.decode_jpeg(
                encoded, "GRAY", fastdct=True, min_height=_MIN_DECODED_PX, min_width=_MIN_DECODED_PX
            )[:, :, 0]
            return _resize_to_thumbnail(Image.fromarray(grey)), None
        except ValueError as error:
            damage = str(error)[:120]
        image.draft("L", (_MIN_DECODED_PX, _MIN_DECODED_PX))
    image.load()
    return _resize_to_thumbnail(image.convert("L") if image.mode != "L" else image), damage


def _resize_to_thumbnail(image: Any) -> Pixels:
    from PIL import Image

    return np.array(
        image.resize((_THUMBNAIL_SIDE_PX, _THUMBNAIL_SIDE_PX), Image.Resampling.LANCZOS),
        dtype=np.uint8,
    )


def _apply_orientation(thumbnail: Pixels, orientation: int | None) -> Pixels:
    """Apply EXIF orientation, 1 to 8, to a square thumbnail; 2, 4, 5 and 7 mirror it."""
    if orientation in {2, 5, 7, 4}:
        thumbnail = thumbnail[:, ::-1]
        orientation = {2: 1, 4: 3, 5: 8, 7: 6}[orientation]
    quarters = {3: 2, 6: 3, 8: 1}.get(orientation or 1, 0)
    return np.ascontiguousarray(np.rot90(thumbnail, quarters))


def _classify_error(error: BaseException) -> dict[str, str]:
    message = extract_first_line(error).partition(" <_io.")[0][:120]
    truncation_phrases = (
        "truncated",
        "premature",
        "unexpected end",
        "not enough",
        "incomplete",
        "broken PNG",
    )
    if type(error).__name__ == "DecompressionBombError":
        return {"trouble": "too large", "said": "more pixels than a photograph has"}
    is_truncated = any(word.lower() in message.lower() for word in truncation_phrases)
    trouble = "cut off" if is_truncated else "unreadable"
    return {"trouble": trouble, "said": message or type(error).__name__}
