from __future__ import annotations

import copy
import hashlib
import json
from contextlib import suppress

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, TableError, UnknownNameError
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES, check
from isolux.datasets import cluster_by_requested_column
from isolux.datasets._columns import INSTANCE_COLUMNS
from isolux.datasets.coco import INFO, load
from isolux.io import run_directory
from tests._shared import shared_data
from tests.cli._run import isolux
from tests.datasets._coco_files import NAMES, SMALL, small, written


@pytest.fixture
def dataset(tmp_path):
    return load(written(tmp_path, SMALL))


def test_annotations_become_instances(dataset):
    rows = dataset.instances
    assert rows["instance_id"].to_list() == ["1", "2", "3"]
    assert rows["image_id"].to_list() == ["7", "7", "8"]
    assert rows["classes"].to_list() == [["person"], ["dog"], ["person"]]
    assert rows.select("box_x", "box_y", "box_w", "box_h").row(0) == (1.0, 2.0, 3.5, 4.0)
    assert rows["area"].to_list() == [9.25, 4.0, 5.0]
    assert rows["is_crowd"].to_list() == [False, False, True]
    assert rows["ignore"].to_list() == [False, False, True]


def test_whole_numbers_may_be_written_as_floats(tmp_path, dataset):
    """As pandas writes a column of ids that lacked some: 7.0 is 7."""
    path = tmp_path / "floats.json"
    document = copy.deepcopy(SMALL)
    for rows in document.values():
        for row in rows if isinstance(rows, list) else ():
            row |= {k: float(v) for k, v in row.items() if type(v) is int}
    path.write_text(json.dumps(document))
    floats = load(path)
    assert floats.instances.equals(dataset.instances)
    assert floats.images.equals(dataset.images)
    document["images"][0]["width"] = 8.5
    path.write_text(json.dumps(document))
    with pytest.raises(TableError, match=r"(?s)width is not a number of pixels.*8\.5"):
        load(path)


def test_images_have_their_paths_and_sizes(dataset):
    assert dataset.images.select("image_id", "uri", "width", "height").rows() == [
        ("7", "7.jpg", 8, 6),
        ("8", "8.jpg", 4, 3),
    ]


def test_tables_are_as_declared_and_every_further_column_is_documented(dataset):
    assert check(dataset.instances, INSTANCES).equals(dataset.instances)
    assert check(dataset.images, IMAGES).equals(dataset.images)
    known = {column.name: column.dtype for column in INSTANCE_COLUMNS}
    further = {n: t for n, t in dataset.instances.schema.items() if n not in INSTANCES.schema}
    assert further == {name: known[name] for name in further}


def test_polygons_are_kept_as_text(dataset):
    first, *others = dataset.instances["mask_polygons"].to_list()
    assert json.loads(first) == SMALL["annotations"][0]["segmentation"]
    assert others == [None, None]


def test_run_lengths_are_compressed_both_ways(dataset):
    rows = dataset.instances.select("mask_counts", "mask_height", "mask_width").rows()
    # "2" is run 2; "\\1" is 12 + 32 × 1 = 44 (five bits a character from '0', 32 says more).
    # 2, 5, 4 and then 1 - 5 = -4, which is the character 28 + '0' = 'L'.
    assert rows == [(None, None, None), ("22\\1", 6, 8), ("254L", 3, 4)]


def test_plain_run_lengths_become_what_pycocotools_makes_of_them(tmp_path):
    coder = pytest.importorskip("pycocotools.mask")
    rng = np.random.default_rng(3)
    file = small()
    file["annotations"], expected = [], []
    for i in range(60):
        file["images"].append(
            {"id": 100 + i, "width": int(rng.integers(1, 40)), "height": int(rng.integers(1, 40))}
        )
        size = [file["images"][-1]["height"], file["images"][-1]["width"]]
        flat = rng.random(size[0] * size[1]) < rng.random()
        runs = np.flatnonzero(np.diff(np.concatenate([[False], flat, [~flat[-1]]]))).tolist()
        counts = np.diff([0, *runs]).tolist()
        plain = {"size": size, "counts": counts}
        expected.append(coder.frPyObjects(plain, *size)["counts"].decode())
        for mask in (plain, {"size": size, "counts": expected[-1]}):
            row = {"id": len(file["annotations"]), "image_id": 100 + i, "category_id": 1}
            file["annotations"].append({**row, "segmentation": mask})
    found = load(written(tmp_path, file)).instances["mask_counts"].to_list()
    assert found == [counts for counts in expected for _ in range(2)]


def test_keypoints_are_parted_and_unlabelled_ones_are_null(dataset):
    rows = dataset.instances.select("keypoints_x", "keypoints_y", "keypoints_v", "keypoint_names")
    assert rows.row(0) == ([2.0, None, 3.0], [3.0, None, 3.5], [2, 0, 1], NAMES)
    assert rows.row(1) == (None, None, None, None)


def test_without_keypoints_there_is_no_such_column(tmp_path):
    file = small()
    del file["annotations"][0]["keypoints"]
    assert "keypoints_x" not in load(written(tmp_path, file)).instances.columns


def test_masks_may_be_left_out(tmp_path):
    columns = load(written(tmp_path, SMALL), masks=False).instances.columns
    assert not [name for name in columns if name.startswith("mask")]


def test_categories_are_attributes(dataset):
    assert dataset.values_of("category")["value"].to_list() == ["person", "dog", "person"]
    assert dataset.values_of("supercategory")["value"].to_list() == ["person", "animal", "person"]


def test_what_annotations_say_of_themselves_are_attributes(tmp_path):
    """As CVAT exports them: true and false, numbers, words, lists; not all annotations have all."""
    file = small(annotations=(0, "attributes", {"occluded": True, "age": 31.0, "tone": ["3", 4]}))
    file["annotations"][1]["attributes"] = {"occluded": False, "note": " ", "category": "x"}
    dataset = load(written(tmp_path, file))
    assert check(dataset.attributes, ATTRIBUTES).height == 3 * 7 + 1
    rows = {
        name: dataset.values_of(name).select("unit_id", "value", "number").rows()
        for name in ("occluded", "age", "tone", "note", "attributes.category")
    }
    assert rows["occluded"] == [("1", "true", None), ("2", "false", None), ("3", None, None)]
    assert rows["age"] == [("1", "31", 31.0), ("2", None, None), ("3", None, None)]
    assert rows["tone"] == [("1", "3", None), ("1", "4", 4.0), ("2", None, None), ("3", None, None)]
    assert [value for _, value, _ in rows["note"]] == [None, None, None]
    assert rows["attributes.category"][1] == ("2", "x", None)
    assert dataset.values_of("category")["value"].to_list() == ["person", "dog", "person"]
    dogs = load(tmp_path / "instances.json", categories=["dog"])
    assert dogs.values_of("occluded").select("unit_id", "value").rows() == [("2", "false")]


@pytest.mark.parametrize("value", [["occluded"], {"pose": {"yaw": 3}}, 7])
def test_attributes_that_are_no_plain_values_are_counted_and_not_read(tmp_path, value):
    dataset = load(written(tmp_path, small(annotations=(1, "attributes", value))))
    assert dataset.attributes["attribute"].unique().sort().to_list() == [
        "category", "supercategory",
    ]  # fmt: skip
    [note] = dataset.notes
    assert note.startswith("1 annotation(s) have attributes that are not an object of values")
    assert "row 2" in note


def test_an_audit_goes_by_annotations_own_attributes(tmp_path, monkeypatch, capsys):
    """Of 60 people half are occluded; all who are not were found, and none who is."""
    image = {"width": 100, "height": 100}
    people = [
        {"id": i, "image_id": i, "category_id": 1, "bbox": [10, 10, 50, 50], "area": 2500,
         "attributes": {"occluded": i % 2 == 0}}
        for i in range(60)
    ]  # fmt: skip
    file = {
        "images": [{"id": i, "file_name": f"{i}.jpg", **image} for i in range(60)],
        "annotations": people, "categories": [{"id": 1, "name": "person"}],
    }  # fmt: skip
    found = [
        {"image_id": i, "category_id": 1, "bbox": [10, 10, 50, 50], "score": 0.9}
        for i in range(1, 60, 2)
    ]
    (tmp_path / "people.json").write_text(json.dumps(file))
    (tmp_path / "found.json").write_text(json.dumps(found))
    monkeypatch.chdir(tmp_path)
    ran = isolux(
        monkeypatch, capsys, "audit", "coco:people.json", "--task", "detection", "--by", "occluded",
        "--predictions", "found.json", "--prediction-option", "categories=people.json",
        "--metric", "average_recall", "--min-units", 10, "--replicates", 100, "--out", "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    rows = run_directory.load_run("run").group_metrics.filter(attribute="occluded")
    assert dict(rows.select("group", "value").iter_rows()) == {"true": 0.0, "false": 1.0}


def test_only_wanted_categories_are_kept_and_all_images(tmp_path):
    dataset = load(written(tmp_path, SMALL), categories=["dog"])
    assert dataset.instances["instance_id"].to_list() == ["2"]
    assert dataset.images.height == 2
    with pytest.raises(UnknownNameError, match=r"(?s)no category named 'dogs'.*'dog'"):
        load(tmp_path / "instances.json", categories=["dogs"])


def test_images_are_clusters_unless_another_is_named(tmp_path, dataset):
    assert dataset.instances["cluster_id"].to_list() == ["7", "7", "8"]
    path = tmp_path / "instances.json"
    assert cluster_by_requested_column(load(path), "row").instances["cluster_id"].null_count() == 3
    by_category = (
        cluster_by_requested_column(load(path), "category").instances["cluster_id"].to_list()
    )
    assert by_category == ["person", "dog", "person"]
    with pytest.raises(UnknownNameError, match=r"(?s)no cluster named 'frames'.*image"):
        cluster_by_requested_column(load(path), "frames")


def test_a_folder_with_one_file_will_do_and_several_are_named(tmp_path):
    folder = tmp_path / "annotations"
    folder.mkdir()
    path = written(folder, SMALL)
    found = load(tmp_path)
    assert found.inputs == {str(path): hashlib.sha256(path.read_bytes()).hexdigest()}
    written(folder, SMALL, "persons.json")
    with pytest.raises(
        FileError, match=r"(?s)several files of annotations.*'annotations/instances.json'"
    ):
        load(tmp_path)


def test_a_folder_without_annotations_and_a_missing_file_are_said(tmp_path):
    with pytest.raises(FileError, match="holds no annotations"):
        load(tmp_path)
    written(tmp_path, SMALL)
    with pytest.raises(FileError, match=r"(?s)no such file.*did you mean 'instances.json'"):
        load(tmp_path / "instance.json")


def test_ids_may_be_words_and_boxes_may_be_absent(tmp_path):
    file = small(annotations=(0, "id", "a"))
    del file["annotations"][1]["bbox"]
    del file["annotations"][1]["area"]
    rows = load(written(tmp_path, file)).instances
    assert rows["instance_id"].to_list() == ["a", "2", "3"]
    assert rows.select("box_x", "area").row(1) == (None, None)


def test_no_annotations_are_no_error(tmp_path):
    file = small()
    file["annotations"] = []
    dataset = load(written(tmp_path, file))
    assert dataset.instances.height == 0
    assert dataset.images.height == 2


def test_odd_boxes_are_counted(tmp_path):
    file = small(annotations=(0, "bbox", [1, 2, 0, 3]))
    file["annotations"][1]["bbox"] = [-3, 0, 20, 2]
    notes = load(written(tmp_path, file)).notes
    assert notes[0].startswith("1 box(es) have no area")
    assert notes[1].startswith("1 box(es) reach beyond their image by more than 1 pixel")


@pytest.mark.parametrize(
    ("part", "row", "key", "value", "words"),
    [
        ("annotations", 1, "bbox", [0, 0, -2, 2], "negative.*row 2, column 'annotations.bbox'"),
        ("annotations", 1, "bbox", [0, 0, 2], "length 4.*row 2, column 'annotations.bbox'"),
        ("annotations", 1, "bbox", [0, 0, 2, "2"], "got `str`.*row 2, column 'annotations.bbox"),
        ("annotations", 2, "image_id", 9, "image ids that the file does not list.*'9'.*row 3"),
        ("annotations", 0, "category_id", 2, "category ids that the file does not list.*'2'"),
        ("annotations", 1, "id", 1, "two rows have the same id.*row 2, column 'annotations.id'"),
        ("annotations", 0, "keypoints", [1, 2, 2, 3], "9 numbers.*found: 4.*annotation 1,"),
        ("annotations", 0, "keypoints", [1, 2, 2] * 2, "9 numbers.*found: 6.*annotation 1,"),
        ("annotations", 0, "num_keypoints", 3, "labelled.*expected: 2,.*found: 3.*annotation 1,"),
        ("annotations", 0, "keypoints", [1, 2, 7] * 3, "visibility.*7.0.*annotation 1,"),
        ("annotations", 0, "segmentation", "x", "neither polygons nor run lengths.*row 1"),
        ("annotations", 1, "segmentation", {"size": [6, 8]}, "lack their size or counts.*row 2"),
        (
            "annotations", 1, "segmentation", {"size": [3, 16], "counts": "22\\1"},
            r"3 × 16 pixels, its image is not.*6 × 8 pixels.*row 2",
        ),
        (
            "annotations", 1, "segmentation", {"size": [6, 8], "counts": "22\\2"},
            "do not fill it.*row 2, column 'annotations.segmentation'",
        ),
        ("annotations", 1, "segmentation", {"size": [6, 8], "counts": "2é"}, "do not fill.*row 2"),
        ("annotations", 2, "segmentation", {"size": [3, 4], "counts": [9, 9]}, "fill.*row 3"),
        ("annotations", 2, "segmentation", {"size": [3, 4], "counts": [-1, 13]}, "fill.*row 3"),
        ("annotations", 2, "segmentation", {"size": [3, 4], "counts": ["a"]}, "cannot be read"),
        ("images", 1, "id", 7, "two rows have the same id.*row 2, column 'images.id'"),
        ("images", 1, "width", -1, "not a number of pixels.*-1.*row 2, column 'images.width'"),
        ("categories", 1, "name", None, "got `null`.*row 2, column 'categories.name'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_row(tmp_path, part, row, key, value, words):
    path = written(tmp_path, small(**{part: (row, key, value)}))
    with pytest.raises(TableError, match=f"(?s){words}"):
        load(path)


def test_a_file_cut_off_says_at_which_byte(tmp_path):
    path = written(tmp_path, SMALL)
    whole = path.read_bytes()
    for n in (1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n])
        with pytest.raises(FileError, match=rf"(?s)cut off.*the end at byte {n}\b"):
            load(path)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "nul", "tru", "+1"])
def test_what_json_does_not_know_is_named_by_its_byte(tmp_path, text):
    path = written(tmp_path, SMALL)
    whole = path.read_text().replace("9.25", text)
    path.write_text(whole)
    words = r"(?s)(not valid JSON|not finite).*byte \d+"
    with pytest.raises((FileError, TableError), match=words):
        load(path)


def test_other_json_is_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[{"image_id": 1, "score": 0.5}]')
    with pytest.raises(TableError, match=r"(?s)does not hold what it should.*got `array`"):
        load(path)
    path.write_text('{"images": []}')
    with pytest.raises(TableError, match="missing required field `annotations`"):
        load(path)
    path.write_text("  \n")
    with pytest.raises(FileError, match="the file is empty"):
        load(path)


def test_deep_nesting_is_refused_and_does_not_crash(tmp_path):
    path = tmp_path / "a.json"
    for deep in ('{"images": ' + "[" * 10_000, "[" * 100_000 + "]" * 100_000):
        path.write_text(deep)
        with pytest.raises(IsoluxError):
            load(path)
    file = json.dumps(small()).replace('"segmentation": "x"', "")
    path.write_text(file.replace("[[1, 2, 4.5", "[" * 50_000 + "[[1, 2, 4.5"))
    with pytest.raises(IsoluxError):
        load(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = written(tmp_path, SMALL)
    path.write_bytes(path.read_bytes().replace(b"7.jpg", b"\xff\xfe.jpg"))
    with pytest.raises(FileError, match="not UTF-8"):
        load(path)


def test_what_it_says_of_itself():
    assert INFO.label_source == "perceived"
    assert INFO.training_allowed is True
    assert "Microsoft COCO" in INFO.references[0].citation


WHOLE = json.dumps(SMALL)


@given(
    at=st.integers(0, len(WHOLE)),
    cut=st.integers(0, 12),
    put=st.sampled_from(
        ["", "null", "-1", "1e999", '"', "[]", "{}", "\\u0000", "é", "0", "[", "x"]
    ),
)
def test_any_damage_gives_a_dataset_or_our_own_error(tmp_path_factory, at, cut, put):
    path = tmp_path_factory.mktemp("fuzz") / "a.json"
    path.write_text(WHOLE[:at] + put + WHOLE[at + cut :], encoding="utf-8")
    with suppress(IsoluxError):
        dataset = load(path)
        assert check(dataset.instances, INSTANCES).height <= 3
        assert set(dataset.attributes["unit_id"]) <= set(dataset.instances["instance_id"])


@given(
    segmentation=st.recursive(
        st.none() | st.integers(-9, 2**70) | st.floats(allow_nan=False, allow_infinity=False)
        | st.text("012LPo\\ é", max_size=9),
        lambda inner: st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["size", "counts"]), inner),
        max_leaves=9,
    )
)  # fmt: skip
def test_any_mask_gives_a_dataset_or_our_own_error(tmp_path_factory, segmentation):
    file = small(annotations=(1, "segmentation", segmentation))
    with suppress(IsoluxError):
        row = load(written(tmp_path_factory.mktemp("fuzz"), file)).instances.row(1, named=True)
        assert row["mask_counts"] is None or (row["mask_height"], row["mask_width"]) == (6, 8)


# ── real files ──────────────────────────────────────────────────────────────────────────────────


def test_the_real_hundred_images():
    path = shared_data("coco/instances_val2014_100.json")
    dataset = load(path)
    file = json.loads(path.read_text())
    assert dataset.instances.height == 839
    assert dataset.images.height == 100
    assert dataset.instances["is_crowd"].sum() == 9
    # All masks of crowds are run lengths there, the others polygons.
    assert dataset.instances["mask_counts"].is_not_null().sum() == 9
    assert dataset.instances["mask_polygons"].is_not_null().sum() == 830
    boxes = dataset.instances.select("box_x", "box_y", "box_w", "box_h").to_numpy()
    assert np.array_equal(boxes, [a["bbox"] for a in file["annotations"]])
    names = {c["id"]: c["name"] for c in file["categories"]}
    assert dataset.instances["classes"].explode().to_list() == [
        names[a["category_id"]] for a in file["annotations"]
    ]
    assert load(path, categories=["person"]).instances.height == sum(
        a["category_id"] == 1 for a in file["annotations"]
    )


def test_the_real_crowds_are_those_of_pycocotools():
    coder = pytest.importorskip("pycocotools.mask")
    path = shared_data("coco/instances_val2014_100.json")
    crowds = load(path).instances.filter(pl.col("is_crowd"))
    plain = [a for a in json.loads(path.read_text())["annotations"] if a["iscrowd"]]
    expected = coder.frPyObjects([a["segmentation"] for a in plain], 1, 1)
    assert crowds["mask_counts"].to_list() == [rle["counts"].decode() for rle in expected]


def test_the_real_keypoints():
    path = shared_data("coco/keypoints_dataset_gt_dataset.json")
    rows = load(path).instances
    file = json.loads(path.read_text())["annotations"]
    assert rows["keypoint_names"][0].len() == 17
    labelled = rows.select(n=pl.col("keypoints_v").list.eval(pl.element() > 0).list.sum())["n"]
    assert labelled.to_list() == [a["num_keypoints"] for a in file]


def _corners(tmp_path):
    boxes = [[10 + i, 20 + i, 300 + i, 250 + i] for i in range(30)]
    file = {
        "images": [
            {"id": i, "file_name": f"{i}.jpg", "width": 400, "height": 300} for i in range(30)
        ],
        "annotations": [
            {"id": i, "image_id": i, "category_id": 1, "bbox": box} for i, box in enumerate(boxes)
        ],
        "categories": [{"id": 1, "name": "person"}],
    }
    path = tmp_path / "corners.json"
    path.write_text(json.dumps(file))
    return path


def test_corners_read_as_sides_are_refused_and_the_option_reads_them(tmp_path):
    path = _corners(tmp_path)
    with pytest.raises(TableError, match="of the boxes leave their pictures") as caught:
        load(path)
    assert "--data-option box_format=xyxy" in str(caught.value)
    read = load(path, box_format="xyxy").instances
    assert read.select("box_x", "box_y", "box_w", "box_h").row(3) == (13.0, 23.0, 290.0, 230.0)
