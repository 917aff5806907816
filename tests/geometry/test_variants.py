"""Photos without their person or background: by hand, beside pycocotools, and as pictures."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as coco
from scipy.ndimage import gaussian_filter

from isolux.core.errors import SpecError
from isolux.geometry.variants import (
    black_out_background,
    black_out_person,
    blur_person,
    decode_mask,
)
from isolux.io.images import read_image
from isolux_worlds import draw_people, preset
from isolux_worlds.drawing import render_photos


@pytest.mark.parametrize("seed", range(4))
def test_a_mask_is_drawn_as_pycocotools_draws_it(seed):
    rng = np.random.default_rng(seed)
    bitmap = (rng.random((17, 23)) < 0.3).astype(np.uint8)
    counts = coco.encode(np.asfortranarray(bitmap))["counts"].decode()
    assert (decode_mask(counts, 17, 23) == bitmap.astype(bool)).all()


def test_inside_and_outside_of_a_mask():
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3) + 1
    mask = np.array([[True, False], [False, True]])
    black, bare = black_out_person(pixels, mask), black_out_background(pixels, mask)
    assert (black[mask] == 0).all()
    assert (black[~mask] == pixels[~mask]).all()
    assert (bare[mask] == pixels[mask]).all()
    assert (bare[~mask] == 0).all()
    assert ((black + bare) == pixels).all()


def test_the_blur_is_gaussian_with_the_radius_as_standard_deviation():
    """A step of brightness, far from all edges: scipy's filter with sigma 6, near enough."""
    pixels = np.zeros((101, 201, 3), dtype=np.uint8)
    pixels[:, 100:] = 200
    blurred = blur_person(pixels, np.ones((101, 201), dtype=bool), 6.0)[50, 60:141, 0]
    wanted = gaussian_filter(pixels[50, :, 0].astype(float), 6.0)[60:141]
    assert np.abs(blurred.astype(float) - wanted).max() < 3.0


def test_a_mask_of_another_size_is_refused():
    with pytest.raises(SpecError, match="of a picture of another size"):
        black_out_person(np.zeros((4, 5, 3), dtype=np.uint8), np.zeros((5, 4), dtype=bool))


def test_a_contact_sheet_of_painted_people(tmp_path):
    """Four photos in four variants, on one sheet: what is seen of whom is what should be."""
    settings = preset("fair")
    image = settings.image.model_copy(update={"width": 160, "height": 120})
    world = draw_people(settings.model_copy(update={"households": 6, "image": image}), seed=3)
    sheet, n = np.full((4 * 124, 4 * 164, 3), 255, dtype=np.uint8), 0
    for photo in render_photos(world):
        mask = photo.owner == 1
        if mask.mean() < 0.03 or n == 4:
            continue
        made = (black_out_person, blur_person, black_out_background)
        variants = (photo.pixels, *(one(photo.pixels, mask) for one in made))
        for k, one in enumerate(variants):
            sheet[n * 124 : n * 124 + 120, k * 164 : k * 164 + 160] = one
        whole, black, blurred, bare = variants
        assert (black[mask] == 0).all()
        assert (black[~mask] == whole[~mask]).all()
        # A radius of 100 pixels leaves nothing of what a person looks like.
        assert blurred[mask].astype(float).std(axis=0).max() < whole[mask].std(axis=0).max()
        assert blurred[mask].astype(float).std(axis=0).max() < 25
        assert (blurred[~mask] == whole[~mask]).all()
        assert (bare[~mask] == 0).all()
        n += 1
    assert n == 4
    Image.fromarray(sheet).save(tmp_path / "sheet.png")
    assert read_image(tmp_path / "sheet.png").shape == (496, 656, 3)
