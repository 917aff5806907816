"""From a file with odd detections to who was found: what is odd and allowed changes nobody else."""

from __future__ import annotations

import json

import pytest

import isolux
from isolux.core.errors import TableError, UnknownNameError
from isolux.predictions import read_outputs

TRUTH = {
    "images": [{"id": k, "file_name": f"{k}.jpg", "width": 100, "height": 100} for k in (1, 2)],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 10, 40, 40], "area": 1600},
        {"id": 2, "image_id": 1, "category_id": 1, "bbox": [80, 80, 20, 20], "area": 400},
        {"id": 3, "image_id": 2, "category_id": 1, "bbox": [0, 0, 50, 50], "area": 2500},
    ],
    "categories": [{"id": 1, "name": "person"}],
}
GOOD = {"image_id": 1, "category_id": 1, "bbox": [10, 10, 40, 40], "score": 0.9}


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(TRUTH))
    return isolux.load("coco", path)


def found(tmp_path, people, results, **options):
    path = tmp_path / "net.json"
    path.write_text(json.dumps(results))
    scores = isolux.score(
        "detection", people, read_outputs(path), metrics=["recall_at_iou"],
        iou_thresholds=[0.5], **options,
    )  # fmt: skip
    return scores, scores.units["value"].to_list()


@pytest.mark.parametrize(
    ("more", "recall"),
    [
        ([], [1, 0, 0]),
        # The same box twice: the second finds nobody, not even the neighbour.
        ([GOOD, GOOD | {"score": 0.8}], [1, 0, 0]),
        # No area: it overlaps nobody.
        ([GOOD | {"bbox": [80, 80, 0, 20], "score": 1.0}], [1, 0, 0]),
        # Beyond the edge: it covers the whole of a person of 400 px² and 300 px² more (.57).
        ([GOOD | {"bbox": [80, 80, 35, 20], "score": 0.1}], [1, 1, 0]),
        # Wholly outside of the image, and above and left of its corner.
        ([GOOD | {"bbox": [500, 500, 9, 9]}, GOOD | {"bbox": [-60, -60, 50, 50]}], [1, 0, 0]),
        # 50 by 50 of 60 by 60 px lie on the third person (2500 / 3600 = .69).
        ([GOOD | {"image_id": 2, "bbox": [-10, -10, 60, 60]}], [1, 0, 1]),
        # Scores as text, ids as decimals.
        ([GOOD | {"image_id": 2.0, "bbox": [0, 0, 50, 50], "score": "0.3"}], [1, 0, 1]),
    ],
)
def test_odd_detections_change_nobody_else(tmp_path, people, more, recall):
    assert found(tmp_path, people, [GOOD, *more])[1] == recall


def test_ids_of_other_images_are_counted_and_left_out(tmp_path, people):
    scores, recall = found(tmp_path, people, [GOOD, GOOD | {"image_id": 7}, GOOD | {"image_id": 8}])
    assert recall == [1, 0, 0]
    assert any("no truth for 2 of 3 pictures that have predictions" in n for n in scores.notes)


def test_no_detections_miss_everybody_and_are_no_error(tmp_path, people):
    assert found(tmp_path, people, [])[1] == [0, 0, 0]


@pytest.mark.parametrize(
    ("row", "told", "where"),
    [
        ({"bbox": [1, 2, -3, 4]}, "a box has a negative width or height", "row 2"),
        ({"bbox": [1, 2, 3, float("nan")]}, "a number is not finite", "byte "),
        ({"score": float("inf")}, "a number is not finite", "byte "),
        ({"score": None}, "a result has no score", "row 2"),
        ({"keypoints": [1, 2]}, "keypoints are not triples", "row 2"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(tmp_path, people, row, told, where):
    with pytest.raises(TableError, match=told) as caught:
        found(tmp_path, people, [GOOD, GOOD | row])
    assert where in str(caught.value)


def test_a_table_of_boxes_without_scores_is_told_what_it_lacks(tmp_path):
    path = tmp_path / "net.csv"
    path.write_text("image_id,label,box_x,box_y,box_w,box_h\n7,a,4,5,20,30\n7,b,1,2,3,4\n")
    with pytest.raises(UnknownNameError, match="no column named 'score'"):
        read_outputs(path)
