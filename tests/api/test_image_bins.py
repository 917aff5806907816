"""Quantiles over images: by hand, in the record, and what cannot be parted."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DatasetInfo

# Three images of income 10, 20 and 30; the richest holds 8 of the 12 people.
IMAGES = ["a"] * 2 + ["b"] * 2 + ["c"] * 8
INCOME = {"a": 10.0, "b": 20.0, "c": 30.0}


def people(income=INCOME):
    ids = [f"p{i}" for i in range(len(IMAGES))]
    return Dataset(
        name="twelve",
        info=DatasetInfo(title="Twelve", summary="Made for a test.", references=()),
        instances=pl.DataFrame({"instance_id": ids, "image_id": IMAGES}),
        attributes=pl.DataFrame({
            "unit_kind": "image", "unit_id": list(income), "attribute": "income",
            "value": [f"{v:g}" for v in income.values()], "number": list(income.values()),
        }),
    )  # fmt: skip


def audited(bins, data=None):
    data = data or people()
    scores = pl.DataFrame({"unit_id": data.instances["instance_id"], "value": [1.0, 0.0] * 6})
    return isolux.audit(
        scores, data, by="income", bins=(bins,), min_units=1, min_clusters=1, replicates=100
    )


def test_tertiles_over_images_put_an_image_in_each_group():
    found = audited("income=quantile:3:images")
    groups = found.group_metrics.drop_nulls("attribute")
    assert dict(groups.select("group", "n_units").iter_rows()) == {
        "<20": 2, "20–30": 2, "30+": 8
    }  # fmt: skip
    # Over people the eight of one image are more than two thirds of all.
    over_people = audited("income=quantile:3").group_metrics.drop_nulls("attribute")
    assert sorted(over_people["n_units"]) == [4, 8]


def test_the_record_has_the_edges_and_a_note_says_whose_they_are():
    record = audited("income=quantile:3:images").run.record
    assert record["spec"]["bins"] == ["income=edges:20.0,30.0"]
    assert "income: quantiles over 3 images: <20, 20–30, 30+" in record["notes"]


def test_images_that_are_all_alike_and_edges_over_images_are_refused():
    with pytest.raises(SpecError, match=r"(?s)'income' cannot be parted.*income=quantile:3 splits"):
        audited("income=quantile:3:images", people({"a": 1.0, "b": 1.0, "c": 1.0}))
    with pytest.raises(SpecError, match="only quantiles can be over images"):
        audited("income=edges:20:images")
