from __future__ import annotations

import io
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from isolux.core.errors import FileError, IsoluxError, SpecError, TableError, UnknownNameError
from isolux.core.tables import INSTANCES, check
from isolux.datasets import cluster_by_requested_column
from isolux.datasets._columns import INSTANCE_COLUMNS
from isolux.datasets.miap import INFO, load
from tests.cli._run import isolux

HEADER = (
    "ImageID,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,"
    "IsDepictionOf,IsInsideOf,GenderPresentation,AgePresentation\n"
)
# In an image of 400 x 200 pixels: boxes of 100 x 100, 99 x 100, 200 x 99.9, 400 x 200.
BOXES = (
    "a1,/m/01g317,1,0.5,0.75,0,0.5,0,1,0,0,-1,Predominantly Feminine,Middle\n"
    "a1,/m/01g317,1,0.0,0.2475,0.25,0.75,1,0,0,0,0,Unknown,Older\n"
    "b2,/m/01g317,1,0.25,0.75,0.25,0.7495,0,0,0,1,0,Predominantly Masculine,Young\n"
    "b2,/m/01g317,1,0,1,0,1,0,0,1,0,0,Unknown,Unknown\n"
)
SIZES = "ImageID,width,height\na1,400,200\nb2,400,200\nempty,10,10\nother,3,3\n"
SIDES = ("box_x", "box_y", "box_w", "box_h")
NAME = "open_images_extended_miap_boxes_test.csv"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / NAME).write_text(HEADER + BOXES)
    (tmp_path / "sizes.csv").write_text(SIZES)
    return tmp_path


def sized(folder, **settings):
    return load(folder, sizes=folder / "sizes.csv", **settings)


def values(dataset, attribute):
    return dataset.values_of(attribute)["value"].to_list()


def test_sides_come_in_the_order_of_their_columns_and_become_pixels(folder):
    rows = sized(folder).instances
    assert rows.select(SIDES).rows() == [
        (200.0, 0.0, 100.0, 100.0),
        (0.0, 50.0, 99.0, 100.0),
        (100.0, 50.0, 200.0, pytest.approx(99.9)),
        (0.0, 0.0, 400.0, 200.0),
    ]
    assert rows["area"][0] == 10_000.0
    assert rows["instance_id"].to_list() == ["a1#0", "a1#1", "b2#0", "b2#1"]
    assert rows["classes"].to_list() == [["person"]] * 4


def test_columns_are_found_by_name_in_any_order(folder):
    lines = [line.split(",") for line in (HEADER + BOXES).splitlines()]
    order = [0, *range(13, 0, -1)]
    text = "\n".join(",".join(line[i] for i in order) for line in lines) + "\n"
    before = sized(folder).instances
    (folder / NAME).write_text(text)
    assert sized(folder).instances.equals(before)


def test_what_annotators_perceived(folder):
    dataset = load(folder)
    assert values(dataset, "gender_presentation") == [
        "Predominantly Feminine", "Unknown", "Predominantly Masculine", "Unknown",
    ]  # fmt: skip
    assert values(dataset, "age_presentation") == ["Middle", "Older", "Young", "Unknown"]
    assert dict(INFO.terms)["gender_presentation"] == "perceived gender presentation"
    assert INFO.label_source == "perceived"


def test_flags(folder):
    dataset = load(folder)
    assert values(dataset, "is_occluded") == ["false", "true", "false", "false"]
    assert values(dataset, "is_truncated") == ["true", "false", "false", "false"]
    assert values(dataset, "is_depiction_of") == ["false", "false", "true", "false"]
    assert values(dataset, "is_inside_of") == [None, "false", "false", "false"], "-1: not told"
    assert values(dataset, "is_group_of") == ["false", "false", "false", "true"]
    assert dataset.instances["is_crowd"].to_list() == [False, False, False, True]
    assert dataset.instances["ignore"].to_list() == [False, False, False, True]


def test_a_flag_may_be_called_or_left_out_otherwise(folder):
    text = (HEADER + BOXES).replace("IsInsideOf", "IsInside")
    (folder / NAME).write_text(text)
    assert values(load(folder), "is_inside_of") == [None, "false", "false", "false"]
    short = "ImageID,XMin,XMax,YMin,YMax,GenderPresentation,AgePresentation\na1,0,1,0,1,,Older\n"
    (folder / NAME).write_text(short)
    dataset = load(folder)
    assert values(dataset, "is_occluded") == values(dataset, "gender_presentation") == [None]
    assert dataset.instances["is_crowd"].to_list() == [False]


def test_without_sizes_there_are_no_pixels_and_it_is_said(folder):
    dataset = load(folder)
    assert dataset.instances["box_w"].null_count() == 4
    assert dataset.notes == (
        (
            "The sizes of 2 of 2 images are not known, so 4 boxes have no place in pixels; sizes (a"
            " table, or the folder of the images) gives them."
        ),
    )
    with pytest.raises(SpecError, match=r"(?s)no image has a known size.*min_side=100"):
        load(folder, min_side=100)


def test_sizes_of_some_images_are_counted(folder):
    (folder / "sizes.csv").write_text("image_id,width,height\nx/a1.jpg,400,200\n")
    dataset = sized(folder)
    assert dataset.notes[0].startswith("The sizes of 1 of 2 images are not known, so 2 boxes")
    assert dataset.instances["box_w"].to_list() == [100.0, 99.0, None, None]
    small = sized(folder, min_side=100)
    assert small.instances["instance_id"].to_list() == ["a1#0"]
    assert small.notes[1] == (
        "3 of 4 boxes are left out: 1 as a side is shorter than 100 pixels, 2 as its image's size"
        " is not known (a box may have several)."
    )


def picture(path, width, height, orientation=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    Image.new("L", (width, height)).save(path, exif=exif)


def test_sizes_may_come_from_the_pictures_headers(folder):
    pictures = folder / "images"
    picture(pictures / "a1.jpg", 400, 200)
    picture(pictures / "deep" / "b2.png", 400, 200)
    (pictures / "other.jpg").write_bytes(b"not of this set, so never opened")
    dataset = load(folder, sizes=pictures)
    assert dataset.instances.equals(sized(folder).instances)
    assert dataset.images["uri"].to_list() == ["a1.jpg", "deep/b2.png"]


def test_a_picture_is_as_wide_as_it_looks(folder):
    picture(folder / "images" / "a1.jpg", 200, 400, orientation=6)
    assert load(folder, sizes=folder / "images").images.row(0)[:1] == ("a1",)
    sizes = load(folder, sizes=folder / "images").images.select("width", "height")
    assert sizes.row(0) == (400, 200)


def test_no_pixel_of_a_picture_is_decoded(folder):
    stream = io.BytesIO()
    Image.effect_noise((400, 200), 50).save(stream, "JPEG")
    (folder / "images").mkdir()
    (folder / "images" / "a1.jpg").write_bytes(stream.getvalue()[:900])  # the header alone
    sizes = load(folder, sizes=folder / "images").images.select("width", "height")
    assert sizes.row(0) == (400, 200)


def test_small_boxes_may_be_left_out_as_fairness_indicators_does(folder):
    dataset = sized(folder, min_side=100)
    assert dataset.instances["instance_id"].to_list() == ["a1#0", "b2#1"]
    assert dataset.notes == (
        (
            "2 of 4 boxes are left out: 2 as a side is shorter than 100 pixels (a box may have"
            " several)."
        ),
    )


def test_images_without_people_are_images(folder):
    (folder / "open_images_extended_miap_images_test.lst").write_text("empty\na1\n")
    dataset = sized(folder)
    assert dataset.images["image_id"].to_list() == ["a1", "b2", "empty"]
    assert dataset.images["uri"].to_list() == ["a1.jpg", "b2.jpg", "empty.jpg"]
    assert len(dataset.inputs) == 3


def test_fairness_indicators_list_is_in_pixels_written_as_text(folder):
    rows = [
        {"path": "/away/me/test/a1.jpg", "bbox": ["200", "0", "300.0", "100"], "IsGroupOf": "0",
         "GenderPresentation": "Predominantly Feminine", "AgePresentation": "Middle",
         "LabelName": "/m/01g317", "Confidence": "1", "IsOccluded": "0", "IsTruncated": "1",
         "IsDepictionOf": 0, "IsInsideOf": "-1"},
        {"path": "/away/me/test/a1.jpg", "bbox": [0, 50, 99, 150], "GenderPresentation": "Unknown",
         "AgePresentation": "Older"},
    ]  # fmt: skip
    path = folder / "miap.json"
    path.write_text(json.dumps(rows))
    dataset = load(path)
    people = sized(folder).instances.filter(image_id="a1")
    assert dataset.instances.select("instance_id", *SIDES).equals(
        people.select("instance_id", *SIDES)
    )
    assert values(dataset, "is_truncated") == ["true", None]
    assert dataset.images["uri"].to_list() == ["a1.jpg"], "never a path of someone's machine"
    assert dataset.notes == ()
    assert load(path, min_side=100).instances["instance_id"].to_list() == ["a1#0"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bbox": ["1", "2", "x", "4"]}, r"not numbers.*'x'.*row 1, column 'bbox\[2\]'"),
        ({"bbox": ["3", "2", "1", "4"]}, "sides are swapped.*3.0, 1.0.*row 1"),
        ({"bbox": ["nan", "2", "3", "4"]}, "a side is not a number of pixels.*'nan'.*row 1"),
        ({"bbox": ["1", "2", "3"]}, "of length 4.*row 1"),
        ({"path": 3}, r"got `int`.*row 1, column 'path'"),
        ({"AgePresentation": "Old"}, "a word that MIAP does not have.*'Old'.*row 1"),
    ],
)
def test_an_odd_list_is_refused(tmp_path, changes, words):
    row = {"path": "a.jpg", "bbox": ["1", "2", "3", "4"], "GenderPresentation": "Unknown"}
    (tmp_path / "a.json").write_text(json.dumps([row | changes]))
    with pytest.raises(TableError, match=rf"(?s){words}"):
        load(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("0.5,0.75,0,0.5", "0.75,0.5,0,0.5", TableError,
         "a box's sides are swapped.*XMin up to XMax.*XMin, XMax, YMin, YMax.*0.75, 0.5.*row 1"),
        # The order of other sets, x1, y1, x2, y2, under MIAP's header.
        ("0.5,0.75,0,0.5", "0.5,0,0.75,0.5", TableError, "sides are swapped.*row 1"),
        ("0.5,0.75,0,0.5", "200,300,0,100", TableError,
         "a side is outside the image.*0 to 1.*'200'.*row 1, column 'XMin'"),
        ("0.5,0.75,0,0.5", "nan,0.75,0,0.5", TableError, "a side is outside.*row 1"),
        ("0.5,0.75,0,0.5", ",0.75,0,0.5", TableError, "a side is outside.*None.*row 1"),
        ("Older", "Elder", TableError, "'Elder'.*row 2, column 'AgePresentation'"),
        ("Predominantly Masculine", "Masculine", TableError, "'Masculine'.*row 3, column 'Gender"),
        ("0,1,0,0,-1", "0,2,0,0,-1", TableError, "neither set nor unset.*'2'.*row 1, column 'IsT"),
        ("b2,/m/01g317", "b2,/m/04yx4", TableError, "of no person.*'/m/04yx4'.*row 3"),
        ("a1,/m", ",/m", TableError, "2 row.s. have no id.*row 1, column 'ImageID'"),
        ("XMax", "XMx", UnknownNameError, "no column named 'XMax'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_row(folder, old, new, error, words):
    (folder / NAME).write_text((HEADER + BOXES).replace(old, new))
    with pytest.raises(error, match=rf"(?s){words}"):
        load(folder)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (
            "ImageID,width,height\na1,0,3\n",
            TableError,
            "width is not a number of pixels.*'0'.*row 1",
        ),
        ("ImageID,width,height\na1,3,2.5\n", TableError, "height is not a number.*'2.5'.*row 1"),
        ("ImageID,width,height\na1,3,\n", TableError, "height is not a number.*None.*row 1"),
        ("ImageID,width,height\na1,3,2\na1,3,2\n", TableError, "an image has several sizes.*'a1'"),
        ("ImageID,w,height\na1,3,2\n", UnknownNameError, "no column named 'width'"),
    ],
)
def test_odd_sizes_are_refused(folder, text, error, words):
    (folder / "sizes.csv").write_text(text)
    with pytest.raises(error, match=rf"(?s){words}"):
        sized(folder)


def test_odd_pictures_are_refused(folder):
    (folder / "images").mkdir()
    (folder / "images" / "a1.jpg").write_bytes(b"no picture")
    with pytest.raises(FileError, match=r"(?s)cannot be read from its header.*a1\.jpg"):
        load(folder, sizes=folder / "images")
    with pytest.raises(FileError, match="no such file"):
        load(folder, sizes=folder / "absent.csv")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"split": "all"}, "split cannot be set.*train or val or test"),
    ],
)
def test_unknown_settings_are_refused(folder, settings, words):
    with pytest.raises(SpecError, match=rf"(?s){words}"):
        load(folder, **settings)


def test_another_split_is_another_file(folder):
    with pytest.raises(FileError, match=r"(?s)no MIAP boxes.*miap_boxes_val\.csv"):
        load(folder, split="val")
    (folder / NAME).rename(folder / NAME.replace("test", "val"))
    assert load(folder, split="val").instances.height == 4


def test_an_image_is_a_cluster(folder):
    assert load(folder).instances["cluster_id"].to_list() == ["a1", "a1", "b2", "b2"]
    assert (
        cluster_by_requested_column(load(folder), "row").instances["cluster_id"].null_count() == 4
    )
    with pytest.raises(UnknownNameError, match="no cluster named 'subject'"):
        cluster_by_requested_column(load(folder), "subject")


def test_further_columns_are_documented(folder):
    dataset = sized(folder)
    assert check(dataset.instances, INSTANCES).equals(dataset.instances)
    known = {c.name: c.dtype for c in INSTANCE_COLUMNS}
    further = {n: t for n, t in dataset.instances.schema.items() if n not in INSTANCES.schema}
    assert further == {name: known[name] for name in further}


def test_an_audit_of_it_runs(tmp_path, monkeypatch, capsys):
    words = ("Predominantly Feminine", "Predominantly Masculine")
    rows, said = [], ["id,label"]
    for i in range(300):
        age = ("Middle", "Older", "Unknown")[i % 3]
        wide = 0.2 if i % 50 else 0.1
        rows.append(f"im{i},/m/01g317,1,0.1,{0.1 + wide},0,1,0,0,0,0,0,{words[i % 2]},{age}")
        wrong = i % 6 == 1  # every second person who is perceived as older
        said.append(f"im{i}#0,{words[(i + wrong) % 2]}")
    (tmp_path / NAME).write_text(HEADER + "\n".join(rows) + "\n")
    sizes = "\n".join(["ImageID,width,height", *(f"im{i},640,480" for i in range(300))])
    (tmp_path / "sizes.csv").write_text(sizes + "\n")
    (tmp_path / "net.csv").write_text("\n".join(said) + "\n")
    ran = isolux(
        monkeypatch, capsys, "audit", f"miap:{tmp_path}", "--target", "gender_presentation",
        "--by", "age_presentation", "--predictions", tmp_path / "net.csv", "--replicates", 100,
        "--metric", "accuracy", "--data-option", f"sizes={tmp_path / 'sizes.csv'}",
        "--data-option", "min_side=100", "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "works worse for people labelled Older" in " ".join(ran.out.split())
    # 300 people; 6 are 64 pixels wide.
    notes = json.loads((tmp_path / "run" / "audit.json").read_text())["notes"]
    assert notes[0].startswith(
        "6 of 300 boxes are left out: 6 as a side is shorter than 100 pixels"
    )


def test_a_detection_audit_of_it_runs(folder, monkeypatch, capsys):
    found = [{"image_id": i, "category_id": 1, "bbox": [200, 0, 100, 100], "score": 0.9}
             for i in ("a1", "b2")]  # fmt: skip
    (folder / "net.json").write_text(json.dumps(found))
    ran = isolux(
        monkeypatch, capsys, "audit", f"miap:{folder}", "--task", "detection", "--by",
        "gender_presentation", "--predictions", folder / "net.json", "--data-option",
        f"sizes={folder / 'sizes.csv'}", "--out", folder / "run", "--replicates", 100,
    )  # fmt: skip
    assert ran.code == 0, ran.err


WHOLE = HEADER + BOXES


@given(
    at=st.integers(0, len(WHOLE)),
    cut=st.integers(0, 9),
    put=st.sampled_from(["", "\n", '"', "-1", "1e309", "é", ",", "nan", "9" * 30, "\0"]),
)
def test_any_damage_gives_a_dataset_or_our_own_error(tmp_path_factory, at, cut, put):
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / NAME).write_text(WHOLE[:at] + put + WHOLE[at + cut :], newline="")
    (folder / "sizes.csv").write_text(SIZES)
    with suppress(IsoluxError):
        dataset = sized(folder)
        assert (dataset.instances["box_w"].drop_nulls() >= 0).all()
        assert dataset.instances["instance_id"].is_unique().all()
