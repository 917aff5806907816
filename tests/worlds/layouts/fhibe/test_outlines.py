from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from isolux.geometry.masks import masks_from_coco
from isolux_worlds.layouts.fhibe.outlines import trace_bitmap_outlines, trace_mask_outlines
from tests._masks import masks_from_bitmaps

PICTURES = arrays.arrays(bool, st.tuples(st.integers(1, 12), st.integers(1, 12)))


@given(PICTURES.filter(lambda bits: bits.any()))
def test_polygons_fill_to_the_very_pixels(bits):
    """As pycocotools fills them, which knows nothing of how they were traced."""
    height, width = (np.array([side]) for side in bits.shape)
    flat = [[p.ravel().astype(float).tolist() for p in trace_bitmap_outlines(bits)]]
    found, true = masks_from_coco(flat, height, width), masks_from_bitmaps([bits])
    assert found.edges.tolist() == true.edges.tolist()


@given(PICTURES)
def test_run_lengths_and_pictures_give_the_same_polygons(bits):
    drawn, coded = trace_bitmap_outlines(bits), trace_mask_outlines(masks_from_bitmaps([bits]), 0)
    assert [p.tolist() for p in drawn] == [p.tolist() for p in coded]


@given(PICTURES)
def test_no_polygon_has_a_hole_or_is_wound_the_other_way(bits):
    # Twice the signed area; clockwise as seen, y pointing down, is positive. The areas add up to
    # the pixels, so none is counted twice and none is cut out of another.
    areas = []
    for polygon in trace_bitmap_outlines(bits):
        x, y = polygon.T.astype(int)
        areas.append(int((x * np.roll(y, -1) - np.roll(x, -1) * y).sum()) / 2)
    assert all(area > 0 for area in areas)
    assert sum(areas) == bits.sum()


def test_a_square_has_four_corners():
    bits = np.zeros((5, 6), bool)
    bits[1:4, 2:5] = True
    (polygon,) = trace_bitmap_outlines(bits)
    assert sorted(map(tuple, polygon.tolist())) == [(2, 1), (2, 4), (5, 1), (5, 4)]


def test_pixels_that_touch_at_a_corner_are_two_regions():
    assert len(trace_bitmap_outlines(np.eye(2, dtype=bool))) == 2


@pytest.mark.parametrize("shape", [(1, 1), (3, 4)])
def test_an_empty_mask_has_no_polygon(shape):
    assert trace_bitmap_outlines(np.zeros(shape, bool)) == []
