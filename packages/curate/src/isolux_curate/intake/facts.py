"""What a photo's file tells of itself: format, size, and what Exif says of camera and processing.

Tags are those of Exif 3.0 (CIPA DC-008), sections 4.6.4 and 4.6.5. What identifies a person or a
place (GPS, serial numbers, names) is not read: ``isolux check`` tells whether it is there.
"""

from __future__ import annotations

import datetime as dt
import io
import struct
import warnings
import zlib
from collections.abc import Mapping
from typing import Any

_FORMATS = ("JPEG", "TIFF", "PNG", "WEBP", "BMP", "GIF")
_IFD = 0x8769
_ORIENTATION = 0x0112
_MAKE, _MODEL, _SOFTWARE, _CHANGED, _PROCESSING = 0x010F, 0x0110, 0x0131, 0x0132, 0x000B
_TAKEN, _ZOOM, _RENDERED, _WIDTH, _HEIGHT = 0x9003, 0xA404, 0xA401, 0xA002, 0xA003
_TEXTS = {"make": _MAKE, "model": _MODEL, "software": _SOFTWARE, "processing": _PROCESSING}
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
    ZeroDivisionError,
)
_LONGEST = 200


def facts_of(data: bytes) -> dict[str, Any]:
    """Tell what a photo's bytes say of themselves.

    Examples
    --------
    >>> from PIL import Image
    >>> exif, file = Image.Exif(), io.BytesIO()
    >>> exif[0x0110] = "A phone"
    >>> Image.new("RGB", (40, 30)).save(file, "JPEG", exif=exif)
    >>> told = facts_of(file.getvalue())
    >>> told["format"], told["width"], told["model"], told["exif"]
    ('JPEG', 40, 'A phone', True)
    >>> facts_of(b"")["trouble"]
    'the file is empty'
    """
    from PIL import Image

    if not data:
        return {"trouble": "the file is empty"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                width, height = image.size
                found = {
                    "format": "JPEG" if image.format == "MPO" else image.format,
                    "width": width,
                    "height": height,
                    "megapixels": round(width * height / 1e6, 2),
                    **_of_exif(image),
                }
                if b"GPano:" in data[: 1 << 16]:
                    found["panorama"] = "yes"
                image.draft("L", (256, 256))  # reads every byte, at the smallest scale
                image.load()
    except (*_DAMAGE, Image.DecompressionBombError) as error:
        said = (str(error).splitlines() or [""])[0].partition(" <_io.")[0][:120]
        return {"trouble": said or type(error).__name__}
    return found


def _of_exif(image: Any) -> dict[str, Any]:
    try:
        exif = image.getexif()
        tags = {**exif, **exif.get_ifd(_IFD)}
    except _DAMAGE:
        return {"exif": False}
    found: dict[str, Any] = {"exif": bool(tags)}
    found |= {name: _text(tags.get(tag)) for name, tag in _TEXTS.items()}
    found |= {"taken": _time(tags.get(_TAKEN)), "changed": _time(tags.get(_CHANGED))}
    found |= _numbers(tags)
    return {name: value for name, value in found.items() if value is not None}


def _numbers(tags: Mapping[int, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, tag, kind in (
        ("digital_zoom", _ZOOM, float),
        ("custom_rendered", _RENDERED, int),
        ("exif_width", _WIDTH, int),
        ("exif_height", _HEIGHT, int),
        ("orientation", _ORIENTATION, int),
    ):
        try:
            value = kind(tags[tag])
        except _DAMAGE:
            continue
        if value == value:  # noqa: PLR0124  (Pillow gives NaN for 0/0)
            found[name] = value
    return found


def _text(value: object) -> str | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    text = str(value).strip("\0 ").replace("\0", "")[:_LONGEST] if value is not None else ""
    return text or None


def _time(value: object) -> str | None:
    text = _text(value)
    try:
        found = dt.datetime.strptime(text or "", "%Y:%m:%d %H:%M:%S")  # noqa: DTZ007 (no zone told)
    except ValueError:
        return None
    return found.isoformat()
