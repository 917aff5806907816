"""Roots of mean squares: their intervals and comparisons follow those of the mean squares."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.disparity.comparisons import compare_groups
from isolux.disparity.measured import measure_disparities
from isolux.groups.measure import measure_groups
from isolux.stats.differences import deviates
from isolux.stats.numbers import root_mean_square
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.info import Metric
from isolux.vocabulary.spec import Comparing
from tests._scored import members, scored

Z = 1.959963984540054
SQUARE = Metric(name="square", title="s", definition="s", direction="lower", high=None)
ROOT = Metric(name="root", title="r", definition="r", direction="lower", high=None,
              evidence="own", statistic=root_mean_square("error"))  # fmt: skip


def measured(error, groups, clusters=None, weight=None):
    n = len(error)
    clusters = [f"s{k}" for k in range(n)] if clusters is None else clusters
    ids = {"model": "m", "unit_id": [f"u{k}" for k in range(n)], "cluster_id": clusters}
    evidence = {"own": pl.DataFrame({**ids, "error": error})}
    if weight is not None:
        evidence[SAMPLE] = pl.DataFrame({
            **ids, "weight": weight, "stratum": pl.Series([None] * n, dtype=pl.String),
            "stratum_clusters": pl.Series([None] * n, dtype=pl.Int64),
        })  # fmt: skip
    scores = scored((error**2).tolist(), clusters, metric=SQUARE, evidence=evidence, others=(ROOT,))
    spec = Comparing(replicates=200, seed=3)
    found = measure_groups(scores, members(g=groups), spec)
    square, root = ([m.metric for m in found.measures].index(x) for x in ("square", "root"))
    return found, square, root, spec


@pytest.mark.parametrize("kind", ["people", "clusters", "weights"])
def test_a_root_is_tested_as_its_square_is(kind):
    rng = np.random.default_rng(8)
    n = 300
    error, groups = rng.normal(size=n), np.repeat(["a", "b"], [100, 200])
    error[groups == "a"] *= 1.2
    clusters = [f"s{k // 3}" for k in range(n)] if kind == "clusters" else None
    weight = rng.lognormal(0, 0.4, n) if kind == "weights" else None
    found, square, root, spec = measured(error, groups.tolist(), clusters, weight)
    assert found.value[:, root] == pytest.approx(np.sqrt(found.value[:, square]))
    assert found.interval.low[:, root] == pytest.approx(np.sqrt(found.interval.low[:, square]))
    assert found.interval.high[:, root] == pytest.approx(np.sqrt(found.interval.high[:, square]))
    a, b = (np.array([k]) for k, g in enumerate(found.groups) if g.name in "ab")
    one, two = (compare_groups(found, "g", j) for j in (root, square))
    z, of_square = deviates(one.pairs(a, b), (Z,)), deviates(two.pairs(a, b), (Z,))
    # Another scale: the intervals reach 0 at nearly the same deviate.
    assert z == pytest.approx(of_square, rel=0.15)
    table = measure_disparities(found, spec).table.filter(metric="root")
    rest = table.filter(kind="difference_to_overall", group_a="a").row(0, named=True)
    pair = table.filter(kind="difference").row(0, named=True)
    value = found.value[:, root]
    assert rest["value"] == pytest.approx((value[a] - value[0]).item())
    # Everyone's root is not the mean of both sides': nearly one story, not to the last digit.
    assert rest["p_value"] == pytest.approx(pair["p_value"], rel=0.5)
    for row in (rest, pair):
        assert (row["p_value"] <= 0.05) == (row["low"] > 0 or row["high"] < 0)


def test_a_small_group_without_a_far_error_is_not_sure_of_it():
    # 50 people err by about 1, and so do 2,000 others but for 20 who err by 30: a law with such
    # errors gives none of them to 50 people in 60 of 100 samples (.99 to the power of 50).
    rng = np.random.default_rng(9)
    error, groups = rng.normal(size=2050), ["a"] * 50 + ["b"] * 2000
    error[50:70] = 30.0
    found, _, root, spec = measured(error, groups)
    pair = measure_disparities(found, spec).table.filter(metric="root", kind="difference")
    assert pair["p_value"].item() > 0.05
    assert pair["low"].item() < 0.0 < pair["high"].item()
    # By their own spreads they are many standard errors apart.
    a, b = (k for k, g in enumerate(found.groups) if g.name in "ab")
    apart = found.value[b, root] - found.value[a, root]
    assert apart > 5 * np.hypot(*found.standard_error[[a, b], root])
    # 20 x 900 of 20,000: worth (18,000 + 1,980)^2 / (20 x 810,000 + 3 x 1,980) = 24.6 clusters.
    assert found.status[:, root].tolist() == ["boundary"] * 3
    most = "a few far errors make up most of"
    assert found.reason[b, root] == f"{most} it: worth 24.7 clusters"
    # a has none, and owes that to chance: everyone's count.
    assert str(found.reason[a, root]).startswith(f"{most} everyone's: worth 24.")


def test_normal_errors_are_not_marked():
    found, _, root, _ = measured(
        np.random.default_rng(2).normal(size=300), ["a"] * 100 + ["b"] * 200
    )
    assert found.status[:, root].tolist() == ["ok"] * 3


def test_no_error_at_all_is_no_far_error():
    found, _, root, _ = measured(np.zeros(200), ["a"] * 100 + ["b"] * 100)
    assert "far errors" not in str(found.reason[0, root])
