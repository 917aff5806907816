from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pycocotools import mask as coco_mask

from isolux.core.errors import SpecError, TableError
from isolux.geometry.masks import (
    mask_pairs,
    masks_from_coco,
    masks_from_counts,
    masks_to_coco,
    pairs_common_px,
    pairs_iou_masks,
    union_of_parts,
)
from isolux.geometry.matching import Detections, Truths
from tests._masks import masks_from_bitmaps

FOUR_BY_THREE = np.array([4]), np.array([3])


def iou_masks(detections, truths, *, crowd=None):
    """Overlap of every mask with every mask of one image: ``[n, m]``."""
    n, m = len(detections), len(truths)
    rows, columns = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    crowds = None if crowd is None else np.asarray(crowd)[columns]
    return pairs_iou_masks(detections, rows, truths, columns, crowd=crowds).reshape(n, m)


def bitmaps(least=0, most=6):
    shape = st.tuples(st.integers(least, most), st.integers(1, 9), st.integers(1, 7))
    sparse = st.sampled_from([0, 0, 0, 1])
    return shape.flatmap(
        lambda s: st.one_of(
            hnp.arrays(np.uint8, s, elements=sparse), hnp.arrays(np.uint8, s, elements=st.just(1))
        )
    )


def encoded(stack):
    return [coco_mask.encode(np.asfortranarray(b)) for b in stack]


def sizes(stack):
    n, h, w = stack.shape
    return np.full(n, h), np.full(n, w)


@given(bitmaps())
def test_areas_and_boxes_are_those_of_the_pixels_and_of_pycocotools(stack):
    rles = encoded(stack)
    masks = masks_from_counts([r["counts"] for r in rles], *sizes(stack))
    assert masks.area_px.tolist() == stack.sum(axis=(1, 2)).tolist()
    assert masks.area_px.tolist() == [int(coco_mask.area(r)) for r in rles]
    assert masks.box_xywh.tolist() == [coco_mask.toBbox(r).tolist() for r in rles]


@given(bitmaps())
def test_text_bytes_numbers_and_bitmaps_are_one_mask(stack):
    counts = [r["counts"] for r in encoded(stack)]
    runs = [_runs(b.ravel(order="F")) for b in stack]
    text = [c.decode() for c in counts]
    column = pl.Series(text, dtype=pl.String)
    expected = masks_from_counts(pl.Series(counts, dtype=pl.Binary), *sizes(stack))
    for other in (
        masks_from_counts(text, *sizes(stack)),
        masks_from_counts(column, *sizes(stack)),
        masks_from_counts(pl.Series(runs, dtype=pl.List(pl.Int64)), *sizes(stack)),
        masks_from_bitmaps(list(stack)),
    ):
        assert np.array_equal(other.edges, expected.edges)
        assert np.array_equal(other.starts, expected.starts)


def _runs(flat):
    """Lengths of alternating runs, background first: the definition, pixel by pixel."""
    runs, value = [0], 0
    for pixel in flat:
        if pixel != value:
            runs.append(0)
            value = pixel
        runs[-1] += 1
    return runs


@given(bitmaps())
def test_written_and_read_again_nothing_changes(stack):
    rles = encoded(stack)
    masks = masks_from_counts([r["counts"] for r in rles], *sizes(stack))
    assert masks_to_coco(masks) == rles


@given(bitmaps(), bitmaps(), st.integers(0, 63))
def test_overlap_equals_pycocotools_to_the_last_bit(a, b, bits):
    b = np.resize(b, (len(b), *a.shape[1:])).astype(np.uint8)
    crowd = np.array([bool(bits >> k & 1) for k in range(len(b))], dtype=bool)
    expected = coco_mask.iou(encoded(a), encoded(b), crowd.astype(np.uint8))
    found = iou_masks(masks_from_bitmaps(list(a)), masks_from_bitmaps(list(b)), crowd=crowd)
    assert np.array_equal(found, np.asarray(expected, dtype=float).reshape(found.shape))


@given(bitmaps(), st.sampled_from([0.01, 0.3, 0.5, 1.0]), st.randoms())
def test_pairs_are_the_entries_of_the_matrix_that_reach_the_lowest(stack, lowest, random):
    n = len(stack)
    masks = masks_from_bitmaps(list(stack))
    draw = lambda top: np.array([random.randrange(top) for _ in range(n)], dtype=np.int64)  # noqa: E731
    detections, truths = Detections(draw(2), np.ones(n)), Truths(draw(2), crowd=draw(2) > 0)
    pairs = mask_pairs(detections, truths, masks, masks, lowest_iou=lowest)
    full = iou_masks(masks, masks, crowd=truths.crowd)
    same_image = detections.image[:, None] == truths.image
    rows, columns = np.nonzero(same_image & (full >= min(lowest, 1 - 1e-10)))
    order = np.lexsort((columns, rows, detections.image[rows]))
    assert pairs.detection.tolist() == rows[order].tolist()
    assert pairs.truth.tolist() == columns[order].tolist()
    assert np.array_equal(pairs.iou, full[rows, columns][order])


@given(bitmaps(least=1), st.randoms())
def test_a_whole_person_is_the_pixels_of_all_parts(stack, random):
    n_wholes = random.randrange(1, len(stack) + 1)
    whole = np.array([*range(n_wholes), *(random.randrange(n_wholes) for _ in stack)])[: len(stack)]
    united = union_of_parts(masks_from_bitmaps(list(stack)), whole, n_wholes)
    expected = [stack[whole == k].any(axis=0).astype(np.uint8) for k in range(n_wholes)]
    assert masks_to_coco(united) == encoded(expected)
    assert united.area_px.tolist() == [int(e.sum()) for e in expected]


def test_shared_pixels_by_hand():
    # Columns of an image 4 high, 3 wide: positions 0-3, and 2-5; 2 and 3 are shared.
    two = masks_from_counts([[0, 4, 8], [2, 4, 6]], np.array([4, 4]), np.array([3, 3]))
    assert pairs_common_px(two, np.array([0, 1, 0]), two, np.array([1, 1, 0])).tolist() == [2, 4, 4]
    assert iou_masks(two, two, crowd=np.array([True, True])).tolist() == [[1, 0.5], [0.5, 1]]


def test_a_polygon_is_filled_as_pycocotools_fills_it():
    star = [[10.0, 1, 13, 18, 1, 7, 19, 7, 7, 18], [15.0, 15, 19, 15, 19, 19]]
    expected = coco_mask.merge(coco_mask.frPyObjects(star, 20, 22))
    masks = masks_from_coco([star, expected], np.array([20, 20]), np.array([22, 22]))
    assert masks_to_coco(masks) == [expected, expected]


def test_polygons_numbers_and_text_mix():
    square = [[1.0, 1, 3, 1, 3, 3, 1, 3]]
    runs = {"size": [4, 3], "counts": [2, 3, 7]}
    text = {"size": [4, 3], "counts": "237"}
    masks = masks_from_coco([square, runs, text], np.full(3, 4), np.full(3, 3))
    assert masks.area_px.tolist() == [4, 3, 3]


def test_runs_of_no_pixels_change_nothing():
    plain = masks_from_counts([[2, 3, 7]], *FOUR_BY_THREE)
    padded = masks_from_counts([[2, 0, 0, 3, 4, 0, 3]], *FOUR_BY_THREE)
    assert padded.edges.tolist() == plain.edges.tolist() == [2, 5]
    assert padded.box_xywh.tolist() == plain.box_xywh.tolist()


def test_no_masks_are_no_masks():
    none = masks_from_counts([], np.empty(0, int), np.empty(0, int))
    sides = Detections(np.empty(0, int), np.empty(0)), Truths(np.empty(0, int))
    assert len(none) == len(mask_pairs(*sides, none, none)) == 0
    assert iou_masks(none, none).shape == (0, 0)


@pytest.mark.parametrize("counts", [[[2, 3, 8]], [[2, 3]], ["238"], [b"23"], [""]])
def test_a_mask_of_another_size_than_its_image_is_refused(counts):
    with pytest.raises(TableError, match="another size than its image") as caught:
        masks_from_counts(counts, *FOUR_BY_THREE, file="results.json")
    assert "4 × 3 = 12 pixels" in str(caught.value)
    assert "results.json, row 1, column 'counts'" in str(caught.value)


@pytest.mark.parametrize("counts", [["23!"], ["23€"], ["23/"], ["2S"], ["237P"], [[2, -3, 13]]])
def test_counts_that_are_none_are_refused(counts):
    with pytest.raises(TableError, match="run lengths cannot be read"):
        masks_from_counts(
            ["237", *counts] if isinstance(counts[0], str) else [[2, 3, 7], *counts],
            np.array([4, 4]),
            np.array([3, 3]),
        )


def test_masks_of_two_sizes_are_not_compared():
    low, wide = (masks_from_bitmaps([np.ones(shape)]) for shape in ((4, 3), (3, 4)))
    with pytest.raises(TableError, match="two masks of one image have different sizes") as caught:
        iou_masks(low, wide)
    assert "expected: 3 × 4 (height × width), as row 1 of the second\n  found: 4 × 3" in str(
        caught.value
    )


def test_parts_of_one_person_share_a_size_and_nobody_is_without_parts():
    parts = masks_from_bitmaps([np.ones((4, 3)), np.ones((3, 4))])
    with pytest.raises(TableError, match="parts of one person are in images of different sizes"):
        union_of_parts(parts, np.array([0, 0]), 1)
    with pytest.raises(TableError, match="a person has no part mask") as caught:
        union_of_parts(parts, np.array([0, 2]), 3)
    assert "row 2" in str(caught.value)


@pytest.mark.parametrize(
    ("segmentation", "said"),
    [
        ([[1.0, 1, 3, 1]], "fewer than three points"),
        ([[1.0, 1, 3, 1, 3, 3, 1]], "half a point"),
        ([], "fewer than three points"),
        ("237", "fewer than three points"),
        ({"size": [3, 4], "counts": "237"}, "another size than its image"),
        ({"size": [4, 3]}, "another size than its image"),
        ({"size": [4, 3], "counts": [2, 3]}, "another size than its image"),
    ],
)
def test_a_segmentation_that_is_none_is_refused(segmentation, said):
    with pytest.raises(TableError, match=said):
        masks_from_coco([segmentation], *FOUR_BY_THREE)


def test_impossible_sizes_null_masks_and_other_things_are_refused():
    with pytest.raises(TableError, match="impossible size"):
        masks_from_counts(["237"], np.array([0]), np.array([3]))
    with pytest.raises(TableError, match="impossible size"):
        masks_from_counts(["237"], np.array([2**16]), np.array([2**16]))
    with pytest.raises(TableError, match="a mask is null") as caught:
        masks_from_counts(pl.Series(["237", None]), np.array([4, 4]), np.array([3, 3]))
    assert "row 2" in str(caught.value)
    with pytest.raises(TableError, match="neither text nor lists of whole numbers"):
        masks_from_counts([[0.5, 11.5]], *FOUR_BY_THREE)
    with pytest.raises(SpecError, match="not as many sizes as masks"):
        masks_from_counts(["237", "237"], *FOUR_BY_THREE)


def test_errors_name_the_row_that_the_mask_had_in_its_file():
    sizes = np.array([4, 4]), np.array([3, 3])
    for counts, said in (
        (["237", "23!"], "run lengths cannot be read"),
        (["237", "238"], "another size than its image"),
        (pl.Series(["237", None]), "a mask is null"),
    ):
        with pytest.raises(TableError, match=said) as caught:
            masks_from_counts(counts, *sizes, file="net.json", rows=np.array([6, 40]))
        assert "net.json, row 41, column 'counts'" in str(caught.value)
    with pytest.raises(TableError, match="an impossible size") as caught:
        masks_from_counts(["237"], np.array([0]), np.array([3]), file="x", rows=np.array([8]))
    assert "x, row 9, column 'size'" in str(caught.value)


@pytest.mark.parametrize("far", [float("nan"), float("inf"), 1e12, -1e7])
def test_a_polygon_that_leads_far_away_is_refused_before_it_is_walked(far):
    with pytest.raises(TableError, match="not finite, or far outside any image"):
        masks_from_coco([[[0.0, 0, far, 0, 5, 5]]], *FOUR_BY_THREE)


def test_a_polygon_beyond_the_edges_is_cut_off():
    masks = masks_from_coco([[[-9.0, -9, 90, -9, 90, 90, -9, 90]]], *FOUR_BY_THREE)
    assert masks.area_px.tolist() == [12]


def test_a_mask_without_pixels_has_no_area_and_overlaps_nothing():
    masks = masks_from_counts(["<", "0<"], np.array([4, 4]), np.array([3, 3]))
    assert masks.area_px.tolist() == [0, 12]
    assert masks.box_xywh[0].tolist() == [0, 0, 0, 0]
    assert iou_masks(masks, masks).tolist() == [[0, 0], [0, 1]]
