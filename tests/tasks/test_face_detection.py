"""Faces: the miss rate by hand, and a real detector on real faces."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.errors import SpecError
from isolux.datasets import load
from isolux.predictions import read_outputs
from isolux.tasks.face_detection import INFO, score
from tests._shared import shared_data
from tests.tasks._pictures import boxes, pictures, values

FACE, ELSE = [0.0, 0.0, 10.0, 10.0], [50.0, 0.0, 10.0, 10.0]
TWO = pictures({"a": ("1", FACE, {}), "b": ("1", ELSE, {})})
FOUND = boxes(("1", FACE, 0.3), ("1", [50.0, 0.0, 10.0, 6.0], 0.8))


def test_the_miss_rate_by_hand():
    assert values(score(TWO, FOUND), "miss_rate") == {"a": 0.0, "b": 0.0}
    assert values(score(TWO, FOUND, score_iou=0.75), "miss_rate") == {"a": 0.0, "b": 1.0}
    sure = score(TWO, FOUND, score_threshold=0.5)
    assert values(sure, "miss_rate", 0.5) == {"a": 1.0, "b": 0.0}
    assert values(sure, "recall_at_score", 0.5) == {"a": 0.0, "b": 1.0}


def test_fewer_misses_are_better():
    assert INFO.metric("miss_rate").direction == "lower"


def test_no_boxes_miss_every_face():
    assert values(score(TWO, FOUND.clear()), "miss_rate") == {"a": 1.0, "b": 1.0}


def test_only_what_was_asked_for_is_measured():
    scores = score(TWO, FOUND, metrics=["miss_rate"], score_threshold=0.5)
    assert scores.units["metric"].unique().to_list() == ["miss_rate"]
    assert [m.name for m in scores.info.metrics] == ["miss_rate"]
    assert [r.key for r in scores.info.references] == ["widerface"]
    with pytest.raises(SpecError, match="'recall_at_score' cannot be measured"):
        score(TWO, FOUND, metrics=["recall_at_score"])


@pytest.mark.parametrize(("limit", "recall"), [(None, 0.8558), (100, 0.8532)])
def test_retinaface_on_the_annotated_faces_of_wider(limit, recall):
    faces = load("widerface", shared_data("widerface"))
    found = read_outputs(shared_data("widerface/retinaface.widerface_txt.tar.gz"))
    scores = score(
        faces, found, metrics=["recall_at_score"], score_threshold=0.5, max_detections=limit
    ).units
    assert scores["value"].count() == 12_190
    assert scores["value"].mean() == pytest.approx(recall, abs=5e-5)
    assert scores.filter(pl.col("value").is_null())["reason"].unique().to_list() == [
        "takes part in matching only"
    ]
