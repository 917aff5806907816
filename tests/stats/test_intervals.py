"""Intervals by hand, beside scipy and statsmodels, and on Newcombe's published example."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from isolux.stats.cluster_sums import build_cluster_sums
from isolux.stats.intervals import (
    Interval,
    bca_interval,
    has_fraction_nominal_coverage,
    logit_or_wilson_interval_at_level,
    mover_difference_interval,
    mover_log_ratio_interval,
    percentile_interval,
    t_interval_at_level,
    wilson_interval_of_n_clusters,
)
from isolux.stats.resampling.sums import StatisticColumns, bca_acceleration_by_jackknife
from isolux.stats.statistic import MEAN

NAN = float("nan")


def _at(x):
    return np.atleast_1d(np.asarray(x, dtype=float))


def _interval(low, high):
    return Interval(_at(low), _at(high))


def test_logit_t_by_hand():
    # logit(.8) = 1.386294; half = t(49) .975 × .04 / .16 = 2.009575 × .25 = .502394
    ends = logit_or_wilson_interval_at_level(_at(0.8), _at(0.04), _at(50), 0.95)
    assert ends.low.item() == pytest.approx(1 / (1 + np.exp(-(1.386294 - 0.502394))), abs=1e-6)
    assert ends.high.item() == pytest.approx(1 / (1 + np.exp(-(1.386294 + 0.502394))), abs=1e-6)


def test_logit_t_is_the_same_for_errors_as_for_successes():
    one = logit_or_wilson_interval_at_level(_at(0.9), _at(0.03), _at(40), 0.95)
    two = logit_or_wilson_interval_at_level(_at(0.1), _at(0.03), _at(40), 0.95)
    np.testing.assert_allclose([one.low, one.high], [1 - two.high, 1 - two.low], atol=1e-14)


@pytest.mark.parametrize("clusters", [10, 30, 200])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_at_the_edge_it_is_wilsons_with_one_observation_a_cluster(value, clusters):
    ends = logit_or_wilson_interval_at_level(_at(value), _at(0.0), _at(clusters), 0.95)
    low, high = proportion_confint(value * clusters, clusters, method="wilson")
    assert ends.low.item() == pytest.approx(low, abs=1e-12)
    assert ends.high.item() == pytest.approx(high, abs=1e-12)
    assert ends.high.item() > ends.low.item()


def test_wilson_beside_statsmodels():
    ends = wilson_interval_of_n_clusters(_at([0.3, 0.9]), _at([20, 50]), 0.9)
    low, high = proportion_confint(np.array([6, 45]), np.array([20, 50]), 0.1, method="wilson")
    np.testing.assert_allclose([ends.low, ends.high], [low, high], atol=1e-12)


def test_student_t_beside_scipy():
    ends = t_interval_at_level(_at(2.0), _at(0.5), _at(12), 0.9)
    low, high = stats.t.interval(0.9, 11, loc=2.0, scale=0.5)
    assert (ends.low.item(), ends.high.item()) == pytest.approx((low, high), abs=1e-12)


def test_percentile_leaves_nan_out():
    drawn = np.array([[1.0, 2, 3, 4, 5], [1, NAN, 3, NAN, 5], [NAN] * 5])
    ends = percentile_interval(drawn, 0.9)
    low, high = np.percentile(drawn[0], [5, 95])
    assert (ends.low[0], ends.high[0]) == pytest.approx((low, high))
    low, high = np.percentile([1, 3, 5], [5, 95])
    assert (ends.low[1], ends.high[1]) == pytest.approx((low, high))
    assert np.isnan([ends.low[2], ends.high[2]]).all()


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_bca_is_scipys_on_the_same_resamples(level):
    x = np.random.default_rng(4).exponential(size=25)
    theirs = stats.bootstrap(
        (x,), np.mean, n_resamples=999, method="BCa", confidence_level=level,
        rng=np.random.default_rng(5),
    )  # fmt: skip
    design = build_cluster_sums(
        csr_array(np.column_stack([x, np.ones(25)])), np.arange(25), np.zeros(25, np.int64),
        np.arange(25), 1,
    )  # fmt: skip
    speed = bca_acceleration_by_jackknife(design, StatisticColumns(MEAN, 0, 2), np.array([0]))
    ours = bca_interval(_at(x.mean()), theirs.bootstrap_distribution[None, :], speed, level)
    low, high = theirs.confidence_interval
    assert (ours.low.item(), ours.high.item()) == pytest.approx((low, high), abs=1e-10)
    plain = percentile_interval(theirs.bootstrap_distribution[None, :], level)
    assert ours.high.item() > plain.high.item(), "skewed to the right: BCa reaches further"


def test_bca_without_bias_or_acceleration_is_percentile():
    drawn = np.arange(1.0, 1000.0)[None, :]
    ours = bca_interval(_at(500.0), drawn, _at(0.0), 0.95)
    plain = percentile_interval(drawn, 0.95)
    assert (ours.low.item(), ours.high.item()) == pytest.approx(
        (plain.low.item(), plain.high.item()), abs=1e-6
    )


def test_bca_does_not_count_nan():
    drawn = np.random.default_rng(0).random(400)
    holes = np.concatenate([drawn[:200], np.full(50, NAN), drawn[200:]])
    one, two = (bca_interval(_at(0.5), d[None, :], _at(0.05), 0.95) for d in (drawn, holes))
    np.testing.assert_allclose([one.low, one.high], [two.low, two.high], atol=1e-12)


def test_mover_is_newcombes_published_interval():
    # Newcombe (1998), table II (a): 56/70 − 48/80, method 10: .0524 to .3339.
    a, b = 56 / 70, 48 / 80
    ends = mover_difference_interval(
        _at(a), wilson_interval_of_n_clusters(_at(a), _at(70), 0.95), _at(b),
        wilson_interval_of_n_clusters(_at(b), _at(80), 0.95), _at(0.0),
    )  # fmt: skip
    assert (ends.low.item(), ends.high.item()) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    theirs = confint_proportions_2indep(56, 70, 48, 80, method="newcomb", compare="diff")
    assert (ends.low.item(), ends.high.item()) == pytest.approx(theirs, abs=1e-10)


def test_mover_of_symmetric_intervals_is_the_textbooks():
    # Half-widths 3 and 4 join to 5; with correlation r to sqrt(25 - 24 r).
    for rho, half in ((0.0, 5.0), (0.5, np.sqrt(13.0)), (-0.5, np.sqrt(37.0))):
        ends = mover_difference_interval(
            _at(10), _interval(7, 13), _at(2), _interval(-2, 6), _at(rho)
        )  # fmt: skip
        assert (ends.low.item(), ends.high.item()) == pytest.approx((8 - half, 8 + half))


def test_a_group_beside_itself_differs_by_nothing():
    ends = mover_difference_interval(
        _at(0.8), _interval(0.7, 0.88), _at(0.8), _interval(0.7, 0.88), _at(1.0)
    )
    # The ends are skewed, so they do not cancel to the last bit: down .10, up .08.
    assert (ends.low.item(), ends.high.item()) == pytest.approx((-0.02, 0.02))


def test_swapping_the_groups_mirrors_the_interval():
    one, two = _interval(0.6, 0.85), _interval(0.3, 0.7)
    ahead = mover_difference_interval(_at(0.75), one, _at(0.5), two, _at(0.2))
    back = mover_difference_interval(_at(0.5), two, _at(0.75), one, _at(0.2))
    np.testing.assert_allclose([ahead.low, ahead.high], [-back.high, -back.low], atol=1e-12)


def test_log_ratio_is_mover_on_logs_and_nan_without_a_logarithm():
    a, b = _interval(0.6, 0.9), _interval(0.2, 0.6)
    ends = mover_log_ratio_interval(_at(0.8), a, _at(0.4), b, _at(0.0))
    low = np.log(2) - np.hypot(np.log(0.8 / 0.6), np.log(0.6 / 0.4))
    high = np.log(2) + np.hypot(np.log(0.9 / 0.8), np.log(0.4 / 0.2))
    assert (ends.low.item(), ends.high.item()) == pytest.approx((low, high))
    none = mover_log_ratio_interval(
        _at([0.0, 0.8]), _interval([0, 0.6], [0.1, 0.9]), _at([0.4, 0.0]),
                              _interval([0.2, 0.0], [0.6, 0.1]), _at([0.0, 0.0]))  # fmt: skip
    assert np.isnan([none.low, none.high]).all()


def test_the_promise_needs_thirty_clusters_and_five_of_the_rarer():
    # se² = p (1 - p) / 100: a hundred effective observations, of which min(p, 1 - p) × 100 rarer.
    p = np.array([0.5, 0.95, 0.96, 0.05, 0.04, 0.5])
    se = np.sqrt(p * (1 - p) / 100.0001)
    kept = has_fraction_nominal_coverage(p, se, np.array([30, 30, 30, 30, 30, 29.0]))
    assert kept.tolist() == [True, True, False, True, False, False]
    assert (
        has_fraction_nominal_coverage(
            _at([0.0, 1.0, NAN]), _at([0.0, 0.0, NAN]), _at([500] * 3)
        ).sum()
        == 0
    )
