"""Attributes that are computed when they are asked for and missing, and said to be."""

from __future__ import annotations

import polars as pl

from isolux import derive
from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo

INFO = DatasetInfo(title="Three people", summary="Made up.", references=())


def three(**columns):
    return Dataset(
        name="three people",
        info=INFO,
        instances=pl.DataFrame(
            {"instance_id": ["a", "b", "c"], "image_id": ["1", "1", "2"], **columns}
        ),
        attributes=pl.DataFrame(
            {"unit_kind": "instance", "unit_id": ["a"], "attribute": "tone", "value": ["5"]}
        ),
    )


def test_what_is_asked_for_is_added_and_noted():
    found = derive.add_missing_derived_attributes(
        three(), ["tone", "people_in_image", "nobody_knows_this"]
    )
    rows = found.attributes.filter(attribute="people_in_image")
    assert rows.select("unit_id", "value", "number").rows() == [
        ("a", "2", 2.0), ("b", "2", 2.0), ("c", "1", 1.0),
    ]  # fmt: skip
    assert found.attributes.filter(attribute="tone").height == 1
    assert found.notes == (
        "people_in_image was computed: how many annotated people, crowds aside, the image holds.",
    )


def test_what_the_dataset_has_stays():
    own = three().attributes.with_columns(attribute=pl.lit("people_in_image"))
    dataset = Dataset(name="x", info=INFO, instances=three().instances, attributes=own)
    assert derive.add_missing_derived_attributes(dataset, ["people_in_image"]) is dataset


def test_a_crowd_is_not_one_person():
    found = derive.add_missing_derived_attributes(
        three(is_crowd=[False, True, False]), ["people_in_image"]
    )
    assert found.attributes.filter(attribute="people_in_image")["number"].to_list() == [1, 1, 1]
