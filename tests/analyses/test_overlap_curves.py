"""Curves of recall: against means written out in plain dataframe code."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from isolux.analyses import overlap_curves
from isolux.analyses.overlap_curves import CAPTION, explain
from isolux.api.explain import run_analyses
from isolux.core.errors import SpecError
from tests.analyses._scene import scene_run


@pytest.fixture(scope="module")
def ran():
    return scene_run(by=("tone", "occluded", "tone*occluded"))


@pytest.fixture(scope="module")
def table(ran):
    return explain(ran[0]).tables[CAPTION]


def test_every_point_is_the_share_found(ran, table):
    run, scores = ran
    tone = run.attributes.filter(attribute="tone").select("unit_id", group="value")
    found = scores.evidence["recall_by_iou"].join(tone, on="unit_id")
    for t in range(10):
        hit = (pl.col("at").cast(pl.Int64) // 2**t) % 2
        wanted = dict(found.group_by("group").agg(hit.mean()).rows())
        at = round(0.5 + 0.05 * t, 2)
        got = table.filter((pl.col("overlap") == at) & (pl.col("attribute") == "tone"))
        assert dict(got.select("group", "recall").rows()) == pytest.approx(wanted, abs=1e-5)


def test_overall_at_half_is_the_metric_of_the_audit(ran, table):
    audited = (
        ran[0]
        .group_metrics.filter((pl.col("metric") == "recall_at_iou") & (pl.col("threshold") == 0.5))
        .filter(pl.col("attribute").is_null())
    )
    own = table.filter(pl.col("attribute").is_null() & (pl.col("overlap") == 0.5))
    assert own["recall"].item() == pytest.approx(audited["value"].item(), abs=1e-5)
    assert own["people"].item() == audited["n_units"].item()


def test_intervals_hold_the_value_and_are_fractions(table):
    sound = table.filter(pl.col("low").is_not_null())
    assert sound.height > 50
    assert sound.select((pl.col("low") <= pl.col("recall")).all()).item()
    assert sound.select((pl.col("recall") <= pl.col("high")).all()).item()
    assert sound["low"].min() >= 0
    assert sound["high"].max() <= 1


def test_only_the_groups_furthest_from_everyone_are_kept_and_the_rest_counted(ran, monkeypatch):
    monkeypatch.setattr(overlap_curves, "MAX_GROUPS", 2)
    made = explain(ran[0])
    kept = made.tables[CAPTION].filter(attribute="tone")["group"].unique()
    assert len(kept) == 2
    # One of three tones; of tone × occluded three of five, the sixth being too small to be judged.
    assert made.notes == (
        (
            "Curves of recall by overlap: of 4 groups none is drawn; of each attribute the 2 "
            "furthest from everyone are."
        ),
    )


def test_groups_below_the_minimum_have_no_curve():
    run, _ = scene_run(min_units=300)
    groups = explain(run).tables[CAPTION]["group"].unique().to_list()
    assert "overall" in groups
    assert "c" not in groups


def test_it_is_stored_with_the_run_and_claims_nothing(ran):
    run = run_analyses(ran[0], ["overlap_curves"])
    stored = run.record["explained"]["overlap_curves"][CAPTION]
    assert stored["columns"][:5] == ["model", "attribute", "group", "measure", "overlap"]
    assert run.findings["analysis"].unique().to_list() == ["group_gaps"]


def test_a_run_without_the_evidence_is_refused(ran):
    run = replace(ran[0], evidence={})
    with pytest.raises(SpecError, match="this run does not say at which overlaps") as caught:
        explain(run)
    assert "--metric average_recall" in str(caught.value)
