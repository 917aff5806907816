from __future__ import annotations

import base64
import io
import json
import zlib
from contextlib import suppress
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from isolux.core.containers import Dataset
from isolux.core.errors import (
    FileError,
    IsoluxError,
    OutputError,
    TableError,
    UnknownNameError,
)
from isolux.core.tables import IMAGES, INSTANCES, SCORES, check
from isolux.datasets import cluster_by_requested_column, coco
from isolux.datasets._columns import INSTANCE_COLUMNS
from isolux.datasets.fiftyone import INFO, load, save
from isolux.predictions import labels_from_attributes, note_answers_of_images
from tests._shared import shared_data
from tests.datasets._coco_files import SMALL as COCO
from tests.datasets._coco_files import written as written_coco
from tests.datasets._fiftyone_files import MASK, SMALL, bitmap, packed, small, written

BOX = ("box_x", "box_y", "box_w", "box_h")
FIRST = ("ground_truth", "detections", 0)


@pytest.fixture
def dataset(tmp_path):
    return load(written(tmp_path, SMALL), label_field="ground_truth", keypoint_field="poses")


def test_detections_become_people(dataset):
    rows = dataset.instances
    assert rows["instance_id"].to_list() == [
        "64c0ffee0000000000000011", "64c0ffee0000000000000012", "2.jpg#0"
    ]  # fmt: skip
    assert rows["image_id"].to_list() == ["1.jpg", "1.jpg", "2.jpg"]
    assert rows["classes"].to_list() == [["person"], ["dog"], ["person"]]
    assert rows["is_crowd"].to_list() == [False, True, False]
    # Relative to 8 × 6, then to 4 × 3.
    assert rows.select(BOX).rows() == [(2, 0, 4, 3), (0, 0, 1, 3), (0, 0, 4, 3)]
    assert rows["cluster_id"].to_list() == rows["image_id"].to_list()


def test_pictures_have_their_sizes_and_those_elsewhere_no_path(dataset):
    assert dataset.images.select("image_id", "uri", "width", "height").rows() == [
        ("1.jpg", "data/1.jpg", 8, 6),
        ("2.jpg", None, 4, 3),
    ]
    assert "1 picture(s) are outside the export, with absolute paths." in dataset.notes


def test_tables_are_as_declared_and_every_further_column_is_documented(dataset):
    assert check(dataset.instances, INSTANCES).equals(dataset.instances)
    assert check(dataset.images, IMAGES).equals(dataset.images)
    known = {column.name: column.dtype for column in INSTANCE_COLUMNS}
    further = {n: t for n, t in dataset.instances.schema.items() if n not in INSTANCES.schema}
    assert further == {name: known[name] for name in further}


def test_a_mask_of_the_box_is_placed_in_its_picture(dataset):
    row = dataset.instances.row(0, named=True)
    whole = np.zeros((6, 8), bool)
    whole[0:3, 2:6] = MASK
    assert (row["mask_height"], row["mask_width"]) == whole.shape
    assert np.array_equal(bitmap(row["mask_counts"], 6, 8), whole)
    assert dataset.instances["mask_counts"].null_count() == 2


@pytest.mark.parametrize(
    "spelled",
    [
        packed(MASK),
        packed(MASK.astype(np.float32) * 255),
        packed(np.asfortranarray(MASK)),
        packed(np.repeat(np.repeat(MASK, 2, 0), 2, 1)),  # twice as large: brought to the box
    ],
)
def test_all_spellings_of_a_mask_are_one(tmp_path, dataset, spelled):
    file = small(*FIRST, "mask", value=spelled)
    read = load(written(tmp_path, file), label_field="ground_truth")
    assert read.instances["mask_counts"].equals(dataset.instances["mask_counts"])


def test_a_mask_that_reaches_beyond_its_picture_is_cut(tmp_path):
    # Columns 6 to 9 of a picture of 8 columns, rows -1 to 1.
    file = small(*FIRST, "bounding_box", value=[0.75, -1 / 6, 0.5, 0.5])
    row = load(written(tmp_path, file), label_field="ground_truth").instances.row(0, named=True)
    whole = np.zeros((6, 8), bool)
    whole[0:2, 6:8] = MASK[1:, :2]
    assert np.array_equal(bitmap(row["mask_counts"], 6, 8), whole)


def test_keypoints_are_those_of_the_same_index(dataset):
    rows = dataset.instances
    assert rows["keypoints_x"].to_list() == [[4.0, None], None, None]
    assert rows["keypoints_y"].to_list() == [[3.0, None], None, None]
    assert rows["keypoints_v"].to_list() == [[2, 0], None, None]
    assert rows["keypoint_names"][0].to_list() == ["nose", "left_eye"]


def test_a_field_of_keypoints_can_be_the_people(tmp_path):
    read = load(written(tmp_path, SMALL), label_field="poses")
    assert read.instances["keypoints_x"].to_list() == [[4.0, None]]
    assert "box_x" not in read.instances.columns


def test_fields_of_any_kind_become_attributes(dataset):
    own = dataset.attributes.filter(pl.col("unit_kind") == "instance")
    found = {
        name: part.select("value", "number").rows()
        for (name,), part in own.group_by("attribute", maintain_order=True)
    }
    assert found == {
        "label": [("person", None), ("dog", None), ("person", None)],
        "tags": [(None, None), ("odd", None), (None, None)],
        "skin_tone": [("IV", None), (None, None), (None, None)],
        "age": [("31.0", 31.0), ("2.5", 2.5), (None, None)],
        "ancestry": [("Africa", None), ("Europe", None), (None, None), (None, None)],
    }


@pytest.mark.parametrize("name", ["row", "item", "unit_id", "value", "row_nr"])
def test_a_field_may_be_called_anything(tmp_path, name):
    for value in (["a", "b"], "c", 3):
        file = small(*FIRST, name, value=value)
        file["samples"][0][f"{name}_2"] = value
        read = load(written(tmp_path, file), label_field="ground_truth")
        known = read.values_of(name).drop_nulls("value")["value"].to_list()
        assert known == ([str(value)] if not isinstance(value, list) else value)
        assert read.values_of(f"{name}_2")["unit_kind"].unique().to_list() == ["image"]


def test_samples_fields_are_of_pictures(dataset):
    rows = dataset.attributes.filter(unit_kind="image", unit_id="1.jpg")
    assert rows.select("attribute", "value", "number").rows() == [
        ("weather", "clear", None),
        ("scenes", "a", None),
        ("scenes", "b", None),
        ("sharpness", "0.25", 0.25),
    ]
    spread = dataset.instance_attributes().filter(attribute="weather")
    assert spread["value"].to_list() == ["clear", "clear", None]


def test_what_is_not_read_is_said(dataset):
    assert any(note.endswith("'place', 'predictions'.") for note in dataset.notes)
    # The pictures' tags have the name of a field of people's.
    assert any(note.endswith("named like fields of people are left out: tags.")
               for note in dataset.notes)  # fmt: skip


def test_a_size_that_is_not_said_is_that_of_the_picture(tmp_path):
    file = small("metadata", value=None)
    with pytest.raises(TableError, match=r"(?s)size is not known.*row 1.*compute_metadata"):
        load(written(tmp_path, file), label_field="ground_truth")
    (tmp_path / "data").mkdir()
    Image.new("RGB", (16, 12)).save(tmp_path / "data" / "1.jpg")
    read = load(tmp_path, label_field="ground_truth")
    assert read.images.row(0) == ("1.jpg", "data/1.jpg", 16, 12)
    assert read.instances.select(BOX).row(0) == (4, 0, 8, 6)


def test_people_are_looked_for_where_they_usually_are(tmp_path):
    assert load(written(tmp_path, SMALL)).instances.height == 3  # not in "predictions"
    file = small("predictions", value=None)
    renamed = json.loads(json.dumps(file).replace('"ground_truth"', '"faces"'))
    assert load(written(tmp_path, renamed)).instances.height == 3
    renamed["samples"][0]["hands"] = {"_cls": "Detections", "detections": []}
    with pytest.raises(TableError, match=r"(?s)several fields.*one of faces, hands"):
        load(written(tmp_path, renamed))
    with pytest.raises(UnknownNameError, match="no field of labels named 'feet'"):
        load(written(tmp_path, renamed), label_field="feet")
    with pytest.raises(UnknownNameError, match="no field of keypoints named 'feet'"):
        load(written(tmp_path, SMALL), keypoint_field="feet")


def test_without_labels_a_picture_is_a_person(tmp_path):
    rows = [{"filepath": f"{i}.jpg", "gender": g} for i, g in enumerate(["f", "m"])]
    read = load(written(tmp_path, {"samples": rows}))
    assert read.instances["instance_id"].to_list() == ["0.jpg", "1.jpg"]
    assert read.instance_attributes().filter(attribute="gender")["value"].to_list() == ["f", "m"]


def test_a_classification_can_be_the_people(tmp_path):
    read = load(written(tmp_path, SMALL), label_field="weather")
    assert read.instances["classes"].to_list() == [["clear"]]


def test_answers_of_a_model_beside_the_truth(tmp_path):
    """As FiftyOne's apply_model leaves them: a field of the sample, with the truth in another."""
    samples = [
        {
            "filepath": f"{k}.jpg",
            "ground_truth": {"_cls": "Classification", "label": "cat"},
            "predictions": {"_cls": "Classification", "label": label, "confidence": 0.8},
        }
        for k, label in enumerate(["cat", "dog", "cat"])
    ]
    samples[2]["predictions"] = None
    read = load(written(tmp_path, {"samples": samples}), label_field="ground_truth")
    assert labels_from_attributes(read, "predictions")["label"].to_list() == ["cat", "dog", None]
    assert note_answers_of_images(read, "predictions")[0] == (
        "Labels of 3 images were given to the 3 people there."
    )
    assert note_answers_of_images(read, "label") == ()


def test_only_the_labels_asked_for(tmp_path):
    read = load(written(tmp_path, SMALL), label_field="ground_truth", categories=["person"])
    assert (read.instances.height, read.images.height) == (2, 2)
    with pytest.raises(UnknownNameError, match="there is no label named 'cat'"):
        load(tmp_path, label_field="ground_truth", categories="cat")


def test_slices_of_a_group_are_one_cluster(tmp_path):
    file = small()
    for sample, name in zip(file["samples"], ("left", "right"), strict=True):
        sample["group"] = {"_cls": "Group", "_id": {"$oid": "a1"}, "name": name}
    read = load(written(tmp_path, file), label_field="ground_truth")
    assert read.instances["cluster_id"].unique().to_list() == ["a1"]
    rows = cluster_by_requested_column(
        load(tmp_path, label_field="ground_truth"), "image"
    ).instances
    assert rows["cluster_id"].equals(rows["image_id"].alias("cluster_id"))


# ── what cannot be used ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("filepath",), "../../etc/passwd", r"leads out of the dataset's folder.*row 1"),
        (("filepath",), None, r"a sample has no file.*row 1"),
        (("ground_truth",), "none", r"a field holds no labels.*row 1, column 'ground_truth'"),
        (("ground_truth", "detections"), [3], r"a field holds no labels.*found: 3"),
        ((*FIRST, "bounding_box"), [0, 0, 1], r"a box cannot be read.*row 1"),
        ((*FIRST, "bounding_box"), [0, 0, "1", 1], r"a box cannot be read"),
        ((*FIRST, "bounding_box"), [0, 0, -1, 1], r"negative width"),
        ((*FIRST, "bounding_box"), [0, 0, 10**400, 1], r"finite"),
        ((*FIRST, "instance_id"), "64c0ffee0000000000000012", r"two rows have the same"),
        ((*FIRST, "mask"), {"$binary": {"base64": "!!"}}, r"a mask cannot be read.*row 1"),
        ((*FIRST, "mask"), 7, r"a mask cannot be read.*no text"),
        ((*FIRST, "mask"), packed(np.zeros(4)), r"an array of float64, 1 dimensions"),
        ((*FIRST, "mask"), packed(np.array([[print]]), allow_pickle=True), r"Object arrays"),
        (("poses", "keypoints", 0, "points"), [[0.5]], r"keypoints cannot be read.*row 1"),
        (("poses", "keypoints", 0, "points"), [["a", 1]], r"a keypoint is not a pair"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_sample(tmp_path, path, value, message):
    folder = written(tmp_path, small(*path, value=value))
    with pytest.raises(TableError, match=f"(?s){message}"):
        load(folder, label_field="ground_truth", keypoint_field="poses")


def _header(text: str) -> dict:
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
    return {"$binary": {"base64": base64.b64encode(zlib.compress(data)).decode()}}


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '|b1', 'fortran_order': False, 'shape': (1000000, 1000000)}",
        "{'descr': '|b1', 'fortran_order': False, 'shape': (-1, 3)}",
        "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 2)}",
        "__import__('os').system('true')",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (0, 0)}",
        "(" * 500,
    ],
)
def test_a_header_is_only_ever_a_literal(tmp_path, header):
    folder = written(tmp_path, small(*FIRST, "mask", value=_header(header)))
    with pytest.raises(TableError, match="a mask cannot be read"):
        load(folder, label_field="ground_truth")


def test_a_mask_that_unpacks_to_far_more_is_refused(tmp_path):
    text = base64.b64encode(zlib.compress(bytes(300 << 20), 1)).decode()
    bomb = {"$binary": {"base64": text}}
    folder = written(tmp_path, small(*FIRST, "mask", value=bomb))
    with pytest.raises(TableError, match="unpacks to far more than a mask"):
        load(folder, label_field="ground_truth")


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileError, match=r"holds no FiftyOne samples \(samples.json\)"):
        load(tmp_path)
    file = tmp_path / "samples.json"
    file.write_text('{"samples": [{"filepath": "a.jpg"')
    with pytest.raises(FileError, match=r"cut off(?s:.)*byte 33"):
        load(tmp_path)
    file.write_text('{"samples": []}')
    with pytest.raises(FileError, match="the export holds no sample"):
        load(tmp_path)
    file.write_text('{"samples": ' + "[" * 100_000)
    with pytest.raises(IsoluxError):
        load(tmp_path)


WHOLE = json.dumps(SMALL)


@given(
    at=st.integers(0, len(WHOLE)),
    cut=st.integers(0, 12),
    put=st.sampled_from(
        ["", "null", "-1", "1e999", '"', "[]", "{}", "\\u0000", "é", "NaN", "[", "x", "true"]
    ),
)
def test_any_damage_gives_a_dataset_or_our_own_error(tmp_path_factory, at, cut, put):
    folder = tmp_path_factory.mktemp("fuzz")
    text = WHOLE[:at] + put + WHOLE[at + cut :]
    (folder / "samples.json").write_text(text, encoding="utf-8")
    with suppress(IsoluxError):
        read = load(folder, label_field="ground_truth", keypoint_field="poses")
        assert check(read.instances, INSTANCES).height <= 3


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["_cls", "$binary", "base64", "$oid", "value", "label", "points", "width"]
            ),
            inner,
        )
    ),
    max_leaves=8,
)


@given(
    path=st.sampled_from(
        [("metadata",), ("weather",), ("ground_truth",), ("poses",), ("tags",), ("group",),
         ("image_id",), (*FIRST, "mask"), (*FIRST, "bounding_box"), (*FIRST, "skin_tone"),
         (*FIRST, "attributes"), (*FIRST, "instance"), (*FIRST, "_id"), (*FIRST, "classes"),
         (*FIRST, "label"), ("poses", "keypoints"), ("poses", "keypoints", 0, "points"),
         ("poses", "keypoints", 0, "visibility"), (*FIRST, "cluster_id")]
    ),
    value=_ANY,
)  # fmt: skip
def test_any_value_anywhere_gives_a_dataset_or_our_own_error(tmp_path_factory, path, value):
    folder = written(tmp_path_factory.mktemp("fuzz"), small(*path, value=value))
    with suppress(IsoluxError):
        read = load(folder, label_field="ground_truth", keypoint_field="poses")
        assert check(read.instances, INSTANCES)["instance_id"].is_unique().all()


@given(data=st.binary(max_size=60), packs=st.booleans())
def test_any_bytes_as_a_mask_give_a_dataset_or_our_own_error(tmp_path_factory, data, packs):
    whole = base64.b64decode(packed(MASK)["$binary"]["base64"])
    raw = zlib.decompress(whole)
    text = zlib.compress(raw[: len(data)] + data + raw[2 * len(data) :]) if packs else data
    value = {"$binary": {"base64": base64.b64encode(text).decode()}}
    folder = written(tmp_path_factory.mktemp("fuzz"), small(*FIRST, "mask", value=value))
    with suppress(IsoluxError):
        load(folder, label_field="ground_truth")


# ── writing ─────────────────────────────────────────────────────────────────────────────────────


def _by_id(dataset: Dataset, like: Dataset) -> Dataset:
    order = like.instances.select("instance_id")
    rows = order.join(dataset.instances, on="instance_id", how="left", maintain_order="left")
    return replace(dataset, instances=rows)


def test_what_was_written_reads_as_before(tmp_path, dataset):
    again = load(save(dataset, tmp_path / "out"))
    columns = [name for name in dataset.instances.columns if name != "ignore"]
    assert again.instances.select(columns).equals(dataset.instances.select(columns))
    assert again.images.select("image_id", "width", "height").equals(
        dataset.images.select("image_id", "width", "height")
    )
    both = [
        set(d.attributes.filter(pl.col("value").is_not_null()).select("unit_id", "attribute",
                                                                      "value", "number").rows())
        for d in (dataset, again)
    ]  # fmt: skip
    # FiftyOne's own field of tags may not be a label's attribute twice: it got another name.
    assert {(u, "tags" if a == "tags_" else a, *v) for u, a, *v in both[1]} == both[0]
    assert again.notes == ()


def test_coco_goes_through_fiftyone_unchanged(tmp_path):
    original = coco.load(written_coco(tmp_path, COCO))
    again = _by_id(load(save(original, tmp_path / "out")), original)
    kept = ["image_id", "classes", *BOX, "is_crowd", "keypoints_x", "keypoints_v", "cluster_id"]
    assert again.instances.select(kept).equals(original.instances.select(kept))


def test_the_form_is_that_which_every_fiftyone_imports(tmp_path, dataset):
    folder = save(dataset, tmp_path / "out")
    assert "version" not in json.loads((folder / "metadata.json").read_text())
    samples = json.loads((folder / "samples.json").read_text())["samples"]
    assert [s["filepath"] for s in samples] == ["data/1.jpg", "2.jpg"]
    first = samples[0]["people"]["detections"][0]
    assert samples[0]["people"]["_cls"] == "Detections"
    assert first["_cls"] == "Detection"
    assert first["bounding_box"] == [0.25, 0, 0.5, 0.5]
    raw = zlib.decompress(base64.b64decode(first["mask"]["$binary"]["base64"]))
    assert np.array_equal(np.load(io.BytesIO(raw), allow_pickle=False), MASK)
    assert (first["age"], first["ancestry"], first["skin_tone"]) == (31.0, ["Africa", "Europe"],
                                                                    "IV")  # fmt: skip
    assert all(not name.startswith(("_", "$")) or name == "_cls" for name in first)


def test_people_without_boxes_are_classifications(tmp_path):
    rows = pl.DataFrame(
        {"instance_id": ["a", "b"], "image_id": ["1", "1"], "classes": [["x", "y"], None]}
    )
    folder = save(Dataset("made up", INFO, rows), tmp_path / "out")
    held = json.loads((folder / "samples.json").read_text())["samples"][0]["people"]
    assert [c["label"] for c in held["classifications"]] == ["x", "person"]
    again = load(folder)
    assert again.instances["instance_id"].to_list() == ["a", "b"]
    assert again.instances["classes"].to_list() == [["x", "y"], ["person"]]


def test_scores_become_fields_and_what_lacks_one_says_why(tmp_path, dataset):
    ids = dataset.instances["instance_id"]
    rows = {"model": "m", "task": "t", "metric": ["recall", "recall", "f1"], "label": None,
            "threshold": [0.5, 0.5, None], "unit_kind": "instance",
            "unit_id": [ids[0], ids[2], ids[0]], "cluster_id": None,
            "value": [1.0, None, 0.25], "reason": [None, "a crowd", None]}  # fmt: skip
    scores = SCORES.conform(pl.DataFrame(rows))
    folder = save(dataset, tmp_path / "one", scores=scores)
    samples = json.loads((folder / "samples.json").read_text())["samples"]
    first, _, last = [d for s in samples for d in s["people"]["detections"]]
    assert (first["recall_0_5"], first["f1"]) == (1.0, 0.25)
    assert "recall_0_5" not in last
    assert last["recall_0_5_reason"] == "a crowd"
    two = pl.concat([scores, scores.with_columns(model=pl.lit("n"))])
    text = (save(dataset, tmp_path / "two", scores=two) / "samples.json").read_text()
    assert '"m_recall_0_5": 1.0' in text
    assert '"n_f1": 0.25' in text


def test_pictures_are_named_in_full_and_asked_for_their_size(tmp_path):
    rows = pl.DataFrame({"instance_id": ["a"], "image_id": ["1.png"],
                         **{side: [2.0] for side in BOX}})  # fmt: skip
    one = Dataset("made up", INFO, rows)
    with pytest.raises(TableError, match=r"(?s)size of a picture is not known.*--images"):
        save(one, tmp_path / "out")
    Image.new("RGB", (8, 4)).save(tmp_path / "1.png")
    folder = save(one, tmp_path / "out", images=tmp_path)
    sample = json.loads((folder / "samples.json").read_text())["samples"][0]
    assert sample["filepath"] == str((tmp_path / "1.png").resolve())
    assert sample["people"]["detections"][0]["bounding_box"] == [0.25, 0.5, 0.25, 0.5]
    with pytest.raises(OutputError, match="this directory exists already"):
        save(one, tmp_path / "out", images=tmp_path)
    with pytest.raises(FileError, match="no such folder of pictures"):
        save(one, tmp_path / "other", images=tmp_path / "absent")
    away = replace(one, instances=rows.with_columns(image_id=pl.lit("../1.png")))
    with pytest.raises(FileError, match="leads out of its folder"):
        save(away, tmp_path / "other", images=tmp_path)
    assert not (tmp_path / "other").exists()


@given(
    height=st.integers(1, 12),
    width=st.integers(1, 12),
    seed=st.integers(0, 2**31),
)
def test_any_mask_in_its_box_comes_back(tmp_path_factory, height, width, seed):
    coder = pytest.importorskip("pycocotools.mask")
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, width - 0.5), rng.uniform(-1, height - 0.5)
    w, h = rng.uniform(0.6, width + 1), rng.uniform(0.6, height + 1)
    whole = (rng.random((height, width)) < rng.random()).astype(np.uint8)
    rows, columns = np.arange(height)[:, None], np.arange(width)[None, :]
    covered = (rows + 1 > y) & (rows < y + h) & (columns + 1 > x) & (columns < x + w)
    whole *= covered  # what lies outside the box FiftyOne cannot hold
    counts = coder.encode(np.asfortranarray(whole))["counts"].decode()
    people = pl.DataFrame(
        {"instance_id": ["a"], "image_id": ["i"], "box_x": [x], "box_y": [y], "box_w": [w],
         "box_h": [h], "mask_counts": [counts], "mask_height": [height], "mask_width": [width]}
    )  # fmt: skip
    images = pl.DataFrame({"image_id": ["i"], "width": [width], "height": [height]})
    one = Dataset("made up", INFO, people, images=images)
    again = load(save(one, tmp_path_factory.mktemp("masks") / "out")).instances
    if "mask_counts" not in again.columns:  # a box beside its picture
        assert not covered.any()
        return
    assert np.array_equal(bitmap(again["mask_counts"][0], height, width), whole)


def test_the_real_hundred_images_go_through_fiftyone(tmp_path):
    coder = pytest.importorskip("pycocotools.mask")
    original = coco.load(shared_data("coco/instances_val2014_100.json"))
    again = _by_id(load(save(original, tmp_path / "out")), original)
    assert again.instances.select(BOX).equals(original.instances.select(BOX))
    sized = again.instances.join(original.images, on="image_id", how="left", maintain_order="left")
    columns = zip(original.instances["mask_polygons"], original.instances["mask_counts"],
                  sized["mask_counts"], sized["height"], sized["width"], strict=True)  # fmt: skip
    same = 0
    for polygons, counts, found, height, width in columns:
        drawn = (
            counts
            or coder.merge(coder.frPyObjects(json.loads(polygons), height, width))[
                "counts"
            ].decode()
        )
        same += np.array_equal(bitmap(drawn, height, width), bitmap(found, height, width))
    # The other nine reach beyond the box that COCO gives them, by a strip of pixels.
    assert same == 830
