"""Pictures as files hold them: JPEG at a named quality, and PNG."""

from __future__ import annotations

import io
from typing import Literal

import numpy as np
import numpy.typing as npt

from isolux.vocabulary.errors import SpecError

__all__ = ["JPEG_QUALITY", "encoded"]

JPEG_QUALITY = 90
"""Of written photos, as libjpeg counts; colours are kept at full width (4:4:4), so that skin tones
at edges stay what they are."""


def encoded(
    pixels: npt.NDArray[np.uint8],
    kind: Literal["jpg", "png"] = "jpg",
    *,
    quality: int = JPEG_QUALITY,
) -> bytes:
    """Return a picture's bytes.

    ``pixels``: [h, w, 3] or [h, w] uint8.
    """
    if kind == "png":
        from PIL import Image

        stream = io.BytesIO()
        Image.fromarray(pixels).save(stream, "PNG", compress_level=3)
        return stream.getvalue()
    if kind != "jpg" or pixels.ndim != 3:
        raise SpecError(
            "a picture cannot be written so",
            expected="jpg of three channels, or png",
            found=f"{kind} of shape {pixels.shape}",
        )
    import simplejpeg

    whole = np.ascontiguousarray(pixels)
    return bytes(simplejpeg.encode_jpeg(whole, quality=quality, colorsubsampling="444"))
