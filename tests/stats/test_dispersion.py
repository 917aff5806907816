"""Noise-corrected dispersion: by hand, beside statsmodels and a direct solution, by its laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.stats.meta_analysis import combine_effects

from isolux.core.errors import InputError, SpecError
from isolux.stats.dispersion import estimate_noise_corrected_sd, pool_variance_per_observation

NAN = float("nan")


def direct_q(y, s, tau):
    """Q read off its definition: residuals from the generalised least squares mean."""
    inverse = np.linalg.inv(s + tau**2 * np.eye(y.size))
    ones = np.ones(y.size)
    residual = y - (ones @ inverse @ y) / (ones @ inverse @ ones)
    return residual @ inverse @ residual


def direct_tau(y, s, target):
    if direct_q(y, s, 0.0) <= target:
        return 0.0
    return optimize.brentq(lambda tau: direct_q(y, s, tau) - target, 0.0, 1e4, xtol=1e-13)


@st.composite
def worlds(draw):
    """Values of 2 to 12 groups with some covariance, well conditioned."""
    g = draw(st.integers(2, 12))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    spread = draw(st.sampled_from([0.0, 0.3, 1.0, 5.0]))
    factor = rng.normal(size=(g, 2 * g)) / np.sqrt(2 * g)
    scale = rng.uniform(0.5, 2.0, g)
    s = factor @ factor.T * np.outer(scale, scale)
    return rng.normal(size=g) * (0.7 + spread), s


def test_two_groups_by_hand():
    # Q(tau²) = (3 - 0)² / (1 + 1 + 2 tau²) = 1  =>  tau² = 3.5; q = 9 / 2; p = P(chi²_1 > 4.5).
    # Q = 5.0239 (chi²_1 at .975) lies above q, so the low end is 0; Q = .00098207 gives the high
    # end tau² = (9 / .00098207 - 2) / 2.
    found = estimate_noise_corrected_sd([0.0, 3.0], np.eye(2))
    assert found.tau == pytest.approx(np.sqrt(3.5), abs=1e-12)
    assert found.q == pytest.approx(4.5, abs=1e-12)
    assert found.p == pytest.approx(stats.chi2.sf(4.5, 1), abs=1e-12)
    assert found.low == 0.0
    assert found.high == pytest.approx(np.sqrt((9 / stats.chi2.ppf(0.025, 1) - 2) / 2), rel=1e-9)
    assert found.n_groups == 2


def test_two_dependent_groups_by_hand():
    # Var(y2 - y1) = 1 + 1 - 2 x .5 = 1, so Q(tau²) = 9 / (1 + 2 tau²) = 1  =>  tau² = 4.
    found = estimate_noise_corrected_sd([0.0, 3.0], [[1.0, 0.5], [0.5, 1.0]])
    assert found.tau == pytest.approx(2.0, abs=1e-12)
    assert found.q == pytest.approx(9.0, abs=1e-12)


def test_without_noise_it_is_the_standard_deviation():
    values = np.array([0.2, 0.5, 0.9, 0.4])
    found = estimate_noise_corrected_sd(values, np.zeros((4, 4)))
    assert found.tau == pytest.approx(values.std(ddof=1), abs=1e-12)
    assert (found.q, found.p) == (np.inf, 0.0)
    assert 0 < found.low < found.tau < found.high


@pytest.mark.parametrize("value", [1.0, 0.1, 1 / 3])
def test_equal_groups_without_noise_do_not_differ(value):
    values = [value, value * (1 + 2e-16), value, value]
    found = estimate_noise_corrected_sd(values, np.zeros((4, 4)))
    assert (found.tau, found.q, found.p) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("seed", range(60))
def test_agrees_with_statsmodels_where_groups_are_independent(seed):
    # statsmodels comes to tau² from below and gives 0 where rounding makes its last residual
    # negative; the largest over several tolerances is its answer. Seeds, lest a world be found
    # where all three fail so.
    rng = np.random.default_rng(seed)
    g = int(rng.integers(2, 13))
    y, s = rng.normal(size=g) * rng.choice([0.5, 1.0, 4.0]), np.diag(rng.uniform(0.3, 3.0, g))
    theirs = [
        combine_effects(y, np.diag(s), method_re="iterated", atol=tolerance, maxiter=500)
        for tolerance in (1e-6, 1e-8, 1e-10)
    ]
    ours = estimate_noise_corrected_sd(y, s)
    assert ours.tau**2 == pytest.approx(max(found.tau2 for found in theirs), abs=1e-6)
    assert ours.q == pytest.approx(theirs[0].q, abs=1e-9)


@given(world=worlds())
def test_agrees_with_the_direct_solution_for_any_covariance(world):
    y, s = world
    found = estimate_noise_corrected_sd(y, s, level=0.9)
    g = y.size
    assert found.q == pytest.approx(direct_q(y, s, 0.0), rel=1e-8)
    for ours, target in (
        (found.tau, g - 1),
        (found.low, stats.chi2.ppf(0.95, g - 1)),
        (found.high, stats.chi2.ppf(0.05, g - 1)),
    ):
        assert ours == pytest.approx(direct_tau(y, s, target), rel=1e-7, abs=1e-7)


@given(world=worlds(), seed=st.integers(0, 99), shift=st.floats(-5, 5), scale=st.floats(0.1, 10))
def test_order_and_origin_do_not_matter_and_the_unit_carries_over(world, seed, shift, scale):
    y, s = world
    order = np.random.default_rng(seed).permutation(y.size)
    plain = estimate_noise_corrected_sd(y, s)
    moved = estimate_noise_corrected_sd(
        scale * y[order] + shift, scale**2 * s[np.ix_(order, order)]
    )
    for name in ("tau", "low", "high"):
        expected = scale * getattr(plain, name)
        assert getattr(moved, name) == pytest.approx(expected, rel=1e-6, abs=1e-5 * scale)
    assert moved.p == pytest.approx(plain.p, abs=1e-7)
    assert plain.low <= plain.tau
    assert plain.low <= plain.high


def test_groups_that_are_not_judged_are_left_out():
    y, s = np.array([0.0, NAN, 3.0, 1.0]), np.diag([1.0, 1.0, 1.0, NAN])
    s[1, 2] = s[2, 1] = NAN
    assert estimate_noise_corrected_sd(y, s) == estimate_noise_corrected_sd([0.0, 3.0], np.eye(2))
    few = estimate_noise_corrected_sd([1.0, NAN], np.eye(2))
    assert few.n_groups == 1
    assert np.isnan([few.tau, few.low, few.high, few.q, few.p]).all()
    assert estimate_noise_corrected_sd([], np.empty((0, 0))).n_groups == 0


def test_a_group_counted_twice_adds_no_spread():
    # The same people under two names: a contrast without variance and, up to what sums of many
    # weights leave, without difference. It must not explode.
    y = np.array([0.7, 0.7 + 1e-9, 0.8])
    s = 0.01 * np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = estimate_noise_corrected_sd(y, s)
    # Only .1 between one and the other remains: variance .01 + .01 of that difference.
    assert found.q == pytest.approx(0.5, abs=1e-6)
    assert found.tau == 0.0


def test_a_group_without_variance_is_taken_as_known():
    found = estimate_noise_corrected_sd([1.0, 0.8, 0.9], np.diag([0.0, 0.01, 0.01]))
    # The mean is 1.0: q = .2² / .01 + .1² / .01 = 5.
    assert found.q == pytest.approx(5.0, abs=1e-6)
    known = estimate_noise_corrected_sd([1.0, 0.0, 0.5], np.diag([0.0, 0.0, 0.01]))
    assert known.p < 1e-12
    assert 0 < known.low < known.tau < known.high < np.inf


def test_groups_closer_than_noise_have_an_empty_interval_that_says_so():
    found = estimate_noise_corrected_sd([0.5, 0.5, 0.5001], np.eye(3))
    assert (found.tau, found.low, found.high) == (0.0, 0.0, 0.0)
    assert found.p > 0.99


def test_degrees_of_freedom_by_hand():
    # 9 degrees of freedom: variances times 9/7, so q = 4.5 x 7/9 = 3.5; its law is c chi²_(1/c)
    # with c = 1 + 3/5 = 1.6.
    found = estimate_noise_corrected_sd([0.0, 3.0], np.eye(2), degrees_of_freedom=9)
    assert found.q == pytest.approx(3.5, abs=1e-12)
    assert found.p == pytest.approx(stats.chi2.sf(3.5 / 1.6, 1 / 1.6), abs=1e-12)
    # Q(tau²) = 9 / (18/7 + 2 tau²) = 1
    assert found.tau == pytest.approx(np.sqrt((9 - 18 / 7) / 2), abs=1e-12)
    many = estimate_noise_corrected_sd([0.0, 3.0], np.eye(2), degrees_of_freedom=[1e9, 1e9])
    assert many.p == pytest.approx(estimate_noise_corrected_sd([0.0, 3.0], np.eye(2)).p, abs=1e-7)


def test_groups_on_four_degrees_of_freedom_are_left_out():
    found = estimate_noise_corrected_sd([0.0, 9.0, 3.0], np.eye(3), degrees_of_freedom=[9, 4, 9])
    assert found == estimate_noise_corrected_sd([0.0, 3.0], np.eye(2), degrees_of_freedom=9)


@pytest.mark.parametrize(
    ("values", "covariance", "freedom", "words"),
    [
        ([1, 2], np.eye(3), None, "the covariance or the degrees of freedom do not fit"),
        ([[1, 2]], np.eye(2), None, "the covariance or the degrees of freedom do not fit"),
        ([1, 2], np.eye(2), [9, 9, 9], "the covariance or the degrees of freedom do not fit"),
        ([1, 2], [[1.0, 0.5], [0.0, 1.0]], None, "have no such covariance"),
        ([1, 2], [[1.0, NAN], [NAN, 1.0]], None, "have no such covariance"),
        ([1, 2], np.diag([1.0, -1.0]), None, "have no such covariance"),
    ],
)
def test_refuses_what_is_no_covariance(values, covariance, freedom, words):
    with pytest.raises(InputError, match=words):
        estimate_noise_corrected_sd(values, covariance, degrees_of_freedom=freedom)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_refuses_an_impossible_level(level):
    with pytest.raises(SpecError, match="an interval has no such level"):
        estimate_noise_corrected_sd([1, 2], np.eye(2), level)


def test_pooling_by_hand():
    # sizes x variances = .4, .2, 0; weighted by 10, 20, 30: (4 + 4 + 0) / 60 = .13333 an
    # observation. Correlation of the first two: .005 / sqrt(.04 x .01) = .25, kept.
    s = np.array([[0.04, 0.005, 0.0], [0.005, 0.01, 0.0], [0.0, 0.0, 0.0]])
    pooled = pool_variance_per_observation(s, [10, 20, 30])
    one = 8 / 60
    np.testing.assert_allclose(np.diagonal(pooled), [one / 10, one / 20, one / 30])
    assert pooled[0, 1] == pooled[1, 0] == pytest.approx(0.25 * one / np.sqrt(200))
    assert pooled[0, 2] == pooled[1, 2] == 0.0


def test_pooling_leaves_out_what_is_not_judged():
    s = np.diag([0.04, NAN, 0.02])
    s[1, 0] = s[0, 1] = NAN
    pooled = pool_variance_per_observation(s, [10, 0, 10])
    np.testing.assert_allclose(np.diagonal(pooled), [0.03, NAN, 0.03])
    assert np.isnan(pool_variance_per_observation(np.full((2, 2), NAN), [1, 1])).all()
    assert estimate_noise_corrected_sd([0.5, 0.4, 0.9], pooled).n_groups == 2


@pytest.mark.parametrize("sizes", [[10], [10, 0], [10, NAN]])
def test_pooling_refuses_sizes_that_do_not_fit(sizes):
    with pytest.raises(InputError, match="the sizes do not fit the covariance"):
        pool_variance_per_observation(np.eye(2), sizes)


def covariance_of(rng, g):
    """Groups that share people: neighbours are correlated .4."""
    scale = rng.uniform(0.5, 2.0, g)
    near = np.abs(np.subtract.outer(np.arange(g), np.arange(g))) == 1
    return (np.eye(g) + 0.4 * near) * np.outer(scale, scale)


@pytest.mark.law
@pytest.mark.parametrize("injected", [0.0, 0.5, 2.0])
def test_the_interval_covers_what_was_injected(injected):
    # 1,500 worlds of 8 dependent groups: the standard error of a coverage of .95 is .0056. With
    # nothing injected only the low end can miss, so .975 is expected.
    rng = np.random.default_rng(31)
    s = covariance_of(rng, 8)
    root = np.linalg.cholesky(s + injected**2 * np.eye(8))
    found = [estimate_noise_corrected_sd(root @ rng.normal(size=8), s) for _ in range(1500)]
    covered = np.mean([d.low <= injected <= d.high for d in found])
    assert 0.93 <= covered <= (0.99 if injected == 0 else 0.97)
    if injected:
        squared = np.mean([d.tau**2 for d in found])
        assert squared == pytest.approx(injected**2, rel=0.15, abs=0.2)
    else:
        assert 0.03 <= np.mean([d.p < 0.05 for d in found]) <= 0.07


@pytest.mark.law
def test_many_small_groups_do_not_seem_to_differ():
    # 40 groups of 10 clusters, nothing injected, 500 worlds (standard error of .05: .01). With the
    # variances taken as known .30 of the worlds have p < .05; with their degrees of freedom .03.
    rng = np.random.default_rng(32)
    true = rng.uniform(0.3, 3.0, 40)
    naive, freed, holds_0 = [], [], []
    for _ in range(500):
        y, s = rng.normal(size=40) * np.sqrt(true), np.diag(true * rng.chisquare(9, 40) / 9)
        naive.append(estimate_noise_corrected_sd(y, s).p < 0.05)
        found = estimate_noise_corrected_sd(y, s, degrees_of_freedom=9)
        freed.append(found.p < 0.05)
        holds_0.append(found.low == 0)
    assert np.mean(naive) > 0.2
    assert 0.01 <= np.mean(freed) <= 0.09
    assert np.mean(holds_0) >= 0.93


def rates_of_groups(rng, true, people, photos, correlation):
    """Group rates and the variances that their own people show (ten photos each, say)."""
    total = 1 / correlation - 1
    chance = rng.beta(true[:, None] * total, (1 - true[:, None]) * total, (true.size, people))
    shares = rng.binomial(photos, chance) / photos
    return shares.mean(axis=1), shares.var(axis=1, ddof=1) / people


@pytest.mark.law
def test_pooling_near_the_boundary():
    # 20 groups of 15 people x 10 photos, rate .95, nothing injected, 400 worlds. A group that is
    # by chance near 1 shows little variance and is trusted: measured .41 hold 0; pooled .96.
    rng = np.random.default_rng(33)
    as_is, pooled = [], []
    for _ in range(400):
        y, v = rates_of_groups(rng, np.full(20, 0.95), 15, 10, 0.3)
        as_is.append(estimate_noise_corrected_sd(y, np.diag(v)).low == 0)
        pooled.append(
            estimate_noise_corrected_sd(
                y, pool_variance_per_observation(np.diag(v), np.full(20, 15))
            ).low
            == 0
        )
    assert np.mean(pooled) >= 0.92
    assert np.mean(as_is) < 0.7


@pytest.mark.law
def test_a_injected_spread_of_rates_is_recovered_where_the_plain_one_is_too_large():
    # 10 groups of 30 people x 10 photos, rates .8 ± .06 exactly (ddof 1), 300 worlds.
    rng = np.random.default_rng(34)
    true = np.linspace(-1, 1, 10)
    true = 0.8 + 0.06 * true / true.std(ddof=1)
    squares, plain = [], []
    for _ in range(300):
        y, v = rates_of_groups(rng, true, 30, 10, 0.3)
        s = pool_variance_per_observation(np.diag(v), np.full(10, 30))
        squares.append(estimate_noise_corrected_sd(y, s).tau ** 2)
        plain.append(y.var(ddof=1))
    assert np.sqrt(np.mean(squares)) == pytest.approx(0.06, abs=0.006)
    assert np.sqrt(np.mean(plain)) > 0.068
