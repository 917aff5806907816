"""The farthest end of many intervals is the one that all intervals have, tie for tie."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm

from isolux.disparity.equivalence import equivalence_p_value
from isolux.stats.clustered_proportions import means_from_cluster_sums
from isolux.stats.differences import independent_mean_difference


def every_pair(rates, n, each=1, seed=0):
    """Compare all pairs of groups of ``n`` people with ``each`` photos."""
    rng = np.random.default_rng(seed)
    n, k = np.broadcast_to(n, len(rates)), len(rates)
    right = np.zeros((k, int(n.sum())))
    photos = np.zeros_like(right)
    at = 0
    for row, (rate, people) in enumerate(zip(rates, n, strict=True)):
        of = slice(at, at + people)
        right[row, of], photos[row, of] = rng.binomial(each, rate, people), each
        at += people
    groups = means_from_cluster_sums(csr_array(right), csr_array(photos), np.ones(at, int), 0.1)
    first, second = np.triu_indices(k, 1)
    none = np.zeros(len(first))
    return independent_mean_difference(groups.take(first), groups.take(second), none, none)


WORLDS = {
    "unequal": every_pair(np.linspace(0.5, 0.95, 30), 60),
    "near 1, many flawless": every_pair(np.full(30, 0.99), 40),
    "all alike": every_pair(np.ones(12), 30),
    "all wrong or all right": every_pair(np.repeat([0.0, 1.0], 8), 30),
    "clusters": every_pair(np.linspace(0.9, 0.3, 25), np.arange(12, 37), each=6),
    "two": every_pair([0.9, 0.7], 200),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("z", [0.5, 1.96, 4.2])
def test_the_farthest_end_is_that_of_all_intervals(world, log, z):
    apart = WORLDS[world]
    all_ends = apart.interval(z, log=log)
    for towards, expected in (
        (False, np.fmax(all_ends.high, -all_ends.low)),
        (True, np.fmax(all_ends.low, -all_ends.high)),
    ):
        found = apart.outermost_bound(z, log=log, inner_bound=towards)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        if np.isnan(expected).all():
            continue
        assert np.nanmax(found) == pytest.approx(np.nanmax(expected), abs=1e-9)
        assert np.nanargmax(found) == np.nanargmax(expected)
        seen = np.isfinite(found)
        np.testing.assert_allclose(found[seen], expected[seen], atol=1e-9)
        assert (expected[found == -np.inf] < np.nanmax(expected)).all()


def test_only_few_ends_are_found_where_groups_are_many():
    apart = every_pair(np.random.default_rng(1).uniform(0.6, 0.95, 80), 100)
    found = apart.outermost_bound(1.96)
    assert len(found) == 3160
    assert np.isfinite(found).sum() < 200


def touched(apart, margin):
    """Halve until the intervals of all pairs, looked at one by one, just touch the margin."""
    low, high = -8.0, 8.0
    gap = apart.a - apart.b
    for _ in range(45):
        z = (low + high) / 2.0
        ends = apart.interval(abs(z))
        outward = np.maximum(ends.high, -ends.low)
        reached = (outward if z >= 0 else np.where(gap >= 0, ends.low, -ends.high)).max()
        low, high = (z, high) if reached <= margin else (low, z)
    return norm.sf(low)


@pytest.mark.parametrize("world", [w for w in WORLDS if w != "all alike"])
@pytest.mark.parametrize("margin", [0.02, 0.1, 0.3])
def test_the_p_of_a_claim_of_sameness_is_where_the_bounds_touch_the_margin(world, margin):
    apart = WORLDS[world]
    assert equivalence_p_value(apart, margin) == pytest.approx(touched(apart, margin), abs=1e-7)
