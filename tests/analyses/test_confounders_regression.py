"""The regression adjustment on cases worked by hand, and where it has no answer."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.analyses.confounders import regression
from isolux.analyses.confounders.regression import estimate_regression_adjusted_gap


def people(cells):
    """Make people of (n, first group?, value, mean score): scores of 0 and 1 in that share."""
    score, first, value = [], [], []
    for n, inside, e, mean in cells:
        hits = round(n * mean)
        score += [1.0] * hits + [0.0] * (n - hits)
        first += [float(inside)] * n
        value += [e] * n
    return np.array(score), np.array(first), np.array(value)


def test_a_linear_gap_by_hand():
    """Gaps of -.2 (20 and 20 people) and -.1 (10 and 30): weights n m / (n + m) = 10 and 7.5.

    (10 x -.2 + 7.5 x -.1) / 17.5 = -2.75 / 17.5 = -.15714.
    """
    cells = [(20, 1, 0, 0.3), (20, 0, 0, 0.5), (10, 1, 1, 0.8), (30, 0, 1, 0.9)]
    score, first, value = people(cells)
    halves = score / 2 + 0.25  # no longer 0 and 1: a linear model; gaps are halved
    found = estimate_regression_adjusted_gap(halves, first, [value], np.arange(80))
    assert found.model == "linear"
    assert found.gap == pytest.approx(-2.75 / 17.5 / 2)


def test_a_linear_error_by_hand():
    """One group indicator, no values: the gap is the difference of means, its error White's.

    Scores .2 .4 against .5 .9: means .3 and .7. Squared residuals .01 x 2 and .04 x 2; each
    mean's variance is their sum over n²: .02/4 + .08/4 = .025, times 4/3 x 3/2 (clusters, and
    n - 1 over n - k, statsmodels' correction) = .05.
    """
    score, first = np.array([0.2, 0.4, 0.5, 0.9]), np.array([1.0, 1, 0, 0])
    found = estimate_regression_adjusted_gap(score, first, [], np.arange(4))
    half = 3.182446305284263 * 0.05**0.5  # t of 3 degrees of freedom
    assert found.gap == pytest.approx(-0.4)
    assert (found.low, found.high) == pytest.approx((-0.4 - half, -0.4 + half))


def test_a_logistic_gap_by_hand():
    """Without values the model is saturated: the marginal gap is the difference of rates."""
    score, first, _ = people([(50, 1, 0, 0.4), (50, 0, 0, 0.7)])
    found = estimate_regression_adjusted_gap(score, first, [], np.arange(100))
    assert found.model == "logistic"
    assert found.gap == pytest.approx(-0.3, abs=1e-8)
    # Its error is that of two proportions: .4 x .6 / 50 + .7 x .3 / 50 = .009, times 100 / 99 for
    # clusters and 99 / 98 for parameters (statsmodels' correction); t of 99 degrees of freedom.
    half = 1.9842169515 * (0.009 * 100 / 98) ** 0.5
    assert found.high - found.gap == pytest.approx(half, rel=1e-4)


def test_a_logistic_gap_is_an_average_over_people():
    """One odds ratio in two values of unlike rates: the gap is between the two gaps."""
    cells = [(500, 1, 0, 0.2), (500, 0, 0, 0.36), (500, 1, 1, 0.6), (500, 0, 1, 0.78)]
    score, first, value = people(cells)
    found = estimate_regression_adjusted_gap(score, first, [value], np.arange(2000))
    assert -0.18 < found.gap < -0.16


def test_people_alike_within_clusters_widen_the_interval():
    score, first, _ = people([(50, 1, 0, 0.4), (50, 0, 0, 0.7)])
    alone = estimate_regression_adjusted_gap(score, first, [], np.arange(100))
    tens = estimate_regression_adjusted_gap(score, first, [], np.arange(100) // 10)
    assert tens.gap == pytest.approx(alone.gap)
    assert tens.high - tens.low > 2 * (alone.high - alone.low)


@pytest.mark.parametrize(
    ("cells", "n_clusters", "reason"),
    [
        ([(20, 1, 0, 0.5), (20, 0, 1, 0.5)], 40, "the groups do not overlap"),
        ([(20, 1, 0, 1.0), (20, 0, 0, 1.0)], 40, "every score is the same"),
        ([(20, 1, 0, 1.0), (20, 0, 0, 0.5)], 40, "only right or only wrong answers"),
        ([(20, 1, 0, 0.5), (20, 0, 0, 0.5)], 2, "2 clusters for 2 parameters"),
    ],
)
def test_no_answer_and_why(cells, n_clusters, reason):
    score, first, value = people(cells)
    found = estimate_regression_adjusted_gap(
        score, first, [value], np.arange(len(score)) % n_clusters
    )
    assert np.isnan(found.gap)
    assert reason in found.reason


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("binary", [True, False])
def test_coefficients_and_errors_are_those_of_statsmodels(binary, seed):
    """To 1e-7 relatively, for people in clusters of unlike sizes with two explanatory values."""
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(seed)
    n = 400
    cluster = rng.integers(0, 60, n)
    first, a, b = rng.integers(0, 2, n), rng.integers(0, 3, n), rng.integers(0, 2, n)
    design = regression._build_design_matrix(first.astype(float), [a, b])
    effect = rng.normal(0, 0.7, 60)[cluster] + 0.8 * first - 0.5 * a + 0.4 * b
    chance = 1 / (1 + np.exp(-effect))
    score = (rng.random(n) < chance).astype(float) if binary else chance + rng.normal(0, 0.2, n)
    for times in (np.ones(n, dtype=int), rng.integers(1, 4, n)):  # of weight 3: there three times
        params, covariance = regression._fit_linear_or_logistic(
            score, design, cluster, times.astype(float), is_binary=binary
        )
        again = np.repeat(np.arange(n), times)
        robust = {"cov_type": "cluster", "cov_kwds": {"groups": cluster[again]}}
        family = {"family": sm.families.Binomial()} if binary else {}
        peer = (sm.GLM if binary else sm.OLS)(score[again], design[again], **family).fit(**robust)
        np.testing.assert_allclose(params, peer.params, rtol=1e-7, atol=1e-10)
        if times.max() == 1:  # the correction for few people counts rows
            np.testing.assert_allclose(covariance, peer.cov_params(), rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(covariance, peer.cov_params(), rtol=0.02, atol=1e-4)


def test_groups_that_answers_separate_have_no_fit():
    """Right in one group at one value, wrong elsewhere: the logit runs away."""
    score, first, value = people(
        [(20, 1, 0, 1.0), (20, 1, 1, 0.0), (20, 0, 0, 0.0), (20, 0, 1, 1.0)]
    )
    design = regression._build_design_matrix(first, [value, (first != value).astype(int)])
    assert (
        regression._fit_linear_or_logistic(
            score, design, np.arange(80), np.ones(80), is_binary=True
        )
        is None
    )
