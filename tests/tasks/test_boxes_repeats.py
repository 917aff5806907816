"""A results file that was joined to itself is refused; a few repeats are told first."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.errors import TableError
from isolux.core.notes import Caution
from isolux.geometry.matching import Detections
from isolux.predictions import read_outputs
from isolux.tasks._boxes.instance_tables import ModelDetections
from isolux.tasks._boxes.preview import check_duplicates

N = 6
TRUTH = {
    "images": [{"id": k, "file_name": f"{k}.jpg", "width": 90, "height": 90} for k in range(N)],
    "annotations": [
        {"id": k, "image_id": k, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 81,
         "iscrowd": 0}
        for k in range(N)
    ],
    "categories": [{"id": 1, "name": "person"}],
}  # fmt: skip


def result(k, **more):
    return {"image_id": k, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5, **more}


def judged(tmp_path, results):
    (tmp_path / "truth.json").write_text(json.dumps(TRUTH))
    (tmp_path / "net.json").write_text(json.dumps(results))
    people = isolux.load("coco", tmp_path / "truth.json")
    return isolux.score("detection", people, read_outputs(tmp_path / "net.json"))


def told(scores):
    return [n for n in scores.notes if isinstance(n, Caution) and "repeat another exactly" in n]


@pytest.mark.parametrize("times", [2, 3])
def test_a_file_joined_to_itself_is_refused_with_its_first_repeat(tmp_path, times):
    found = rf"(?s){N * (times - 1)} of {N * times} predictions of 'net' repeat another exactly"
    with pytest.raises(TableError, match=found + r".*image '0', score 0.5, box 0, 0, 9, 9.*twice"):
        judged(tmp_path, [result(k) for k in range(N)] * times)


def test_fewer_repeats_are_a_caution_and_count_as_they_are(tmp_path):
    results = [result(k) for k in range(N)]
    (note,) = told(judged(tmp_path, [*results, result(4)]))
    assert note.startswith(
        "1 of 7 predictions of 'net' repeat another exactly (the first: image '4'"
    )


@pytest.mark.parametrize(
    "other", [{"score": 0.4}, {"bbox": [0, 0, 9, 8]}, {"bbox": [0, 1, 9, 9]}, {"image_id": 5}]
)
def test_what_differs_in_one_number_is_no_repeat(tmp_path, other):
    results = [result(k) for k in range(N - 1)]
    assert told(judged(tmp_path, [*results, result(0, **other)])) == []


def test_an_empty_file_repeats_nothing(tmp_path):
    assert told(judged(tmp_path, [])) == []


def test_poses_are_repeats_only_where_every_joint_is_the_same(tmp_path):

    def found(points):
        rows = pl.DataFrame({
            "model": "net", "image_id": "a", "label": "person", "score": 0.5,
            "keypoints_x": points,
        })  # fmt: skip
        n = rows.height
        return ModelDetections(
            "net", rows, Detections(np.zeros(n, np.int64), np.full(n, 0.5), None)
        )

    assert check_duplicates(found([[1.0, 2.0], [1.0, 3.0]])) == []
    assert len(check_duplicates(found([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0]]))) == 1
