"""Text within pictures: what Pillow reads as comments, Exif, XMP and other metadata."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from isolux_curate.withdrawal.rewriting import UnsearchableFile

if TYPE_CHECKING:
    from PIL.Image import Exif, Image

_SEPARATOR = b"\0\0\n\0\0"  # separates values in every coding
_IFD_TAGS = (1, 0x8769, 0x8825, 0xA005)  # thumbnail, Exif, GPS, interoperability


def read_picture_metadata(file_bytes: bytes) -> bytes:
    """Read the metadata of a picture as unpacked, separated values; empty if it cannot be opened.

    The file's own bytes are searched too, so that only what is packed in them is added here.
    """
    from PIL import Image

    values: list[bytes] = []
    try:
        with Image.open(io.BytesIO(file_bytes)) as image:
            for frame in range(getattr(image, "n_frames", 1)):
                image.seek(frame)
                values += _iterate_frame_metadata(image)
    except ValueError as error:  # packed text that becomes too large
        raise UnsearchableFile(f"the picture's text cannot be unpacked: {error}") from error
    except (OSError, SyntaxError, EOFError, Image.DecompressionBombError):
        pass  # whether the picture can be compared is checked apart
    return _SEPARATOR.join(filter(None, values))


def _iterate_frame_metadata(image: Image) -> Iterator[bytes]:
    if image.format == "PNG":
        with suppress(OSError):
            image.load()  # text may come after the pixels
    segments = [content for _, content in getattr(image, "applist", ())]
    texts = getattr(image, "text", {}).values()
    for entry in (*image.info.values(), *texts, *segments):
        yield _encode_tag_value_or_empty(entry)
    with suppress(SyntaxError, OSError):
        yield from _iterate_exif_tag_bytes(image.getexif())


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
