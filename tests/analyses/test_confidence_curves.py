"""Curves of harmful labels against the confidence: against counts in plain dataframe code."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from isolux.analyses import confidence_curves
from isolux.analyses.confidence_curves import CAPTION, explain
from isolux.api.explain import list_default_analyses
from isolux.core.errors import SpecError
from tests.contracts import _runs


@pytest.fixture(scope="module")
def table():
    return explain(_runs.associations()).tables[CAPTION]


def test_every_point_is_a_share_of_the_group(table):
    run = _runs.associations()
    light = run.attributes.filter(attribute="light").select("unit_id", group="value")
    sure = run.evidence["label_association"].join(light, on="unit_id")
    kinds = {"harmful": pl.max_horizontal("non_human", "crime"), "non-harmful": pl.col("human")}
    for labels, highest in kinds.items():
        for at in (0.0, 0.1, 0.5, 1.0):
            given = (highest >= at).fill_null(value=False).mean()
            wanted = dict(sure.group_by("group").agg(given.alias("rate")).rows())
            got = table.filter(confidence=at, attribute="light", labels=labels)
            assert dict(got.select("group", "rate").rows()) == pytest.approx(wanted, abs=1e-5)


def test_the_curve_passes_through_the_audits_own_rate(table):
    audited = _runs.associations().group_metrics.filter(metric="harmful", group="dim")
    own = table.filter(confidence=0.1, group="dim", labels="harmful")
    for column, rounded in (("value", "rate"), ("low", "low"), ("high", "high")):
        assert own[rounded].item() == pytest.approx(audited[column].item(), abs=1e-5)


def test_shares_fall_as_the_confidence_rises(table):
    for _, part in table.group_by("labels", "attribute", "group"):
        values = part.sort("confidence")["rate"].to_list()
        assert values == sorted(values, reverse=True)


def test_the_largest_groups_are_kept_and_the_others_counted(monkeypatch):
    monkeypatch.setattr(confidence_curves, "MAX_GROUPS", 1)
    made = explain(_runs.associations())
    kept = made.tables[CAPTION].filter(attribute="light")["group"].unique().to_list()
    assert kept == ["bright"]  # six of ten people
    assert "of 1 groups none is drawn" in made.notes[0]


def test_labels_without_confidence_have_no_curve():
    run = _runs.associations()
    bare = run.evidence["label_association"].with_columns(pl.col("any") * 0.0)
    assert explain(replace(run, evidence={"label_association": bare})).tables == {}


def test_another_task_is_refused():
    with pytest.raises(SpecError, match="how sure a classifier was of harmful labels"):
        explain(_runs.labels())


def test_it_runs_with_every_audit_of_the_task():
    assert "confidence_curves" in list_default_analyses(_runs.associations())
    assert "confidence_curves" not in list_default_analyses(_runs.labels())
