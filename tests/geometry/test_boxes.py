from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pycocotools import mask as coco_mask

from isolux.core.errors import SpecError, TableError
from isolux.geometry.boxes import (
    BoxColumns,
    box_diagonal_xywh,
    box_pairs_xywh,
    check_boxes_xywh,
    pairs_iou_xywh,
)
from isolux.geometry.matching import Detections, Truths
from tests.geometry._coco import every_iou


def boxes(most=8, smallest=0):
    whole = st.integers(smallest, 12)
    part = st.sampled_from([0.0, 0.1, 0.25, 1 / 3])
    side = st.builds(lambda a, b: a + (b if a >= 0 else -b), whole, part)
    return hnp.arrays(np.float64, st.tuples(st.integers(0, most), st.just(4)), elements=side)


@given(boxes(), boxes(), st.integers(0, 255))
def test_overlap_equals_pycocotools_to_the_last_bit(d, t, bits):
    crowd = np.array([bool(bits >> k & 1) for k in range(len(t))], dtype=bool)
    expected = np.asarray(coco_mask.iou(d, t, crowd.astype(np.uint8))).reshape(len(d), len(t))
    assert np.array_equal(every_iou(d, t, crowd=crowd), expected)


@given(boxes(), boxes(), st.booleans(), st.sampled_from([0.05, 0.5, 1.0]), st.randoms())
def test_pairs_are_the_entries_of_the_matrix_that_reach_the_lowest(d, t, inclusive, lowest, random):
    draw = lambda n, top: np.array([random.randrange(top) for _ in range(n)], dtype=np.int64)  # noqa: E731
    detections = Detections(draw(len(d), 3), np.zeros(len(d)), draw(len(d), 2))
    truths = Truths(draw(len(t), 3), crowd=draw(len(t), 2) > 0, label=draw(len(t), 2))
    pairs = box_pairs_xywh(detections, truths, d, t, lowest_iou=lowest, pixel_inclusive=inclusive)
    full = every_iou(d, t, crowd=truths.crowd, pixel_inclusive=inclusive)
    together = (detections.image[:, None] == truths.image) & (
        detections.label[:, None] == truths.label
    )
    rows, columns = np.nonzero(together & (full >= min(lowest, 1 - 1e-10)))
    order = np.lexsort((columns, rows, detections.image[rows]))
    assert pairs.detection.tolist() == rows[order].tolist()
    assert pairs.truth.tolist() == columns[order].tolist()
    assert pairs.image.tolist() == detections.image[rows[order]].tolist()
    assert np.array_equal(pairs.iou, full[rows, columns][order])


def test_an_inclusive_box_is_one_pixel_larger_each_way():
    # WIDER FACE: overlap of 11 × 11 and 11 × 11 pixels shifted by 5: 6 × 11 shared of 176.
    corners = np.array([[0.0, 0, 10, 10]]), np.array([[5.0, 0, 10, 10]])
    assert every_iou(*corners, pixel_inclusive=True)[0, 0] == 66 / 176
    assert every_iou(*corners)[0, 0] == 50 / 150


def test_a_box_without_area_overlaps_nothing_but_is_one_pixel_thick_when_inclusive():
    line, square = np.array([[2.0, 2, 0, 4]]), np.array([[0.0, 0, 10, 10]])
    assert every_iou(line, line)[0, 0] == 0
    assert every_iou(line, square)[0, 0] == 0
    assert every_iou(line, square, pixel_inclusive=True)[0, 0] == 5 / 121


@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize(
    "faulty",
    [[0, 0, -1, 5], [0, 0, -0.5, -0.5], [np.nan, 0, 5, 5], [0, 0, 5, np.nan], [0, 0, np.inf, 5]],
)
def test_a_box_that_is_none_overlaps_nothing(faulty, inclusive):
    faulty, good = np.array([faulty], dtype=float), np.array([[0.0, 0, 5, 5]])
    one_image = Detections(np.array([0]), np.ones(1)), Truths(np.array([0]))
    for a, b in ((faulty, good), (good, faulty), (faulty, faulty)):
        with np.errstate(invalid="ignore"):
            assert not every_iou(a, b, pixel_inclusive=inclusive)[0, 0] > 0
        options = {"lowest_iou": 1e-9, "pixel_inclusive": inclusive}
        assert len(box_pairs_xywh(*one_image, a, b, **options)) == 0


def test_a_diagonal_by_hand():
    # 30 wide, 40 high.
    assert box_diagonal_xywh(np.array([[10.0, 20, 30, 40]])).tolist() == [50]


def test_columns_of_a_frame_go_in_as_they_are():
    frame = pl.DataFrame({"x": [0.0, 1], "y": [0.0, 0], "w": [10.0, 9], "h": [10.0, 10]})
    columns = BoxColumns(*(frame[name].to_numpy() for name in "xywh"))
    sides = Detections(np.array([0, 0], np.int32), frame["x"].to_numpy()), Truths(np.array([0, 0]))
    by_column = box_pairs_xywh(*sides, columns, columns)
    by_matrix = box_pairs_xywh(*sides, frame.to_numpy(), frame.to_numpy(order="c"))
    assert by_column.iou.tolist() == by_matrix.iou.tolist() == [1.0, 0.9, 0.9, 1.0]


@pytest.mark.parametrize(
    ("box", "said"),
    [
        ([0, np.nan, 1, 1], "coordinate that is not a finite number"),
        ([0, 0, np.inf, 1], "coordinate that is not a finite number"),
        ([0, 0, 1, -1], "negative width or height"),
        ([0, 0, 0, 1], "a box has no area"),
    ],
)
def test_a_faulty_box_is_refused_with_its_row(box, said):
    rows = np.array([[0, 0, 1, 1], box, box], dtype=float)
    with pytest.raises(TableError, match=said) as caught:
        check_boxes_xywh(rows, zero_area="refuse", file="boxes.json")
    assert "where: boxes.json, row 2" in str(caught.value)
    assert "and 2 such rows in all" in str(caught.value)


def test_boxes_of_no_area_and_outside_the_image_are_boxes():
    check_boxes_xywh(np.array([[0.0, 0, 0, 1], [-50, -50, 10, 10]]))


@pytest.mark.parametrize("lowest", [0, -0.1, 1.1, np.nan])
def test_a_lowest_overlap_outside_its_range_is_refused(lowest):
    one = np.ones((1, 4))
    with pytest.raises(SpecError, match="lowest overlap is not above 0 and at most 1"):
        box_pairs_xywh(
            Detections(np.array([0]), np.ones(1)),
            Truths(np.array([0])),
            one,
            one,
            lowest_iou=lowest,
        )


def test_too_few_boxes_or_numbers_are_refused():
    sides = Detections(np.array([0]), np.ones(1)), Truths(np.array([0]))
    with pytest.raises(SpecError, match="not as many boxes as rows"):
        box_pairs_xywh(*sides, np.ones((2, 4)), np.ones((1, 4)))
    with pytest.raises(SpecError, match="four numbers each"):
        pairs_iou_xywh(np.ones((1, 3)), np.ones((1, 4)))


def test_inputs_are_unchanged():
    d = np.array([[0.0, 0, -1, 5], [3, 3, 4, 4]])
    before = d.copy()
    box_diagonal_xywh(d)
    pairs_iou_xywh(d, d)
    assert np.array_equal(d, before)
