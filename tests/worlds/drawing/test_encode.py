"""Bytes of files: what is read back, and what is refused."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from isolux_worlds.drawing import encode_image, render_photos
from tests.worlds.drawing._hand import HEIGHT, WIDTH, person, world


def read(data):
    return np.asarray(Image.open(io.BytesIO(data)))


def test_png_keeps_every_pixel():
    photo = next(render_photos(world(person())))
    np.testing.assert_array_equal(read(encode_image(photo.pixels, "png")), photo.pixels)
    np.testing.assert_array_equal(read(encode_image(photo.part_labels, "png")), photo.part_labels)


def test_jpeg_keeps_colours_nearly():
    photo = next(render_photos(world(person())))
    data = encode_image(photo.pixels)
    again = read(data)
    assert again.shape == (HEIGHT, WIDTH, 3)
    assert np.abs(again.astype(int) - photo.pixels).mean() < 3
    assert len(data) < photo.pixels.nbytes / 3
