"""Pictures from files: opened within limits, turned as their EXIF says, as RGB of 8 bits.

Datasets' originals and what a model drew are read here. A file from elsewhere is not trusted: only
formats that Pillow decodes itself are opened (no program is started), a picture that unpacks to
more than ``MAX_PIXELS`` is refused by its header, and a damaged one is named.

A JPEG is unpacked by libjpeg-turbo itself (simplejpeg), to the same pixels as Pillow's in about
half the time. What it does not take (four colours, odd sampling, the least damage) Pillow judges.
"""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isolux.core.errors import FileError, extract_first_line

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = npt.NDArray[np.uint8]
"""``[height, width, 3]``: red, green, blue; rows from the top, columns from the left."""

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif")
MAX_PIXELS = 89_478_485
"""What Pillow takes for a bomb: 256 MiB of RGB. A photograph of 50 megapixels is below it."""
MAX_FILE_BYTES = 1 << 29
"""Of a picture's file: a larger one could exhaust the memory."""

BACKGROUND = "white"
"""What shows through transparent pixels, as on a page; what colour they hide means nothing."""

_ORIENTATION = 0x0112  # EXIF's tag for how a picture must be turned to be seen upright
_TURBO_COLOUR_SPACES = ("YCbCr", "Gray")
_DOWNSCALE_FACTORS = (8, 4, 2)  # by which libjpeg can shrink a picture while it unpacks it
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF")
_PILLOW_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")
DECODING_ERRORS = (
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
    struct.error,
    zlib.error,
)
"""What Pillow raises on damaged files, by format."""


@dataclass(frozen=True, slots=True)
class DownscaledImage:
    """An image that may be downscaled: ``factor`` pixels of a row became one."""

    pixels: Pixels
    factor: int


def read_image(path: str | Path, *, exif_orientation: bool = True) -> Pixels:
    """Read a picture from a file."""
    path = Path(path).expanduser()
    return _decode(_read_file_bytes(path), str(path), turn=exif_orientation, longest_px=None).pixels


def read_downscaled(
    path: str | Path, longest_px: int, *, exif_orientation: bool = True
) -> DownscaledImage:
    """Read a picture, and halve it as long as its longer side stays ``longest_px`` or longer."""
    path = Path(path).expanduser()
    return _decode(_read_file_bytes(path), str(path), turn=exif_orientation, longest_px=longest_px)


def decode_image(encoded: bytes, source: str, *, exif_orientation: bool = True) -> Pixels:
    """Decode a picture that is in memory; ``source`` is what errors call it."""
    return _decode(encoded, source, turn=exif_orientation, longest_px=None).pixels


def _read_file_bytes(path: Path) -> bytes:
    try:
        status = path.stat()
        if not (S_ISREG(status.st_mode) or S_ISDIR(status.st_mode)):  # a pipe would be waited for
            raise FileError("this is neither a file nor a folder", where=str(path))
        size = status.st_size
        if size > MAX_FILE_BYTES:
            raise FileError(
                "this picture's file is too large",
                expected=f"at most {MAX_FILE_BYTES >> 20:,} MiB",
                found=f"{size >> 20:,} MiB",
                where=str(path),
            )
        return path.read_bytes()
    except FileNotFoundError as error:
        raise FileError("there is no such file", where=str(path)) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError("the file cannot be read", found=reason, where=str(path)) from error


def _decode(encoded: bytes, source: str, *, turn: bool, longest_px: int | None) -> DownscaledImage:
    from PIL import Image

    if not encoded:
        raise FileError("the file is empty", expected="a picture", where=source)
    try:
        with Image.open(io.BytesIO(encoded), formats=_FORMATS) as image:
            _check_size_and_mode(image.size, image.mode, source)
            _refuse_animation(image, source)
            factor = _choose_factor(image.size, longest_px)
            pixels = _decode_with_turbo(encoded, image, factor)
            if pixels is None:
                return DownscaledImage(_decode_with_pillow(image, factor, turn=turn), factor)
            return DownscaledImage(
                _apply_orientation(pixels, image.getexif().get(_ORIENTATION) if turn else 1), factor
            )
    except FileError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _decompression_bomb_error("more", source) from error
    except DECODING_ERRORS as error:
        raise FileError(
            "this is not a picture, or it is damaged",
            expected=", ".join(_FORMATS[:-1]) + f" or {_FORMATS[-1]}",
            found=_format_error(error),
            where=source,
        ) from error


def _refuse_animation(image: Image, source: str) -> None:
    """Refuse animations: nothing says which frame is meant. A TIFF's pages may be thumbnails."""
    if image.format in ("PNG", "WEBP", "GIF") and getattr(image, "is_animated", False):
        raise FileError(
            f"this is an animation of {getattr(image, 'n_frames', 2):,} pictures",
            expected="one picture",
            found=str(image.format),
            where=source,
            hint="save the frame that is meant as PNG",
        )


def _choose_factor(size: tuple[int, int], longest_px: int | None) -> int:
    """Choose the downscaling factor: 8, 4, 2 or 1."""
    if longest_px is None:
        return 1
    return next((f for f in _DOWNSCALE_FACTORS if max(size) >= f * max(longest_px, 1)), 1)


def _decode_with_turbo(encoded: bytes, image: Image, factor: int) -> Pixels | None:
    """Decode a JPEG by libjpeg-turbo; None where Pillow has to decode or refuse it."""
    if image.format not in ("JPEG", "MPO"):
        return None
    import simplejpeg

    try:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(encoded)
        if colours not in _TURBO_COLOUR_SPACES or (width, height) != image.size:
            return None
        pixels: Pixels = simplejpeg.decode_jpeg(
            encoded, min_height=-(-height // factor), min_width=-(-width // factor)
        )
    except ValueError:
        return None
    return pixels


def _decode_with_pillow(image: Image, factor: int, *, turn: bool) -> Pixels:
    from PIL import Image, ImageOps

    image.load()
    upright = ImageOps.exif_transpose(image) if turn else image
    if "transparency" in upright.info or upright.mode in ("LA", "PA", "RGBA"):
        upright = upright.convert("RGBA")
        background = Image.new("RGBA", upright.size, BACKGROUND)
        upright = Image.alpha_composite(background, upright)
    rgb = upright.convert("RGB")
    return np.array(rgb if factor == 1 else rgb.reduce(factor), dtype=np.uint8)


def _apply_orientation(pixels: Pixels, orientation: object) -> Pixels:
    """Apply an EXIF orientation (1 to 8); anything else leaves the image unchanged."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


def resize_image(pixels: Pixels, height: int, width: int) -> Pixels:
    """Resize an image by Pillow's bilinear filter, which averages when it shrinks."""
    from PIL import Image

    if pixels.shape[:2] == (height, width):
        return pixels
    resized = Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR)
    return np.array(resized, dtype=np.uint8)


def _check_size_and_mode(size: tuple[int, int], mode: str, source: str) -> None:
    if size[0] * size[1] > MAX_PIXELS:
        raise _decompression_bomb_error(f"{size[0]:,} × {size[1]:,}", source)
    if mode not in _PILLOW_MODES:
        raise FileError(
            "this picture does not hold 8 bits a channel",
            expected="grey, palette, RGB or CMYK of 8 bits",
            found=f"Pillow's mode {mode!r}",
            where=source,
            hint="save it with 8 bits a channel",
        )


def _decompression_bomb_error(size_text: str, source: str) -> FileError:
    return FileError(
        "this picture unpacks to more pixels than a photograph has, like a decompression bomb",
        expected=f"at most {MAX_PIXELS:,} pixels",
        found=size_text,
        where=source,
    )


def _format_error(error: BaseException) -> str:
    """Format the first line of an error, without addresses of objects in memory."""
    text = extract_first_line(error).partition(" <_io.")[0]
    return text[:120] or type(error).__name__
