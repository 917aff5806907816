"""People by size and occlusion: counts and means against plain dataframe code."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from isolux.analyses.size_and_occlusion import CAPTION, explain
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.tables import COMPARABLE_STATUSES
from tests.analyses._scene import scene_run


@pytest.fixture(scope="module")
def ran():
    return scene_run(by=("tone", "occluded"), min_units=20)


@pytest.fixture(scope="module")
def table(ran):
    return explain(ran[0]).tables[CAPTION]


def cell(table, group, stratum, by="size", attribute="tone"):
    rows = table.filter(
        pl.col("attribute").eq_missing(pl.lit(attribute, pl.String)),
        pl.col("group") == group,
        pl.col("by") == by,
        pl.col("stratum") == stratum,
    )
    return rows.row(0, named=True)


def plain(ran):
    """Each person's tone, COCO's size by his area, and average recall."""
    run, scores = ran
    tone = run.attributes.filter(attribute="tone").select("unit_id", tone="value")
    area = scores.evidence["recall_by_iou"].select("unit_id", "area_px")
    value = scores.units.filter(metric="average_recall").select("unit_id", "value")
    size = pl.when(pl.col("area_px") < 32**2).then(pl.lit("small"))
    size = size.when(pl.col("area_px") < 96**2).then(pl.lit("medium")).otherwise(pl.lit("large"))
    return tone.join(area, on="unit_id").join(value, on="unit_id").with_columns(size=size)


@pytest.mark.parametrize("group", ["a", "b", "c"])
@pytest.mark.parametrize("size", ["small", "medium", "large"])
def test_each_cell_counts_and_averages_its_people(ran, table, group, size):
    people = plain(ran).filter(tone=group)
    own = people.filter(size=size)
    found = cell(table, group, size)
    assert found["people"] == own.height
    assert found["share"] == pytest.approx(own.height / people.height, abs=1e-5)
    if found["status"] in COMPARABLE_STATUSES:
        assert found["value"] == pytest.approx(own["value"].mean(), abs=1e-5)
        assert found["low"] is None or found["low"] <= found["value"] <= found["high"]
    else:
        assert (found["value"], own.height < 20) == (None, True)


def test_everyone_is_the_sum_of_the_groups(table):
    everyone = cell(table, "overall", "small", attribute=None)["people"]
    assert everyone == sum(cell(table, group, "small")["people"] for group in "abc")


def test_small_people_are_found_less_often_in_every_tone(table):
    # Injected: −1.5 on the logit of a rate of .7; in samples of dozens it shows.
    for group in ("a", "b"):
        small, medium = (cell(table, group, size)["value"] for size in ("small", "medium"))
        assert small is None or small < medium


def test_occlusion_is_laid_out_too_but_not_within_itself(table):
    by = table.filter(by="occluded")
    assert by["stratum"].unique(maintain_order=True).to_list() == ["false", "true"]
    assert "occluded" not in by["attribute"].to_list()
    assert "occluded" in table.filter(by="size")["attribute"].to_list()


def test_sizes_stand_in_their_order(table):
    own = table.filter((pl.col("group") == "a") & (pl.col("by") == "size"))
    assert own["stratum"].to_list() == ["small", "medium", "large"]


def test_thin_cells_have_a_status_and_no_value(ran):
    run, _ = scene_run(min_units=150)
    thin = explain(run).tables[CAPTION].filter(pl.col("people") < 150)
    assert thin.height > 3
    assert thin["value"].null_count() == thin.height
    assert set(thin["status"]) <= {"insufficient units", "insufficient clusters", "not scored"}


def test_it_divides_by_what_is_named(ran):
    made = explain(ran[0], by=["occluded"]).tables[CAPTION]
    assert made["by"].unique().to_list() == ["occluded"]
    with pytest.raises(UnknownNameError, match="oclusion"):
        explain(ran[0], by=["oclusion"])


def test_an_attribute_of_many_values_is_left_out_and_said(ran):
    run = ran[0]
    ids = run.attributes.filter(attribute="tone").with_columns(
        attribute=pl.lit("street"), value=pl.int_range(pl.len()).cast(pl.String)
    )
    more = replace(run, attributes=pl.concat([run.attributes, ids]))
    made = explain(more, by=["street"])
    assert made.tables == {}
    assert made.notes == ("People were not divided by street: it has one value or more than 6.",)


def test_group_names_of_any_kind_stay_apart(ran):
    run = ran[0]
    renamed = {"a": "x × small", "b": "x", "c": "<b>"}
    attributes = run.attributes.with_columns(
        pl.when(pl.col("attribute") == "tone")
        .then(pl.col("value").replace(renamed))
        .otherwise("value")
        .alias("value")
    )
    made = explain(replace(run, attributes=attributes)).tables[CAPTION]
    assert (
        cell(made, "<b>", "small")["people"]
        == cell(explain(run).tables[CAPTION], "c", "small")["people"]
    )
    assert set(made.filter(attribute="tone")["group"]) == set(renamed.values())


def test_a_run_without_the_evidence_is_refused(ran):
    with pytest.raises(SpecError, match="this run does not say at which overlaps"):
        explain(replace(ran[0], evidence={}))
