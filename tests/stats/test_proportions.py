"""Intervals of shares and the design effect: by hand, beside statsmodels and scipy, by coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from isolux.core.errors import InputError, SpecError
from isolux.stats.proportions import (
    clopper_pearson_interval,
    estimate_design_effect,
    wilson_interval,
)

NAN = float("nan")
METHODS = {"wilson": wilson_interval, "beta": clopper_pearson_interval}
SCIPY_NAME = {"wilson": "wilson", "beta": "exact"}


@st.composite
def counts(draw):
    n = draw(st.integers(1, 3000))
    return draw(st.integers(0, n)), n


def test_wilson_by_hand():
    # 8 of 10, z² = 3.8415: centre (.8 + .19207) / 1.38415 = .71674,
    # half 1.95996 sqrt(.016 + .0096037) / 1.38415 = .22658.
    bounds = wilson_interval(8, 10)
    assert bounds.low == pytest.approx(0.49016, abs=1e-5)
    assert bounds.high == pytest.approx(0.94332, abs=1e-5)


def test_clopper_pearson_by_hand_at_the_ends():
    # (1 - p)^20 = .025 at none of 20; p^20 = .025 at all of them.
    end = 0.025 ** (1 / 20)
    none, every = clopper_pearson_interval(0, 20), clopper_pearson_interval(20, 20)
    assert (none.low, every.high) == (0.0, 1.0)
    assert none.high == pytest.approx(1 - end, abs=1e-12)
    assert every.low == pytest.approx(end, abs=1e-12)


@pytest.mark.parametrize("name", METHODS)
@given(case=counts(), level=st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_agrees_with_statsmodels_and_scipy(name, case, level):
    successes, n = case
    ours = METHODS[name](successes, n, level)
    theirs = proportion_confint(successes, n, alpha=1 - level, method=name)
    np.testing.assert_allclose((ours.low, ours.high), theirs, rtol=0, atol=1e-12)
    exact = stats.binomtest(successes, n).proportion_ci(level, method=SCIPY_NAME[name])
    # scipy finds the exact bounds by a root search with a tolerance of its own.
    np.testing.assert_allclose((ours.low, ours.high), exact, rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", METHODS.values())
@given(case=counts(), effect=st.floats(1.0, 20.0))
def test_a_design_effect_is_fewer_observations_of_the_same_share(method, case, effect):
    successes, n = case
    clustered = method(successes, n, design_effect=effect)
    fewer = method(successes / effect, n / effect)
    np.testing.assert_allclose((clustered.low, clustered.high), (fewer.low, fewer.high), atol=1e-9)
    plain = method(successes, n)
    assert clustered.low <= plain.low + 1e-12
    assert clustered.high >= plain.high - 1e-12
    assert clustered.low <= successes / n <= clustered.high


@pytest.mark.parametrize("method", METHODS.values())
@given(case=counts())
def test_swapping_successes_and_failures_mirrors_the_interval(method, case):
    successes, n = case
    one, other = method(successes, n), method(n - successes, n)
    np.testing.assert_allclose(one.low, 1 - other.high, atol=1e-12)


@pytest.mark.parametrize("method", METHODS.values())
def test_arrays_broadcast_and_what_is_not_known_stays_so(method):
    bounds = method([0, 5, 0, NAN], [10, 10, 0, 10], design_effect=[[1.0], [2.0]])
    assert bounds.low.shape == bounds.high.shape == (2, 4)
    assert np.isnan(bounds.low[:, 2:]).all()
    assert np.isnan(bounds.high[:, 2:]).all()
    assert (bounds.low[:, 0] == 0.0).all()
    assert not np.isnan(bounds.high[:, :2]).any()


@pytest.mark.parametrize("method", METHODS.values())
@pytest.mark.parametrize(("successes", "n"), [(11, 10), (-1, 10), (0, -5)])
def test_refuses_impossible_counts(method, successes, n):
    with pytest.raises(InputError, match="more successes than observations, or fewer than none"):
        method(successes, n)


@pytest.mark.parametrize("method", METHODS.values())
def test_a_share_times_n_may_miss_n_by_rounding(method):
    assert method(10 * (1 + 1e-12), 10).high == 1.0


@pytest.mark.parametrize("method", METHODS.values())
@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, NAN])
def test_refuses_an_impossible_level(method, level):
    with pytest.raises(SpecError, match="an interval has no such level"):
        method(1, 2, level)


def test_refuses_an_impossible_design_effect():
    with pytest.raises(SpecError, match="a design effect is a ratio of variances"):
        wilson_interval(10, 100, design_effect=[1.0, 0.0])


def test_design_effect_by_hand():
    # Sizes 2, 2, 4; ones 2, 1, 1: p = 1/2, residuals 1, 0, -1. Clustered variance
    # (3/2)(2)/64 = 3/64; independent (1/4)/7 = 1/28; the ratio is 84/64 = 1.3125.
    assert estimate_design_effect([2, 1, 1], [2, 2, 4]) == pytest.approx(1.3125, abs=1e-14)


def test_rows_that_are_clusters_have_a_design_effect_of_one():
    ones = np.array([1, 0, 0, 1, 1, 0, 1])
    assert estimate_design_effect(ones, np.ones(7)) == pytest.approx(1.0, abs=1e-14)


def test_clusters_that_are_all_alike_count_once():
    # k clusters of b equal rows: n_eff = p (1 - p) / v = k - 1 in place of n - 1.
    effect = estimate_design_effect([10, 0, 10, 0], [10, 10, 10, 10])
    assert effect == pytest.approx(39 / 3, abs=1e-12)


def test_a_design_effect_is_1_at_least():
    # Perfectly balanced clusters: no variance between them at all.
    assert estimate_design_effect([5, 5, 5], [10, 10, 10]).item() == 1.0


def test_at_the_boundary_the_correlation_is_assumed():
    # Sizes 2 and 4: sum of squares 20 over 6 = 10/3.
    for ones in ([0, 0], [2, 4]):
        assert estimate_design_effect(ones, [2, 4]) == pytest.approx(10 / 3)
    assert estimate_design_effect([1, 0], [3, 0]) == pytest.approx(3.0)  # a single cluster
    assert np.isnan(estimate_design_effect([0, 0], [0, 0]))
    assert np.isnan(estimate_design_effect([], []))


def test_absent_clusters_do_not_count_and_groups_are_vectorised():
    sums, sizes = np.array([[2, 1, 1, 0], [0, 3, 1, 0]]), np.array([[2, 2, 4, 0], [3, 3, 1, 1]])
    both = estimate_design_effect(sums, sizes)
    np.testing.assert_allclose(both[0], estimate_design_effect([2, 1, 1], [2, 2, 4]))
    np.testing.assert_allclose(both[1], estimate_design_effect(sums[1], sizes[1]))


@pytest.mark.parametrize(("ones", "rows"), [([3], [2]), ([-1], [2]), ([NAN], [2])])
def test_refuses_clusters_with_more_ones_than_rows(ones, rows):
    with pytest.raises(InputError, match="a cluster's ones are not among its rows"):
        estimate_design_effect(ones, rows)


def photos_of_people(rng, worlds, people, photos, rate, correlation):
    """Ones per person: beta-binomial, so that photos of a person have that correlation."""
    total = 1 / correlation - 1
    chance = rng.beta(rate * total, (1 - rate) * total, (worlds, people))
    return rng.binomial(photos, chance)


@pytest.mark.law
def test_the_design_effect_is_kishs_on_average():
    # 1 + (10 - 1) x .3 = 3.7. The ratio's mean over 2,000 worlds has a standard error of .02.
    rng = np.random.default_rng(7)
    ones = photos_of_people(rng, 2000, 50, 10, 0.6, 0.3)
    assert estimate_design_effect(ones, np.full_like(ones, 10)).mean() == pytest.approx(
        3.7, abs=0.15
    )


@pytest.mark.law
def test_coverage_with_clusters_and_what_ignoring_them_costs():
    # 50 people x 10 photos, rate .8, correlation .3; 4,000 worlds: standard error .0035. Measured
    # .949 (Wilson) and .960 (Clopper-Pearson) with the design effect, .68 and .69 without.
    rng = np.random.default_rng(8)
    ones = photos_of_people(rng, 4000, 50, 10, 0.8, 0.3)
    effect = estimate_design_effect(ones, np.full_like(ones, 10))
    total = ones.sum(axis=1)
    for method in METHODS.values():
        bounds = method(total, 500, design_effect=effect)
        assert 0.93 <= ((bounds.low <= 0.8) & (bounds.high >= 0.8)).mean() <= 0.985
        naive = method(total, 500)
        assert ((naive.low <= 0.8) & (naive.high >= 0.8)).mean() < 0.8
