"""Photos as cameras and editors write them, in a few bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from PIL import Image

_SOFTWARE, _MAKE, _MODEL = 0x0131, 0x010F, 0x0110
_TAKEN, _ZOOM, _RENDERED, _WIDTH, _HEIGHT = 0x9003, 0xA404, 0xA401, 0xA002, 0xA003


def photo(
    size: tuple[int, int] = (3264, 2448),
    *,
    kind: str = "JPEG",
    exif: bool = True,
    taken: str = "2024:05:01 10:00:00",
    software: str | None = None,
    shade: int = 0,
    inner: dict[int, Any] | None = None,
) -> bytes:
    """Make a photo; by default one that every rule takes (8 megapixels as phones save them)."""
    tags = Image.Exif()
    if exif:
        tags[_MAKE], tags[_MODEL] = "Acme", "Phone 3"
        if software:
            tags[_SOFTWARE] = software
        tags.get_ifd(0x8769).update({_TAKEN: taken, **(inner or {})})
    file = io.BytesIO()
    Image.new("L", size, shade).save(file, kind, exif=tags)
    return file.getvalue()


def zoomed(times: float) -> bytes:
    return photo(inner={_ZOOM: times})


def rendered(mode: int) -> bytes:
    return photo(inner={_RENDERED: mode})


def cropped() -> bytes:
    return photo(inner={_WIDTH: 4000, _HEIGHT: 3000})


def write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
