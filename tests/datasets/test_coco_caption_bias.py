from __future__ import annotations

import json
from contextlib import suppress

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import (
    FileError,
    IsoluxError,
    JoinError,
    SpecError,
    TableError,
    UnknownNameError,
)
from isolux.datasets.coco_caption_bias import INFO, load
from tests.cli._run import isolux

# The columns that the authors' code reads; ids once as numbers, once as a file's name.
IMAGES = """id,skin,ratio,bb_skin,bb_gender,split
42,"['Light', 'Light', 'Dark']","[0.05, 0.25, 0.01]",Light,Male,train
73,"['Unsure']",[0.5],Unsure,Female,val
COCO_val2014_000000000074.jpg,[],[],Dark,Both,val
99,['Dark'],nan,Dark,Female,val
"""
# Made up, but for the id: what else the people's table holds is not public.
PEOPLE = """Unnamed: 0,id,image_id,skin,gender
0,11,42,"['2', '2', '3']",Male
1,12,42,"[5, 6, 'Unsure']",Female
2,21,73,,Unsure
3,999,42,1,Male
"""


def _person(number, image, side, **more):
    return {"id": number, "image_id": image, "category_id": 1, "bbox": [1, 2, side, side],
            "area": side * side, "iscrowd": 0} | more  # fmt: skip


COCO = {
    "images": [
        {"id": i, "file_name": f"COCO_val2014_{i:012}.jpg", "width": 64, "height": 48}
        for i in (42, 73, 74, 75)
    ],
    "annotations": [
        _person(11, 42, 10),
        _person(12, 42, 20),
        _person(13, 42, 30, iscrowd=1),
        _person(14, 42, 40, category_id=18),
        _person(21, 73, 5),
        _person(31, 74, 7),
        _person(41, 75, 9),
    ],
    "categories": [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}],
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "images_val2014.csv").write_text(IMAGES)
    (tmp_path / "instances_2014all.csv").write_text(PEOPLE)
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "instances_val2014.json").write_text(json.dumps(COCO))
    return tmp_path


def rows(dataset, attribute):
    return dataset.values_of(attribute).select("unit_id", "value", "votes").rows()


def test_people_are_cocos_and_crowds_and_dogs_are_not(folder):
    dataset = load(folder, people="all")
    assert dataset.instances["instance_id"].to_list() == ["11", "12", "21", "31"]
    assert dataset.instances["image_id"].to_list() == ["42", "42", "73", "74"]
    assert dataset.instances["cluster_id"].to_list() == ["42", "42", "73", "74"]
    assert dataset.instances["box_w"].to_list() == [10, 20, 5, 7]
    assert dataset.images["uri"][0] == "COCO_val2014_000000000042.jpg"
    assert len(dataset.inputs) == 3


def test_an_images_label_is_its_largest_persons(folder):
    dataset = load(folder, people="all")
    assert rows(dataset, "bb_skin") == [("12", "Light", None), ("21", None, None),
                                        ("31", "Dark", None)]  # fmt: skip
    assert rows(dataset, "bb_gender") == [("12", "Male", None), ("21", "Female", None),
                                          ("31", "Both", None)]  # fmt: skip
    assert dataset.values_of("bb_skin")["unit_kind"].unique().to_list() == ["instance"]


def test_lists_of_annotators_become_votes(folder):
    dataset = load(folder)
    assert rows(dataset, "skin") == [
        ("11", "2", 2), ("11", "3", 1), ("12", "5", 1), ("12", "6", 1), ("12", None, 1),
        ("21", None, 1),
    ]  # fmt: skip
    assert rows(dataset, "gender") == [("11", "Male", None), ("12", "Female", None),
                                       ("21", None, None)]  # fmt: skip
    assert not {"Unnamed: 0", "image_id"} & set(dataset.attributes["attribute"])


def test_an_images_people_are_counted_by_skin(folder):
    dataset = load(folder)
    assert rows(dataset, "image_skin") == [
        ("42", "Light", 2), ("42", "Dark", 1), ("73", None, 1), ("74", None, 1)
    ]  # fmt: skip
    assert dict(dataset.values_of("split").select("unit_id", "value").iter_rows()) == {
        "42": "train", "73": "val", "74": "val"
    }  # fmt: skip


def test_only_the_labelled_unless_asked(folder):
    assert load(folder).instances["instance_id"].to_list() == ["11", "12", "21"]
    (folder / "instances_2014all.csv").unlink()
    alone = load(folder)
    assert alone.instances["instance_id"].to_list() == ["12", "21", "31"]
    assert "instances_2014all.csv is not at hand: only each image's largest person has labels." in (
        alone.notes
    )


def test_what_did_not_meet_is_counted(folder):
    notes = load(folder).notes
    assert "1 labelled image(s) are not in instances_val2014.json; they are left out." in notes
    assert "1 labelled people are not among COCO's people of these images." in notes


def test_without_coco_an_image_is_a_person(folder):
    (folder / "annotations" / "instances_val2014.json").unlink()
    dataset = load(folder)
    assert dataset.instances["instance_id"].to_list() == ["42", "73", "74", "99"]
    assert rows(dataset, "bb_skin")[3] == ("99", "Dark", None)
    assert dataset.images["uri"][2] == "COCO_val2014_000000000074.jpg"
    assert any("COCO's own annotations are not at hand" in note for note in dataset.notes)


def test_coco_can_be_named_and_a_column_of_ids_is_asked_for(folder):
    moved = folder / "elsewhere.json"
    (folder / "annotations" / "instances_val2014.json").rename(moved)
    text = PEOPLE.replace("Unnamed: 0,id,", "id,person,")
    (folder / "instances_2014all.csv").write_text(text)
    with pytest.raises(JoinError, match=r"(?s)not one labelled person.*ids 'id'.*person"):
        load(folder, coco=moved)


@pytest.mark.parametrize(
    ("name", "text", "error", "message"),
    [
        ("images_val2014.csv", IMAGES.replace("id,skin", "no,skin"), UnknownNameError,
         "no column named 'id'"),
        ("images_val2014.csv", IMAGES.replace("73,", "12.5,"), TableError,
         "(?s)not a whole number.*row 2"),
        ("images_val2014.csv", IMAGES.replace("73,", "0042,"), TableError,
         "(?s)an id occurs twice.*row 2"),
        ("images_val2014.csv", IMAGES.replace("73,", "١٢٣,"), TableError,
         "(?s)not a whole number.*row 2"),
        ("images_val2014.csv", IMAGES.replace("42,", "1,").replace("73,", "2,")
         .replace("00074", "00003"), JoinError, "not one labelled image is COCO's"),
        ("instances_2014all.csv", PEOPLE.replace("0,11,", "0,,"), TableError,
         "(?s)not a whole number.*row 1"),
        ("annotations/instances_val2014.json", "{", FileError, "cut off"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(folder, name, text, error, message):
    (folder / name).write_text(text)
    with pytest.raises(error, match=message):
        load(folder)


def test_settings_and_files_that_there_are_not(folder):
    with pytest.raises(SpecError, match="people cannot be set"):
        load(folder, people="some")
    with pytest.raises(FileError, match=r"absent\.json"):
        load(folder, coco=folder / "absent.json")
    assert INFO.label_source == "perceived"
    assert INFO.training_allowed is None


def test_from_the_command_line(monkeypatch, capsys, folder):
    ran = isolux(monkeypatch, capsys, "describe", f"coco_caption_bias:{folder}", "--by", "skin")
    assert ran.code == 0, ran.err
    assert "By perceived skin colour" in ran.out


@given(
    at=st.integers(0, len(PEOPLE)),
    cut=st.integers(0, 8),
    put=st.sampled_from(
        ["", '"', "\n", ",", "[", "nan", "é", "\x00", "__import__('os')", "9" * 30]
    ),
)
def test_any_damage_gives_a_dataset_or_our_own_error(tmp_path_factory, at, cut, put):
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "images_val2014.csv").write_text(IMAGES)
    (folder / "instances_val2014.json").write_text(json.dumps(COCO))
    text = PEOPLE[:at] + put + PEOPLE[at + cut :]
    (folder / "instances_2014all.csv").write_text(text, encoding="utf-8")
    with suppress(IsoluxError):
        dataset = load(folder)
        people = dataset.attributes.filter(pl.col("unit_kind") == "instance")["unit_id"]
        assert set(people) <= set(dataset.instances["instance_id"])
