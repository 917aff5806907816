"""FDR, inequity rate and GARBE of an audit: by hand, who is left out, and injected values found."""

from __future__ import annotations

import math
import os
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.api.audit import audit
from isolux.core.containers import Dataset, Scores
from isolux.core.info import DatasetInfo
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import DISPARITIES, INSTANCES, MEMBERSHIP, check
from isolux.disparity.disparity_table import measure_disparities
from isolux.disparity.verification_measures import COMBINED_METRIC
from isolux.groups.measure import measure_groups
from isolux.tasks.face_verification import score

INFO = DatasetInfo(title="Made up", summary="Faces that a test made up.", references=())
KINDS = ["fairness_discrepancy_rate", "inequity_rate", "garbe", "skewed_error_ratio"]


def judged(
    answers: dict[str, tuple[list[int], list[int]]], far: float = 0.1, *, given: bool = True
) -> tuple[Scores, pl.DataFrame]:
    """Groups of people with their accepted and refused pairs: ``{group: (genuine, impostor)}``.

    Each pair is 1 (accepted) or 0; a genuine pair is two photos of a person of its own, an impostor
    pair one photo each of two people of its own, so all pairs are independent. ``given``: False as
    if the pairs themselves had set the threshold by the FAR.
    """
    people, pairs, members = [], [], []
    for group, (genuine, impostor) in answers.items():
        for k, accepted in enumerate(genuine):
            ids = [f"{group}g{k:04}a", f"{group}g{k:04}b"]
            people += [(i, f"{group}g{k:04}") for i in ids]
            pairs.append((*ids, accepted))
            members += [(group, i) for i in ids]
        for k, accepted in enumerate(impostor):
            ids = [f"{group}i{k:04}a", f"{group}i{k:04}b"]
            people += [(i, i) for i in ids]
            pairs.append((*ids, accepted))
            members += [(group, i) for i in ids]
    instances = pl.DataFrame(people, schema=["instance_id", "subject_id"], orient="row")
    instances = instances.with_columns(image_id="instance_id")
    table = pl.DataFrame(pairs, schema=["instance_id", "other_id", "score"], orient="row")
    table = table.with_columns(model=pl.lit("m"), score=pl.col("score").cast(pl.Float64))
    rows = [("g", group, [group], i) for group, i in members]
    dataset = Dataset("made up", INFO, INSTANCES.conform(instances))
    scores = score(dataset, table, far=far, threshold=0.5)
    held = scores.evidence["pairs"].with_columns(given=pl.lit(given))
    scores = replace(scores, evidence={"pairs": held})
    return scores, pl.DataFrame(rows, schema=MEMBERSHIP.schema, orient="row")


def summaries(scores: Scores, members: pl.DataFrame, **settings: object) -> dict[str, dict]:
    spec = ComparisonSettings(**{"min_units": 1, "min_clusters": 1, "replicates": 200, **settings})
    found = measure_disparities(measure_groups(scores, members, spec), spec)
    rows = check(found.table, DISPARITIES).filter(pl.col("metric") == COMBINED_METRIC)
    assert rows["kind"].to_list() == KINDS * (rows.height // len(KINDS))
    return {row["kind"]: row for row in rows.iter_rows(named=True)}


def ones(right: int, of: int) -> list[int]:
    return [1] * right + [0] * (of - right)


# FMR .1, .2, .4 (of 300 impostor pairs); FNMR .1, .1, .3 (of 100 genuine pairs).
THREE = {
    "a": (ones(90, 100), ones(30, 300)),
    "b": (ones(90, 100), ones(60, 300)),
    "c": (ones(70, 100), ones(120, 300)),
}


def test_values_by_hand():
    found = summaries(*judged(THREE))
    # 1 − (.5 × .3 + .5 × .2)
    assert found["fairness_discrepancy_rate"]["value"] == pytest.approx(0.75)
    # sqrt(.4/.1 × .3/.1)
    assert found["inequity_rate"]["value"] == pytest.approx(math.sqrt(12.0))
    # Gini with n/(n−1): sum over i<j |x_i − x_j| / ((n − 1) sum x). FMR: .6 / 1.4; FNMR: .4 / 1.
    assert found["garbe"]["value"] == pytest.approx(0.5 * 0.6 / 1.4 + 0.5 * 0.4)
    # The groups err in .1, .15 and .35 of their pairs, with both kinds as many.
    assert found["skewed_error_ratio"]["value"] == pytest.approx(3.5)
    for row in found.values():
        assert row["threshold"] == 0.5
        assert row["low"] < row["value"] < row["high"]
        assert (row["status"], row["reason"]) == ("ok", None)
        assert row["p_value"] is None
    assert found["fairness_discrepancy_rate"]["high"] < 1.0
    assert found["inequity_rate"]["low"] > 1.0


def test_where_nothing_differs_the_intervals_hold_it():
    alike = {g: (ones(80, 100), ones(30, 300)) for g in "abc"}
    found = summaries(*judged(alike))
    assert [found[k]["value"] for k in KINDS] == pytest.approx([1.0, 1.0, 0.0, 1.0])
    assert found["fairness_discrepancy_rate"]["high"] == 1.0
    assert found["inequity_rate"]["low"] == 1.0
    assert "cannot hold 0" in found["garbe"]["method"]


def test_a_group_without_both_rates_is_left_out_and_named():
    # d has 5 impostor pairs, and a FAR of .1 needs 10: no false match rate.
    few = THREE | {"d": (ones(10, 100), ones(5, 5))}
    whole, found = (summaries(*judged(of, given=False)) for of in (THREE, few))
    for kind in KINDS:
        assert found[kind]["value"] == pytest.approx(whole[kind]["value"])
        assert found[kind]["reason"] == "without d"
        assert found[kind]["low"] is not None


def test_a_group_whose_rate_has_no_interval_takes_the_interval():
    # d has 50 impostor pairs: a point from 10 on, an interval from 300.
    found = summaries(*judged(THREE | {"d": (ones(90, 100), ones(25, 50))}, given=False))
    row = found["fairness_discrepancy_rate"]
    assert row["value"] == pytest.approx(1 - 0.5 * 0.4 - 0.5 * 0.2)
    assert (row["low"], row["high"], row["method"]) == (None, None, None)
    assert row["status"] == "few impostors"
    assert row["reason"] == "no interval: a group's rate has none"


def test_a_ratio_to_nothing_is_no_number():
    found = summaries(*judged(THREE | {"a": (ones(100, 100), ones(30, 300))}))
    row = found["inequity_rate"]
    assert (row["value"], row["low"], row["status"]) == (None, None, "undefined")
    assert row["reason"] == "a ratio to nothing: a group's rate is 0"
    assert found["fairness_discrepancy_rate"]["value"] == pytest.approx(1 - 0.5 * 0.3 - 0.5 * 0.3)


def test_one_group_is_no_comparison():
    found = summaries(*judged({"a": THREE["a"], "d": (ones(9, 10), ones(5, 5))}, given=False))
    for kind in KINDS:
        assert (found[kind]["value"], found[kind]["status"]) == (None, "undefined")
        assert found[kind]["reason"] == "fewer than two groups have both rates; without d"


def test_without_both_rates_there_are_no_rows_and_no_note():
    scores, members = judged(THREE)
    alone = tuple(m for m in scores.info.metrics if m.name != "false_match_rate")
    fewer = replace(scores, info=replace(scores.info, metrics=alone))
    assert summaries(fewer, members) == {}


def test_an_audit_says_whose_they_are():
    scores, members = judged(THREE)
    who = members.select("unit_id", place="group")
    done = audit(scores, who, "place", min_units=1, replicates=200)
    assert done.disparities.filter(pl.col("kind") == "garbe").height == 1
    assert any(n.startswith("Fairness discrepancy rate (de Freitas") for n in done.run.record["notes"])  # noqa: E501  # fmt: skip
    cited = {r["key"] for r in done.run.record["references"]}
    assert {"fairness-discrepancy-rate", "inequity-rate", "garbe"} <= cited


def test_injected_values_are_recovered():
    """Two groups with injected rates: the mean of worlds is near, and intervals hold the truth."""
    worlds = 200 if os.environ.get("ISOLUX_LAWS") == "full" else 30
    fmr, fnmr = {"a": 0.05, "b": 0.15}, {"a": 0.1, "b": 0.3}
    # FDR 1 − .5 × .1 − .5 × .2; inequity sqrt(3 × 3); GARBE of two is |x − y| / (x + y): .5, .5;
    # SER: the groups err in .075 and .225, with both kinds as many.
    truth = {"fairness_discrepancy_rate": 0.85, "inequity_rate": 3.0, "garbe": 0.5,
             "skewed_error_ratio": 3.0}  # fmt: skip
    rng = np.random.default_rng(7)
    values, held = {k: [] for k in KINDS}, dict.fromkeys(KINDS, 0)
    for _ in range(worlds):
        answers = {
            g: (
                (rng.random(300) >= fnmr[g]).astype(int).tolist(),
                (rng.random(600) < fmr[g]).astype(int).tolist(),
            )
            for g in "ab"
        }
        for kind, row in summaries(*judged(answers)).items():
            values[kind].append(row["value"])
            held[kind] += row["low"] <= truth[kind] <= row["high"]
    for kind, injected in truth.items():
        error = np.std(values[kind], ddof=1) / math.sqrt(worlds)
        # A ratio of two estimates is a little too large: its bias is below a tenth here.
        bias = 0.1 if kind in ("inequity_rate", "skewed_error_ratio") else 0.01
        assert abs(np.mean(values[kind]) - injected) < 4.0 * error + bias, kind
        # At least .95 is promised (.9 or so by the percentiles): far below is a fault.
        assert held[kind] >= 0.8 * worlds, kind
