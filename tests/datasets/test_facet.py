from __future__ import annotations

import csv
import io
import json
from contextlib import suppress

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, TableError, UnknownNameError
from isolux.core.tables import INSTANCES, check
from isolux.datasets import cluster_by_requested_column
from isolux.datasets._columns import INSTANCE_COLUMNS
from isolux.datasets.facet import INFO, load
from isolux.predictions import match_image_ids

COLUMNS = [
    "person_id", "filename", "class1", "class2", "bounding_box",
    "gender_presentation_masc", "gender_presentation_fem", "gender_presentation_non_binary",
    "gender_presentation_na", *(f"skin_tone_{i}" for i in range(1, 11)), "skin_tone_na",
    "age_presentation_young", "age_presentation_middle", "age_presentation_older",
    "age_presentation_na", "hair_color_brown", "hair_color_na", "hairtype_coily", "hairtype_wavy",
    "hairtype_na", "has_facial_hair", "has_tattoo", "has_cap", "has_mask", "has_headscarf",
    "has_eyeware", "visible_torso", "visible_face", "visible_minimal", "lighting_well_lit",
    "lighting_na",
]  # fmt: skip
BOX = {"x": 4, "y": 5, "width": 20, "height": 40}


def person(**cells) -> dict[str, object]:
    return {**dict.fromkeys(COLUMNS, 0), "class2": "", "bounding_box": json.dumps(BOX), **cells}


PEOPLE = [
    person(person_id=1, filename="sa_1.jpg", class1="nurse", gender_presentation_fem=1,
           skin_tone_2=2, skin_tone_3=3, skin_tone_4=1, has_eyeware=1, hairtype_wavy=1,
           visible_torso=1, visible_face=1, age_presentation_na=1),
    person(person_id=2, filename="sa_1.jpg", class1="guard", class2="basketball_player",
           gender_presentation_na=1, skin_tone_na=3, hair_color_na=1),
    person(person_id=3, filename="sa_2.jpg", class1="drummer", class2="None",
           gender_presentation_masc=1, skin_tone_9=1, skin_tone_na=2),
]  # fmt: skip


def as_csv(rows) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def masks(link: str = "person_id", **changes) -> dict[str, object]:
    """A person, a shirt and hair of person 1, a person of person 3; pictures of 4 × 6 pixels."""
    size = [6, 4]
    rows = [
        {"id": 10, "image_id": 5, "category_id": 1, link: 1, "counts": [4, 20]},
        {"id": 11, "image_id": 5, "category_id": 2, link: 1, "counts": [5, 15, 4]},
        {"id": 12, "image_id": 5, "category_id": 3, link: 1, "counts": [6, 14, 4]},
        {"id": 13, "image_id": 6, "category_id": 1, link: 3, "counts": [20, 4]},
    ]
    for row in rows:
        row["segmentation"] = {"size": size, "counts": row.pop("counts")}
        row["bbox"] = [0, 0, 1, 1]
    return {
        "images": [
            {"id": 5, "file_name": "sa_1.jpg", "width": 4, "height": 6},
            {"id": 6, "file_name": "sa_2.jpg", "width": 4, "height": 6},
        ],
        "annotations": rows,
        "categories": [
            {"id": 1, "name": "person"},
            {"id": 2, "name": "clothing"},
            {"id": 3, "name": "hair"},
        ],
        **changes,
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "annotations.csv").write_text(as_csv(PEOPLE))
    return tmp_path


def put(folder, rows):
    (folder / "annotations" / "annotations.csv").write_text(as_csv(rows))


def put_json(folder, content, name="coco_masks.json"):
    (folder / "annotations" / name).write_text(json.dumps(content))


def values(dataset, attribute):
    return dataset.values_of(attribute).select("unit_id", "value", "votes").rows()


def test_each_row_is_a_person(folder):
    rows = load(folder).instances
    assert rows["instance_id"].to_list() == ["1", "2", "3"]
    assert rows["image_id"].to_list() == ["sa_1.jpg", "sa_1.jpg", "sa_2.jpg"]
    assert rows.select("box_x", "box_y", "box_w", "box_h").row(0) == (4.0, 5.0, 20.0, 40.0)
    assert rows["cluster_id"].to_list() == ["sa_1.jpg", "sa_1.jpg", "sa_2.jpg"]


def test_both_classes_are_valid_and_none_is_no_class(folder):
    dataset = load(folder)
    expected = [["nurse"], ["guard", "basketball_player"], ["drummer"]]
    assert dataset.instances["classes"].to_list() == expected
    assert [row[1] for row in values(dataset, "class")] == [
        name for names in expected for name in names
    ]


def test_votes_for_skin_tone_are_kept_each(folder):
    assert sorted(values(load(folder), "skin_tone"), key=str) == [
        ("1", "2", 2.0),
        ("1", "3", 3.0),
        ("1", "4", 1.0),
        ("2", None, 3.0),
        ("3", "9", 1.0),
        ("3", None, 2.0),
    ]
    tones = load(folder).values_of("skin_tone").filter(unit_id="1")["number"].sort()
    assert tones.to_list() == [2.0, 3.0, 4.0]


def test_marks_are_values_and_na_is_unknown(folder):
    dataset = load(folder)
    assert sorted(values(dataset, "gender_presentation")) == [
        ("1", "fem", None),
        ("2", None, None),
        ("3", "masc", None),
    ]
    assert sorted(values(dataset, "visible")) == [("1", "face", None), ("1", "torso", None)]
    assert values(dataset, "age_presentation") == [("1", None, None)]
    assert values(dataset, "has_eyeware") == [
        ("1", "yes", None), ("2", "no", None), ("3", "no", None),
    ]  # fmt: skip


def test_the_cards_spellings_give_the_same(folder):
    before = load(folder)
    text = as_csv(PEOPLE).replace("hairtype_", "hair_type_").replace("eyeware", "eyewear")
    (folder / "annotations" / "annotations.csv").write_text(text)
    assert load(folder).attributes.equals(before.attributes)
    assert "hairtype" in set(before.attributes["attribute"])


@pytest.mark.parametrize("link", ["person_id", "facet_person_id"])
def test_masks_join_by_either_link(folder, link):
    put_json(folder, masks(link))
    dataset = load(folder)
    rows = dataset.instances.select("instance_id", "mask_counts", "mask_height", "mask_width")
    # 4 is '4'; 20 = 16 + 4 has its sign bit set, so it takes two characters: 'd0' (52 + 48, 0).
    assert rows.rows() == [("1", "4d0", 6, 4), ("2", None, None, None), ("3", "d04", 6, 4)]
    parts = dataset.instances["part_masks"][0].to_list()
    assert [part["part"] for part in parts] == ["clothing", "hair"]
    assert parts[0] == {"part": "clothing", "counts": "5?4", "height": 6, "width": 4}
    assert dataset.instances["part_masks"].null_count() == 2
    assert dataset.images["width"].to_list() == [4, 4]
    assert len(dataset.inputs) == 2


def test_masks_may_be_left_out(folder):
    put_json(folder, masks())
    dataset = load(folder, masks=False)
    assert "mask_counts" not in dataset.instances.columns
    assert len(dataset.inputs) == 1


def test_image_sizes_come_from_the_boxes_too(folder):
    boxes = masks()
    for row in boxes["annotations"]:
        del row["segmentation"]
    put_json(folder, boxes, "coco_boxes.json")
    dataset = load(folder)
    assert dataset.images["height"].to_list() == [6, 6]
    assert dataset.notes == (
        "3 box(es) reach beyond their image by more than 1 pixel; they are kept as they are.",
    )


def test_pictures_are_found_in_their_folders(folder):
    assert load(folder).images["uri"].to_list() == ["sa_1.jpg", "sa_2.jpg"]
    for name in ("imgs_1", "imgs_2/sa_2.jpg", "imgs_3/sa_1.jpg/none"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / "imgs_2" / "sa_2.jpg").touch()
    assert load(folder).images["uri"].to_list()[1] == "imgs_2/sa_2.jpg"
    (folder / "imgs_3" / "sa_1.jpg").rmdir()
    assert load(folder).images["uri"].to_list() == ["sa_1.jpg", "imgs_2/sa_2.jpg"]


def test_results_may_name_images_by_their_coco_numbers(folder):
    put_json(folder, masks())
    numbered = load(folder).images.select("image_id", "coco_image_id").drop_nulls()
    assert numbered.height > 0
    file_name, number = numbered.row(0)
    boxes = pl.DataFrame({"image_id": [number], "score": [0.5]})
    found = match_image_ids(load(folder), boxes)
    assert found.frame["image_id"].to_list() == [file_name]
    assert found.notes == (
        "The predictions name images by the numbers of the dataset's COCO file.",
    )
    by_name = pl.DataFrame({"image_id": [file_name]})
    assert match_image_ids(load(folder), by_name).frame is by_name


def test_masks_of_strangers_and_second_masks_are_counted(folder):
    file = masks()
    file["annotations"][1].update(category_id=1)
    file["annotations"][3].update(person_id=99)
    put_json(folder, file)
    notes = load(folder).notes
    assert notes[0] == "1 mask(s) are of people whom the table does not have."
    assert notes[1].startswith("1 further mask(s) of people who have one already")


def test_masks_without_a_link_are_refused(folder):
    file = masks()
    del file["annotations"][2]["person_id"]
    put_json(folder, file)
    with pytest.raises(TableError, match=r"(?s)do not say whose.*facet_person_id.*row 3"):
        load(folder)


def test_masks_cut_off_say_at_which_byte(folder):
    put_json(folder, masks())
    path = folder / "annotations" / "coco_masks.json"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(FileError, match=r"(?s)cut off.*the end at byte 300.*coco_masks"):
        load(folder)


def test_further_columns_are_documented(folder):
    put_json(folder, masks())
    dataset = load(folder)
    assert check(dataset.instances, INSTANCES).equals(dataset.instances)
    known = {c.name: c.dtype for c in INSTANCE_COLUMNS}
    further = {n: t for n, t in dataset.instances.schema.items() if n not in INSTANCES.schema}
    assert further == {name: known[name] for name in further}


def test_people_may_be_clusters(folder):
    assert (
        cluster_by_requested_column(load(folder), "person").instances["cluster_id"].null_count()
        == 3
    )
    with pytest.raises(UnknownNameError, match=r"(?s)no cluster named 'photo'.*image"):
        cluster_by_requested_column(load(folder), "photo")


def test_empty_cells_are_no_votes_and_are_said(folder):
    put(folder, [*PEOPLE[:2], {**PEOPLE[2], "has_cap": "", "skin_tone_9": " "}])
    dataset = load(folder)
    assert dataset.notes == ("Empty cells of 'skin_tone_9', 'has_cap' are read as 0.",)
    assert ("3", "9", 1.0) not in values(dataset, "skin_tone")


@pytest.mark.parametrize(
    ("cell", "value", "words"),
    [
        ("bounding_box", "", "a cell is not a box.*row 2, column 'bounding_box'"),
        ("bounding_box", '{"x": 1, "y": 2, "width": 3}', "a cell is not a box.*row 2"),
        ("bounding_box", "[1, 2, 3, 4]", "a cell is not a box.*row 2"),
        ("bounding_box", '{"x": 1, "y"', "a cell is not a box.*row 2"),
        ("bounding_box", '{"x": 1, "y": 2, "width": -3, "height": 4}', "negative width.*row 2"),
        ("bounding_box", '{"x": 1, "y": NaN, "width": 3, "height": 4}', "is not a box.*row 2"),
        ("skin_tone_4", "4", "not a count of votes.*0 to 3.*'4'.*row 2, column 'skin_tone_4'"),
        ("skin_tone_4", "x", "not numbers.*'x'.*row 2, column 'skin_tone_4'"),
        ("skin_tone_na", "-1", "not a count of votes.*row 2"),
        ("has_cap", "2", "not a count of votes.*0 to 1.*row 2, column 'has_cap'"),
        ("visible_face", "0.5", "not a count of votes.*row 2, column 'visible_face'"),
        ("visible_face", "nan", "(not a count of votes|not numbers).*row 2, column 'visible_face'"),
        ("class1", "", "1 row.s. have no id.*row 2, column 'class1'"),
        ("filename", "", "1 row.s. have no id.*row 2, column 'filename'"),
        ("person_id", "1", "two rows have the same instance_id.*'1' in rows 1 and 2"),
    ],
)
def test_what_is_wrong_is_named_with_row_and_column(folder, cell, value, words):
    put(folder, [PEOPLE[0], {**PEOPLE[1], cell: value}, PEOPLE[2]])
    with pytest.raises(TableError, match=f"(?s){words}"):
        load(folder)


@pytest.mark.parametrize("column", ["person_id", "filename", "class1", "bounding_box"])
def test_a_missing_column_is_named(folder, column):
    rows = [{k: v for k, v in row.items() if k != column} for row in PEOPLE]
    put(folder, rows)
    with pytest.raises(UnknownNameError, match=f"no column named '{column}'"):
        load(folder)


def test_a_missing_folder_and_one_without_annotations_are_said(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        load(tmp_path / "absent.csv")
    with pytest.raises(FileError, match=r"(?s)holds no FACET annotations.*annotations\.csv"):
        load(tmp_path)


def test_it_may_not_train():
    assert INFO.training_allowed is False
    assert INFO.label_source == "perceived"
    assert dict(INFO.terms)["gender_presentation"] == "perceived gender presentation"


TEXT = as_csv(PEOPLE)


@given(
    at=st.integers(0, len(TEXT)),
    cut=st.integers(0, 9),
    put=st.sampled_from(["", "\n", ",", '"', "1e9", "-1", "nan", "{", '{""x"": 1', "é", "7"]),
)
def test_any_damage_gives_a_dataset_or_our_own_error(tmp_path_factory, at, cut, put):
    path = tmp_path_factory.mktemp("fuzz") / "annotations.csv"
    path.write_text(TEXT[:at] + put + TEXT[at + cut :], newline="")
    with suppress(IsoluxError):
        dataset = load(path)
        assert set(dataset.attributes["unit_id"]) <= set(dataset.instances["instance_id"])
        assert (dataset.instances["box_w"] >= 0).all()
