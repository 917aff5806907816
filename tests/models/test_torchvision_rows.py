"""What torchvision's detectors give, as rows: by arrays of that form, with no PyTorch."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.core.tables import check
from isolux.geometry.masks import masks_from_counts
from isolux.models import PREDICTION_TABLES
from isolux.models.torchvision import TorchvisionDetector, convert_torchvision_detections_to_rows
from tests._masks import masks_from_bitmaps

NAMES = ("nothing", "person", "car")
BOXES = {
    "boxes": np.array([[1.0, 2.0, 5.0, 8.0], [0.0, 0.0, 6.0, 9.0]]),
    "labels": np.array([1.0, 7.0]),
    "scores": np.array([0.75, 0.25]),
}


def table(kind, rows):
    """Hold rows to the table that a detector makes of them."""
    detector = TorchvisionDetector(None, None, kind, NAMES, "cpu", {})
    assert not hasattr(detector, "by_box")
    frame = pl.DataFrame(rows, orient="row", infer_schema_length=None)
    names = ["picture", "label", "box_x", "box_y", "box_w", "box_h", "score"]
    more = {"boxes": [], "masks": ["mask_counts", "mask_height", "mask_width"],
            "keypoints": [f"keypoints_{c}" for c in "xyv"]}[kind]  # fmt: skip
    frame = frame.rename(dict(zip(frame.columns, [*names, *more], strict=True)))
    named = frame.drop("picture").with_columns(model=pl.lit("m"), image_id=pl.lit("a"))
    return check(named, PREDICTION_TABLES[kind])


def test_corners_become_sides_and_a_label_without_a_name_its_number():
    rows = convert_torchvision_detections_to_rows(BOXES, "boxes", NAMES, 3)
    assert rows == [
        (3, "person", 1.0, 2.0, 4.0, 6.0, 0.75),
        (3, "7", 0.0, 0.0, 6.0, 9.0, 0.25),
    ]
    assert table("boxes", rows).height == 2
    nothing = {name: one[:0] for name, one in BOXES.items()}
    assert convert_torchvision_detections_to_rows(nothing, "boxes", NAMES, 0) == []


def test_a_mask_is_where_the_share_is_above_a_half():
    shares = np.zeros((2, 1, 9, 6))
    shares[0, 0, 2:8, 1:5] = 0.6
    shares[0, 0, 2, 1] = 0.5
    shares[1, 0, :, :3] = 1.0
    rows = convert_torchvision_detections_to_rows({**BOXES, "masks": shares}, "masks", NAMES, 0)
    found = table("masks", rows)
    expected = masks_from_bitmaps([shares[0, 0] > 0.5, shares[1, 0] > 0.5])
    counts, heights, widths = (found[c] for c in ("mask_counts", "mask_height", "mask_width"))
    drawn = masks_from_counts(counts.cast(pl.Binary), heights.to_numpy(), widths.to_numpy())
    assert drawn.area_px.tolist() == expected.area_px.tolist() == [23.0, 27.0]


def test_a_keypoints_logit_becomes_a_confidence():
    points = np.arange(12, dtype=float).reshape(2, 2, 3)
    logits = np.array([[0.0, 1000.0], [-1000.0, np.log(3)]])
    rows = convert_torchvision_detections_to_rows(
        {**BOXES, "keypoints": points, "keypoints_scores": logits}, "keypoints", NAMES, 0
    )
    found = table("keypoints", rows)
    assert found["keypoints_x"].to_list() == [[0.0, 3.0], [6.0, 9.0]]
    assert found["keypoints_y"].to_list() == [[1.0, 4.0], [7.0, 10.0]]
    np.testing.assert_allclose(found["keypoints_v"].to_list(), [[0.5, 1.0], [0.0, 0.75]])
