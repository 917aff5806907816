"""A part of a picture that Pillow resized: the pixels with which published networks were judged."""

from __future__ import annotations

from typing import Literal

import numpy as np

from isolux.io.images import Pixels

Filter = Literal["nearest", "bilinear", "bicubic", "lanczos"]


def resize_and_crop(
    pixels: Pixels, size: tuple[int, int], rows: slice, columns: slice, filter_name: Filter
) -> Pixels:
    """Resize a picture as Pillow does, and give some of its rows and columns."""
    from PIL import Image

    if pixels.shape[:2] == size:
        return pixels[rows, columns]
    resampling = Image.Resampling[filter_name.upper()]
    return np.asarray(Image.fromarray(pixels).resize((size[1], size[0]), resampling))[rows, columns]
