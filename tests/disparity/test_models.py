"""Two models on the same people: paired changes, gaps, and classes ranked side by side."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from isolux.core.spec import ComparisonSettings
from isolux.core.tables import COMPARISONS, check
from isolux.disparity.class_rankings import rank_classes_by_largest_gap
from isolux.disparity.models import compare_models
from isolux.groups.measure import measure_groups
from tests._scored import members, scored, stacked

N = 80
GROUP = ["a"] * 40 + ["b"] * 40
# Model x: 30 of 40 and 20 of 40. Model y gains ten people of b and loses two of a, the same others.
X = np.array([1.0] * 30 + [0.0] * 10 + [1.0] * 20 + [0.0] * 20)
Y = X.copy()
Y[:2], Y[60:70] = 0.0, 1.0


def _compare(x=X, y=Y, clusters=None, **more):
    spec = ComparisonSettings(**{"min_units": 1, "replicates": 1000, **more})
    scores = stacked(scored(x, clusters, model="x"), scored(y, clusters, model="y"))
    estimates = measure_groups(scores, members(g=GROUP), spec)
    return estimates, compare_models(estimates, spec, ("x", "y"))


def _rows(found, kind="model_difference"):
    rows = found.table.filter(pl.col("kind") == kind)
    return {(r["attribute"], r["group_a"]): r for r in rows.iter_rows(named=True)}


def test_changes_by_hand():
    _, found = _compare()
    rows = _rows(found)
    assert {k: r["value"] for k, r in rows.items()} == pytest.approx(
        {(None, "overall"): 8 / 80, ("g", "a"): -2 / 40, ("g", "b"): 10 / 40}
    )
    assert found.families == {
        "the planned comparison": 1,
        "all other groups and metrics of this comparison (m = 2)": 2,
        "changes of gaps, a pair for each metric and attribute (m = 1)": 1,
    }
    check(found.table, COMPARISONS)
    # a: .75 and .7; b: .5 and .75. By the mean of both b is the worse: its gap of .25 is now -.05.
    gap = found.table.filter(pl.col("kind") == "gap_change").row(0, named=True)
    assert (gap["group_a"], gap["group_b"]) == ("b", "a")
    assert gap["value"] == pytest.approx(-0.05 - 0.25)
    assert gap["low"] < -0.3 < gap["high"] < 0


def test_the_first_model_does_not_choose_the_pair():
    # x: c is the worst (.40), b .45; y: c .80, b .45. By the mean of both b is the worst.
    groups = ["a"] * 40 + ["b"] * 40 + ["c"] * 40
    right = [(38, 18, 16), (38, 18, 32)]
    x, y = (np.concatenate([np.arange(40) < n for n in of]).astype(float) for of in right)
    spec = ComparisonSettings(min_units=1, replicates=400)
    scores = stacked(scored(x, None, model="x"), scored(y, None, model="y"))
    estimates = measure_groups(scores, members(g=groups), spec)
    found = compare_models(estimates, spec, ("x", "y"), {"g": "c"})
    rows = found.table.filter(kind="gap_change").select("group_a", "group_b", "value").rows()
    assert rows == [("c", "a", pytest.approx(-0.4))]
    rows = compare_models(estimates, spec, ("x", "y")).table.filter(kind="gap_change")
    assert rows.select("group_a", "group_b", "value").rows() == [("b", "a", pytest.approx(0.0))]


def test_the_interval_is_paired():
    estimates, found = _compare()
    row = _rows(found)["g", "b"]
    # Ten of forty changed, all one way: variance of the change is that of a share of 10 / 40.
    se = np.sqrt(0.25 * 0.75 / 39)
    assert row["high"] - row["low"] == pytest.approx(2 * 2.02 * se, rel=0.1)
    alone = np.hypot(*estimates.standard_error[2])
    assert row["high"] - row["low"] < 0.8 * 2 * 2.02 * alone
    assert row["low"] > 0


def test_the_p_is_that_of_those_who_changed():
    # Rows are independent: McNemar's z is the root of those who changed, all in one direction.
    _, found = _compare()
    assert _rows(found)["g", "b"]["p_value"] == pytest.approx(2 * norm.sf(10**0.5))
    assert _rows(found)["g", "a"]["p_value"] == pytest.approx(2 * norm.sf(2**0.5))


def test_two_equal_models_are_not_tested_and_do_not_differ():
    _, found = _compare(y=X)
    rows = _rows(found)
    assert all(r["value"] == 0.0 for r in rows.values())
    assert all(r["p_value"] is None for r in rows.values())
    assert found.families == {}
    pair = found.table.row(by_predicate=pl.col("kind") == "gap_change", named=True)
    assert (pair["value"], pair["p_value"], pair["p_adjusted"]) == (0.0, None, None)


def test_a_change_in_doubt_says_why():
    homes = [f"h{k // 5}" if k < 40 else f"i{k}" for k in range(N)]  # a: 8 clusters
    estimates, found = _compare(clusters=homes, min_clusters=2)
    why = estimates.reason[[g.name for g in estimates.groups].index("a"), 0].partition(": ")[0]
    assert why == "fewer than 10 clusters"
    rows = {(r["kind"], r["group_a"]): r for r in found.table.iter_rows(named=True)}
    told = {key: (row["status"], row["reason"]) for key, row in rows.items()}
    assert told["model_difference", "a"] == ("boundary", why)
    assert told["model_difference", "b"] == ("ok", None)
    # What is put together from a is in doubt as a is, and has no interval where a has none.
    assert told["gap_change", "b"] == ("boundary", why)
    bare = [rows["model_difference", "a"], rows["gap_change", "b"]]
    assert {end for row in bare for end in (row["low"], row["high"])} == {None}


def test_clusters_that_change_together_count_once():
    clusters = [f"s{k // 10}" for k in range(N)]
    _, alone = _compare()
    _, together = _compare(clusters=clusters, min_clusters=1)
    assert _rows(together)["g", "b"]["p_value"] > 0.3 > _rows(alone)["g", "b"]["p_value"]


def test_swapping_the_models_mirrors_everything():
    spec = ComparisonSettings(min_units=1, replicates=1000)
    estimates, found = _compare()
    back = compare_models(estimates, spec, ("y", "x"))
    one, two = _rows(found)["g", "b"], _rows(back)["g", "b"]
    assert (one["value"], one["low"], one["high"]) == pytest.approx(
        (-two["value"], -two["high"], -two["low"])
    )
    assert one["p_value"] == pytest.approx(two["p_value"], abs=0.01)
    assert (two["model_a"], two["model_b"]) == ("y", "x")


def test_models_that_share_no_metric_have_nothing_to_compare():
    estimates, _ = _compare()
    spec = ComparisonSettings(replicates=100)
    found = compare_models(estimates, spec, ("x", "no such model"))
    assert found.table.is_empty()
    assert found.table.schema == pl.Schema(COMPARISONS.schema)


def test_classes_are_ranked_by_their_largest_gap_side_by_side():
    rows = [
        # model, label, group, value
        ("x", "nurse", "f", 0.9), ("x", "nurse", "m", 0.5), ("x", "cook", "f", 0.6),
        ("x", "cook", "m", 0.7), ("y", "nurse", "f", 0.8), ("y", "nurse", "m", 0.75),
        ("y", "cook", "f", 0.5), ("y", "cook", "m", 0.7), ("x", "pilot", "f", 0.1),
        ("y", "pilot", "f", None),
    ]  # fmt: skip
    table = pl.DataFrame(
        [
            {"model": m, "metric": "recall", "attribute": "g", "label": c, "group": g, "value": v}
            for m, c, g, v in rows
        ]
    )
    ranked = rank_classes_by_largest_gap(table, ("x", "y"))
    assert ranked["label"].to_list() == ["cook", "nurse"], "one group is no gap: no pilot"
    by_label = {r["label"]: r for r in ranked.iter_rows(named=True)}
    nurse = by_label["nurse"]
    assert (nurse["rank_a"], nurse["gap_a"], nurse["worst_a"], nurse["best_a"]) == (
        1, pytest.approx(0.4), "m", "f",
    )  # fmt: skip
    assert (nurse["rank_b"], nurse["gap_b"]) == (2, pytest.approx(0.05))
    assert by_label["cook"]["rank_b"] == 1


def test_each_threshold_has_classes_of_its_own():
    # At .50 and at .75 the groups are .1 apart, although .6 lie between the two thresholds.
    table = pl.DataFrame(
        [
            {"model": m, "metric": "recall_at_iou", "threshold": t, "attribute": "g", "label": "x",
             "group": g, "value": v}
            for m in ("x", "y")
            for t, g, v in ((0.5, "f", 0.9), (0.5, "m", 0.8), (0.75, "f", 0.4), (0.75, "m", 0.3))
        ]
    )  # fmt: skip
    ranked = rank_classes_by_largest_gap(table, ("x", "y"))
    assert ranked["threshold"].to_list() == [0.5, 0.75]
    assert ranked["gap_a"].to_list() == pytest.approx([0.1, 0.1])


def test_the_worst_group_goes_by_the_metrics_direction():
    rows = [("f", 0.1), ("m", 0.3)]
    table = pl.DataFrame(
        [
            {"model": "x", "task": "face_detection", "metric": "miss_rate", "attribute": "g",
             "label": "x", "group": g, "value": v}
            for g, v in rows
        ]
    )  # fmt: skip
    assert rank_classes_by_largest_gap(table, ("x", "x")).select("worst_a", "best_a").row(0) == (
        "m",
        "f",
    )
