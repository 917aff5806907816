from __future__ import annotations

import csv
import io
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, SpecError, TableError, UnknownNameError
from isolux.core.spec import Grouping
from isolux.core.tables import INSTANCES, check
from isolux.datasets import cluster_by_requested_column
from isolux.datasets._columns import INSTANCE_COLUMNS
from isolux.datasets.fhibe import INFO, NESTED_ATTRIBUTES, load
from isolux.datasets.fhibe.value_lists import KEYPOINTS
from isolux.geometry.body_parts import list_part_names
from isolux.geometry.keypoints import COCO_KEYPOINTS

POINTS = {
    "0. Nose": [10.5, 4.25, 1],
    "1. Right eye inner": [9.0, 3.0, 0],
    "10. Mouth left": [1, 2, 1],
}
SEGMENTS = [
    {"class_name": "0. Face skin", "num": 1, "polygon": [{"x": 1.5, "y": 2}, {"x": 3, "y": 4}]},
    {"class_name": "6. Head hair", "num": 2, "polygon": [{"x": 0, "y": 0}]},
]


def person(image, subject, **cells):
    folder = f"data/raw/fhibe_downsampled/{subject}/{image}"
    return {
        "image_id": image, "filepath": f"{folder}/main_{image}.png",
        "json_path": f"{folder}/main_annos_{image}.json", "subject_id": subject,
        "is_primary": True, "image_height": 48, "image_width": 64, "scene": "12. Indoor: Home",
        "lighting": ["0. From above", "4. From the left"], "location_country": " kenya",
        "manufacturer": "acme\0\0", "consent": True, "age": 24, "nationality": ["105. Kenyan"],
        "ancestry": ["0. Africa", "2. Eastern Africa"], "pronoun": ["1. He/him/his"],
        "natural_skin_color": "0. [102, 78, 65]", "apparent_skin_color": "4. [189, 163, 137]",
        "hairstyle": "8. Up (Medium)", "facial_marks": ["0. None"], "head_pose": "0. Typical",
        "person_bbox": [1.0, 2.0, 30.0, 40.0], "face_bbox": [5, 6, 7, 8],
        "keypoints": POINTS, "segments": SEGMENTS, "segments_QAannotator_id": ["q"], **cells,
    }  # fmt: skip


PEOPLE = [
    person("i1", "s1"),
    person("i1", "s2", is_primary=False, age=60, ancestry=["11. Asia"], hairstyle="18. Free-text",
           pronoun=["0. She/her/hers", "2. They/them/their"], apparent_skin_color=None,
           keypoints=None, face_bbox=None),
    person("i2", "s1", facial_marks=["1. Tattoos", "10. Report string", "9. Not listed"],
           ancestry=["18. Eastern Europe", "13. Eastern Asia"], pronoun=["5. Prefer not to say"]),
]  # fmt: skip


def as_csv(rows) -> str:
    """Write rows as pandas does: lists as Python prints them, None as an empty cell."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


@pytest.fixture
def release(tmp_path):
    return put(tmp_path, PEOPLE)


def put(root, rows):
    folder = root / "data" / "processed" / "fhibe_downsampled"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fhibe_downsampled.csv").write_text(as_csv(rows))
    return root


def put_json(root, rows, release="fhibe_downsampled"):
    """Write a JSON file for each image, its people in the order of the rows."""
    of_images = (
        "scene",
        "lighting",
        "location_country",
        "manufacturer",
        "image_height",
        "image_width",
    )
    for image in dict.fromkeys(row["image_id"] for row in rows):
        people = [row for row in rows if row["image_id"] == image]
        folder = root / "data" / "raw" / release / people[0]["subject_id"] / image
        folder.mkdir(parents=True)
        skip = {*of_images, "image_id", "filepath", "json_path"}
        file = {
            "image_annotation": {"image_id": image, **{k: people[0][k] for k in of_images}},
            "subject_annotation": [{k: v for k, v in p.items() if k not in skip} for p in people],
        }
        (folder / f"main_annos_{image}.json").write_text(json.dumps(file))
    return root


def values(dataset, attribute, unit=None):
    rows = dataset.values_of(attribute)
    if unit is not None:
        return rows.filter(unit_id=unit)["value"].to_list()
    return rows.select("unit_id", "value").rows()


def test_rows_are_people_in_photos_and_people_are_clusters(release):
    rows = load(release).instances
    assert rows["instance_id"].to_list() == ["i1_s1", "i1_s2", "i2_s1"]
    assert rows["image_id"].to_list() == ["i1", "i1", "i2"]
    assert rows["subject_id"].to_list() == rows["cluster_id"].to_list() == ["s1", "s2", "s1"]
    assert rows["is_primary"].to_list() == [True, False, True]
    assert cluster_by_requested_column(load(release), "image").instances[
        "cluster_id"
    ].to_list() == [
        "i1",
        "i1",
        "i2",
    ]
    with pytest.raises(UnknownNameError, match=r"(?s)no cluster named 'photo'.*subject"):
        cluster_by_requested_column(load(release), "photo")


def test_boxes_are_of_people_and_of_faces(release):
    rows = load(release).instances
    assert rows.select("box_x", "box_y", "box_w", "box_h").row(0) == (1.0, 2.0, 30.0, 40.0)
    assert rows["face_box_w"].to_list() == [7.0, None, 7.0]


def test_images_come_once_with_their_size(release):
    assert load(release).images.select("image_id", "uri", "width", "height").rows() == [
        ("i1", "data/raw/fhibe_downsampled/s1/i1/main_i1.png", 64, 48),
        ("i2", "data/raw/fhibe_downsampled/s1/i2/main_i2.png", 64, 48),
    ]


def test_the_face_can_be_what_is_detected(release):
    rows = load(release, box="face").instances
    assert rows.select("box_x", "box_y", "box_w", "box_h").row(0) == (5.0, 6.0, 7.0, 8.0)
    assert rows["area"].to_list() == [56.0, None, 56.0]
    assert rows["classes"].to_list() == [["face"]] * 3
    assert rows["face_box_w"].to_list() == [7.0, None, 7.0]


def test_keypoints_can_be_those_of_coco_left_before_right(tmp_path):
    points = {"5. Left eye": [1, 2, 1], "2. Right eye": [3, 4, 1], "32. Left foot index": [0, 0, 1]}
    rows = [person("i1", "s1", keypoints=points), person("i2", "s1", keypoints=None)]
    found = load(put(tmp_path, rows), keypoint_set="coco").instances
    names = [name.lower() for name in found["keypoint_names"][0]]
    assert tuple(names) == COCO_KEYPOINTS
    assert found["keypoints_x"][0].to_list() == [None, 1.0, 3.0, *[None] * 14]
    assert found["keypoints_v"][0].to_list() == [0, 2, 2, *[0] * 14]
    assert found["keypoints_x"][1] is None
    bare = [{k: v for k, v in row.items() if k != "keypoints"} for row in rows]
    assert "keypoints_x" not in load(put(tmp_path, bare), keypoint_set="coco").instances.columns


def test_there_are_33_keypoints_right_before_left():
    assert len(KEYPOINTS) == 33
    assert [KEYPOINTS[i] for i in (1, 4, 9, 11, 12, 17, 32)] == [
        "Right eye inner", "Left eye inner", "Mouth right", "Right shoulder", "Left shoulder",
        "Right pinky knuckle", "Left foot index",
    ]  # fmt: skip


def test_absent_and_invisible_keypoints_are_not_labelled(release):
    rows = load(release).instances
    x, y, v = (rows[name][0].to_list() for name in ("keypoints_x", "keypoints_y", "keypoints_v"))
    assert (x[0], y[0], v[0]) == (10.5, 4.25, 2)
    assert (x[1], y[1], v[1]) == (None, None, 0)
    assert (x[10], v[10]) == (1.0, 2)
    assert sum(v) == 4
    assert len(v) == 33
    assert rows["keypoint_names"][0].to_list() == list(KEYPOINTS)
    assert rows["keypoints_v"][1] is None


def test_answers_lose_their_number(release):
    dataset = load(release)
    assert values(dataset, "hairstyle") == [
        ("i1_s1", "Up (Medium)"), ("i1_s2", "Not listed"), ("i2_s1", "Up (Medium)"),
    ]  # fmt: skip
    assert values(dataset, "head_pose", "i1_s1") == ["Typical"]


def test_several_answers_are_several_rows_and_free_text_is_not_listed(release):
    dataset = load(release)
    assert values(dataset, "pronoun", "i1_s2") == ["She/her/hers", "They/them/their"]
    assert values(dataset, "facial_marks", "i2_s1") == ["Tattoos", "Not listed"]
    assert values(dataset, "pronoun", "i2_s1") == ["Prefer not to say"]


def test_ancestry_is_kept_as_given_and_by_region(release):
    dataset = load(release)
    assert values(dataset, "ancestry", "i1_s1") == ["Africa", "Eastern Africa"]
    assert values(dataset, "ancestry", "i1_s2") == ["Asia"]
    assert values(dataset, "ancestry_region", "i1_s1") == ["Africa"]
    assert values(dataset, "ancestry_region", "i2_s1") == ["Europe", "Asia"]


def test_the_nesting_is_what_a_grouping_takes():
    tree = NESTED_ATTRIBUTES["ancestry"]
    assert {region: len(parts) for region, parts in tree.items()} == {
        "Africa": 5, "Americas": 4, "Asia": 5, "Europe": 4, "Oceania": 4,
    }  # fmt: skip
    grouping = Grouping(attribute="ancestry", nested=tree)
    assert grouping.nested["Oceania"][1] == "Melanesia"


def test_ages_are_years_and_bins(tmp_path):
    ages = [18, 29, 30, 39, 40, 50, 59, 60, 91]
    dataset = load(put(tmp_path, [person(f"i{a}", "s", age=a) for a in ages]))
    assert dataset.values_of("age")["number"].to_list() == [float(a) for a in ages]
    assert [value for _, value in values(dataset, "age_group")] == [
        "[18,30)", "[18,30)", "[30,40)", "[30,40)", "[40,50)", "[50,60)", "[50,60)", "[60,+]",
        "[60,+]",
    ]  # fmt: skip


def test_skin_colours_are_fitzpatrick_types_darkest_last(release):
    dataset = load(release)
    natural = dataset.values_of("natural_skin_color").select("value", "number").rows()
    apparent = dataset.values_of("apparent_skin_color").select("value", "number").rows()
    # 0 is VI, the darkest; 4 is II (the note's map: 0=VI, 1=V, 2=IV, 3=III, 4=II, 5=I).
    assert natural == [("VI", 6.0)] * 3
    assert apparent == [("II", 2.0), (None, None), ("II", 2.0)]


def test_what_is_said_of_photos_is_of_images(release):
    dataset = load(release)
    assert set(dataset.values_of("lighting")["unit_kind"]) == {"image"}
    assert values(dataset, "lighting", "i1") == ["From above", "From the left"]
    assert values(dataset, "scene") == [("i1", "Indoor: Home"), ("i2", "Indoor: Home")]
    assert values(dataset, "location_country", "i1") == ["Kenya"]
    assert values(dataset, "manufacturer", "i1") == ["acme"]


def test_part_polygons_are_kept_as_text_when_asked_for(release):
    assert "segments" not in load(release).instances.columns
    cells = load(release, segments=True).instances["segments"]
    assert list_part_names(cells[:1]) == ["Face skin", "Head hair"]


def test_json_files_hold_the_same(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    table = load(put(tmp_path / "a", PEOPLE), segments=True)
    files = load(put_json(tmp_path / "b", PEOPLE), segments=True)
    assert files.images.equals(table.images)
    assert files.attributes.equals(table.attributes)
    columns = [n for n in table.instances.columns if n not in ("segments", "annotation_uri")]
    assert files.instances.select(columns).equals(table.instances.select(columns))
    assert (
        sum(len(json.loads(cell)) for cell in files.instances["segments"].str.replace_all("'", '"'))
        == 6
    )
    assert len(files.inputs) == 2


def test_json_is_read_where_asked_for(tmp_path):
    put(tmp_path, PEOPLE)
    put_json(tmp_path, PEOPLE[:1])
    assert load(tmp_path).instances.height == 3
    assert load(tmp_path, source="json").instances.height == 1


def test_the_full_size_release_has_json_alone(tmp_path):
    put_json(tmp_path, PEOPLE, "fhibe_fullres")
    assert load(tmp_path).images["uri"][0] == "data/raw/fhibe_fullres/s1/i1/main_i1.png"
    with pytest.raises(FileError, match=r"(?s)no FHIBE annotations.*fhibe_downsampled\.csv"):
        load(tmp_path, source="csv")


def test_aligned_faces(tmp_path):
    rows = [
        {**row, "image_id": f"{row['image_id']}_{row['subject_id']}", "multiple_subjects": 0,
         "CelebA": ["m/skin.png", f"m/{row['image_id']}/combined.png"]}
        for row in PEOPLE
    ]  # fmt: skip
    for row in rows:
        del row["person_bbox"], row["face_bbox"]
    folder = tmp_path / "fhibe_face_crop_align"
    folder.mkdir()
    (folder / "fhibe_face_crop_align.csv").write_text(as_csv(rows))
    dataset = load(tmp_path, release="face")
    assert dataset.instances["instance_id"].to_list() == ["i1_s1", "i1_s2", "i2_s1"]
    assert dataset.instances["image_id"].to_list() == ["i1_s1", "i1_s2", "i2_s1"]
    assert dataset.instances["box_x"].null_count() == 3
    assert dataset.instances["part_mask_uri"][0] == "m/i1/combined.png"
    assert values(dataset, "multiple_subjects", "i1_s1") == ["0"]
    assert dataset.images.height == 3


def test_those_without_consent_are_left_out_and_counted(tmp_path):
    rows = [PEOPLE[0], {**PEOPLE[1], "consent": False}, PEOPLE[2]]
    dataset = load(put(tmp_path, rows))
    assert dataset.instances["subject_id"].to_list() == ["s1", "s1"]
    assert "s2" not in str(dataset.attributes["unit_id"].to_list())
    assert dataset.notes == ("1 row(s) of people without consent are left out.",)


def test_columns_that_a_release_lacks_are_no_error(tmp_path):
    needed = ["image_id", "filepath", "json_path", "subject_id", "is_primary", "image_height",
              "image_width", "age"]  # fmt: skip
    rows = [{name: row[name] for name in needed} for row in PEOPLE]
    dataset = load(put(tmp_path, rows))
    assert set(dataset.attributes["attribute"]) == {"age", "age_group"}
    for name in needed:
        put(tmp_path, [{k: v for k, v in row.items() if k != name} for row in rows])
        with pytest.raises(UnknownNameError, match=f"no column named '{name}'"):
            load(tmp_path)


def test_cells_beyond_128_kilobytes_are_read_and_the_limit_is_put_back(tmp_path):
    before = csv.field_size_limit()
    large = [{**SEGMENTS[0], "polygon": [{"x": 1, "y": 2}] * 20_000}]
    dataset = load(put(tmp_path, [person("i1", "s1", segments=large)]), segments=True)
    assert dataset.instances["segments"].str.len_bytes()[0] > 200_000
    assert dataset.instances["segments"][0].count("'x'") == 20_000
    assert csv.field_size_limit() == before


def test_further_columns_are_documented(release):
    dataset = load(release, segments=True)
    assert check(dataset.instances, INSTANCES).equals(dataset.instances)
    known = {c.name: c.dtype for c in INSTANCE_COLUMNS}
    further = {n: t for n, t in dataset.instances.schema.items() if n not in INSTANCES.schema}
    assert further == {name: known[name] for name in further}


@pytest.mark.parametrize(
    ("cell", "value", "words"),
    [
        ("ancestry", "__import__('os').getcwd()", None),
        ("ancestry", "['0. Africa'", "'ancestry' cannot be read: no Python literal.*row 2"),
        ("ancestry", "[1, 2]", "'ancestry' cannot be read: no list of text.*row 2"),
        ("ancestry", "[__import__('os').getcwd()]", "'ancestry' cannot be read.*row 2"),
        ("pronoun", "[" * 5_000, "'pronoun' cannot be read.*row 2, column 'pronoun'"),
        ("pronoun", "[" + "-" * 50_000 + "1]", "'pronoun' cannot be read.*row 2"),
        ("age", 17, "not that of an adult.*'17'.*row 2, column 'age'"),
        ("age", "x", "not numbers.*'x'.*row 2, column 'age'"),
        ("person_bbox", [1, 2, 3], r"\[x, y, width, height\].*row 2, column 'person_bbox'"),
        ("person_bbox", [1, 2, -3, 4], "negative.*row 2, column 'person_bbox'"),
        ("face_bbox", "[1, 2, 1e999, 4]", "'face_bbox' cannot be read.*row 2"),
        ("keypoints", {"33. Tail": [1, 2, 1]}, "no keypoint '33. Tail'.*row 2"),
        ("keypoints", {"0. Left ear": [1, 2, 1]}, "no keypoint '0. Left ear'.*row 2"),
        ("keypoints", {"0. Nose": [1, 2]}, "Nose has no three numbers.*row 2"),
        ("keypoints", {"0. Nose": [1, 2, 5]}, r"Nose is \[1, 2, 5\].*row 2"),
        ("keypoints", "[1, 2, 1]", "no dictionary.*row 2, column 'keypoints'"),
        ("natural_skin_color", "6. [0, 0, 0]", "not one of FHIBE's six.*row 2"),
        ("subject_id", None, "a row has no subject_id.*row 2"),
        ("image_id", "i2", None),
        ("image_width", 0, "not a number of pixels.*row 2, column 'image_width'"),
    ],
)
def test_what_is_wrong_is_named_with_row_and_column(tmp_path, cell, value, words):
    path = put(tmp_path, [PEOPLE[0], {**PEOPLE[1], cell: value}, PEOPLE[2]])
    if words is None:  # odd, and nothing of it is run
        assert load(path).instances.height == 3
        return
    with pytest.raises(TableError, match=rf"(?s){words}"):
        load(path)


def test_the_same_person_twice_in_a_photo_is_refused(tmp_path):
    with pytest.raises(TableError, match=r"(?s)two rows have the same instance_id.*'i1_s1'"):
        load(put(tmp_path, [PEOPLE[0], PEOPLE[0]]))


def test_a_row_cut_off_is_named(release):
    path = release / "data" / "processed" / "fhibe_downsampled" / "fhibe_downsampled.csv"
    path.write_text(path.read_text() + "i9,a\n")
    with pytest.raises(FileError, match=r"(?s)a row has fewer cells.*26 cells.*2.*row 4"):
        load(release)
    path.write_bytes(b"\xff" + path.read_bytes())
    with pytest.raises(FileError, match="not UTF-8"):
        load(release)


def test_json_cut_off_says_at_which_byte(tmp_path):
    put_json(tmp_path, PEOPLE[:1])
    path = next(tmp_path.glob("**/main_annos_i1.json"))
    path.write_bytes(path.read_bytes()[:99])
    with pytest.raises(FileError, match=r"(?s)cut off.*the end at byte 99"):
        load(tmp_path)
    path.write_text('{"image_annotation": {}}')
    with pytest.raises(TableError, match=r"(?s)missing required field `subject_annotation`"):
        load(tmp_path)


def test_unknown_settings_and_missing_folders_are_said(release):
    with pytest.raises(SpecError, match=r"(?s)release cannot be set.*body or face.*'hand'"):
        load(release, release="hand")
    with pytest.raises(SpecError, match=r"(?s)box cannot be set.*person or face.*'hand'"):
        load(release, box="hand")
    with pytest.raises(SpecError, match=r"(?s)keypoint_set cannot be set.*fhibe or coco.*'mpii'"):
        load(release, keypoint_set="mpii")
    with pytest.raises(SpecError, match=r"(?s)source cannot be set.*csv or json.*'xml'"):
        load(release, source="xml")
    with pytest.raises(FileError, match=r"(?s)no such file.*absent"):
        load(release / "absent.csv")


def test_it_may_not_train_and_people_may_withdraw():
    assert INFO.training_allowed is False
    assert "withdraw their consent" in INFO.withdrawal
    assert INFO.label_source == "self-reported"


TEXT = as_csv(PEOPLE)


@given(
    at=st.integers(0, len(TEXT)),
    cut=st.integers(0, 9),
    put_in=st.sampled_from(["", "\n", ",", '"', "'", "[", "{", "1e999", "-1", "nan", "é", "\0"]),
)
def test_any_damage_gives_a_dataset_or_our_own_error(tmp_path_factory, at, cut, put_in):
    path = tmp_path_factory.mktemp("fuzz") / "fhibe_downsampled.csv"
    path.write_text(TEXT[:at] + put_in + TEXT[at + cut :], encoding="utf-8", newline="")
    with suppress(IsoluxError):
        dataset = load(path)
        assert dataset.instances["instance_id"].is_unique().all()
        assert set(dataset.images["image_id"]) == set(dataset.instances["image_id"])
