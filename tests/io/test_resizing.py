"""Resizing a part: Pillow's pixels."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from isolux.io.resizing import resize_and_crop


@pytest.mark.parametrize("name", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("size", [(20, 30), (64, 113), (9, 90), (48, 20), (48, 64)])
def test_a_part_is_of_what_pillow_gives(name, size):
    pixels = np.random.default_rng(0).integers(0, 256, (48, 64, 3)).astype(np.uint8)
    how = Image.Resampling[name.upper()]
    resized = np.asarray(Image.fromarray(pixels).resize((size[1], size[0]), how))
    found = resize_and_crop(pixels, size, slice(1, 8), slice(2, 19), name)
    assert np.array_equal(found, resized[1:8, 2:19])
