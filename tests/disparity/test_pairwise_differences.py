"""Rows of pairs: orientation, references, ratios, intervals, shared people, status."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.spec import ComparisonSettings
from isolux.core.tables import DISPARITIES, check
from isolux.disparity.detectable import find_detectable_difference
from isolux.disparity.disparity_table import measure_disparities
from isolux.groups.measure import measure_groups
from isolux.stats.intervals import Interval, mover_difference_interval
from tests._scored import ACCURACY, ERROR, SELECTION, members, scored

SIZE = 40
RATES = {"a": 30, "b": 20, "c": 36}  # right, of forty
VALUES = [v for right in RATES.values() for v in [1.0] * right + [0.0] * (SIZE - right)]
GROUPS = [g for g in RATES for _ in range(SIZE)]


def _measured(metric=ACCURACY, references=None, groups=GROUPS, values=VALUES, **more):
    spec = ComparisonSettings(**{"min_units": 1, "replicates": 500, **more})
    estimates = measure_groups(scored(values, metric=metric), members(g=groups), spec)
    return estimates, measure_disparities(estimates, spec, references)


def _pairs(table, kind="difference"):
    rows = table.filter(pl.col("kind") == kind)
    return {(r["group_a"], r["group_b"]): r for r in rows.iter_rows(named=True)}


@pytest.mark.parametrize(
    ("metric", "pairs"),
    [
        (ACCURACY, {("b", "a"): -0.25, ("a", "c"): -0.15, ("b", "c"): -0.4}),
        (ERROR, {("a", "b"): 0.25, ("c", "a"): 0.15, ("c", "b"): 0.4}),
        (SELECTION, {("b", "a"): -0.25, ("a", "c"): -0.15, ("b", "c"): -0.4}),
    ],
)
def test_the_worse_group_comes_first(metric, pairs):
    found = _pairs(_measured(metric)[1].table)
    assert {k: r["value"] for k, r in found.items()} == pytest.approx(pairs)


def test_a_reference_is_always_second():
    found = _pairs(_measured(references={"g": "b"})[1].table)
    values = {k: r["value"] for k, r in found.items()}
    assert values == pytest.approx({("a", "b"): 0.25, ("c", "b"): 0.4})


def test_ratios_and_their_logs_by_hand():
    table = _measured(log_base=10.0)[1].table
    ratios, logs = _pairs(table, "ratio"), _pairs(table, "log_ratio")
    assert ratios["b", "c"]["value"] == pytest.approx(0.5 / 0.9)
    assert logs["b", "c"]["value"] == pytest.approx(np.log10(0.5 / 0.9))
    assert ratios["b", "c"]["low"] == pytest.approx(10 ** logs["b", "c"]["low"])
    assert ratios["b", "c"]["high"] == pytest.approx(10 ** logs["b", "c"]["high"])
    same = {k: r["p_value"] for k, r in _pairs(table).items()}
    assert {k: r["p_value"] for k, r in ratios.items()} == same, "the same null hypothesis"


def test_intervals_are_those_that_the_test_asks():
    _, measured = _measured()
    row = _pairs(measured.table)["b", "a"]
    apart = measured.family.tested["g", 0].comparisons.compare_pairs(np.array([2]), np.array([1]))
    ends = apart.interval(1.959964)
    assert (row["low"], row["high"]) == pytest.approx((ends.low.item(), ends.high.item()))
    logs = apart.interval(1.959964, log=True)
    ratio = _pairs(measured.table, "ratio")["b", "a"]
    assert ratio["low"] == pytest.approx(np.exp(logs.low.item()))
    assert row["method"] == "score, of the pair"


@pytest.mark.parametrize("named", [{"interval": "wilson"}, {"groups": [["a"], ["a", "b"]] * 60}])
def test_other_intervals_and_people_in_two_groups_are_joined(named):
    estimates, measured = _measured(**named)
    row = next(iter(_pairs(measured.table).values()))
    at = {g.name: k for k, g in enumerate(estimates.groups)}
    first, second = (np.array([at[row[side]]]) for side in ("group_a", "group_b"))
    apart = measured.family.tested["g", 0].comparisons.compare_pairs(first, second)
    a, b = (
        Interval(estimates.interval.low[g, 0], estimates.interval.high[g, 0])
        for g in (first, second)
    )
    rho = apart.correlation(1.959964)
    ends = mover_difference_interval(
        estimates.value[first, 0], a, estimates.value[second, 0], b, rho
    )
    assert (row["low"], row["high"]) == pytest.approx((ends.low.item(), ends.high.item()))
    assert row["method"].endswith(", MOVER")


@pytest.mark.parametrize("right", [(30, 20, 36), (40, 33, 39), (3, 9, 1), (21, 22, 35)])
def test_p_interval_and_ratio_of_a_pair_are_one_statement(right):
    values = [v for k in right for v in [1.0] * k + [0.0] * (SIZE - k)]
    table = _measured(values=values)[1].table
    found, ratios = _pairs(table), _pairs(table, "ratio")
    for pair, row in found.items():
        apart = row["low"] > 0 or row["high"] < 0
        assert (row["p_value"] <= 0.05) == apart, row
        times = ratios[pair]
        assert (times["low"] > 1 or times["high"] < 1) == apart, times


def test_percentile_when_asked_for():
    estimates, measured = _measured(interval="percentile")
    row = _pairs(measured.table)["b", "a"]
    ends = np.percentile(estimates.replicates[2, 0] - estimates.replicates[1, 0], [2.5, 97.5])
    assert (row["low"], row["high"]) == pytest.approx(tuple(ends))
    assert row["method"] == "percentile"


def test_detectable_is_where_reach_and_power_add_up_to_it():
    _, measured = _measured()
    least = _pairs(measured.table)["b", "a"]["detectable"]
    apart = measured.family.tested["g", 0].comparisons.compare_pairs(np.array([2]), np.array([1]))
    sure = find_detectable_difference(
        apart, measured.family.tested["g", 0].critical, worse_is_lower=True, power=0.95
    )
    even = find_detectable_difference(
        apart, measured.family.tested["g", 0].critical, worse_is_lower=True, power=0.5
    )
    assert even.item() < least < sure.item() < 1
    ratio = _pairs(measured.table, "ratio")["b", "a"]["detectable"]
    assert ratio == pytest.approx(1 - least / 0.625), "beside the mean of .5 and .75"


def test_what_nothing_could_have_detected_is_null():
    # One of ten is right: nobody can be served 20 points worse than that.
    groups, values = ["a"] * 20 + ["b"] * 20, ([1.0] + [0.0] * 9) * 4
    row = _pairs(_measured(groups=groups, values=values)[1].table)
    assert [r["detectable"] for r in row.values()] == [None]


def test_each_group_is_held_against_everyone():
    table = _measured()[1].table
    found = _pairs(table, "difference_to_overall")
    overall = 86 / 120
    assert {k: r["value"] for k, r in found.items()} == pytest.approx(
        {(g, "overall"): n / SIZE - overall for g, n in RATES.items()}
    )
    row = found["b", "overall"]
    # 40 of the 120 are in both: the interval is narrower than b's own.
    own = _measured()[0].interval
    assert row["high"] - row["low"] < own.high[2, 0] - own.low[2, 0]
    assert row["n_units_b"] == 120


def test_people_shared_by_two_tones_narrow_the_difference():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, 120).astype(float).tolist()
    shared = [["3"]] * 40 + [["3", "4"]] * 40 + [["4"]] * 40
    apart = [["3"]] * 60 + [["4"]] * 60
    widths = []
    for groups in (shared, apart):
        row = next(iter(_pairs(_measured(groups=groups, values=values)[1].table).values()))
        widths.append((row["high"] - row["low"]) * np.sqrt(row["n_units_a"]))
    assert widths[0] < 0.85 * widths[1]


def test_a_value_of_zero_has_no_ratio():
    values = [0.0] * 40 + [1.0, 0.0] * 20
    table = _measured(groups=["a"] * 40 + ["b"] * 40, values=values)[1].table
    row = _pairs(table, "log_ratio")["a", "b"]
    assert row["value"] is None
    assert row["status"] == "undefined"
    assert "no ratio" in row["reason"]
    difference = _pairs(table)["a", "b"]
    assert (difference["value"], difference["status"]) == (-0.5, "ok")
    assert difference["high"] < 0


def test_a_group_too_small_is_named_with_its_reason():
    groups = ["a"] * 40 + ["b"] * 40 + ["c"] * 3
    values = [1.0, 0.0] * 41 + [1.0]
    table = _measured(groups=groups, values=values)[1].table
    check(table, DISPARITIES)
    row = _pairs(table, "difference_to_overall")["c", "overall"]
    assert (row["value"], row["p_value"], row["status"]) == (None, None, "insufficient clusters")
    assert row["n_units_a"] == 3
    assert ("a", "c") not in _pairs(table)


def test_a_ratio_to_nothing_has_no_interval_and_says_so():
    values = [1.0] * 30 + [0.0] * 50  # a: 30 of 40, b: none
    _, found = _measured(values=values, groups=["a"] * SIZE + ["b"] * SIZE)
    ratio = _pairs(found.table, "ratio")["b", "a"]
    assert (ratio["value"], ratio["low"], ratio["status"]) == (0.0, None, "no ratio")
    assert ratio["reason"] == "a value is 0, or may be by chance: its ratio has no interval"
    logs = _pairs(found.table, "log_ratio")["b", "a"]
    assert [logs[k] for k in ("value", "low", "p_value", "status")] == [None] * 3 + ["undefined"]
    whole = {r["kind"]: r for r in found.table.iter_rows(named=True)}
    # The others' ratios are no interval of this one: 0 lies in none of them.
    assert [whole["ratio_min_max"][k] for k in ("value", "low", "high")] == [0.0, None, None]
    assert whole["ratio_min_max"]["status"] == "no ratio"
    assert [whole["epsilon"][k] for k in ("value", "low", "high")] == [None] * 3


def test_a_group_is_not_held_to_a_handful_of_others():
    both = [["a"]] * 37 + [["a", "b"]] * 40 + [["b"]] * 43
    values = [1.0, 1.0, 0.0, 1.0] * 30
    spec = ComparisonSettings(min_units=43, replicates=300)
    estimates = measure_groups(scored(values), members(g=both), spec)
    rows = _pairs(measure_disparities(estimates, spec).table, "difference_to_overall")
    # 83 are b, so 37 are not: too few; 77 are a, and 43 are not.
    assert rows["b", "overall"]["status"] == "insufficient units"
    assert rows["b", "overall"]["reason"] == "everyone else: fewer than 43 units"
    assert rows["b", "overall"]["p_value"] is None
    assert rows["a", "overall"]["status"] == "ok"
    assert rows["a", "overall"]["p_value"] is not None


def test_of_two_groups_the_rest_is_as_much_in_doubt_as_the_other():
    groups, homes = (
        ["a"] * 60 + ["b"] * 60,
        [f"h{k}" if k < 60 else f"i{k // 5}" for k in range(120)],
    )
    spec = ComparisonSettings(min_units=1, replicates=300)
    values = [1.0, 0.0, 1.0, 1.0] * 30
    estimates = measure_groups(scored(values, homes), members(g=groups), spec)
    rows = _pairs(measure_disparities(estimates, spec).table, "difference_to_overall")
    told = {(row["status"], row["reason"]) for row in rows.values()}
    assert told == {("few clusters", "fewer than 15 effective clusters")}
