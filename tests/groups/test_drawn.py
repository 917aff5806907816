"""Groups of a sample with weights: values, what units are worth, statuses, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from isolux.core.containers import Scores
from isolux.core.errors import SpecError
from isolux.core.info import Metric
from isolux.core.spec import Statistics
from isolux.core.survey_sample import SAMPLE
from isolux.groups.estimates import Estimates
from isolux.groups.measure import measure_groups
from isolux.groups.measure.survey_weights import apply_survey_weights
from isolux.stats.roc import roc_auc_statistic, weighted_roc_auc
from isolux.tasks._balanced_accuracy import BALANCED_ACCURACY
from tests._scored import members, scored

SPEC = Statistics(min_units=5, min_clusters=5, replicates=400)


def _sampled(
    weight: list[float], strata: list[str] | None = None, *, clusters: list[str] | None = None,
    drawn: int = 0, values: list[float] | None = None, **more: object,
) -> Scores:  # fmt: skip
    n = len(weight)
    right = [float(k % 3 != 0) for k in range(n)] if values is None else values
    of = dict.fromkeys(strata or [], 0)
    for name in strata or []:
        of[name] += 1
    sample = pl.DataFrame(
        {
            "model": ["m"] * n, "unit_id": [f"u{k}" for k in range(n)],
            "cluster_id": pl.Series([None] * n, dtype=pl.String), "weight": weight,
            "stratum": pl.Series(strata or [None] * n, dtype=pl.String),
            "stratum_clusters": [drawn + of.get(s, n) for s in strata or [""] * n],
        }
    )  # fmt: skip
    evidence = {SAMPLE: sample, **more.pop("evidence", {})}
    return scored(right, clusters, evidence=evidence, **more)


def _measured(scores: Scores, groups: list[str], spec: Statistics = SPEC) -> Estimates:
    return measure_groups(scores, members(tone=groups), spec)


def test_equal_weights_give_the_table_that_no_weights_give():
    groups = ["a", "b"] * 60
    clusters = [f"c{k // 4}" for k in range(120)]
    right = [float(k % 3 != 0) for k in range(120)]
    plain = measure_groups(scored(right, clusters), members(tone=groups), SPEC).to_table()
    found = _measured(_sampled([2.5] * 120, clusters=clusters), groups).to_table()
    assert found["n_effective"].to_list() == pytest.approx([120.0, 60.0, 60.0])
    for name in ("n_units", "n_clusters", "status", "reason", "method", "group"):
        assert found[name].to_list() == plain[name].to_list(), name
    for name in ("value", "low", "high", "standard_error"):
        assert found[name].to_list() == pytest.approx(plain[name].to_list()), name


def test_a_rate_is_that_of_the_people_for_whom_others_stand():
    weight = [4.0, 1.0, 1.0, 1.0] * 10
    values = [0.0, 1.0, 1.0, 1.0] * 10
    found = _measured(_sampled(weight, values=values), ["a"] * 40)
    # 10 of weight 4 are wrong, 30 of weight 1 right: 30 / 70; worth 70² / (10 · 16 + 30).
    assert found.value[0, 0] == pytest.approx(30 / 70)
    assert found.n_effective.n_units[0, 0] == pytest.approx(4900 / 190)
    assert found.n_units[0, 0] == 40


def test_a_group_whose_people_are_worth_too_few_is_not_judged():
    weight = [100.0] * 2 + [1.0] * 58
    spec = Statistics(min_units=50, min_clusters=5, replicates=200)
    found = _measured(_sampled(weight), ["a"] * 60, spec).to_table()
    row = found.row(1, named=True)
    assert row["status"] == "insufficient units"
    assert row["reason"] == "fewer than 50 units: 60 units are worth 3 of one weight"


def test_clusters_of_which_few_weigh_are_too_few():
    weight = [300.0] * 40 + [1.0] * 160
    clusters = [f"c{k // 10}" for k in range(200)]
    spec = Statistics(min_units=20, min_clusters=10, replicates=200)
    found = _measured(_sampled(weight, clusters=clusters), ["a"] * 200, spec).to_table()
    row = found.row(1, named=True)
    assert row["status"] == "insufficient clusters"
    assert row["reason"] == "fewer than 10 clusters: 20 clusters are worth 4 of one weight"


def test_rates_that_cannot_be_told_from_1_stay_at_1():
    found = _measured(_sampled([0.1, 0.7, 1.3, 3.0] * 30, values=[1.0] * 120), ["a"] * 120)
    assert found.value[0, 0] == 1.0
    assert found.interval.high[0, 0] == 1.0
    assert 0.9 < found.interval.low[0, 0] < 1.0


def test_strata_make_a_mean_surer_where_they_explain_it():
    strata = ["x"] * 60 + ["y"] * 60
    values = [float(k % 20 != 0) for k in range(60)] + [float(k % 20 == 0) for k in range(60)]
    apart = _measured(_sampled([1.0] * 120, strata, values=values), ["a"] * 120)
    together = _measured(_sampled([1.0] * 120, values=values), ["a"] * 120)
    assert apart.standard_error[0, 0] < 0.6 * together.standard_error[0, 0]


def _ranked(weight: list[float]) -> Scores:
    n = len(weight)
    evidence = pl.DataFrame(
        {
            "model": ["m"] * n, "unit_id": [f"u{k}" for k in range(n)],
            "cluster_id": pl.Series([None] * n, dtype=pl.String),
            "positive_score": [(7 * k % 11) / 11 for k in range(n)],
            "is_positive": [k % 3 == 0 for k in range(n)],
            "truth": [["yes"] if k % 3 == 0 else ["no"] for k in range(n)],
            "correct": [k % 4 != 0 for k in range(n)],
        }
    )  # fmt: skip
    metrics = [
        Metric(name="auc", title="A", definition="d", direction="higher", evidence="r",
               statistic=roc_auc_statistic()),
        Metric(name="balanced", title="B", definition="d", direction="higher", evidence="r",
               statistic=BALANCED_ACCURACY),
    ]  # fmt: skip
    return _sampled(weight, evidence={"r": evidence}, others=metrics)


def test_metrics_that_are_no_means_take_weights_as_if_people_were_there_as_often():
    weight = [float(1 + k % 3) for k in range(60)]
    found = _measured(_ranked(weight), ["a"] * 60)
    k = np.repeat(np.arange(60), [int(w) for w in weight])
    assert found.value[0, 1] == pytest.approx(
        float(weighted_roc_auc((7 * k % 11) / 11, k % 3 == 0, np.ones(len(k))))
    )
    recalls = [np.mean((k % 4 != 0)[(k % 3 == 0) == yes]) for yes in (True, False)]
    assert found.value[0, 2] == pytest.approx(np.mean(recalls))
    assert (found.standard_error[0, 1:] > 0).all()


def test_detections_take_no_weights_and_say_what_can_be_had():
    measures = [("m", "t", name) for name in ("accuracy", "average_precision")]
    judged = SimpleNamespace(measures=measures, detection_measures={1: None})
    none = np.zeros(0, dtype=np.int64)
    with pytest.raises(SpecError, match=r"(?s)average_precision takes no weights.*--metric acc"):
        apply_survey_weights(None, judged, (none, none), {"sample": pl.DataFrame()}, Statistics())


@pytest.mark.parametrize("more", [{"interval": "bca"}, {"weights": "poisson"}])
def test_a_bootstrap_that_ignores_the_sample_is_refused(more):
    spec = Statistics(min_units=5, min_clusters=5, replicates=200, **more)
    with pytest.raises(SpecError, match="has no such bootstrap"):
        _measured(_sampled([1.0] * 20), ["a"] * 20, spec)


@pytest.mark.parametrize("interval", ["score", "logit-t", "percentile", "wilson"])
def test_other_intervals_hold_the_weighted_rate(interval):
    spec = Statistics(min_units=5, min_clusters=5, replicates=400, interval=interval)
    found = _measured(_sampled([1.0, 3.0] * 60, ["x", "y"] * 60), list("abbab") * 24, spec)
    low, high = found.interval.low[:, 0], found.interval.high[:, 0]
    assert (low < found.value[:, 0]).all()
    assert (found.value[:, 0] < high).all()


@pytest.mark.parametrize("clusters", [None, [f"c{k // 3}" for k in range(120)]])
def test_groups_that_are_reduced_in_turns_are_those_of_one_go(monkeypatch, clusters):
    weight, groups = [1.0 + k % 5 for k in range(120)], list("abcbab") * 20
    whole = _measured(_sampled(weight, clusters=clusters), groups).to_table()
    monkeypatch.setattr("isolux.groups.means.MAX_ENTRIES_PER_BATCH", 50)
    assert _measured(_sampled(weight, clusters=clusters), groups).to_table().equals(whole)
