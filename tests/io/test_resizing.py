"""Resizing by kernels: to Pillow's pixels, for any size, whichever direction Pillow takes first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from isolux.io import resizing
from isolux.io.resizing import resized_part

SIDES = st.integers(1, 70)


def pillows(pixels, size, name):
    how = Image.Resampling[name.upper()]
    return np.asarray(Image.fromarray(pixels).resize((size[1], size[0]), how))


@given(SIDES, SIDES, SIDES, SIDES, st.sampled_from(["bilinear", "bicubic"]), st.data())
def test_one_of_the_two_directions_first_is_pillows(height, width, h, w, name, data):
    seed = data.draw(st.integers(0, 99))
    pixels = np.random.default_rng(seed).choice([0, 255, 90], (height, width, 3)).astype(np.uint8)
    top, left = data.draw(st.integers(0, h - 1)), data.draw(st.integers(0, w - 1))
    rows = slice(top, data.draw(st.integers(top + 1, h)))
    columns = slice(left, data.draw(st.integers(left + 1, w)))
    wanted = pillows(pixels, (h, w), name)[rows, columns]
    found = [
        resizing._by_kernels(pixels, (h, w), rows, columns, name, first)
        for first in ("across", "down")
    ]
    assert any(np.array_equal(one, wanted) for one in found)


@pytest.mark.parametrize("name", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("size", [(20, 30), (64, 113), (9, 90), (48, 20), (48, 64)])
def test_each_picture_of_a_size_is_pillows(name, size):
    rng = np.random.default_rng(0)
    for _ in range(4):
        pixels = rng.integers(0, 256, (48, 64, 3)).astype(np.uint8)
        found = resized_part(pixels, size, slice(1, 8), slice(2, 19), name)
        assert np.array_equal(found, pillows(pixels, size, name)[1:8, 2:19])


def test_kernels_that_do_not_give_pillows_pixels_are_not_used(monkeypatch):
    monkeypatch.setattr(resizing, "_learnt", {})
    monkeypatch.setattr(resizing, "_by_kernels", lambda *_: np.zeros((5, 6, 3), np.uint8))
    pixels = np.random.default_rng(0).integers(0, 256, (48, 64, 3)).astype(np.uint8)
    for _ in range(4):
        found = resized_part(pixels, (5, 6), slice(0, 5), slice(0, 6), "bicubic")
        assert np.array_equal(found, pillows(pixels, (5, 6), "bicubic"))
    assert set(resizing._learnt.values()) == {"none"}


def test_a_picture_that_tells_nothing_leaves_it_open(monkeypatch):
    monkeypatch.setattr(resizing, "_learnt", {})
    for _ in range(3):
        resized_part(
            np.zeros((48, 64, 3), np.uint8), (20, 50), slice(0, 20), slice(0, 50), "bicubic"
        )
    assert set(resizing._learnt.values()) == {"seen"}
