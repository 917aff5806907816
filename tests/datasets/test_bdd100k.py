from __future__ import annotations

import copy
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, SpecError, TableError, UnknownNameError
from isolux.core.tables import INSTANCES, check
from isolux.datasets import cluster_by_requested_column
from isolux.datasets._columns import INSTANCE_COLUMNS
from isolux.datasets.bdd100k import CATEGORIES, INFO, load
from tests._shared import shared_data


def label(category="car", box=(1, 2, 31, 42), **rest):
    box2d = dict(zip(("x1", "y1", "x2", "y2"), box, strict=True))
    return {"id": "0", "category": category, "box2d": box2d, **rest}


FRAMES = [
    {
        "name": "aa-1.jpg",
        "attributes": {"weather": "clear", "scene": "city street", "timeofday": "night"},
        "labels": [
            label(attributes={"occluded": True, "truncated": False, "trafficLightColor": "none"}),
            label("person", (5, 5, 5, 9), attributes={"occluded": False, "truncated": True}),
            label("traffic light", attributes={"trafficLightColor": "G"}),
            {"id": "3", "category": "lane", "poly2d": [[0, 0]]},
        ],
    },
    {
        "name": "aa-2.jpg",
        "videoName": "aa",
        "frameIndex": 4,
        "attributes": {"weather": "undefined", "scene": "tunnel", "timeofday": "dawn/dusk"},
        "labels": [
            label("bike", attributes={"crowd": True}),
            label("other vehicle", (0, 0, 1300, 10)),
        ],
    },
    {"name": "bb.jpg", "labels": None},
    {"name": "cc.jpg", "attributes": None, "size": {"width": 640, "height": 480}},
]


@pytest.fixture
def path(tmp_path):
    return put(tmp_path, FRAMES)


def put(folder, frames):
    (folder / "det_val.json").write_text(json.dumps(frames))
    return folder / "det_val.json"


def changed(frame, place, **changes):
    frames = copy.deepcopy(FRAMES)
    (frames[frame]["labels"][place] if place is not None else frames[frame]).update(changes)
    return frames


def values(dataset, attribute):
    return dataset.values_of(attribute).select("unit_id", "value").rows()


def test_boxes_become_instances(path):
    rows = load(path).instances
    assert rows["instance_id"].to_list() == [
        "aa-1.jpg#0", "aa-1.jpg#1", "aa-1.jpg#2", "aa-2.jpg#0", "aa-2.jpg#1",
    ]  # fmt: skip
    assert rows.select("box_x", "box_y", "box_w", "box_h").row(0) == (1.0, 2.0, 30.0, 40.0)
    assert rows["track_id"].to_list() == ["0"] * 5
    assert rows["frame_index"].to_list() == [None, None, None, 4, 4]


def test_boxes_end_at_their_edge(path):
    rows = load(path).instances
    assert rows.select("box_x", "box_w", "box_h").rows()[:2] == [(1.0, 30.0, 40.0), (5.0, 0.0, 4.0)]


def test_old_names_become_todays(path):
    assert load(path).instances["classes"].explode().to_list() == [
        "car", "pedestrian", "traffic light", "bicycle", "other vehicle",
    ]  # fmt: skip
    assert len(CATEGORIES) == 10


def test_others_are_ignored_or_mapped(path):
    rows = load(path).instances
    assert rows["ignore"].to_list() == [False, False, False, True, True]
    assert rows["is_crowd"].to_list() == [False, False, False, True, False]
    mapped = load(path, others="map").instances
    assert mapped["classes"][4].to_list() == ["car"]
    assert mapped["ignore"].to_list() == [False, False, False, True, False]
    with pytest.raises(SpecError, match=r"(?s)others cannot be set.*ignore or map.*'drop'"):
        load(path, others="drop")


def test_what_is_marked_on_boxes(path):
    dataset = load(path)
    assert values(dataset, "occluded")[:3] == [
        ("aa-1.jpg#0", "true"), ("aa-1.jpg#1", "false"), ("aa-1.jpg#2", None),
    ]  # fmt: skip
    assert values(dataset, "truncated")[1] == ("aa-1.jpg#1", "true")
    assert values(dataset, "category")[3] == ("aa-2.jpg#0", "bicycle")


@pytest.mark.parametrize(
    ("cell", "word"), [("G", "green"), ("NA", "none"), ("red", "red"), ("Y", "yellow")]
)
def test_both_spellings_of_a_traffic_lights_colour(tmp_path, cell, word):
    path = put(tmp_path, changed(0, 2, attributes={"trafficLightColor": cell}))
    assert values(load(path), "traffic_light_color") == [("aa-1.jpg#2", word)]


def test_what_is_said_of_images(path):
    dataset = load(path)
    assert set(dataset.values_of("weather")["unit_kind"]) == {"image"}
    assert values(dataset, "weather") == [
        ("aa-1.jpg", "clear"), ("aa-2.jpg", None), ("bb.jpg", None), ("cc.jpg", None),
    ]  # fmt: skip
    assert values(dataset, "timeofday")[1] == ("aa-2.jpg", "dawn/dusk")


def test_frames_without_boxes_are_images(path):
    images = load(path).images
    assert images.select("image_id", "width", "height").rows()[2:] == [
        ("bb.jpg", 1280, 720),
        ("cc.jpg", 640, 480),
    ]


def test_a_video_is_a_cluster_or_a_frame_is(path):
    assert load(path).instances["cluster_id"].to_list() == ["aa-1"] * 3 + ["aa"] * 2
    frames = cluster_by_requested_column(load(path), "frame").instances["cluster_id"].to_list()
    assert frames == ["aa-1.jpg"] * 3 + ["aa-2.jpg"] * 2
    assert cluster_by_requested_column(load(path), "row").instances["cluster_id"].null_count() == 5
    with pytest.raises(UnknownNameError, match=r"(?s)no cluster named 'clip'.*video"):
        cluster_by_requested_column(load(path), "clip")


@pytest.mark.parametrize("cluster", ["frame", "row"])
def test_frames_of_one_video_are_no_independent_clusters(tmp_path, cluster):
    frames = [{"name": f"{k}.jpg", "videoName": f"v{k // 3}", "labels": []} for k in range(6)]
    path = put(tmp_path, frames)
    warning = (
        "6 frames are of 2 video(s): frames of one video show the same street and the same people"
        f" and are not independent, so with cluster={cluster} intervals are too narrow and"
        " differences are found too easily."
    )
    assert cluster_by_requested_column(load(path), cluster).notes == (warning,)
    assert load(path).notes == cluster_by_requested_column(load(path), "video").notes == ()
    alone = put(tmp_path, [{"name": "a.jpg"}, {"name": "b.jpg"}])
    assert cluster_by_requested_column(load(alone), cluster).notes == ()


def test_frames_of_two_videos_may_be_called_the_same(tmp_path):
    frames = [{"name": "1.jpg", "videoName": v, "labels": [label()]} for v in "ab"]
    dataset = load(put(tmp_path, frames))
    assert dataset.images["image_id"].to_list() == ["a/1.jpg", "b/1.jpg"]
    assert dataset.instances["instance_id"].to_list() == ["a/1.jpg#0", "b/1.jpg#0"]


def test_a_document_may_hold_the_frames(path):
    before = load(path).instances
    path.write_text(json.dumps({"config": {}, "frames": FRAMES}))
    assert load(path).instances.equals(before)


def test_what_was_left_out_or_odd_is_said(path):
    assert load(path).notes == (
        "1 label(s) without a box (lanes, areas) are left out.",
        "1 box(es) of other person, other vehicle, trailer are neither found nor missed.",
        "1 box(es) have no area; no prediction can overlap them, so they count as missed.",
        "1 box(es) reach beyond their image by more than 1 pixel; they are kept as they are.",
    )


def test_the_folder_of_the_release_will_do(tmp_path):
    folder = tmp_path / "labels" / "det_20"
    folder.mkdir(parents=True)
    put(folder, FRAMES)
    (folder / "det_train.json").write_text("[]")
    assert load(tmp_path).instances.height == 5


def test_pictures_of_the_release_are_found_below_it(tmp_path):
    labels, pictures = tmp_path / "labels" / "det_20", tmp_path / "images" / "100k"
    for folder in (labels, pictures / "val", pictures / "train"):
        folder.mkdir(parents=True)
    put(labels, FRAMES)
    # bb.jpg lies in two parts, which of them is meant nobody says; the others lie nowhere.
    for file in ("val/aa-1.jpg", "val/bb.jpg", "train/bb.jpg"):
        (pictures / file).touch()
    uris = load(tmp_path).images.select("image_id", "uri").rows()
    assert dict(uris) == {"aa-1.jpg": "images/100k/val/aa-1.jpg", "aa-2.jpg": "aa-2.jpg",
                          "bb.jpg": "bb.jpg", "cc.jpg": "cc.jpg"}  # fmt: skip


def test_categories_have_the_numbers_of_the_release(path):
    # bdd100k/configs/det.toml, from 1.
    assert load(path).categories["3"] == "car"
    assert list(load(path).categories.values()) == list(CATEGORIES)


def test_labels_of_tracking_go_before_what_else_lies_there(tmp_path):
    frames = [{"name": "1.jpg", "videoName": "a", "frameIndex": 0, "labels": [label()]}]
    (tmp_path / "box_track_sample.json").write_text(json.dumps(frames))
    (tmp_path / "predictions.json").write_text("[]")
    assert load(tmp_path).instances.height == 1
    (tmp_path / "box_track_more.json").write_text("[]")
    with pytest.raises(FileError, match=r"(?s)several files.*box_track_more.json"):
        load(tmp_path)


def test_no_frames_are_no_error(tmp_path):
    dataset = load(put(tmp_path, []))
    assert dataset.instances.height == dataset.images.height == 0


def test_further_columns_are_documented(path):
    dataset = load(path)
    assert check(dataset.instances, INSTANCES).equals(dataset.instances)
    known = {c.name: c.dtype for c in INSTANCE_COLUMNS}
    further = {n: t for n, t in dataset.instances.schema.items() if n not in INSTANCES.schema}
    assert further == {name: known[name] for name in further}


def test_it_says_whose_judgement_it_is():
    assert INFO.label_source == "perceived"
    assert dict(INFO.terms)["timeofday"] == "time of day"


@pytest.mark.parametrize(
    ("frame", "place", "changes", "words"),
    [
        (1, 0, {"category": "tram"}, "does not have.*'tram', label 1.*row 2, column 'category'"),
        (1, 0, {"category": None}, "a category that BDD100K does not have.*None, label 1.*row 2"),
        (0, 1, {"box2d": {"x1": 9, "y1": 2, "x2": 3, "y2": 4}},
         r"sides are swapped.*\[9.0, 2.0, 3.0, 4.0\], label 2.*row 1, column 'box2d'"),
        (0, 1, {"box2d": {"x1": 9, "y1": 2, "x2": 30}}, "missing.*`y2`.*row 1, column 'labels"),
        (0, 1, {"box2d": {"x1": "9", "y1": 2, "x2": 30, "y2": 4}},
         r"got `str`.*row 1, column 'labels\[1\].box2d.x1'"),
        (1, None, {"attributes": {"weather": "hail"}}, "'hail'.*row 2, column 'weather'"),
        (1, None, {"name": "aa-1.jpg", "videoName": "aa-1"}, "a frame occurs twice.*row 2"),
        (3, None, {"name": 7}, "got `int`.*row 4, column 'name'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_frame(tmp_path, frame, place, changes, words):
    frames = changed(frame, place, **changes)
    if "videoName" in changes:
        frames[0]["videoName"] = "aa-1"
    with pytest.raises(TableError, match=rf"(?s){words}"):
        load(put(tmp_path, frames))


def test_a_file_cut_off_says_at_which_byte(path):
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(FileError, match=r"(?s)cut off.*the end at byte 200"):
        load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"(?s)no such file.*absent\.json"):
        load(tmp_path / "absent.json")


WHOLE = json.dumps(FRAMES)


@given(
    at=st.integers(0, len(WHOLE)),
    cut=st.integers(0, 9),
    put_in=st.sampled_from(["", "null", "-1", "1e308", '"', "[]", "{}", "é", "0", "[", "car"]),
)
def test_any_damage_gives_a_dataset_or_our_own_error(tmp_path_factory, at, cut, put_in):
    path = tmp_path_factory.mktemp("fuzz") / "a.json"
    path.write_text(WHOLE[:at] + put_in + WHOLE[at + cut :])
    with suppress(IsoluxError):
        dataset = load(path)
        assert (dataset.instances["box_w"] >= 0).all()
        assert dataset.instances["instance_id"].is_unique().all()


# ── real files ──────────────────────────────────────────────────────────────────────────────────


def test_the_real_frames():
    path = shared_data("bdd100k/box_track_track_sample_anns.json")
    dataset = load(path)
    assert (dataset.instances.height, dataset.images.height) == (3_241, 202)
    assert dataset.instances["cluster_id"].n_unique() == 1
    assert (
        cluster_by_requested_column(load(path), "frame").instances["cluster_id"].n_unique() == 202
    )
    counts = dict(dataset.values_of("category")["value"].value_counts().iter_rows())
    # Counted with json.load and collections.Counter.
    assert counts == {
        "car": 2_726, "pedestrian": 191, "motorcycle": 119, "rider": 119, "truck": 65, "bus": 21,
    }  # fmt: skip
    first = json.loads(path.read_text())[0]["labels"][0]
    assert dataset.instances["box_w"][0] == first["box2d"]["x2"] - first["box2d"]["x1"]
    assert dataset.instances["track_id"][0] == first["id"]
