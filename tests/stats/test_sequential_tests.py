"""Bets by hand, their fairness by enumeration, and what does not depend on looks to come."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from isolux.stats.sequential_tests import (
    pair_group_clusters_for_gap,
    run_sequential_gap_test,
    schedule_bet_starts_and_weights,
)
from tests._e_values import e_values


def slow(values, gap=0.0):
    """One bet from the first difference on, by its definition; an imagined 0 of variance .25."""
    capital, seen = 1.0, [0.0]
    for x in values:
        mean = np.mean(seen)
        variance = (0.25 + sum((s - mean) ** 2 for s in seen)) / len(seen)
        bet = (mean - gap) / (variance + (mean - gap) ** 2)
        bet = np.clip(bet, -0.9 / (1 - gap), 0.9 / (1 + gap))
        capital *= 1 + bet * (x - gap)
        seen.append(x)
    return capital


def test_a_mixture_by_hand():
    """Three looks of two differences: starts 1, 2, 3; what has not begun keeps its weight."""
    x = np.array([0.5, -0.2, 0.4, 0.4, 0.1, 0.9])
    _, w = schedule_bet_starts_and_weights(3)
    expected = w[0] * slow(x) + w[1] * slow(x[2:]) + w[2] * slow(x[4:]) + 1 - w.sum()
    assert e_values(x, np.arange(6) // 2, 3)[-1] == pytest.approx(expected)
    before = w[0] * slow(x[:4]) + w[1] * slow(x[2:4]) + 1 - w[:2].sum()
    assert e_values(x, np.arange(6) // 2, 3)[1] == pytest.approx(before)


def test_without_a_gap_the_capital_stays_one_on_average():
    """All 3^7 sequences of −1, 0, 1 with chances .1, .8, .1: a martingale, exactly."""
    mean = 0.0
    for x in product((-1.0, 0.0, 1.0), repeat=7):
        chance = np.prod([0.8 if v == 0 else 0.1 for v in x])
        mean += chance * e_values(np.array(x), np.arange(7) // 2, 4)[-1]
    assert mean == pytest.approx(1.0, abs=1e-12)


def test_what_was_said_does_not_depend_on_looks_to_come():
    rng = np.random.default_rng(0)
    x, look = rng.choice([-1.0, 0.0, 0.0, 1.0], 400), np.arange(400) // 4
    whole = run_sequential_gap_test(x, look, 100, 20.0)
    part = run_sequential_gap_test(x[:200], look[:200], 50, 20.0)
    np.testing.assert_allclose(part.e_value, whole.e_value[:50])
    np.testing.assert_allclose(part.low, whole.low[:50])
    np.testing.assert_allclose(part.e_value, e_values(x[:200], look[:200], 50))


def test_weights_are_no_more_than_one_for_ever():
    starts, weights = schedule_bet_starts_and_weights(1_000_000)
    assert 0.9 < weights.sum() < 1.0
    assert len(np.unique(starts)) == len(starts)
    assert len(starts) < 320


def test_ends_only_draw_in_and_a_change_leaves_no_gap():
    rng = np.random.default_rng(3)
    gap = np.where(np.arange(4000) < 2000, 0.3, -0.3)
    x = (rng.random(4000) < 0.5 + gap / 2).astype(float) - (rng.random(4000) < 0.5 - gap / 2)
    found = run_sequential_gap_test(x, np.arange(4000) // 40, 100, 20.0)
    known = ~np.isnan(found.low)
    assert (np.diff(found.low[known]) >= 0).all()
    assert (np.diff(found.high[known]) <= 0).all()
    assert found.low[40] <= 0.3 <= found.high[40]
    assert (found.change_e_value[:50] < 20).all()
    assert (found.change_e_value[70:] >= 20).all()
    assert (np.diff(found.change_e_value) >= 0).all()


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1.0, 0.5], [0.0, 1.0, 0.5, 0.5], [0.5, 0.0]),
        ([0.2], [0.1, 0.3, 0.5], [-0.1]),
        ([0.0, 1.0, 0.5], [0.5, 0.5], [-0.0, 0.0]),
        ([], [0.5], []),
    ],
)
def test_clusters_are_paired_with_means_of_the_other_side(first, second, expected):
    """The third: 3 clusters in 2 blocks, (0, 1) and (.5): .5 less .5, .5 less .5."""
    found = pair_group_clusters_for_gap(np.array(first), np.array(second))
    assert found.tolist() == pytest.approx(expected)


def test_a_look_without_anybody_changes_nothing():
    x = np.array([0.5, 0.5, -0.5, 0.5])
    gone = run_sequential_gap_test(x, np.array([0, 0, 3, 3]), 5, 20.0)
    assert gone.e_value[1] == gone.e_value[2] == gone.e_value[0]
    assert gone.e_value[4] == gone.e_value[3]


@pytest.mark.parametrize("gap", [0.0025, 0.0101, -0.4975])
def test_a_gap_between_two_of_the_grid_is_left_however_many_differences_there_are(gap):
    """Half a million of a spread of .02: a step of the grid is 88 standard errors."""
    rng = np.random.default_rng(3)
    x = gap + 0.02 * rng.standard_normal(500_000).clip(-4, 4)
    found = run_sequential_gap_test(x, np.repeat(np.arange(10), 50_000), 10, 20.0)
    assert (found.low < gap).all()
    assert (found.high > gap).all()
    assert found.high[-1] - found.low[-1] < 0.001
    assert (np.diff(found.low) >= 0).all()
    assert (np.diff(found.high) <= 0).all()
    assert found.change_e_value.max() < 20.0
    assert found.start_range == (0, 0)
    assert found.gap_range[0] < gap < found.gap_range[1]


def test_a_gap_that_changes_by_less_than_a_step_of_the_grid_is_seen_to_change():
    rng = np.random.default_rng(4)
    gap = np.where(np.arange(400_000) < 200_000, 0.001, 0.003)
    x = gap + 0.02 * rng.standard_normal(400_000).clip(-4, 4)
    found = run_sequential_gap_test(x, np.repeat(np.arange(20), 20_000), 20, 20.0)
    left = np.isfinite(found.low)
    assert left[:10].all()
    assert not left[-1]
    assert found.change_e_value[-1] > 20.0
    assert found.change_e_value[:10].max() < 20.0
