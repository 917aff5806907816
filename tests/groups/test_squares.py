"""Roots of mean squares: their intervals and comparisons follow those of the mean squares."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import gamma, t

from isolux.core.info import Metric
from isolux.core.spec import ComparisonSettings
from isolux.core.survey_sample import SAMPLE
from isolux.disparity.comparisons import build_comparisons
from isolux.disparity.disparity_table import measure_disparities
from isolux.groups.measure import measure_groups
from isolux.policy.comparisons import ComparisonSide
from isolux.stats.numeric_statistics import root_mean_square_statistic
from isolux.stats.test_inversion import z_statistics_by_test_inversion
from tests._scored import members, scored

Z = 1.959963984540054
SQUARE = Metric(name="square", title="s", definition="s", direction="lower", high=None)
ROOT = Metric(name="root", title="r", definition="r", direction="lower", high=None,
              evidence="own", statistic=root_mean_square_statistic("error"))  # fmt: skip


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
    spec = ComparisonSettings(replicates=200, seed=3)
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
    # No lower: the far tail of 33 clusters may be flatter than a normal law's.
    over = found.interval.high[:, root] / np.sqrt(found.interval.high[:, square])
    assert np.all((over > 1 - 1e-9) & (over < (1.01 if kind == "clusters" else 1 + 1e-9)))
    a, b = (np.array([k]) for k, g in enumerate(found.groups) if g.name in "ab")
    one, two = (build_comparisons(found, "g", j) for j in (root, square))
    z, of_square = (
        z_statistics_by_test_inversion(one.compare_pairs(a, b), (Z,)),
        z_statistics_by_test_inversion(two.compare_pairs(a, b), (Z,)),
    )
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
    # The 100 largest of b: 20 of log(900 / 3.8) = 5.5, 80 of about a third: an index of
    # 100 / 135 = .74. a has none of them, and owes that to chance.
    assert found.status[:, root].tolist() == ["skewed values"] * 3
    assert set(found.reason[:, root]) == {
        "its largest errors thin out too slowly to say how large it can be"
    }


def test_values_of_a_few_far_errors_are_marked():
    # 60 errors of 1 and two of 40 in a group of 62: worth 3,260^2 / 5,120,060 = 2.1 clusters.
    error = np.array([40.0, 40.0] + 60 * [1.0] + 200 * [1.0])
    found, _, root, _ = measured(error, ["a"] * 62 + ["b"] * 200)
    rows = {group.name: k for k, group in enumerate(found.groups)}
    assert found.reason[rows["a"], root] == (
        "a few far errors make up most of it: worth 2.1 clusters"
    )


def test_the_upper_end_is_where_the_tail_may_lead():
    # 2,000 errors at the quantiles of a t law with 4 degrees of freedom: its rarest are missing.
    error = t.ppf((np.arange(2000) + 0.5) / 2000, 4.0)
    found, square, root, _ = measured(error, ["a"] * 2000)
    squares = np.sort(error**2)[::-1]
    cut, logs = squares[100], np.log(squares[:100] / squares[100]).sum()
    # Hill's index of 100, with five logarithms of a normal law, at its lower end of 2.5 %.
    index = gamma.ppf(0.025, 105) / (logs + 5 / 3)
    far = squares[100:].sum() / 2000 + 0.05 * cut * index / (index - 1.0)
    assert found.interval.high[0, root] == pytest.approx(np.sqrt(far))
    assert found.interval.high[0, square] < 0.9 * far
    assert np.sqrt(2.0) < found.interval.high[0, root]
    # A gate asks one end at 1.645 standard errors, and looks for far errors as far as at 1.96.
    gate = ComparisonSide(found, root, np.array([0])).one_sample_intervals()(1.6448536269514722)
    assert gate.high.item() == pytest.approx(np.sqrt(far), rel=1e-6)


@pytest.mark.parametrize("unit", [1e-30, 1e-12, 1e25])
def test_the_unit_does_not_matter(unit):
    error = np.random.default_rng(6).normal(size=400) * np.repeat([1.4, 1.0], 200)
    groups = ["a"] * 200 + ["b"] * 200
    tables = []
    for scale in (1.0, unit):
        found, _, _, spec = measured(error * scale, groups)
        table = measure_disparities(found, spec).table.filter(metric="root")
        tables.append(table.filter(pl.col("kind").is_in(["difference", "omnibus_test"])))
    one, other = (table["p_value"].to_list() for table in tables)
    assert other == pytest.approx(one, rel=1e-6)
    assert None not in one


def test_normal_errors_are_not_marked():
    found, _, root, _ = measured(
        np.random.default_rng(2).normal(size=300), ["a"] * 100 + ["b"] * 200
    )
    assert found.status[:, root].tolist() == ["ok"] * 3


def test_no_error_at_all_is_no_far_error():
    found, _, root, _ = measured(np.zeros(200), ["a"] * 100 + ["b"] * 100)
    assert "far errors" not in str(found.reason[0, root])
