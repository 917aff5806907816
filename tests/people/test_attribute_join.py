"""Attributes from another table: by which ids, for whom, and when the join is refused."""

from __future__ import annotations

import json

import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError, TableError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.spec import People
from isolux.datasets import load
from isolux.people.attribute_join import join_attributes
from isolux.people.loading import load_people

THREE = Dataset(
    name="three people",
    info=DatasetInfo(title="Three people", summary="An example.", references=()),
    instances=pl.DataFrame(
        {
            "instance_id": ["a", "b", "c"],
            "image_id": ["img/1.jpg", "img/1.jpg", "img/2.jpg"],
            "subject_id": ["s1", "s2", "s1"],
        }
    ),
)


def table(tmp_path, text, name="more.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def told(dataset, attribute):
    return dict(dataset.values_of(attribute).select("unit_id", "value").iter_rows())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,light\na,day\nb,night\nc,day\n", {"a": "day", "b": "night", "c": "day"}),
        ("image_id,light\nimg/1.jpg,day\nimg/2.jpg,night\n",
         {"a": "day", "b": "day", "c": "night"}),
        ("subject_id,light\ns1,day\ns2,night\n", {"a": "day", "b": "night", "c": "day"}),
        ("light,file\nday,img/1.jpg\n", {"a": "day", "b": "day"}),
    ],
)  # fmt: skip
def test_the_column_says_what_its_ids_are_of(tmp_path, text, expected):
    assert told(join_attributes(THREE, table(tmp_path, text)), "light") == expected


def test_rows_of_totals_and_names_of_columns_are_of_no_one(tmp_path):
    text = "instance_id,light,tone\na,day,1\ninstance_id,light,tone\nb,night,2\nTotal,,\n"
    found = join_attributes(THREE, table(tmp_path, text))
    assert told(found, "light") == {"a": "day", "b": "night"}
    assert any("repeat the names of the columns" in note for note in found.notes)
    assert any("hold totals" in note for note in found.notes)


def test_another_column_is_named_and_looked_up_among_all_ids(tmp_path):
    file = table(tmp_path, "who,light\ns1,day\ns2,night\n")
    with pytest.raises(SpecError, match=r"(?s)whom a row is about.*'who', 'light'.*attributes_id"):
        join_attributes(THREE, file)
    named = join_attributes(THREE, file, id="who")
    assert told(named, "light") == {"a": "day", "b": "night", "c": "day"}
    with pytest.raises(UnknownNameError, match="'what'"):
        join_attributes(THREE, file, id="what")


def test_which_columns_met_and_how_many_did_not_is_said(tmp_path):
    file = table(tmp_path, "id,light\na,day\nz,night\n")
    notes = join_attributes(THREE, file).notes
    assert "joined by its column 'id' to instance_id; 1 of 3 people have a row." in notes[-3]
    assert notes[-2].startswith("2 of 3 people have no row")
    assert isinstance(notes[-2], Caution)
    assert notes[-1].startswith("1 of 2 rows")
    assert notes[-1].endswith("match nobody: 'z'.")
    assert str(file) in join_attributes(THREE, file).inputs


def test_a_part_of_the_id_is_compared_when_asked_for(tmp_path):
    file = table(tmp_path, "image_id,light\n1,day\n2,night\n")
    with pytest.raises(JoinError, match=r"(?s)no row names.*'img/1.jpg'.*from=stem would match 2"):
        join_attributes(THREE, file)
    assert told(join_attributes(THREE, file, id_from="stem"), "light")["c"] == "night"
    twice = table(tmp_path, "image_id,light\nx/1.jpg,day\ny/1.png,night\n")
    with pytest.raises(JoinError, match="two rows become one by stem"):
        join_attributes(THREE, twice, id_from="stem")


def test_an_id_stands_once(tmp_path):
    with pytest.raises(TableError, match="two rows have the same id"):
        join_attributes(THREE, table(tmp_path, "id,light\na,day\na,night\n"))
    both = join_attributes(THREE, table(tmp_path, "id,light\na,day;night\n"), separator=";")
    assert both.values_of("light")["value"].to_list() == ["day", "night"]


def test_the_number_of_a_row_is_no_id(tmp_path):
    people = load("table", table(tmp_path, "gender\nF\nM\n", "people.csv"))
    with pytest.raises(JoinError, match=r"(?s)declares no ids, and row order is none.*--id"):
        join_attributes(people, table(tmp_path, "id,light\n1,day\n2,night\n"))


def test_what_both_sides_know_must_agree(tmp_path):
    people = load("table", table(tmp_path, "id,sex,age\na,F,30\nb,M,40\n", "people.csv"))
    shuffled = table(tmp_path, "id,sex,race\na,M,X\nb,F,Y\n")
    with pytest.raises(JoinError, match=r"(?s)'sex', and do not agree.*2 of 2 people differ"):
        join_attributes(people, shuffled)
    right = join_attributes(people, table(tmp_path, "id,sex,race\na,F,X\nb,M,Y\n"))
    assert told(right, "race") == {"a": "X", "b": "Y"}
    assert right.values_of("sex").height == 2


def test_a_table_holds_more_than_ids(tmp_path):
    with pytest.raises(SpecError, match="nothing to join"):
        join_attributes(THREE, table(tmp_path, "id\na\n"))


@pytest.mark.parametrize("name", ["table", "coco"])
def test_clusters_may_be_a_column_of_the_joined_table(tmp_path, name):
    people = table(tmp_path, "id,pred\n1,x\n2,y\n3,x\n", "people.csv")
    if name == "coco":
        boxes = [
            {"id": k, "image_id": 1, "category_id": 1, "bbox": [k, 0, 9, 9], "area": 81}
            for k in (1, 2, 3)
        ]
        image = {"id": 1, "file_name": "1.jpg", "width": 50, "height": 50}
        contents = {"images": [image], "annotations": boxes, "categories": [{"id": 1, "name": "x"}]}
        people = table(tmp_path, json.dumps(contents), "people.json")
    more = table(tmp_path, "instance_id,patient_id\n1,p1\n2,p2\n3,p1\n")
    settings = {"data": f"{name}:{people}", "attributes": str(more)}
    dataset = load_people(People(**settings, cluster="patient_id"))
    assert dataset.instances["cluster_id"].to_list() == ["p1", "p2", "p1"]
    assert not [note for note in dataset.notes if "--cluster" in note]
    with pytest.raises(UnknownNameError, match="patient_id") as refused:
        load_people(People(**settings, cluster="patientid"))
    assert refused.value.hint == "did you mean 'patient_id'?"


def test_a_person_who_is_not_in_the_joined_table_is_a_cluster_of_their_own(tmp_path):
    people = table(tmp_path, "id,pred\na,x\nb,y\nc,x\n", "people.csv")
    more = table(tmp_path, "id,patient_id\na,p1\nb,p1\n")
    dataset = load_people(
        People(data=f"table:{people}", attributes=str(more), cluster="patient_id")
    )
    assert dataset.instances["cluster_id"].to_list() == ["p1", "p1", None]
    assert "1 row(s) have no 'patient_id', and each is a cluster by itself." in dataset.notes
