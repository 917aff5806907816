"""Rows for a whole attribute: by hand, against the pairs, and what must not happen."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.containers import Scores
from isolux.core.info import Metric, Reference, TaskInfo
from isolux.core.spec import ComparisonSettings
from isolux.disparity.attribute_measures import build_equalized_odds_rows
from isolux.disparity.disparity_table import measure_disparities
from isolux.groups.measure import measure_groups
from isolux.stats.dispersion import estimate_noise_corrected_sd, pool_variance_per_observation
from tests._scored import ACCURACY, ERROR, members, scored

SIZE = 40
RATES = {"a": 30, "b": 20, "c": 36}
VALUES = [v for right in RATES.values() for v in [1.0] * right + [0.0] * (SIZE - right)]
GROUPS = [g for g in RATES for _ in range(SIZE)]


def _measured(metric=ACCURACY, references=None, groups=GROUPS, values=VALUES, **more):
    spec = ComparisonSettings(**{"min_units": 1, "replicates": 500, **more})
    estimates = measure_groups(scored(values, metric=metric), members(g=groups), spec)
    return estimates, measure_disparities(estimates, spec, references)


def _row(table, kind):
    return table.filter(pl.col("kind") == kind).row(0, named=True)


def test_values_by_hand():
    # .75, .5, .9 around everyone's 86 / 120 = .71667
    table = _measured()[1].table
    assert _row(table, "range")["value"] == pytest.approx(0.4)
    assert _row(table, "ratio_min_max")["value"] == pytest.approx(0.5 / 0.9)
    assert _row(table, "epsilon")["value"] == pytest.approx(np.log10(0.9 / 0.5))
    assert _row(table, "standard_deviation")["value"] == pytest.approx(
        np.std([0.75, 0.5, 0.9], ddof=1)
    )
    gaps = np.abs(np.array([0.75, 0.5, 0.9]) - 86 / 120)
    assert _row(table, "mean_absolute_gap")["value"] == pytest.approx(gaps.mean())


def _people(right: dict[str, int]) -> tuple[list[str], list[float]]:
    groups = [g for g in right for _ in range(SIZE)]
    return groups, [v for k in right.values() for v in [1.0] * k + [0.0] * (SIZE - k)]


def test_no_spread_of_shares_is_wider_than_shares_can_lie():
    # The Q-profile's end lies beyond .5, the SD of shares that are all 0 or 1.
    groups, values = _people({"a": 38, "b": 2, "c": 30, "d": 10, "e": 20})
    row = _row(_measured(groups=groups, values=values)[1].table, "noise_corrected_sd")
    rates = [0.95, 0.05, 0.75, 0.25, 0.5]
    free = estimate_noise_corrected_sd(rates, np.diag([0.07**2] * 5), degrees_of_freedom=[39] * 5)
    assert free.high > 0.9
    assert row["low"] < row["value"] < row["high"] == 0.5


@pytest.mark.parametrize(("metric", "worst", "best"), [(ACCURACY, "b", "c"), (ERROR, "c", "b")])
def test_the_worst_group_follows_the_metrics_direction(metric, worst, best):
    table = _measured(metric)[1].table
    for kind in ("range", "epsilon", "omnibus_test"):
        row = _row(table, kind)
        assert (row["group_a"], row["group_b"]) == (worst, best), kind


def test_any_difference_is_the_largest_contrast_against_its_own_null():
    _, measured = _measured()
    row = _row(measured.table, "omnibus_test")
    tested = measured.family.tested["g", 0]
    t = np.abs(tested.null.t).max()
    assert row["value"] == pytest.approx(t)
    # Of 500 replicates the largest 20 are smoothed, so p is near the share that reaches t.
    reached = (tested.null.max_z >= t * (1 - 1e-12)).sum()
    assert row["p_value"] == pytest.approx((1 + reached) / 501, abs=0.01)
    assert row["p_adjusted"] == tested.adjusted.min() >= row["p_value"]


def test_tau_is_paule_mandels_with_pooled_variances():
    groups, values = _people({"a": 30, "b": 20, "c": 36, "d": 30, "e": 28})
    measured = _measured(groups=groups, values=values, replicates=4000)[1]
    row = _row(measured.table, "noise_corrected_sd")
    rates = np.array([0.75, 0.5, 0.9, 0.75, 0.7])
    exact = np.diag(rates * (1 - rates) / (SIZE - 1))
    clusters = np.full(5, SIZE)
    found = estimate_noise_corrected_sd(
        rates, pool_variance_per_observation(exact, clusters), degrees_of_freedom=clusters - 1.0
    )
    assert row["value"] == pytest.approx(found.tau, rel=0.02)
    assert (row["low"], row["high"]) == pytest.approx((found.low, found.high), rel=0.05)
    assert row["value"] < _row(measured.table, "standard_deviation")["value"]


def test_tau_takes_the_unbiased_variance_of_few_units():
    # A replicate redraws a group's c units, whose own variance divides by c; the variance that is
    # expected of new units divides by c - 1. With 10 units that is a ninth more.
    right = {"a": (3, 10), "b": (9, 12), "c": (19, 20), "d": (10, 20), "e": (6, 12)}
    values = [v for k, n in right.values() for v in [1.0] * k + [0.0] * (n - k)]
    groups = [g for g, (_, n) in right.items() for _ in range(n)]
    estimates, measured = _measured(groups=groups, values=values)
    row = _row(measured.table, "noise_corrected_sd")
    rows = measured.family.tested["g", 0].members
    rates, drawn = estimates.value[rows, 0], estimates.replicates[rows, 0]
    assert rates.tolist() == [0.3, 0.75, 0.95, 0.5, 0.5]
    c = np.array([10.0, 12.0, 20.0, 20.0, 12.0])
    unbiased = np.cov(drawn) * np.sqrt(np.outer(c / (c - 1), c / (c - 1)))
    found = estimate_noise_corrected_sd(
        rates, pool_variance_per_observation(unbiased, c), degrees_of_freedom=c - 1
    )
    assert row["value"] == pytest.approx(found.tau, rel=1e-12)
    biased = pool_variance_per_observation(np.cov(drawn), c)
    plain = estimate_noise_corrected_sd(rates, biased, degrees_of_freedom=c - 1)
    assert plain.tau > 1.001 * found.tau


def test_the_range_lies_within_the_pairs_and_reaches_their_p():
    table = _measured()[1].table
    row = _row(table, "range")
    assert 0 < row["low"] < row["value"] < row["high"]
    widest = table.filter(pl.col("kind") == "difference").select(
        pl.col("high").sub(pl.col("low")).max()
    ).item()  # fmt: skip
    assert row["high"] - row["low"] > 0.9 * widest
    logs = _row(table, "epsilon")
    shares = _row(table, "ratio_min_max")
    assert shares["low"] == pytest.approx(10 ** -logs["high"])
    assert shares["high"] == pytest.approx(10 ** -logs["low"])


def test_where_the_test_finds_nothing_the_range_holds_zero():
    alike = ([1.0] * 38 + [0.0] * 2) * 3
    table = _measured(values=alike, groups=GROUPS)[1].table
    assert _row(table, "omnibus_test")["p_value"] > 0.05
    assert _row(table, "range")["low"] == 0.0
    assert _row(table, "range")["high"] > 0.05, "and says how large it could be"
    assert _row(table, "ratio_min_max")["high"] == 1.0


@pytest.mark.parametrize("n", [2, 4, 5])
def test_of_fewer_than_five_groups_there_is_no_noise_corrected_sd(n):
    groups, values = _people(dict(zip("abcde"[:n], [38, 30, 20, 36, 10], strict=False)))
    row = _row(_measured(groups=groups, values=values)[1].table, "noise_corrected_sd")
    if n == 5:
        assert 0.0 < row["low"] < row["value"] < row["high"]
    else:
        assert (row["value"], row["low"], row["high"]) == (None, None, None)
        assert (row["status"], row["reason"]) == ("undefined", "fewer than five groups")


def test_with_a_reference_the_range_is_still_over_all_pairs():
    plain, held = (_row(_measured(references=r)[1].table, "range") for r in (None, {"g": "a"}))
    assert held["value"] == plain["value"]
    # Fewer contrasts were drawn, but the interval may not be narrower than Bonferroni's over all.
    assert held["high"] - held["low"] >= 0.97 * (plain["high"] - plain["low"])
    gap = _row(_measured(references={"g": "a"})[1].table, "mean_absolute_gap")
    assert gap["group_b"] == "a"


def test_everyone_right_differs_by_nothing():
    table = _measured(values=[1.0] * 120)[1].table
    row = _row(table, "omnibus_test")
    assert (row["value"], row["p_value"]) == (0.0, 1.0)
    assert _row(table, "range")["value"] == 0.0
    # Replicates that are all alike do not say how sure a spread is; the groups' intervals do, and
    # bound the range.
    spread = _row(table, "standard_deviation")
    assert [spread[k] for k in ("value", "low", "high", "status")] == [
        0.0,
        None,
        None,
        "no variation",
    ]
    widest = _row(table, "range")
    assert widest["low"] == 0.0
    assert 0.05 < widest["high"] < 0.2


def test_one_group_large_enough_is_undefined_with_a_reason():
    table = _measured(groups=["a"] * 117 + ["b"] * 3)[1].table
    row = _row(table, "omnibus_test")
    assert (row["value"], row["status"]) == (None, "undefined")
    assert row["reason"] == "only one group has enough units and clusters to be compared"


RATE_METRICS = tuple(
    Metric(name=n, title=n, definition="d", direction="none")
    for n in ("true_positive_rate", "false_positive_rate")
)


def test_equalized_odds_is_the_larger_range_of_the_two():
    info = TaskInfo(title="t", summary="s", references=(Reference("k", "c"),),
                    metrics=RATE_METRICS)  # fmt: skip
    true = scored([1.0] * 30 + [0.0] * 10 + [1.0] * 20 + [0.0] * 20, metric=RATE_METRICS[0])
    false = scored([1.0] * 5 + [0.0] * 35 + [1.0] * 25 + [0.0] * 15, metric=RATE_METRICS[1])
    both = Scores(pl.concat([true.units, false.units]), info)
    spec = ComparisonSettings(min_units=1, replicates=300)
    estimates = measure_groups(both, members(g=["a"] * 40 + ["b"] * 40), spec)
    table = measure_disparities(estimates, spec).table
    odds = _row(table, "equalized_odds_difference")
    assert odds["value"] == pytest.approx(0.5), "of .25 and .5"
    assert odds["metric"] == "equalized_odds"
    assert _row(table, "equal_opportunity_difference")["value"] == pytest.approx(0.25)
    only_one = table.filter(pl.col("metric") != "false_positive_rate")
    assert build_equalized_odds_rows(only_one).is_empty()
