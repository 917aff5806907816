"""Groups in which nothing varies: what few equal rows say of everyone, and what nothing can say."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.info import Metric
from isolux.core.spec import ComparisonSettings
from isolux.disparity.disparity_table import measure_disparities
from isolux.groups.measure import measure_groups
from isolux.statements.answer import answer_from_run
from isolux.statements.numbers import format_gap_size
from isolux.stats.intervals import mover_difference_interval, wilson_interval_of_n_clusters
from isolux.stats.power_analysis import minimum_detectable_difference
from tests._scored import ACCURACY, members, scored

N = 400
GROUPS = ["a", "b"] * (N // 2)
YEARS = Metric(name="age", title="Age", definition="x", direction="higher", low=None, high=None,
               unit="years")  # fmt: skip


def _rows(values, metric=ACCURACY):
    spec = ComparisonSettings(replicates=300)
    estimates = measure_groups(
        scored(values, [f"s{k // 4}" for k in range(N)], metric=metric), members(g=GROUPS), spec
    )
    table = measure_disparities(estimates, spec).table
    kinds = "difference", "max_difference_bound", "difference_to_overall"
    return estimates, {kind: table.filter(kind=kind).row(0, named=True) for kind in kinds}


@pytest.mark.parametrize("share", [1 / 3, 0.4])
def test_equal_shares_are_one_observation_a_person(share):
    estimates, rows = _rows([share] * N)
    pair = rows["difference"]
    assert (pair["value"], pair["p_value"], pair["detectable"]) == (0.0, None, None)
    edge = wilson_interval_of_n_clusters(np.array([share]), np.array([100.0]), 0.95)
    assert estimates.interval.low[1] == pytest.approx(edge.low, abs=1e-9)
    assert estimates.interval.high[1] == pytest.approx(edge.high, abs=1e-9)
    value = np.array([share])
    ends = mover_difference_interval(value, edge, value, edge, np.zeros(1))
    assert (pair["low"], pair["high"]) == pytest.approx((ends.low.item(), ends.high.item()))
    assert set(estimates.status[:, 0]) == {"no variation"}
    assert "nothing varies" in estimates.reason[1, 0]


def test_two_constants_are_apart_by_as_much_as_their_people_say():
    _, rows = _rows(np.where(np.array(GROUPS) == "a", 0.3, 0.6).tolist())
    pair = rows["difference"]
    assert pair["value"] == pytest.approx(-0.3)
    assert pair["low"] < -0.3 < pair["high"] < 0
    assert pair["detectable"] is None


def test_of_numbers_without_a_range_nothing_is_said():
    _, rows = _rows(np.where(np.array(GROUPS) == "a", 30.1, 40.1).tolist(), YEARS)
    pair = rows["difference"]
    assert pair["value"] == pytest.approx(-10.0)
    assert [pair[k] for k in ("low", "high", "p_value", "detectable")] == [None] * 4


def test_what_is_left_of_equal_numbers_detects_nothing():
    assert np.isnan(minimum_detectable_difference(1e-17, 1.96))
    assert minimum_detectable_difference(1e-6, 1.96) > 0


def test_no_sentence_could_have_seen_nothing():
    ids = [str(k) for k in range(N)]
    people = pl.DataFrame({"unit_id": ids, "light": GROUPS})
    value = pl.DataFrame({"unit_id": ids, "value": [1 / 3] * N,
                          "cluster_id": [f"s{k // 4}" for k in range(N)]})  # fmt: skip
    found = isolux.audit(value, people, by="light", replicates=300)
    claim = answer_from_run(found.run).first
    assert "nothing varies within them" in claim
    high = found.disparities.filter(kind="difference")["simultaneous_high"][0]
    assert f"up to {format_gap_size(high)} cannot be ruled out" in claim


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_equal_numbers_are_in_doubt_whatever_their_unit(value):
    ids = [str(k) for k in range(N)]
    people = pl.DataFrame({"unit_id": ids, "light": GROUPS})
    table = people.with_columns(truth=30.0, answer=30.0 + value)
    found = isolux.audit(
        table, by="light", task="regression", target="truth", prediction_column="answer",
        id="unit_id", replicates=300,
    )  # fmt: skip
    errors = found.group_metrics.filter(metric="mean_absolute_error")
    assert set(errors["status"]) == {"no variation"}
    assert all(why.startswith("nothing varies in it") for why in errors["reason"])
    told = answer_from_run(found.run).first
    assert "no test was made" in told
    assert "up to" not in told, "numbers without a range have no interval here"


def _never_and_always(n, **more):
    """Homes of one region in which every photo is a hit, and of another in which none is."""
    people = pl.DataFrame({"unit_id": [str(k) for k in range(n)], "region": ["a", "b"] * (n // 2)})
    homes = pl.DataFrame({"home": [f"h{k % 60}" for k in range(n)]})
    photos = people.with_columns(homes["home"], thing=pl.lit("bed"), unit_id=None)
    photos = photos.with_columns(
        said=pl.when(pl.col("region") == "b").then(pl.lit("bed")).otherwise(pl.lit("chair"))
    )
    return isolux.audit(
        photos, task="geodiversity", target="thing", prediction_column="said", by="region",
        cluster="home", household="home", replicates=100, **more,
    )  # fmt: skip


def test_never_against_always_is_said_where_no_test_can_be_made():
    """p was 1 for the two regions farthest apart, and the sentence said that no pair stands out."""
    found = _never_and_always(240)
    rows = {k: found.disparities.filter(kind=k).row(0, named=True)
            for k in ("omnibus_test", "difference")}  # fmt: skip
    for row in rows.values():
        assert row["p_value"] is None
        assert "nothing varies within the groups" in row["reason"]
    assert (rows["omnibus_test"]["status"], rows["omnibus_test"]["value"]) == (
        "undefined",
        None,
    )
    assert rows["difference"]["value"] == -1.0
    (pair,) = found.findings.filter(group_b="b").to_dicts()
    assert (pair["group_a"], pair["effect"], pair["p_adjusted"]) == ("a", -1.0, None)
    assert "cannot be tested" in pair["claim"]
    answer = answer_from_run(found.run)
    assert any("cannot be tested" in text for text in (answer.first, *answer.further))


def test_of_constants_without_an_interval_the_gap_is_said():
    value = pl.DataFrame({"unit_id": [str(k) for k in range(N)], "metric": "age", "task": "mine",
                          "value": [30.0 if g == "a" else 40.0 for g in GROUPS]})  # fmt: skip
    people = pl.DataFrame({"unit_id": value["unit_id"], "light": GROUPS})
    found = isolux.audit(value, people, by="light", replicates=100)
    (claim,) = found.findings["claim"]
    assert "cannot be tested" in claim
    assert answer_from_run(found.run).first == claim
