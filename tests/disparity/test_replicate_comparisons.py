"""Groups held to everyone on metrics that are no means: everyone else's interval, times a share."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.info import Metric
from isolux.core.spec import ComparisonSettings
from isolux.core.survey_sample import SAMPLE
from isolux.disparity.comparisons import build_comparisons
from isolux.disparity.detectable import find_detectable_difference
from isolux.disparity.disparity_table import measure_disparities
from isolux.groups.measure import measure_groups
from isolux.stats.roc import roc_auc_statistic
from isolux.stats.statistic import SumStatistic, ratio_of_first_two_sums
from isolux.stats.test_inversion import z_statistics_by_test_inversion
from isolux.tasks._balanced_accuracy import BALANCED_ACCURACY
from tests._scored import members, scored

SPEC = ComparisonSettings(min_units=1, min_clusters=1, replicates=500)
Z = 1.959964


def _metric(statistic, **more):
    return Metric(name="x", title="X", definition="x", direction="higher", evidence="own",
                  statistic=statistic, **more)  # fmt: skip


def _columns(evidence):
    return np.column_stack([evidence["right"].to_numpy(), np.ones(evidence.height)])


SHARE = _metric(SumStatistic(_columns, ratio_of_first_two_sums))
"""A mean that does not say that it is one: what is promised of mixtures holds to the last digit."""


def _people(n=400, share=0.75, seed=0, rates=(0.9, 0.8)):
    rng = np.random.default_rng(seed)
    first = np.arange(n) < share * n
    right = rng.random(n) < np.where(first, *rates)
    return first, right, [f"s{k // 4}" for k in range(n)]


def _measured(metric, groups, right, clusters, *, truth=None, weight=None, **attributes):
    n = len(right)
    ids = {"model": ["m"] * n, "unit_id": [f"u{k}" for k in range(n)], "cluster_id": clusters}
    truth = np.arange(n) % 2 == 0 if truth is None else truth
    own = pl.DataFrame({
        **ids, "right": right.astype(float), "correct": right, "is_positive": truth,
        "truth": [["y" if t else "n"] for t in truth],
        "positive_score": np.where(right, 1.0 * truth, 0.8 * ~truth),
    })  # fmt: skip
    evidence = {"own": own}
    if weight is not None:
        evidence[SAMPLE] = pl.DataFrame({
            **ids, "weight": weight, "stratum": pl.Series([None] * n, dtype=pl.String),
            "stratum_clusters": pl.Series([None] * n, dtype=pl.Int64),
        })  # fmt: skip
    scores = scored(right.astype(float).tolist(), clusters, evidence=evidence, others=[metric])
    estimates = measure_groups(scores, members(g=groups, **attributes), SPEC)
    j = next(k for k, m in enumerate(estimates.measures) if m.metric == "x")
    assert estimates.measures[j].mean is None
    return estimates, j


def _at(estimates, name):
    return np.array([next(k for k, g in enumerate(estimates.groups) if g.name == name)])


@pytest.mark.parametrize("weighted", [False, True])
def test_two_groups_are_everyone(weighted):
    first, right, clusters = _people()
    weight = np.where(first, 3.0, 1.0) * np.linspace(0.5, 1.5, 400) if weighted else None
    groups = np.where(first, "a", "b").tolist()
    estimates, j = _measured(SHARE, groups, right, clusters, weight=weight)
    a, b = _at(estimates, "a"), _at(estimates, "b")
    compared = build_comparisons(estimates, "g", j)
    whole = np.ones(400) if weight is None else weight
    others = whole[~first].sum() / whole.sum()
    rest, pair = compared.compare_with_complement(a), compared.compare_pairs(a, b)
    assert rest.a - rest.b == pytest.approx(others * (pair.a - pair.b))
    for z in (1.0, Z, 4.0):
        one, two = rest.interval(z), pair.interval(z)
        assert one.low == pytest.approx(others * two.low, rel=1e-6)
        assert one.high == pytest.approx(others * two.high, rel=1e-6)
    assert z_statistics_by_test_inversion(rest) == pytest.approx(
        z_statistics_by_test_inversion(pair), rel=1e-6
    )
    assert rest.standard_error == pytest.approx(others * pair.standard_error, rel=1e-6)


def test_three_groups_and_everyone_but_one():
    first, right, clusters = _people(share=0.9)
    groups = np.where(first, "a", np.where(np.arange(400) % 8 < 4, "b", "c")).tolist()
    rest = np.where(first, "a", "not a").tolist()
    estimates, j = _measured(SHARE, groups, right, clusters, h=rest)
    names = [(g.attribute, g.name) for g in estimates.groups]
    a, not_a = (np.array([names.index(k)]) for k in (("g", "a"), ("h", "not a")))
    found = build_comparisons(estimates, "g", j).compare_with_complement(a).interval(Z)
    pair = build_comparisons(estimates, "h", j).compare_pairs(a, not_a).interval(Z)
    assert found.low == pytest.approx(0.1 * pair.low, rel=1e-6)
    assert found.high == pytest.approx(0.1 * pair.high, rel=1e-6)


@pytest.mark.parametrize("statistic", [BALANCED_ACCURACY, roc_auc_statistic()])
def test_what_is_nearly_a_mixture_tells_nearly_one_story(statistic):
    first, right, clusters = _people(n=1200, rates=(0.92, 0.85))
    groups = np.where(first, "a", "b").tolist()
    estimates, j = _measured(_metric(statistic), groups, right, clusters)
    table = measure_disparities(estimates, SPEC).table.filter(metric="x")
    own = {(r["kind"], r["group_a"]): r for r in table.iter_rows(named=True)}
    pair, rest = own["difference", "b"], own["difference_to_overall", "a"]
    values = dict(zip([g.name for g in estimates.groups], estimates.value[:, j], strict=True))
    assert rest["value"] == pytest.approx(values["a"] - values["overall"])
    assert rest["value"] == pytest.approx(-pair["value"] / 4, rel=0.05)
    assert rest["low"] == pytest.approx(-pair["high"] / 4, abs=0.004)
    assert rest["high"] == pytest.approx(-pair["low"] / 4, abs=0.004)
    assert rest["p_value"] == pytest.approx(pair["p_value"], rel=0.4)
    assert (rest["p_value"] <= 0.05) == (rest["low"] > 0 or rest["high"] < 0)


def test_where_all_groups_are_ranked_better_than_everyone_none_is_held_to_everyone():
    # Both groups' positives score 1 above their negatives; b's people score 1 above a's. So b's
    # negatives tie with a's positives, and everyone's area is below both groups' 1.
    rng = np.random.default_rng(4)
    n, groups = 400, np.repeat(["a", "b"], [250, 150])
    truth = rng.random(n) < 0.5
    score = 1.0 * truth + (groups == "b")
    flip = rng.random(n) < 0.1
    score[flip] = rng.choice([0.0, 1.0, 2.0], flip.sum())
    ids = {"model": ["m"] * n, "unit_id": [f"u{k}" for k in range(n)],
           "cluster_id": [f"s{k}" for k in range(n)]}  # fmt: skip
    own = pl.DataFrame({**ids, "is_positive": truth, "positive_score": score})
    scores = scored([1.0] * n, ids["cluster_id"], evidence={"own": own},
                    others=(_metric(roc_auc_statistic()),))  # fmt: skip
    estimates = measure_groups(scores, members(g=groups.tolist()), SPEC)
    table = measure_disparities(estimates, SPEC).table.filter(metric="x")
    everyone, *apart = estimates.value[:, 1]
    assert min(apart) > everyone + 0.05
    rests = table.filter(kind="difference_to_overall")
    assert rests["group_a"].to_list() == ["a", "b"]
    assert rests["value"].to_list() == rests["p_value"].to_list() == [None, None]
    assert rests["status"].to_list() == ["undefined"] * 2
    assert all("lies outside the groups' values" in why for why in rests["reason"])
    pair = table.filter(kind="difference").row(0, named=True)
    assert pair["p_value"] is not None


@pytest.mark.parametrize("statistic", [BALANCED_ACCURACY, roc_auc_statistic()])
def test_others_without_an_error_are_not_known_to_the_last_digit(statistic):
    # 19 of 20 are in the group, err now and then; 20 others do not. The pair finds nothing in that.
    first, right, _ = _people(n=400, share=0.95, rates=(0.97, 1.0))
    groups = np.where(first, "a", "b").tolist()
    estimates, j = _measured(_metric(statistic), groups, right, [f"s{k}" for k in range(400)])
    a, b = _at(estimates, "a"), _at(estimates, "b")
    compared = build_comparisons(estimates, "g", j)
    assert estimates.value[b, j] == 1.0
    rest, pair = (
        z_statistics_by_test_inversion(compared.compare_with_complement(a)),
        z_statistics_by_test_inversion(compared.compare_pairs(a, b)),
    )
    assert abs(pair) < Z
    assert rest == pytest.approx(pair, rel=0.1)
    # What a group without an error could have shown is no less than what its interval cannot tell.
    apart = compared.compare_pairs(a, b)
    reach = np.maximum(apart.a - apart.b - apart.interval(Z).low, 0.0)
    seen = find_detectable_difference(apart, Z, worse_is_lower=True)
    assert seen > reach, (seen, reach)


def test_a_group_that_is_everyone_differs_by_nothing():
    _, right, clusters = _people()
    groups = [["a", "b"] if k % 4 else ["a"] for k in range(400)]
    estimates, j = _measured(SHARE, groups, right, clusters)
    table = measure_disparities(estimates, SPEC).table
    row = table.filter(metric="x", kind="difference_to_overall", group_a="a").row(0, named=True)
    assert (row["value"], row["low"], row["p_value"]) == (None, None, None)
    assert (row["status"], row["reason"]) == (
        "insufficient units", f"everyone else: fewer than {SPEC.min_units} units",
    )  # fmt: skip
    assert (
        z_statistics_by_test_inversion(
            build_comparisons(estimates, "g", j).compare_with_complement(_at(estimates, "a"))
        )
        == 0.0
    )
