"""Crops: hand-worked geometry, laws of turning, and dlib's square by another way of fitting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import SpecError
from isolux.geometry.crops import (
    DLIB_EYES,
    crop_square_top,
    crop_xywh,
    ffhq_square,
    fit_dlib_square,
    pixel_box,
    resize_square,
    warp_square,
)

coordinates = st.floats(-500, 500)


def grey(values):
    return np.array(values, dtype=np.uint8)[..., None].repeat(3, axis=2)


def turn(points, degrees, about=(0.0, 0.0)):
    """Turn points clockwise, as they look on a screen where y grows downwards."""
    a = np.deg2rad(degrees)
    matrix = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    return (np.asarray(points, float) - about) @ matrix.T + about


def test_a_box_grows_about_its_centre_and_covers_what_it_touches():
    # Centre (12, 23), 8 × 12: from 8 to 16 and from 17 to 29.
    assert pixel_box((10, 20, 4, 6), 2) == (8, 17, 16, 29)
    # Centre 1.5, 1.5 wide: from .75 to 2.25 touches pixels 0, 1 and 2.
    assert pixel_box((0.75, 0, 1.5, 1)) == (0, 0, 3, 1)


@pytest.mark.parametrize("box", [(0, 0, 0, 5), (0, 0, 5, -1), (np.nan, 0, 5, 5)])
def test_what_is_no_box_is_refused(box):
    with pytest.raises(SpecError, match="not a box to cut out"):
        crop_xywh(grey([[1, 2], [3, 4]]), box)


def test_outside_its_picture_a_crop_holds_the_mean_of_each_column_then_of_each_row():
    picture = grey([[10, 20, 90], [30, 60, 90]])
    # The box of the left two columns, one pixel beyond the upper edge. Columns' means: 20 and 40.
    found = crop_xywh(picture, (0, -1, 2, 3))[..., 0]
    assert found.tolist() == [[20, 40], [10, 20], [30, 60]]
    # And beyond the left edge: rows' means of what is there by then, 30, 15 and 45.
    found = crop_xywh(picture, (-1, -1, 3, 3))[..., 0]
    assert found.tolist() == [[30, 20, 40], [15, 10, 20], [45, 30, 60]]


def test_black_or_cut_off_outside():
    picture = grey([[10, 20], [30, 60]])
    assert crop_xywh(picture, (-1, 0, 2, 1), fill="black")[..., 0].tolist() == [[0, 10]]
    assert crop_xywh(picture, (-1, 0, 2, 1), fill="cut")[..., 0].tolist() == [[10]]


def test_a_box_elsewhere_and_a_crop_that_would_fill_the_memory_are_refused():
    picture = grey([[10, 20], [30, 60]])
    with pytest.raises(SpecError, match="outside its picture"):
        crop_xywh(picture, (2, 0, 5, 5))
    with pytest.raises(SpecError, match="larger than a picture may be"):
        crop_xywh(picture, (0, 0, 1, 1), factor=1e6)
    far = ffhq_square((1e5, 0), (-1e5, 0), (1e5, 1e5), (-1e5, 1e5))
    with pytest.raises(SpecError, match="larger than a picture may be"):
        warp_square(picture, far, 8)


def test_a_long_box_is_cut_to_its_square_at_the_top_from_1_2_on():
    picture = grey(np.arange(120).reshape(12, 10))
    tall = crop_square_top(picture, (2, 1, 5, 6))  # 6 : 5 is 1.2
    assert tall.shape == (5, 5, 3)
    assert tall[0, 0, 0] == 12  # row 1, column 2
    assert crop_square_top(picture, (2, 1, 6, 7)).shape == (7, 6, 3)  # 1.17
    wide = crop_square_top(picture, (0, 0, 10, 4), square_position="centre")
    assert wide[0, :, 0].tolist() == [3, 4, 5, 6]
    assert crop_square_top(picture, (0, 0, 10, 4))[0, :, 0].tolist() == [0, 1, 2, 3]


def test_the_square_of_a_face_by_hand():
    # Eyes 10 apart in row 20, mouth 10 below: the directions add up to level; half a side is the
    # larger of 2 × 10 and 1.8 × 10; the centre is (15, 20 + 1).
    found = ffhq_square((10, 20), (20, 20), (10, 30), (20, 30))
    assert found.tolist() == [[-5, 1], [-5, 41], [35, 41], [35, 1]]
    # A long face: 1.8 × 20 = 36, centre (15, 22).
    found = ffhq_square((10, 20), (20, 20), (12, 40), (18, 40))
    np.testing.assert_allclose(found, [[-21, -14], [-21, 58], [51, 58], [51, -14]])


@given(st.floats(-180, 180), st.floats(0.1, 10), coordinates, coordinates)
def test_a_face_that_is_turned_moved_and_scaled_takes_its_square_along(degrees, scale, x, y):
    ends = np.array([[10, 20], [22, 18], [11, 34], [19, 31]], float)
    moved = turn(ends, degrees) * scale + [x, y]
    expected = turn(ffhq_square(*ends), degrees) * scale + [x, y]
    np.testing.assert_allclose(ffhq_square(*moved), expected, atol=1e-6 * (1 + scale))


def test_points_in_one_place_say_no_direction():
    with pytest.raises(SpecError, match="say no direction"):
        ffhq_square((1, 1), (1, 1), (1, 1), (1, 1))
    with pytest.raises(SpecError, match="say no direction"):
        fit_dlib_square(dict.fromkeys(DLIB_EYES, (3.0, 3.0)))
    with pytest.raises(SpecError, match="without right eye inner"):
        fit_dlib_square({name: at for name, at in DLIB_EYES.items() if name != "right eye inner"})


@given(st.lists(st.tuples(coordinates, coordinates), min_size=4, max_size=4, unique=True))
def test_dlibs_square_is_the_least_squares_similarity(places):
    found = fit_dlib_square(dict(zip(DLIB_EYES, places, strict=True)), padding=0.0)
    # x = a u − b v + c, y = b u + a v + d: eight equations, four unknowns.
    rows, wanted = [], []
    for (u, v), (x, y) in zip(DLIB_EYES.values(), places, strict=True):
        rows += [[u, -v, 1, 0], [v, u, 0, 1]]
        wanted += [x, y]
    a, b, c, d = np.linalg.lstsq(np.array(rows), np.array(wanted), rcond=None)[0]
    square = [(0, 0), (0, 1), (1, 1), (1, 0)]
    expected = [[a * u - b * v + c, b * u + a * v + d] for u, v in square]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("side", "through"), [(16, None), (4, None), (16, 64), (8, 4096)])
def test_an_upright_square_of_one_colour_stays_so(side, through):
    square = ffhq_square((30, 30), (40, 30), (30, 40), (40, 40))
    found = warp_square(np.full((80, 70, 3), 93, np.uint8), square, side, intermediate_px=through)
    assert found.shape == (side, side, 3)
    assert (found == 93).all()


def test_an_upright_square_of_its_own_size_is_cut_out_as_it_lies():
    picture = np.random.default_rng(1).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    corners = np.array([[5, 6], [5, 16], [15, 16], [15, 6]], float)
    assert (warp_square(picture, corners, 10) == picture[6:16, 5:15]).all()


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_turned_picture_gives_the_same_face(quarters):
    picture = np.random.default_rng(2).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    ends = np.array([[24, 25], [36, 27], [25, 38], [34, 39]], float)
    turned = turn(ends, 90 * quarters, (32, 32))
    lying = np.rot90(picture, -quarters)  # numpy's turns are anticlockwise
    one = warp_square(picture, ffhq_square(*ends), 32).astype(int)
    other = warp_square(np.ascontiguousarray(lying), ffhq_square(*turned), 32).astype(int)
    assert np.abs(one - other).max() <= 1  # of 255, by rounding


@pytest.mark.parametrize("degrees", [0, 17, -75, 140])
def test_eyes_and_mouth_lie_level_where_the_square_says(degrees):
    ends = turn([[40, 45], [60, 45], [42, 65], [58, 65]], degrees, (50, 50))
    picture = np.zeros((100, 100, 3), np.uint8)
    rows, columns = np.mgrid[:100, :100] + 0.5
    for k, (x, y) in enumerate(ends):
        picture[np.hypot(columns - x, rows - y) < 2.5] = 60 + 60 * k
    found = warp_square(picture, ffhq_square(*ends), 160, intermediate_px=640)[..., 0]
    # Half a side is 40, the centre 2 below the eyes: two crop pixels for each of the picture's,
    # and what is 10 left of the middle in the picture is 20 left of it in the crop.
    for value, (x, y) in zip((60, 120, 180, 240), ((60, 76), (100, 76), (64, 116), (96, 116)),
                             strict=True):  # fmt: skip
        seen = np.argwhere(np.abs(found.astype(int) - value) < 8)
        inner = seen[np.hypot(seen[:, 1] + 0.5 - x, seen[:, 0] + 0.5 - y) < 8]
        assert len(inner) > 20
        assert found[y, x] == pytest.approx(value, abs=8)


def test_a_square_beyond_the_edge_is_filled():
    picture = np.full((20, 20, 3), 200, np.uint8)
    corners = np.array([[-10, 0], [-10, 20], [10, 20], [10, 0]], float)
    assert (warp_square(picture, corners, 20) == 200).all()
    black = warp_square(picture, corners, 20, fill="black")
    assert (black[:, :9] == 0).all()
    assert (black[:, 11:] == 200).all()


def test_a_crop_that_is_made_smaller_is_averaged_and_not_sampled():
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::2] = 200
    corners = np.array([[0, 0], [0, 64], [64, 64], [64, 0]], float)
    assert (np.abs(warp_square(stripes, corners, 8).astype(int) - 100) <= 1).all()
    assert (np.abs(resize_square(stripes, 8)[1:-1, 1:-1].astype(int) - 100) <= 13).all()
