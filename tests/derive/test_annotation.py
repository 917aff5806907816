"""Size, framing, crowding and occlusion: literal boxes, and what a dataset may lack."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux import derive
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DatasetInfo
from isolux.derive import crowding, framing, occlusion, size
from tests.geometry._coco import every_iou

INFO = DatasetInfo(title="People in boxes", summary="Made up.", references=())
# Image 1 is 200 x 100. a: 20 x 20; b: 40 x 50 at the left border; c: overlaps b by 20 x 50.
# Image 2 is of unknown size. d has no box.
BOXES = [
    ("a", "1", 90.0, 40.0, 20.0, 20.0),
    ("b", "1", 0.0, 10.0, 40.0, 50.0),
    ("c", "1", 20.0, 10.0, 40.0, 50.0),
    ("d", "2", None, None, None, None),
    ("e", "2", 5.0, 5.0, 100.0, 100.0),
]


def people(**columns):
    names = ["instance_id", "image_id", "box_x", "box_y", "box_w", "box_h"]
    return Dataset(
        name="people in boxes",
        info=INFO,
        instances=pl.DataFrame(BOXES, schema=names, orient="row").with_columns(
            **{k: pl.Series(v) for k, v in columns.items()}
        ),
        images=pl.DataFrame({"image_id": ["1", "2"], "width": [200, None], "height": [100, None]}),
    )


def of(plugin, attribute, column="value", **columns):
    found = plugin.derive(people(**columns)).filter(attribute=attribute)
    assert found["unit_id"].to_list() == list("abcde")
    return found[column].to_list()


def test_size_is_by_area():
    # Areas of 400, 2,000 and 10,000; COCO parts at 1,024 and 9,216.
    assert of(size, "box_size") == ["small", "medium", "medium", None, "large"]
    assert of(size, "box_area", "number") == [400.0, 2000.0, 2000.0, None, 10000.0]


def test_coco_goes_by_the_masks_area():
    area = [1024.0, 900.0, 9216.0, None, None]  # at 32² medium begins, at 96² large
    assert of(size, "box_size", area=area) == ["medium", "small", "large", None, "large"]


def test_a_share_needs_the_size_of_the_image():
    assert of(size, "box_share", "number") == [0.02, 0.1, 0.1, None, None]
    assert of(size, "aspect_ratio") == ["1", "0.8", "0.8", None, "1"]


def test_a_box_without_height_has_no_ratio():
    assert of(size, "aspect_ratio", box_h=[0.0, 50.0, 50.0, None, 0.0])[0] is None


def test_who_the_border_cuts_off():
    assert of(framing, "truncated") == ["no", "yes", "no", None, None]
    assert of(framing, "across") == ["middle", "left", "left", None, None]
    # a: centre (100, 50), the picture's own. b: (20, 35), 80 and 15 off, of half of 223.6.
    assert of(framing, "off_centre", "number")[:2] == [
        0.0,
        pytest.approx(np.hypot(80, 15) / (np.hypot(200, 100) / 2)),
    ]


def test_how_much_people_cover_one_another():
    # b and c share 20 x 50 of 2 x 2000 - 1000.
    found = of(crowding, "highest_overlap", "number")
    assert found == [0.0, pytest.approx(1 / 3), pytest.approx(1 / 3), None, 0.0]
    assert of(crowding, "people_in_image", "number") == [3, 3, 3, 2, 2]


def test_a_crowd_overlaps_nobody():
    crowd = [False, False, True, False, None]
    found = of(crowding, "highest_overlap", "number", is_crowd=crowd)
    assert found == [0.0, 0.0, None, None, 0.0]


def test_the_highest_overlap_is_that_of_all_pairs():
    rng = np.random.default_rng(7)
    n = 60
    boxes = np.column_stack([rng.uniform(0, 60, (n, 2)), rng.uniform(1, 40, (n, 2))])
    image = rng.integers(0, 6, n)
    frame = pl.DataFrame(boxes, schema=["box_x", "box_y", "box_w", "box_h"]).with_columns(
        instance_id=pl.Series([f"p{i:02}" for i in range(n)]),
        image_id=pl.Series([str(i) for i in image]),
    )
    overlap = every_iou(boxes, boxes)
    overlap[(image[:, None] != image[None, :]) | np.eye(n, dtype=bool)] = 0.0
    found = crowding.derive(Dataset(name="x", info=INFO, instances=frame))
    got = found.filter(attribute="highest_overlap")["number"].to_numpy()
    np.testing.assert_allclose(got, overlap.max(axis=1), atol=1e-12)


def test_what_can_be_seen_of_a_person():
    flags = [[2, 2, 0, 1], [2], [], None, [0, 0]]
    assert of(occlusion, "visible_keypoints", "number", keypoints_v=flags) == [2, 1, None, None, 0]
    assert of(occlusion, "hidden_share", "number", keypoints_v=flags) == [0.5, 0, None, None, 1]


def test_how_much_of_the_box_the_mask_fills():
    masks = {"mask_counts": ["x", None, "x", "x", "x"], "area": [100.0, 5.0, 2000.0, 3.0, 2500.0]}
    assert of(occlusion, "mask_to_box", "number", **masks) == [0.25, None, 1.0, None, 0.25]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("box_size", "size cannot be computed"),
        ("truncated", "framing cannot be computed"),
        ("hidden_share", "occlusion cannot be computed"),
    ],
)
def test_a_dataset_that_lacks_it_all_is_told_what_is_missing(name, words):
    bare = Dataset(
        name="bare", info=INFO, instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"]})
    )
    with pytest.raises(SpecError, match=words):
        derive.add_missing_derived_attributes(bare, [name])


def test_nobody_gives_no_rows():
    nobody = Dataset(name="nobody", info=INFO, instances=people().instances.clear())
    for name in derive.map_derived_attributes_to_plugins():
        assert derive.add_missing_derived_attributes(nobody, [name]).attributes.is_empty()
