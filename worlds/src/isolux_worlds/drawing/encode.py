"""Pictures as files hold them: JPEG at a named quality, and PNG."""

from __future__ import annotations

import io
import zlib
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["JPEG_QUALITY", "encoded"]

JPEG_QUALITY = 90
"""Of written photos, as libjpeg counts; colours are kept at full width (4:4:4), so that skin tones
at edges stay what they are."""


def encoded(pixels: npt.NDArray[np.uint8], kind: Literal["jpg", "png"] = "jpg") -> bytes:
    """Return a picture's bytes: a PNG without loss, for speed rather than size, or a JPEG.

    ``pixels``: [h, w, 3] or, as PNG alone, [h, w] uint8.
    """
    if kind == "png":
        from PIL import Image

        stream = io.BytesIO()
        quick = {"compress_level": 1, "compress_type": zlib.Z_RLE}
        Image.fromarray(pixels).save(stream, format="PNG", **quick)
        return stream.getvalue()
    import simplejpeg

    whole = np.ascontiguousarray(pixels)
    return bytes(simplejpeg.encode_jpeg(whole, quality=JPEG_QUALITY, colorsubsampling="444"))
