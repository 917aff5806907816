"""Clusters of a dataset: from a column, from an attribute, or none."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, INSTANCES

PEOPLE = INSTANCES.conform(
    pl.DataFrame({"instance_id": ["a", "b", "c"], "image_id": ["i", "i", "j"]})
)
WHO = ATTRIBUTES.conform(
    pl.DataFrame(
        {
            "unit_kind": "instance", "unit_id": ["a", "b", "c"], "attribute": "household",
            "value": ["h1", "h1", None],
        }
    )
)  # fmt: skip
DATA = Dataset("x", DatasetInfo(title="x", summary="x", references=()), PEOPLE, WHO)


def test_clusters_from_a_column():
    assert DATA.with_clusters("image_id").instances["cluster_id"].to_list() == ["i", "i", "j"]


def test_clusters_from_an_attribute_unknown_ones_alone():
    assert DATA.with_clusters("household").instances["cluster_id"].to_list() == ["h1", "h1", None]


def test_no_clusters():
    clustered = DATA.with_clusters("image_id").with_clusters(None)
    assert clustered.instances["cluster_id"].null_count() == 3


def test_a_column_without_any_value_is_not_taken():
    with pytest.raises(UnknownNameError, match="no attribute named 'subject_id'"):
        DATA.with_clusters("subject_id")


def test_an_unknown_attribute_lists_those_there_are():
    with pytest.raises(UnknownNameError, match="household"):
        DATA.values_of("houshold")


def test_attributes_of_images_and_subjects_reach_everyone_in_them():
    people = PEOPLE.with_columns(subject_id=pl.Series(["s", None, "s"]))
    rows = [
        ("instance", "a", "tone", "3"),
        ("image", "i", "weather", "fog"),
        ("subject", "s", "ancestry", "Asia"),
        ("image", "nobody", "weather", "rain"),
    ]
    names = ["unit_kind", "unit_id", "attribute", "value"]
    who = ATTRIBUTES.conform(pl.DataFrame(rows, schema=names, orient="row"))
    spread = Dataset("x", DATA.info, people, who).instance_attributes()
    assert spread.select(names).rows() == [
        ("instance", "a", "tone", "3"),
        ("instance", "a", "weather", "fog"),
        ("instance", "b", "weather", "fog"),
        ("instance", "a", "ancestry", "Asia"),
        ("instance", "c", "ancestry", "Asia"),
    ]
