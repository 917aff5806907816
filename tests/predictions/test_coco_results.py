"""COCO results: held against json, and what bad files are told."""

from __future__ import annotations

import gzip
import io
import json
import re

import msgspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from isolux.core.errors import FileError, IsoluxError, SpecError, TableError
from isolux.core.tables import BOX_PREDICTIONS, KEYPOINT_PREDICTIONS, MASK_PREDICTIONS, check
from isolux.predictions import coco_results, read_outputs
from isolux.predictions._json_text import JsonText
from isolux.predictions.coco_results.rows import read_rows
from tests._shared import shared_data

ROW = {"image_id": 1, "category_id": 2, "bbox": [1.5, 2, 3, 4], "score": 0.5}


def read_bytes(data: bytes, *, block: int = 1 << 16) -> pl.DataFrame:
    return read_rows(JsonText(io.BytesIO(data), "x.json", block))


def read(tmp_path, rows, **options) -> pl.DataFrame:
    path = tmp_path / "net.json"
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows))
    return coco_results.read(path, **options)


# What json reads ------------------------------------------------------------------------------

ids = st.one_of(st.integers(-5, 2**62), st.text(max_size=6), st.just(42.0))
finite = st.floats(-1e6, 1e6) | st.integers(-9, 10**6)
boxes = st.tuples(finite, finite, st.floats(0, 1e5), st.integers(0, 99)).map(list)
scores = finite | st.just("0.25")
masks = st.just({"size": [4, 3], "counts": "237"}) | st.fixed_dictionaries(
    {"counts": st.text(st.characters(min_codepoint=48, max_codepoint=111), max_size=9),
     "size": st.just([2, 2])}
)  # fmt: skip
junk = st.recursive(
    st.none() | st.booleans() | finite | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
usual = st.fixed_dictionaries(
    {"image_id": st.integers(0, 10**6), "category_id": st.integers(1, 90), "bbox": boxes,
     "score": finite}
)  # fmt: skip
unusual = st.fixed_dictionaries(
    {"image_id": ids, "bbox": boxes, "score": scores},
    optional={"category_id": ids, "segmentation": masks, "keypoints": st.lists(finite, max_size=6),
              "area": finite, "note": junk, "": junk},
)  # fmt: skip
layouts = st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 1}, {"ensure_ascii": False}])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(usual, usual, unusual), max_size=12), layouts, st.randoms())
def test_results_of_any_kind_are_what_json_reads(rows, layout, draw):
    rows = [dict(draw.sample(sorted(row.items()), len(row))) for row in rows]
    data = json.dumps(rows, **layout).encode()
    found = read_bytes(data, block=512)
    assert_frame_equal(found, read_bytes(data), check_column_order=False)
    assert found["score"].to_list() == [float(row["score"]) for row in rows]
    assert found["image_id"].to_list() == [
        str(42 if row["image_id"] == 42.0 else row["image_id"]) for row in rows
    ]
    if rows:
        assert found["box_x"].to_list() == [float(row["bbox"][0]) for row in rows]


written = st.sampled_from(
    ["0", "-0", "7", "-7", "42.50", "0.001", "-3.25", "1234567.7654321", "12345678", "0.12345678",
     "1e2", "1.5E-3", "99999999999999999999", "3.141592653589793238462"]
)  # fmt: skip
spelled = st.sampled_from(
    ['{"image_id": @, "bbox": [%s, %s, %s, %s], "score": %s}',
     '{"score":%s,"id":%s,"bbox":[%s,%s,%s,%s],"image_id":@,"category_id":1}',
     '{"image_id": @, "area": %s, "bbox": [ %s, %s,%s, %s ] , "note": null, "score": %s }']
)  # fmt: skip


def filled(text, draw, numbers):
    """Put an id in the place of ``@``, and one of the numbers in that of each ``%s``."""
    values = tuple(draw.choice(numbers) for _ in range(text.count("%s")))
    return text.replace("@", str(draw.randint(0, 10 ** draw.randint(1, 12)))) % values


@settings(max_examples=200, deadline=None)
@given(
    st.lists(spelled, min_size=1, max_size=2),
    st.lists(written, min_size=1),
    st.randoms(),
    st.integers(1, 12),
)
def test_numbers_of_any_spelling_are_what_json_reads(texts, numbers, draw, n):
    rows = [filled(draw.choice(texts), draw, numbers) for _ in range(n)]
    found = read_bytes(f"[{', '.join(rows)}]".encode(), block=512)
    told = [json.loads(row) for row in rows]
    assert found["score"].to_list() == [float(row["score"]) for row in told]
    assert found["box_h"].to_list() == [float(row["bbox"][3]) for row in told]
    assert found["image_id"].to_list() == [str(row["image_id"]) for row in told]


@pytest.mark.parametrize("wrong", ["007", "-", "1.", ".5", "1.2.3", "+1", "1e", "0x1", "1 2", ""])
def test_a_number_that_is_none_is_told_with_its_byte(wrong):
    good = '{"image_id": 7, "bbox": [1, 2, 3, 4], "score": 0.5}'
    before = f"[{', '.join([good] * 3)}, "
    data = f"{before}{good.replace('0.5', wrong)}]".encode()
    with pytest.raises(IsoluxError, match=r"x\.json") as caught:
        read_bytes(data)
    byte = int(re.search(r"byte (\d+)", str(caught.value))[1])
    assert len(before) < byte < len(data)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(usual, min_size=1, max_size=4),
    st.integers(0, 10**6),
    st.text(max_size=3).map(str.encode),
)
def test_damage_gives_an_error_of_ours_or_the_same_whatever_the_blocks(rows, at, put):
    data = json.dumps(rows).encode()
    at %= len(data)
    data = data[:at] + put + data[at + len(put) :]
    outcome = []
    for block in (64, 1 << 16):
        try:
            outcome.append(read_bytes(data, block=block))
        except IsoluxError:
            outcome.append(None)
    assert (outcome[0] is None) == (outcome[1] is None)
    if outcome[0] is not None:
        assert_frame_equal(outcome[0], outcome[1], check_column_order=False)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60) | st.text('[]{},:"0123456789.e-abx\\ ', max_size=60).map(str.encode))
def test_any_bytes_give_a_table_or_an_error_of_ours(data):
    try:
        read_bytes(data)
    except IsoluxError as error:
        assert "x.json" in str(error)  # noqa: PT017


# What it gives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("images", [[7, 7, 7], [7, 8, 7], [7, 7, 8]])
def test_one_image_and_one_label_are_those_of_every_row(tmp_path, images):
    found = read(tmp_path, [ROW | {"image_id": image} for image in images])
    assert found["image_id"].to_list() == [str(image) for image in images]
    assert found["label"].to_list() == ["2", "2", "2"]


def test_boxes(tmp_path):
    found = read(tmp_path, [ROW, ROW | {"image_id": "a/b.jpg", "category_id": None, "score": "1"}])
    assert check(found, BOX_PREDICTIONS).rows() == [
        ("net", "1", "2", 1.5, 2.0, 3.0, 4.0, 0.5),
        ("net", "a/b.jpg", None, 1.5, 2.0, 3.0, 4.0, 1.0),
    ]


def test_duplicates_and_boxes_without_area_stay(tmp_path):
    assert read(tmp_path, [ROW | {"bbox": [0, 0, 0, 5]}] * 2).height == 2


def test_an_empty_list_is_no_error_for_everybody_was_missed(tmp_path):
    assert read(tmp_path, " [ ] \n").schema == BOX_PREDICTIONS.empty().schema
    assert read(tmp_path, "[]", kind="masks").schema == MASK_PREDICTIONS.empty().schema


def test_keypoints_are_parted(tmp_path):
    found = read(tmp_path, [{"image_id": 1, "keypoints": [1, 2, 0.25, 3, 4, 0.5], "score": 1}])
    check(found, KEYPOINT_PREDICTIONS)
    assert found.select("box_x", "keypoints_x", "keypoints_y", "keypoints_v").row(0) == (
        None, [1.0, 3.0], [2.0, 4.0], [0.25, 0.5]
    )  # fmt: skip


def test_plain_run_lengths_are_compressed_as_pycocotools_does(tmp_path):
    # Two pixels of background, three of foreground, seven of background: the example of _rle.
    row = {"image_id": 1, "score": 1, "segmentation": {"size": [4, 3], "counts": [2, 3, 7]}}
    assert read(tmp_path, [row])["mask_counts"].to_list() == ["237"]


def test_a_mask_without_a_box_has_the_box_of_its_pixels(tmp_path):
    # Pixels 2, 3 and 4 of columns of 4: rows 2 and 3 of column 0, row 0 of column 1.
    mask = {"image_id": 1, "score": 1, "segmentation": {"size": [4, 3], "counts": [2, 3, 7]}}
    rows = [mask, mask | {"bbox": [0, 1, 2, 2]}]
    for kind in ("masks", "boxes"):
        found = read(tmp_path, rows, kind=kind).select("box_x", "box_y", "box_w", "box_h")
        assert found.rows() == [(0.0, 0.0, 2.0, 4.0), (0.0, 1.0, 2.0, 2.0)]
    damaged = mask | {"segmentation": {"size": [5, 3], "counts": "237"}}
    with pytest.raises(TableError, match="a mask has another size than its image") as caught:
        read(tmp_path, [mask, damaged])
    assert "row 2" in str(caught.value)


def test_the_kind_can_be_chosen(tmp_path):
    both = ROW | {"segmentation": {"size": [4, 3], "counts": "237"}}
    assert "mask_counts" in read(tmp_path, [both]).columns
    assert "mask_counts" not in read(tmp_path, [both], kind="boxes").columns
    with pytest.raises(SpecError, match="there are no keypoints in these predictions"):
        read(tmp_path, [both], kind="keypoints")


def test_a_category_id_may_be_written_as_a_float(tmp_path):
    names = tmp_path / "names.json"
    names.write_text('{"categories": [{"id": 2.0, "name": "person"}]}')
    assert read(tmp_path, [ROW], categories=names)["label"].to_list() == ["person"]


def test_categories_get_their_names(tmp_path):
    file = tmp_path / "truth.json"
    file.write_text('{"images": [], "categories": [{"id": 2, "name": "person"}]}')
    assert read(tmp_path, [ROW], categories=file)["label"].to_list() == ["person"]
    with pytest.raises(TableError, match=r"1 result\(s\) are of a category that has no name"):
        read(tmp_path, [ROW], categories={"1": "person"})
    file.write_text("[]")
    with pytest.raises(TableError, match="Expected `object`, got `array`"):
        read(tmp_path, [ROW], categories=file)


def test_a_gzipped_file(tmp_path):
    path = tmp_path / "net.json.gz"
    path.write_bytes(gzip.compress(json.dumps([ROW]).encode()))
    assert coco_results.read(path).row(0) == read(tmp_path, [ROW]).row(0)
    path.write_bytes(gzip.compress(json.dumps([ROW] * 999).encode())[:-20])
    with pytest.raises(FileError, match="this gzip file is damaged or cut off"):
        coco_results.read(path)


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"score": None}, "a result has no score"),
        ({"score": "high"}, "a score is not a number"),
        ({"score": True}, "a result does not hold what it should"),
        ({"image_id": None}, "a result has no image_id"),
        ({"bbox": [1, 2, 3]}, "a box is not four numbers"),
        ({"bbox": [1, 2, 3, None]}, "a box is not four numbers"),
        ({"bbox": [1, 2, "3", 4]}, "a result does not hold what it should"),
        ({"bbox": None}, "a result says nothing of where"),
        ({"bbox": [1, 2, -3, 4]}, "a box has a negative width or height"),
        ({"segmentation": [[1, 2, 3, 4, 5, 6]]}, "a mask is given as polygons"),
        ({"segmentation": {"size": [2, 2], "counts": [1, 9]}}, "run lengths cannot be used"),
        ({"segmentation": {"size": [0, 2], "counts": "2"}}, "a mask's run lengths cannot be used"),
        ({"keypoints": [1, 2, 3, 4]}, "keypoints are not triples of numbers"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_row(tmp_path, row, told):
    good = ROW | {k: [1, 2, 3] for k in row if k == "keypoints"}
    with pytest.raises(TableError, match=told) as caught:
        read(tmp_path, [good] * 5000 + [ROW | row])
    assert "row 5001" in str(caught.value)


@pytest.mark.parametrize("number_", ["NaN", "-Infinity", "Infinity"])
def test_numbers_that_json_does_not_know(tmp_path, number_):
    text = json.dumps([ROW, ROW]).replace("0.5}]", f"{number_}}}]")
    with pytest.raises(TableError, match="a number is not finite") as caught:
        read(tmp_path, text)
    assert f"byte {text.index(number_)}" in str(caught.value)


@pytest.mark.parametrize("broken", ["{'image_id'", '{"image_id" 1', '{"image_id": 01', "7", "]"])
def test_what_is_no_json_is_told_with_its_byte(tmp_path, broken):
    text = json.dumps([ROW] * 3)[:-1] + ", " + broken + ', "score": 1}]'
    with pytest.raises(IsoluxError, match=r"not valid JSON|is not an object") as caught:
        read(tmp_path, text)
    byte = int(re.search(r"byte (\d+)", str(caught.value))[1])
    begin = len(json.dumps([ROW] * 3)) + 1
    assert begin <= byte <= begin + len(broken)


@pytest.mark.parametrize("cut", [1, 2, 5, 60])
def test_a_file_that_is_cut_off_is_told_with_its_end(tmp_path, cut):
    text = json.dumps([ROW] * 3)[:-cut]
    with pytest.raises(FileError, match="the file is cut off") as caught:
        read(tmp_path, text)
    assert f"byte {len(text)}" in str(caught.value)


def test_a_comma_that_is_missing_is_told_with_its_byte(tmp_path):
    text = json.dumps([ROW] * 3).replace("}, {", "} {", 1)
    with pytest.raises(FileError, match="this is not valid JSON") as caught:
        read(tmp_path, text)
    assert f"byte {text.index('} {') + 2}" in str(caught.value)


def test_something_behind_the_list(tmp_path):
    with pytest.raises(FileError, match="something follows the list") as caught:
        read(tmp_path, json.dumps([ROW]) + " []")
    assert f"byte {len(json.dumps([ROW])) + 1}" in str(caught.value)


def test_other_files(tmp_path):
    with pytest.raises(FileError, match="this is not a list of results"):
        read(tmp_path, '"annotations"')
    with pytest.raises(FileError, match="the file is empty"):
        read(tmp_path, " \n")
    (tmp_path / "net.json").write_bytes(b"PAR1....")
    with pytest.raises(FileError, match="this is not text"):
        coco_results.read(tmp_path / "net.json")
    with pytest.raises(FileError, match="this is a folder"):
        coco_results.read(tmp_path)


def test_some_results_with_a_mask_and_some_without(tmp_path):
    with pytest.raises(TableError, match="cannot be used") as caught:
        read(tmp_path, [ROW | {"segmentation": {"size": [4, 3], "counts": "237"}}, ROW])
    assert "row 2, column 'mask_counts'" in str(caught.value)


def test_a_number_beyond_floats_is_refused(tmp_path):
    with pytest.raises(IsoluxError):
        read(tmp_path, json.dumps([ROW]).replace("0.5", "1e999"))


# Real files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["instances_val2014_fakebbox100_results", "instances_val2014_fakesegm100_results",
     "keypoints_dataset_dt_dataset"],
)  # fmt: skip
def test_real_results_are_what_json_reads(name):
    path = shared_data(f"coco/{name}.json")
    rows = json.loads(path.read_text())
    found = coco_results.read(path)
    assert found["image_id"].to_list() == [str(row["image_id"]) for row in rows]
    assert found["label"].to_list() == [str(row["category_id"]) for row in rows]
    assert found["score"].to_list() == [row["score"] for row in rows]
    if "bbox" in rows[0]:
        boxes_ = found.select("box_x", "box_y", "box_w", "box_h").rows()
        assert boxes_ == [tuple(map(float, row["bbox"])) for row in rows]
    if "segmentation" in rows[0]:
        assert found["mask_counts"].to_list() == [r["segmentation"]["counts"] for r in rows]
        assert found["mask_width"].to_list() == [r["segmentation"]["size"][1] for r in rows]
    if "keypoints" in rows[0]:
        for k, column in enumerate(("keypoints_x", "keypoints_y", "keypoints_v")):
            assert found[column].to_list() == [row["keypoints"][k::3] for row in rows]


def test_memory_does_not_grow_with_the_file():
    """A file of a megabyte is read 4 KiB at a time, and braces within its text do no harm."""
    data = json.dumps([ROW | {"image_id": i} for i in range(12_000)]).encode()
    source = JsonText(io.BytesIO(data), "x.json", 4096)
    longest = 0

    class Decoder:
        def decode(self, text):
            nonlocal longest
            longest = max(longest, len(text))
            return msgspec.json.decode(text)

    assert sum(map(len, source.iterate_objects(Decoder()))) == 12_000
    assert longest < 9000
    assert source.offset == len(data)
    odd = json.dumps([ROW | {"image_id": f"}}, {{ {i}"} for i in range(500)]).encode()
    assert read_bytes(odd, block=512)["image_id"].to_list() == [f"}}, {{ {i}" for i in range(500)]


def test_results_in_an_object_with_annotations(tmp_path):
    rows = [
        {"image_id": 7, "category_id": k, "bbox": [4, 5, 20, 30.5], "score": 0.9 - k / 8}
        for k in (1, 2)
    ]
    plain, wrapped, named = (tmp_path / f"{name}.json" for name in ("plain", "wrapped", "named"))
    plain.write_text(json.dumps(rows))
    images = [{"id": k, "file_name": "x" * 1000} for k in range(100)]
    wrapped.write_text(json.dumps({"info": {}, "images": images, "annotations": rows}))
    categories = [{"id": 1, "name": "person"}, {"id": 2, "name": "dog"}]
    named.write_text(json.dumps({"annotations": rows, "categories": categories}))
    assert coco_results.read(wrapped, model="m").equals(coco_results.read(plain, model="m"))
    assert coco_results.read(named)["label"].to_list() == ["person", "dog"]
    assert read_outputs(named).equals(coco_results.read(named))
    without = tmp_path / "truth.json"
    without.write_text(json.dumps({"annotations": [rows[0] | {"score": None}]}))
    with pytest.raises(TableError, match="has no score"):
        coco_results.read(without)
    for other in ({"frames": rows}, rows[0]):
        without.write_text(json.dumps(other))
        with pytest.raises(FileError, match=r"(?s)not a list of results.*--format scalabel.*\[\{"):
            coco_results.read(without)
