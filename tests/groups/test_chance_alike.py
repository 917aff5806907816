"""Values that chance enlarges, with as much chance in one group as in another."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.disparity.measured import measure_disparities
from isolux.groups.chance_alike import ENLARGED, owed_to_chance, with_chance_of, with_most_chance
from isolux.groups.measure import measure_groups
from isolux.tasks.classification import INFO
from isolux.vocabulary.spec import Comparing
from tests._scored import members, scored

METRIC = next(m for m in INFO.metrics if m.name == "calibration_error")


def measured(sure, right, groups, clusters=None, **settings):
    n = len(right)
    clusters = [f"s{k}" for k in range(n)] if clusters is None else clusters
    units = [f"u{k}" for k in range(n)]
    evidence = {"model": "m", "unit_id": units, "cluster_id": clusters, "confidence": sure}
    table = pl.DataFrame({**evidence, "correct": right})
    scores = scored([float(r) for r in right], clusters, evidence={"classification": table},
                    others=(METRIC,))  # fmt: skip
    spec = Comparing(
        **{"replicates": 199, "seed": 3, "min_units": 2, "min_clusters": 2, **settings}
    )
    found = measure_groups(scores, members(g=groups), spec)
    (j,) = (j for j, m in enumerate(found.measures) if m.metric == METRIC.name)
    rows = {g.name: k for k, g in enumerate(found.groups)}
    return found, j, rows


def test_the_surer_group_is_given_the_chance_that_it_lacks():
    # One bin, confidence .5. a: right, wrong: gaps +.5, -.5: sum 0 of 2, squares .5, variance of
    # the mean gap .5 / 4 = .125. b: right five times of eight: sum 1 of 8 = .125, squares
    # 8 x .25 = 2, variance 2 / 64 = .03125. a has more: it stays 0. b gets .125 - .03125 = .09375
    # more, a deviation of .30619: E|N(.125, .30619)| = .30619 x sqrt(2 / pi) x exp(-.5 x .40825^2)
    # + .125 x erf(.40825 / sqrt 2) = .30619 x .79788 x .92004 + .125 x .31690 = .22477 + .03961.
    right = [True, False] + [True] * 5 + [False] * 3
    found, j, rows = measured([0.5] * 10, right, ["a"] * 2 + ["b"] * 8)
    a, b = with_chance_of(found, j, np.array([rows["a"]]), np.array([rows["b"]]))
    assert found.value[[rows["a"], rows["b"]], j] == pytest.approx([0.0, 0.125])
    assert (a.item(), b.item()) == pytest.approx((0.0, 0.26438), abs=2e-5)
    together = with_most_chance(found, j, np.array([rows["a"], rows["b"]]))
    assert together == pytest.approx([0.0, 0.26438], abs=2e-5)


def test_it_is_the_mean_of_values_with_noise_added():
    rng = np.random.default_rng(5)
    n = np.array([40, 300])
    sure, groups = rng.beta(3, 1, n.sum()), np.repeat(["a", "b"], n)
    right = rng.random(n.sum()) < sure**1.5
    clusters = [f"s{k // 2}" for k in range(n.sum())]
    found, j, rows = measured(sure, right, groups.tolist(), clusters)
    value = with_chance_of(found, j, np.array([rows["a"]]), np.array([rows["b"]]))
    # Again: gaps of clusters by bin, written out; the noise is drawn.
    bins = np.minimum(np.ceil(sure * 15).astype(int), 15) - 1
    gap, noise = np.zeros((2, 15)), np.zeros((2, 15))
    for g, name in enumerate("ab"):
        for k in range(15):
            own = (groups == name) & (bins == k)
            gap[g, k] = (right[own] - sure[own]).sum() / n[g]
            sums = [(right[c] - sure[c]).sum() for s in range(170)
                    if (c := own & (np.arange(340) // 2 == s)).any()]  # fmt: skip
            noise[g, k] = np.square(sums).sum() / n[g] ** 2
    drawn = rng.normal(size=(200_000, 15))
    for g in (0, 1):
        more = np.sqrt(np.maximum(noise[1 - g] - noise[g], 0.0))
        expected = np.abs(gap[g] + drawn * more).sum(axis=1).mean()
        assert value[g].item() == pytest.approx(expected, abs=5e-4)
    owed = owed_to_chance(found.design, found.measures[j], np.array([rows["a"]])).item()
    again = np.abs(gap[0] + drawn * np.sqrt(noise[0])).sum(axis=1).mean() - np.abs(gap[0]).sum()
    assert owed == pytest.approx(again, abs=5e-4)


def test_groups_are_held_to_one_another_and_never_to_everyone():
    rng = np.random.default_rng(6)
    groups = np.repeat(["a", "b", "c"], [80, 400, 400])
    sure = rng.random(880)
    found, j, rows = measured(sure, rng.random(880) < sure, groups.tolist())
    spec = Comparing(replicates=199, seed=3)
    table = measure_disparities(found, spec).table.filter(pl.col("metric") == METRIC.name)
    assert "difference_to_overall" not in table["kind"].to_list()
    between = pl.concat_list("group_a", "group_b").list.sort() == ["a", "b"]
    pair = table.filter(pl.col("kind") == "difference", between).row(0, named=True)
    one, two = with_chance_of(found, j, np.array([rows["a"]]), np.array([rows["b"]]))
    assert abs(pair["value"]) == pytest.approx(abs(one - two).item(), abs=1e-12)
    assert pair["low"] <= 0.0 <= pair["high"]
    assert pair["p_value"] > 0.05
    assert pair["detectable"] is None
    # As they stand, the values of 80 and 400 people are several standard errors apart.
    raw = found.value[rows["a"], j] - found.value[rows["b"], j]
    error = np.hypot(*found.standard_error[[rows["a"], rows["b"]], j])
    assert raw > 1.5 * error
    for kind in ("range", "standard_deviation"):
        (row,) = table.filter(pl.col("kind") == kind).to_dicts()
        assert row["value"] < raw
        assert row["low"] <= row["value"] <= row["high"]


def test_values_are_marked_as_far_as_chance_moves_them():
    rng = np.random.default_rng(7)
    groups = np.repeat(["a", "b"], [100, 20_000])
    sure = rng.beta(8, 2, len(groups))
    fine, j, rows = measured(sure, rng.random(len(sure)) < sure, groups.tolist())
    assert fine.status[:, j].tolist() == ["boundary"] * 3
    assert set(fine.reason[:, j]) == {ENLARGED}
    off, j, rows = measured(sure, rng.random(len(sure)) < sure / 2, groups.tolist())
    assert off.status[rows["b"], j] == off.status[0, j] == "ok"
