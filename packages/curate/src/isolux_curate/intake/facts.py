"""Facts of a photo's file: format, size, and Exif's camera and processing tags.

Tags are those of Exif 3.0 (CIPA DC-008), sections 4.6.4 and 4.6.5. What identifies a person or a
location (GPS, serial numbers, names) is not read: ``isolux check`` reports whether it is present.
"""

from __future__ import annotations

import datetime as dt
import io
import warnings
from collections.abc import Mapping
from typing import Any

from isolux.io.images import DECODING_ERRORS

_FORMATS = ("JPEG", "TIFF", "PNG", "WEBP", "BMP", "GIF")
_EXIF_IFD_TAG = 0x8769
_ORIENTATION = 0x0112
_MAKE, _MODEL, _SOFTWARE, _CHANGED, _PROCESSING = 0x010F, 0x0110, 0x0131, 0x0132, 0x000B
_TAKEN_TAG, _ZOOM, _RENDERED, _WIDTH, _HEIGHT = 0x9003, 0xA404, 0xA401, 0xA002, 0xA003
_TEXT_TAGS = {"make": _MAKE, "model": _MODEL, "software": _SOFTWARE, "processing": _PROCESSING}
_READ_ERRORS = (*DECODING_ERRORS, RuntimeError, ZeroDivisionError)
_MAX_TEXT_LENGTH = 200


def read_photo_facts_or_trouble(file_bytes: bytes) -> dict[str, Any]:
    """Read the facts of a photo's file.

    Examples
    --------
    >>> from PIL import Image
    >>> exif, file = Image.Exif(), io.BytesIO()
    >>> exif[0x0110] = "A phone"
    >>> Image.new("RGB", (40, 30)).save(file, "JPEG", exif=exif)
    >>> told = read_photo_facts_or_trouble(file.getvalue())
    >>> told["format"], told["width"], told["model"], told["exif"]
    ('JPEG', 40, 'A phone', True)
    >>> read_photo_facts_or_trouble(b"")["trouble"]
    'the file is empty'
    """
    from PIL import Image

    if not file_bytes:
        return {"trouble": "the file is empty"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(file_bytes), formats=_FORMATS) as image:
                width, height = image.size
                facts = {
                    "format": "JPEG" if image.format == "MPO" else image.format,
                    "width": width,
                    "height": height,
                    "megapixels": round(width * height / 1e6, 2),
                    **_read_exif_facts_if_readable(image),
                }
                if b"GPano:" in file_bytes[: 1 << 16]:
                    facts["panorama"] = "yes"
                image.draft("L", (256, 256))  # decodes the whole file, at the smallest scale
                image.load()
    except (*_READ_ERRORS, Image.DecompressionBombError) as error:
        message = (str(error).splitlines() or [""])[0].partition(" <_io.")[0][:120]
        return {"trouble": message or type(error).__name__}
    return facts


def _read_exif_facts_if_readable(image: Any) -> dict[str, Any]:
    try:
        exif = image.getexif()
        tags = {**exif, **exif.get_ifd(_EXIF_IFD_TAG)}
    except _READ_ERRORS:
        return {"exif": False}
    facts: dict[str, Any] = {"exif": bool(tags)}
    facts |= {name: _parse_exif_text_or_none(tags.get(tag)) for name, tag in _TEXT_TAGS.items()}
    facts |= {
        "taken": _parse_exif_time_or_none(tags.get(_TAKEN_TAG)),
        "changed": _parse_exif_time_or_none(tags.get(_CHANGED)),
    }
    facts |= _parse_numeric_exif_tags(tags)
    return {name: fact for name, fact in facts.items() if fact is not None}


def _parse_numeric_exif_tags(tags: Mapping[int, Any]) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for name, tag, number_type in (
        ("digital_zoom", _ZOOM, float),
        ("custom_rendered", _RENDERED, int),
        ("exif_width", _WIDTH, int),
        ("exif_height", _HEIGHT, int),
        ("orientation", _ORIENTATION, int),
    ):
        try:
            number = number_type(tags[tag])
        except _READ_ERRORS:
            continue
        if number == number:  # noqa: PLR0124  (Pillow gives NaN for 0/0)
            numbers[name] = number
    return numbers


def _parse_exif_text_or_none(tag_value: object) -> str | None:
    if isinstance(tag_value, bytes):
        tag_value = tag_value.decode("utf-8", "replace")
    text = (
        str(tag_value).strip("\0 ").replace("\0", "")[:_MAX_TEXT_LENGTH]
        if tag_value is not None
        else ""
    )
    return text or None


def _parse_exif_time_or_none(tag_value: object) -> str | None:
    text = _parse_exif_text_or_none(tag_value)
    try:
        timestamp = dt.datetime.strptime(text or "", "%Y:%m:%d %H:%M:%S")  # noqa: DTZ007 (no zone told)
    except ValueError:
        return None
    return timestamp.isoformat()
