from __future__ import annotations

import polars as pl
import pytest

from isolux import datasets
from isolux.core.errors import TableError, UnknownNameError
from isolux.core.tables import LABEL_PREDICTIONS, check
from isolux.predictions import labels_from_attributes
from tests._shared import shared_data


@pytest.fixture
def load(tmp_path):
    def loaded(text: str, **options: object):
        (tmp_path / "people.csv").write_text(text)
        return datasets.load("table", tmp_path / "people.csv", **options)

    return loaded


def rows(frame: pl.DataFrame) -> list[tuple[object, ...]]:
    return frame.select("instance_id", "label", "score", "rank", "detected").rows()


def test_answers_beside_the_truth(load):
    people = load("id,said,sure,face\na,x,90,0.9\nb,,,0\n")
    frame = labels_from_attributes(
        people, "said", score="sure", scale=100, detected="face", model="m"
    )
    assert check(frame, LABEL_PREDICTIONS).equals(frame)
    assert rows(frame) == [("a", "x", 0.9, 1, True), ("b", None, None, 1, False)]
    assert frame["model"].unique().to_list() == ["m"]


def test_the_model_is_called_like_its_column(load):
    assert labels_from_attributes(load("id,said\na,x\n"), "said")["model"].to_list() == ["said"]


def test_several_answers_parted_at_loading_or_later(load):
    text = "id,said,sure\na,x;y,0.2;0.7\nb,z,0.5\nc,,\n"
    expected = [
        ("a", "x", 0.2, 1, None),
        ("a", "y", 0.7, 2, None),
        ("b", "z", 0.5, 1, None),
        ("c", None, None, 1, None),
    ]
    early, late = load(text, separator=";"), load(text)
    assert rows(labels_from_attributes(early, "said", score="sure")) == expected
    assert rows(labels_from_attributes(late, "said", score="sure", separator=";")) == expected


def test_one_column_may_serve_twice(load):
    people = load("id,said,face\na,x,0.5\nb,y,0\n")
    frame = labels_from_attributes(people, "said", score="face", detected="face")
    assert rows(frame) == [("a", "x", 0.5, 1, True), ("b", "y", 0.0, 1, False)]


def test_an_unknown_column_names_those_there_are(load):
    people = load("id,said\na,x\n")
    for options in ({"column": "sad"}, {"column": "said", "score": "sad"}):
        with pytest.raises(UnknownNameError, match=r"(?s)no attribute named 'sad'.*'said'"):
            labels_from_attributes(people, **options)


def test_faults_name_the_file_and_the_row(load):
    people = load("id,said,sure\na,x,0.5\nb,y,1.5\n")
    with pytest.raises(
        TableError, match=r"(?s)outside 0 to 1.*people\.csv, row 2, column 'sure'.*correct row 2"
    ):
        labels_from_attributes(people, "said", score="sure")


def test_the_dataset_is_unchanged(load):
    people = load("id,said\na,x\nb,y\n")
    before = people.attributes.clone(), people.instances.clone()
    labels_from_attributes(people, "said")
    assert people.attributes.equals(before[0])
    assert people.instances.equals(before[1])


def test_the_real_answers_of_an_ordinary_training():
    path = shared_data("fairface_val/fairface_label_val_expanded.csv")
    people = datasets.load("fairface", path)
    frame = labels_from_attributes(people, "predicted_gender")
    assert frame.height == 10_954
    truth = people.values_of("gender")["value"]
    # 8,098 of 10,954 (.7393), counted in the file with awk -F, '$3==$6'.
    assert int((truth == frame["label"]).sum()) == 8_098
