"""What chance may have added to values that are never below 0, alone and beside another group's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.core.spec import ComparisonSettings
from isolux.disparity.comparisons import build_comparisons
from isolux.disparity.disparity_table import measure_disparities
from isolux.groups.interval_methods.noise_bias import (
    estimate_noise_bias,
    values_at_equal_noise_bias,
)
from isolux.groups.measure import measure_groups
from isolux.stats.calibration import folded_normal_mean
from isolux.tasks.classification import INFO
from tests._scored import binned, members, scored

METRIC = next(m for m in INFO.metrics if m.name == "calibration_error")
Z = 1.959963984540054


def measured(sure, right, groups, clusters=None, **settings):
    n = len(right)
    clusters = [f"s{k}" for k in range(n)] if clusters is None else clusters
    units = [f"u{k}" for k in range(n)]
    evidence = {"model": "m", "unit_id": units, "cluster_id": clusters, "confidence": sure}
    table = binned(pl.DataFrame({**evidence, "correct": right}))
    scores = scored([float(r) for r in right], clusters, evidence={"classification": table},
                    others=(METRIC,))  # fmt: skip
    spec = ComparisonSettings(
        **{"replicates": 199, "seed": 3, "min_units": 2, "min_clusters": 2, **settings}
    )
    found = measure_groups(scores, members(g=groups), spec)
    (j,) = (j for j, m in enumerate(found.measures) if m.metric == METRIC.name)
    rows = {g.name: np.array([k]) for k, g in enumerate(found.groups)}
    return found, j, rows


def alike(found, measure, rows):
    return values_at_equal_noise_bias(
        *(estimate_noise_bias(found.cluster_sums, measure, rows[name]) for name in "ab")
    )


def test_the_surer_group_is_given_the_chance_that_it_lacks():
    # One bin, confidence .5. a: right, wrong: gaps +.5, -.5: sum 0 of 2, squares .5, variance of
    # the mean gap .5 / 4 = .125. b: right five times of eight: sum 1 of 8 = .125, squares
    # 8 x .25 = 2, variance 2 / 64 = .03125. a has more: it stays 0. b gets .125 - .03125 = .09375
    # more, a deviation of .30619: E|N(.125, .30619)| = .30619 x sqrt(2 / pi) x exp(-.5 x .40825^2)
    # + .125 x erf(.40825 / sqrt 2) = .30619 x .79788 x .92004 + .125 x .31690 = .22477 + .03961.
    right = [True, False] + [True] * 5 + [False] * 3
    found, j, rows = measured([0.5] * 10, right, ["a"] * 2 + ["b"] * 8)
    measure = found.measures[j]
    a, b = alike(found, measure, rows)
    assert found.value[[0, *rows["a"], *rows["b"]], j] == pytest.approx([0.1, 0.0, 0.125])
    assert (a.item(), b.item()) == pytest.approx((0.0, 0.26438), abs=2e-5)
    # b's gap of .125 is .7 of its standard error of .17678: it may be 0, and all of it chance's:
    # .17678 x sqrt(2 / pi) = .14105. Its answers vary as true confidences of .5 would: times 1.
    chance = estimate_noise_bias(found.cluster_sums, measure, rows["b"])
    assert (chance.bias.item(), chance.se_factor.item()) == pytest.approx((0.14105, 1.0), abs=1e-5)


def test_a_group_without_a_wrong_answer_is_not_sure_of_its_error():
    # Ten answers of confidence .9, all right: every gap is .1, squares are 10 x .01 = .1. True
    # confidences would let them vary by 10 x .9 x .1 = .9: nine times as much, errors three times.
    found, j, rows = measured([0.9] * 20, [True] * 18 + [False] * 2, ["a"] * 10 + ["b"] * 10)
    chance = estimate_noise_bias(found.cluster_sums, found.measures[j], rows["a"])
    assert chance.se_factor.item() == pytest.approx(3.0)
    assert chance.noise_variance.sum().item() == pytest.approx(0.9 / 100)
    assert found.interval.low[rows["a"], j].item() == 0.0


def test_it_is_the_mean_of_values_with_noise_added():
    rng = np.random.default_rng(5)
    n = np.array([40, 300])
    sure, groups = rng.beta(3, 1, n.sum()), np.repeat(["a", "b"], n)
    right = rng.random(n.sum()) < sure**1.5
    clusters = [f"s{k // 2}" for k in range(n.sum())]
    found, j, rows = measured(sure, right, groups.tolist(), clusters)
    value = alike(found, found.measures[j], rows)
    # Again: gaps of clusters by bin, written out; the noise is drawn.
    bins = np.minimum(np.ceil(sure * 15).astype(int), 15) - 1
    gap, noise = np.zeros((2, 15)), np.zeros((2, 15))
    for g, name in enumerate("ab"):
        own = groups == name
        for k in range(15):
            inside = own & (bins == k)
            gap[g, k] = (right[inside] - sure[inside]).sum() / n[g]
            sums = [(right[c] - sure[c]).sum() for s in range(170)
                    if (c := inside & (np.arange(340) // 2 == s)).any()]  # fmt: skip
            noise[g, k] = np.square(sums).sum() / n[g] ** 2
        true = (sure[own] * (1 - sure[own])).sum() / n[g] ** 2
        noise[g] *= max(true / noise[g].sum(), 1.0)
    drawn = rng.normal(size=(200_000, 15))
    for g in (0, 1):
        more = np.sqrt(np.maximum(noise[1 - g] - noise[g], 0.0))
        expected = np.abs(gap[g] + drawn * more).sum(axis=1).mean()
        assert value[g].item() == pytest.approx(expected, abs=5e-4)
    narrow = np.maximum(np.abs(gap[0]) - 2 * np.sqrt(noise[0]), 0.0)
    again = np.abs(narrow + drawn * np.sqrt(noise[0])).sum(axis=1).mean() - narrow.sum()
    found_added = estimate_noise_bias(found.cluster_sums, found.measures[j], rows["a"]).bias.item()
    assert found_added == pytest.approx(again, abs=5e-4)


def test_groups_are_held_to_one_another_and_never_to_everyone():
    rng = np.random.default_rng(6)
    groups = np.repeat(["a", "b", "c"], [80, 400, 400])
    sure = rng.random(880)
    found, j, rows = measured(sure, rng.random(880) < sure, groups.tolist())
    spec = ComparisonSettings(replicates=199, seed=3)
    table = measure_disparities(found, spec).table.filter(pl.col("metric") == METRIC.name)
    assert "difference_to_overall" not in table["kind"].to_list()
    between = pl.concat_list("group_a", "group_b").list.sort() == ["a", "b"]
    pair = table.filter(pl.col("kind") == "difference", between).row(0, named=True)
    # As they stand, the values of 80 and 400 people are far apart; no larger than chance makes it.
    raw = (found.value[rows["a"], j] - found.value[rows["b"], j]).item()
    assert pair["value"] == pytest.approx(raw)
    assert pair["group_a"] == "a"
    one, two = alike(found, found.measures[j], rows)
    apart = build_comparisons(found, "g", j).compare_pairs(rows["a"], rows["b"])
    less = raw - (one - two).item()
    as_is = replace(apart, alternative_values=None).interval(Z).low.item()
    assert less > 0.03
    assert pair["low"] == pytest.approx(as_is - less)
    assert pair["low"] < 0.0 < pair["high"]
    assert pair["p_value"] > 0.05
    assert pair["detectable"] is None
    (row,) = table.filter(pl.col("kind") == "noise_corrected_sd").to_dicts()
    assert (row["value"], row["status"]) == (None, "undefined")
    assert row["reason"].startswith("chance makes the values larger")


def test_a_mean_size_is_what_many_draws_have():
    drawn = np.abs(np.random.default_rng(3).normal(0.4, 0.7, 400_000)).mean()
    found = folded_normal_mean(np.array([0.4, -0.4]), np.array([0.7, 0.7]))
    assert found == pytest.approx([drawn, drawn], abs=0.004)
