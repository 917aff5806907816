"""A model's Detections in the samples of a FiftyOne export."""

from __future__ import annotations

import json

import pytest

from isolux.core.errors import TableError, UnknownNameError
from isolux.predictions import read_predictions


def sample(path, *detections, **more):
    field = {"_cls": "Detections", "detections": list(detections)}
    size = {"_cls": "ImageMetadata", "width": 40, "height": 30}
    return {"filepath": path, "metadata": size, "predictions": field, **more}


def detection(**more):
    box = {"label": "person", "bounding_box": [0.25, 0.5, 0.5, 0.2], "confidence": 0.75}
    return {"_cls": "Detection", **box, **more}


def written(folder, *samples):
    path = folder / "samples.json"
    path.write_text(json.dumps({"samples": list(samples)}))
    return path


def test_shares_become_pixels(tmp_path):
    path = written(
        tmp_path, sample("data/1.jpg", detection()), sample("data/2.jpg", predictions=None)
    )
    # 0.25 and 0.5 of 40 pixels, 0.5 and 0.2 of 30.
    assert read_predictions(path).rows() == [("samples", "1.jpg", "person", 10, 15, 20, 6, 0.75)]


def test_files_of_the_same_name_keep_their_paths(tmp_path):
    path = written(tmp_path, sample("a/1.jpg", detection()), sample("b/1.jpg", detection()))
    assert read_predictions(path)["image_id"].to_list() == ["a/1.jpg", "b/1.jpg"]


def test_another_field_is_named(tmp_path):
    field = {"_cls": "Detections", "detections": [detection(confidence=0.5)]}
    path = written(tmp_path, sample("1.jpg", detection(), yolo=field))
    assert read_predictions(path, field="yolo")["score"].to_list() == [0.5]
    with pytest.raises(UnknownNameError, match=r"(?s)no field of Detections named 'net'.*yolo"):
        read_predictions(path, field="net")


@pytest.mark.parametrize(
    "change", [{"metadata": None}, {"predictions": {"detections": [detection(bounding_box=[1])]}}]
)
def test_a_box_without_its_picture_is_refused(tmp_path, change):
    path = written(tmp_path, sample("0.jpg"), sample("1.jpg", detection()) | change)
    with pytest.raises(TableError, match=r"(?s)no size of its picture.*row 2.*compute_metadata"):
        read_predictions(path)
