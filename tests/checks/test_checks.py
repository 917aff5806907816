"""Each check on a tiny dataset: what it finds, with which words, and what it leaves alone."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from isolux.checks import boxes, ids, keypoints, masks, splits, value_ranges
from isolux.core.errors import SpecError
from isolux.geometry.masks import masks_to_coco
from tests._masks import masks_from_bitmaps
from tests.checks._dataset import dataset

SIZE = {"image_id": ["i0"], "width": [64], "height": [48]}


def box(*sides):
    return {f"box_{name}": [value] for name, value in zip("xywh", sides, strict=True)}


def told(problems):
    return problems.select("severity", "problem").rows()


@pytest.mark.parametrize(
    ("sides", "severity", "problem"),
    [
        ((0.0, 0.0, None, 4.0), "error", "a box is not four numbers"),
        ((0.0, 0.0, float("nan"), 4.0), "error", "a box is not four numbers"),
        ((0.0, 0.0, float("inf"), 4.0), "error", "a box is not four numbers"),
        ((0.0, 0.0, -1.0, 4.0), "error", "a box has a negative side"),
        ((0.0, 0.0, 0.0, 4.0), "warning", "a box has no area"),
        ((64.0, 0.0, 5.0, 4.0), "error", "a box is outside its image"),
        ((-9.0, 0.0, 9.0, 4.0), "error", "a box is outside its image"),
        ((60.0, 0.0, 5.5, 4.0), "warning", "a box reaches over the edge of its image"),
    ],
)
def test_a_box_that_cannot_be(sides, severity, problem):
    assert told(boxes.check(dataset(box(*sides), SIZE))) == [(severity, problem)]


@pytest.mark.parametrize("sides", [(0.0, 0.0, 64.0, 48.0), (-1.0, -1.0, 66.0, 50.0), (None,) * 4])
def test_a_box_within_the_slack_or_none_is_left_alone(sides):
    assert boxes.check(dataset(box(*sides), SIZE)).is_empty()


def test_the_slack_is_a_setting():
    assert boxes.check(dataset(box(60.0, 0.0, 5.5, 4.0), SIZE), slack_px=2).is_empty()
    with pytest.raises(SpecError, match=r"a slack is not a length(.|\n)*found: -1"):
        boxes.check(dataset(box(0.0, 0.0, 1.0, 1.0)), slack_px=-1)


def test_boxes_of_images_of_unknown_size_are_not_called_outside():
    assert boxes.check(dataset(box(900.0, 0.0, 5.0, 4.0))).is_empty()


def test_ids_without_partners_and_twice():
    given = dataset(
        {"instance_id": ["a", "a", "b"], "image_id": ["i0", "i0", "i9"]},
        {"image_id": ["i0", "i0"]},
        {"unit_kind": ["instance", "image", "subject"], "unit_id": ["z", "i8", "s"],
         "attribute": ["tone"] * 3, "value": ["1"] * 3},
    )  # fmt: skip
    found = ids.check(given)
    assert sorted(found.select("problem", "unit_kind", "unit_id").rows()) == [
        ("an attribute is of no image", "image", "i8"),
        ("an attribute is of no instance", "instance", "z"),
        ("an attribute is of no subject", "subject", "s"),
        ("an id occurs several times", "image", "i0"),
        ("an id occurs several times", "instance", "a"),
        ("its image is not listed", "instance", "b"),
    ]
    assert set(found["severity"]) == {"error"}


def run_lengths(*bitmaps):
    return [mask["counts"].decode() for mask in masks_to_coco(masks_from_bitmaps(bitmaps))]


def square(top, left, side, shape=(48, 64)):
    picture = np.zeros(shape, np.uint8)
    picture[top : top + side, left : left + side] = 1
    return picture


def masked(counts, sides=(10.0, 10.0, 8.0, 8.0), size=(48, 64), **more):
    held = {"mask_counts": [counts], "mask_height": [size[0]], "mask_width": [size[1]]}
    return dataset({**box(*sides), **held, **more}, SIZE)


@pytest.mark.parametrize(
    ("picture", "sides", "expected"),
    [
        (square(10, 10, 8), (10.0, 10.0, 8.0, 8.0), []),
        (square(10, 10, 0), (10.0, 10.0, 8.0, 8.0), [("warning", "a mask has no pixel")]),
        (square(10, 10, 8), (40.0, 10.0, 8.0, 8.0),
         [("error", "a mask does not touch its person's box")]),
        # 4 × 4 of 8 × 8 pixels: an overlap of a quarter.
        (square(10, 10, 4), (10.0, 10.0, 8.0, 8.0),
         [("warning", "a mask and its person's box are of different parts")]),
    ],
)  # fmt: skip
def test_a_mask_and_its_box(picture, sides, expected):
    assert told(masks.check(masked(run_lengths(picture)[0], sides))) == expected


def test_a_mask_of_another_size_and_one_that_cannot_be_read():
    small = run_lengths(square(10, 10, 8, (24, 32)))[0]
    found = masks.check(masked(small, size=(24, 32)))
    assert found.select("problem", "expected", "found").rows() == [
        ("a mask has another size than its image", "64 × 48 pixels", "32 × 24")
    ]
    assert told(masks.check(masked("!!", size=(24, 32)))) == [("error", "a mask cannot be read")]


def test_polygons_are_masks_too():
    corners = "[[10, 10, 18, 10, 18, 18, 10, 18]]"
    given = {"mask_polygons": [corners]}
    assert masks.check(dataset({**box(10.0, 10.0, 8.0, 8.0), **given}, SIZE)).is_empty()
    far = masks.check(dataset({**box(40.0, 30.0, 8.0, 8.0), **given}, SIZE))
    assert told(far) == [("error", "a mask does not touch its person's box")]


def posed(x, y, v, **more):
    return {"keypoints_x": [x], "keypoints_y": [y], "keypoints_v": [v], **more}


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (([1.0, 2.0], [1.0], [2, 2]), ["the lists of keypoints have unlike lengths"]),
        (([1.0, None], [1.0, 2.0], [2, 2]), ["labelled keypoints have no place"]),
        (([1.0, 70.0], [1.0, 2.0], [2, 1]), ["keypoints are outside their image"]),
        (([1.0, None], [1.0, None], [2, 0]), []),
        (([1.0, 65.0], [1.0, 2.0], [2, 2]), []),
    ],
)
def test_keypoints_that_cannot_be(points, expected):
    found = keypoints.check(dataset(posed(*points), SIZE))
    assert found["problem"].to_list() == expected
    assert set(found["severity"]) <= {"error"}


def test_visible_keypoints_are_on_the_mask():
    counts = run_lengths(square(10, 10, 8))[0]
    # On it; 3 pixels beside it; 20 beside it; the same, but hidden.
    points = posed([12.0, 21.0, 40.0, 40.0], [12.0, 12.0, 12.0, 12.0], [2, 2, 2, 1])
    found = keypoints.check(masked(counts, **points))
    assert found.select("severity", "found").rows() == [("warning", "1 of 3, such as (40.0, 12.0)")]


def test_ages_that_nobody_has():
    attributes = {
        "unit_kind": ["instance"] * 6, "unit_id": ["p0"] * 6,
        "attribute": ["age", "age", "subject_age", "age", "stage", "age"],
        "value": ["-1", "121", "999", "120", "999", "20-29"],
    }  # fmt: skip
    found = value_ranges.check(dataset({"subject_id": ["s"]}, None, attributes))
    assert found["found"].to_list() == ["age -1", "age 121", "subject_age 999"]


def test_a_number_that_is_none():
    attributes = {"unit_kind": ["instance"], "unit_id": ["p0"], "attribute": ["height"],
                  "value": ["tall"], "number": [float("inf")]}  # fmt: skip
    assert told(value_ranges.check(dataset({"subject_id": ["s"]}, None, attributes))) == [
        ("error", "a number is not finite")
    ]


def test_a_subject_in_two_splits():
    given = {"subject_id": ["s", "s", "t", None]}
    attributes = {
        "unit_kind": ["instance"] * 4, "unit_id": ["p0", "p1", "p2", "p3"],
        "attribute": ["split"] * 4, "value": ["train", "val", "val", "train"],
    }  # fmt: skip
    found = splits.check(dataset(given, None, attributes))
    assert found.select("unit_id", "found").rows() == [("s", "train, val")]
    assert splits.check(dataset(given)).is_empty()


def test_pillow_is_what_turns_a_thumbnail():
    from PIL import ImageOps

    from isolux.checks._inspection import _apply_orientation

    square = np.random.default_rng(0).integers(0, 255, (32, 32), dtype=np.uint8)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        picture = Image.fromarray(square)
        picture.info["exif"] = exif.tobytes()
        expected = np.array(ImageOps.exif_transpose(picture))
        assert np.array_equal(_apply_orientation(square, orientation), expected), orientation
