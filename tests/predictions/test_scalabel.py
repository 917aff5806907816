"""Scalabel's JSON: frames, corners, and what bad files are told."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, SpecError, TableError
from isolux.core.tables import BOX_PREDICTIONS, check
from isolux.predictions import scalabel
from tests._shared import shared_data

LABEL = {
    "id": 7,
    "category": "rider",
    "score": 0.5,
    "box2d": {"x1": 4, "y1": 5, "x2": 24, "y2": 35},
}
FRAME = {"name": "a.jpg", "labels": [LABEL], "attributes": {"weather": "clear"}}


def read(tmp_path, frames, **options):
    path = tmp_path / "net.json"
    path.write_text(frames if isinstance(frames, str) else json.dumps(frames))
    return scalabel.read(path, **options)


def changed(**changes):
    return [FRAME | {"labels": [LABEL, LABEL | changes]}]


def test_boxes(tmp_path):
    last = {"name": "d.jpg", "labels": [LABEL | {"score": "0.25", "category": None}]}
    frames = [FRAME, {"name": "b.jpg"}, {"name": "c.jpg", "labels": None}, last]
    rows = [
        ("net", "a.jpg", "rider", 4.0, 5.0, 20.0, 30.0, 0.5),
        ("net", "d.jpg", None, 4.0, 5.0, 20.0, 30.0, 0.25),
    ]
    assert check(read(tmp_path, frames), BOX_PREDICTIONS).rows() == rows
    assert read(tmp_path, {"frames": frames, "config": {}}).rows() == rows


def test_bdd100ks_names_of_today(tmp_path):
    frames = [FRAME | {"labels": [LABEL | {"category": c} for c in ("bike", "person", "car")]}]
    assert read(tmp_path, frames)["label"].to_list() == ["bike", "person", "car"]
    today = read(tmp_path, frames, categories="bdd100k")
    assert today["label"].to_list() == ["bicycle", "pedestrian", "car"]
    with pytest.raises(SpecError, match=r"(?s)categories cannot be.*as-named or bdd100k.*'coco'"):
        read(tmp_path, frames, categories="coco")


def test_no_frames_and_empty_frames_are_no_error(tmp_path):
    assert read(tmp_path, []).schema == BOX_PREDICTIONS.empty().schema
    assert read(tmp_path, [{"name": "a.jpg"}]).is_empty()


def test_names_that_repeat_in_another_video(tmp_path):
    frames = [FRAME | {"videoName": "v"}, FRAME | {"videoName": "w"}]
    assert read(tmp_path, frames)["image_id"].to_list() == ["v/a.jpg", "w/a.jpg"]
    with pytest.raises(TableError, match="a frame occurs twice") as caught:
        read(tmp_path, [FRAME, FRAME])
    assert "row 2" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"score": None}, "a label has no score"),
        ({"score": "high"}, "a label has no score"),
        ({"score": "nan"}, "a label's score is not finite"),
        ({"box2d": None}, "a label has no box2d"),
        ({"box2d": {"x1": 4, "y1": 5, "x2": 3, "y2": 35}}, "a box's corners are swapped"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_frame(tmp_path, changes, told):
    with pytest.raises(TableError, match=told) as caught:
        read(tmp_path, changed(**changes))
    assert "frame 'a.jpg', label 2" in str(caught.value)


def test_values_of_another_type(tmp_path):
    with pytest.raises(TableError, match="does not hold what it should") as caught:
        read(tmp_path, changed(box2d=[1, 2, 3, 4]))
    assert "row 1, column 'labels[1].box2d'" in str(caught.value)
    with pytest.raises(TableError, match="missing required field `name`"):
        read(tmp_path, [{"labels": []}])


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_not_finite_is_told_with_its_frame_and_label(tmp_path, number):
    text = json.dumps([{"name": "b.jpg"}, FRAME | {"labels": [LABEL, LABEL]}])
    at = text.rindex("24")
    with pytest.raises(TableError, match="a number is not finite") as caught:
        read(tmp_path, text[:at] + number + text[at + 2 :])
    assert f"found: {number} at byte {at}" in str(caught.value)
    assert "row 2, column 'labels[1].box2d.x2'" in str(caught.value)
    with pytest.raises(TableError, match="a number is not finite"):  # in what is not read
        read(tmp_path, f'[{{"name": "a.jpg", "speed": [{number}, {number}]}}]')


def test_damage_is_told_with_its_byte(tmp_path):
    text = json.dumps([FRAME])
    with pytest.raises(FileError, match="the file is cut off") as caught:
        read(tmp_path, text[:-9])
    assert f"byte {len(text) - 9}" in str(caught.value)
    with pytest.raises(FileError, match="this is not valid JSON") as caught:
        read(tmp_path, text.replace(":", ";", 1))
    assert f"byte {text.index(':')}" in str(caught.value)
    with pytest.raises(FileError, match="the file is empty"):
        read(tmp_path, "")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.binary(max_size=4))
def test_damage_gives_a_table_or_an_error_of_ours(tmp_path_factory, at, put):
    data = json.dumps([FRAME, {"name": "b.jpg"}]).encode()
    at %= len(data)
    path = tmp_path_factory.mktemp("scalabel") / "net.json"
    path.write_bytes(data[:at] + put + data[at + len(put) :])
    try:
        scalabel.read(path)
    except IsoluxError as error:
        assert "net.json" in str(error)  # noqa: PT017


def test_real_detections_are_what_json_reads():
    path = shared_data("bdd100k/det_bbox_predictions.json")
    labels = [(f["name"], x) for f in json.loads(path.read_text()) for x in f["labels"] or []]
    found = scalabel.read(path)
    assert found["image_id"].to_list() == [name for name, _ in labels]
    assert found["score"].to_list() == [label["score"] for _, label in labels]
    assert found["box_w"].to_list() == [x["box2d"]["x2"] - x["box2d"]["x1"] for _, x in labels]


def test_thousands_of_groups_before_the_frames_are_passed_at_once(tmp_path):
    groups = [{"name": f"v{k}", "frames": ["a.jpg"] * 20} for k in range(3000)]
    start = time.process_time()
    assert read(tmp_path, {"groups": groups, "frames": [FRAME]}).height == 1
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"frames": [], "a": 1, "frames": []}', "`frames` occurs more than once"),
        ('{"config": {}}', "Object missing required field `frames`"),
        ('{"frames": null}', "Expected `array`, got `null`"),
        ("[7]", "Expected `object`, got `int`"),
        ('{"frames": [] "a": 1}', "not valid JSON"),
        ('{"frames": [],, "a": 1}', "not valid JSON"),
        ('{"frames": []', "cut off"),
        ('{"a": {"b": 1', "cut off"),
        ("[] []", "not valid JSON"),
        ('[{"name": "a.jpg"} {"name": "b.jpg"}]', "not valid JSON"),
        ('[{"name": "a.jpg"},', "cut off"),
    ],
)
def test_documents_that_are_none(tmp_path, text, told):
    with pytest.raises(IsoluxError, match=told):
        read(tmp_path, text)


def test_the_place_of_a_wrong_value_is_counted_over_the_whole_file(tmp_path):
    many = [FRAME | {"name": f"{k}.jpg"} for k in range(700)]
    with pytest.raises(TableError, match="does not hold what it should") as caught:
        read(tmp_path, {"frames": [*many, FRAME | {"labels": [LABEL | {"box2d": 3}]}]})
    assert "row 701, column 'frames.labels[0].box2d'" in str(caught.value)
