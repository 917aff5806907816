"""Reading of part images, with limits on their size.

A part's own image is white where the part is, as CelebAMask-HQ publishes them; a label image
holds a number for each pixel, as FHIBE's ``combined.png`` does.
"""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isolux.core.errors import FileError, extract_first_line

if TYPE_CHECKING:
    from PIL.Image import Image


Size = tuple[int, int]
"""Height and width, pixels."""
Picture = npt.NDArray[np.uint8]

# 2 to the power of 26 pixels are about 8,000 × 8,000.
_MAX_PX = 1 << 26  # of an image whose expected size is unknown
_MAX_FILE_BYTES = 256 << 20  # bytes
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# What Pillow raises on damaged files.
_DAMAGED_FILE_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    zlib.error,
    struct.error,
    IndexError,
    OverflowError,
)


def read_part_image(path: str | Path, size: Size | None, source: str | None) -> Picture:
    """Read a part's image: ``[height, width]``, not 0 where any colour is."""
    image = _open_png(path, size, source)
    if image.mode in ("1", "L"):
        return np.asarray(image, dtype=np.uint8)
    if image.mode.startswith("I"):
        # 16 bits: a cast to 8 would turn 256 into 0.
        return np.array(np.asarray(image) != 0, dtype=np.uint8)
    red, green, blue, alpha = (np.asarray(band) for band in image.convert("RGBA").split())
    # A transparent pixel is no part, whatever colour is stored under it.
    return np.array(((red | green | blue) != 0) & (alpha != 0), dtype=np.uint8)


def read_label_image(path: str | Path, size: Size | None, source: str | None) -> Picture:
    """Read a label image: ``[height, width]``, the number or palette index of each pixel.

    Raises
    ------
    FileError
        As ``read_part_image``; in colour; a number above 255.
    """
    image = _open_png(path, size, source)
    # Palette images: the index is the label, the colour only serves to show it.
    if image.mode in ("1", "L", "P"):
        return np.asarray(image, dtype=np.uint8)
    if image.mode.startswith("I"):
        numbers = np.asarray(image)
        if numbers.max(initial=0) <= 255:
            return numbers.astype(np.uint8)
        actual = f"the number {numbers.max()}"
    else:
        red, green, blue = (np.asarray(band) for band in image.convert("RGB").split())
        # Grey stored in three channels still has one number a pixel; colours do not.
        if np.array_equal(red, green) and np.array_equal(green, blue):
            return red
        actual = "a picture in colour"
    raise FileError(
        "a label picture does not hold one number for each pixel",
        expected="grey or palette, numbers up to 255",
        found=actual,
        where=source,
    )


def _open_png(path: str | Path, size: Size | None, source: str | None) -> Image:
    """Open a PNG whose header states an allowed size: a small file may unpack to a huge image."""
    from PIL import Image

    file_bytes = _read_file_bytes(path, source)
    if len(file_bytes) < 24 or not file_bytes.startswith(_SIGNATURE):
        raise FileError(
            "this is not a picture, or it is cut off",
            expected="a PNG file",
            found="an empty file"
            if not file_bytes
            else f"{len(file_bytes):,} bytes of something else",
            where=source,
        )
    # Bytes 16 to 24 of a PNG are the width and height in its IHDR chunk.
    width, height = struct.unpack(">II", file_bytes[16:24])
    if size is not None and (height, width) != size:
        raise FileError(
            "a mask has another size than its image",
            expected=f"{size[0]} × {size[1]} (height × width)",
            found=f"{height} × {width}",
            where=source,
        )
    if width * height > _MAX_PX:
        raise FileError(
            "a picture is too large to be unpacked",
            expected=f"at most {_MAX_PX:,} pixels",
            found=f"{height} × {width} (height × width), in {len(file_bytes):,} bytes",
            where=source,
        )
    try:
        # PNG alone: lossy formats change label numbers at the edges of parts.
        image = Image.open(io.BytesIO(file_bytes), formats=("PNG",))
        image.load()
    except _DAMAGED_FILE_ERRORS as error:
        raise FileError(
            "a picture is damaged or cut off",
            expected="a whole PNG file",
            found=extract_first_line(error, 120),
            where=source,
        ) from error
    return image


def _read_file_bytes(path: str | Path, source: str | None) -> bytes:
    try:
        # Before reading: a huge file must not be loaded to find out that it is one.
        size = Path(path).stat().st_size
        file_bytes = Path(path).read_bytes() if size <= _MAX_FILE_BYTES else None
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        raise FileError(
            "there is no such file" if missing else "a picture cannot be read",
            expected="a PNG file",
            found=None if missing else str(error)[:120],
            where=source,
        ) from error
    if file_bytes is None:
        raise FileError(
            "a picture is too large",
            expected=f"at most {_MAX_FILE_BYTES >> 20} MiB",
            found=f"{size:,} bytes",
            where=source,
        )
    return file_bytes
