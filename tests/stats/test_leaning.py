"""Intervals of means of numbers that are far off on one side: against Wilson, by any scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from isolux.groups.interval_methods.skewness_adjusted import (
    VarianceSlopes,
    estimate_variance_slopes,
    skewness_adjusted_interval,
)
from isolux.stats.clustered_proportions import concatenate_means, means_from_cluster_sums
from isolux.stats.intervals import logit_t_interval, t_interval
from isolux.stats.proportions import wilson_interval

Z = 1.959963984540054


def _group(values):
    values = np.asarray(values, dtype=np.float64)
    one = np.ones(len(values), dtype=np.int64)
    return means_from_cluster_sums(
        csr_array(values[None, :]), csr_array(one[None, :].astype(float)), one,
                         0.0, is_proportion=False)  # fmt: skip


def _ends(group, slopes, *, fraction=False):
    ends = skewness_adjusted_interval(group, slopes, Z, is_fraction=fraction)
    return float(ends.low[0]), float(ends.high[0])


@pytest.mark.parametrize("wrong", [5, 12, 40])
def test_of_answers_that_are_seldom_0_it_is_wilsons_interval(wrong):
    """n is so large that t is z; a slope of 2 p - 1 over n is the binomial law's."""
    n = 2000
    group = _group([0.0] * wrong + [1.0] * (n - wrong))
    p = 1.0 - wrong / n
    assert group.variance_slope.item() == pytest.approx((1.0 - 2.0 * p) / n, rel=1e-6)
    exact = VarianceSlopes(group.variance_slope, group.variance_slope)
    assert _ends(group, exact)[0] == pytest.approx(wilson_interval(p * n, n, 0.95).low, abs=2e-5)


def test_a_group_without_a_bad_score_borrows_what_one_costs():
    rng = np.random.default_rng(1)
    good = rng.beta(30.0, 2.0, 72)
    others = np.where(rng.random(500) < 0.02, 0.0, rng.beta(30.0, 2.0, 500))
    alone, lent = (
        estimate_variance_slopes(_group(good)),
        estimate_variance_slopes(
            concatenate_means([_group(good), _group(others)]), np.ones(2, dtype=np.int64)
        ),
    )
    both = concatenate_means([_group(good), _group(others)])
    near, far = (
        skewness_adjusted_interval(
            both.take(np.array([0])), s.take(np.array([0])), Z, is_fraction=True
        )
        for s in (alone, lent)
    )
    mean = good.mean()
    assert mean - far.low[0] > 3.0 * (mean - near.low[0])
    assert far.high[0] == near.high[0]
    # Wilson's end of 0 of 72: as many could have been missed, each at the cost of its overlap.
    assert far.low[0] == pytest.approx(mean - mean * wilson_interval(0, 72, 0.95).high, abs=0.02)


@given(st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)), min_size=12, max_size=60))
def test_ends_are_only_ever_lengthened(values):
    group = _group(values)
    ends = skewness_adjusted_interval(group, estimate_variance_slopes(group), Z, is_fraction=False)
    plain = t_interval(group.value, np.sqrt(group.variance), group.dof, Z)
    assert ends.low[0] <= plain.low[0] and ends.high[0] >= plain.high[0]  # noqa: PT018
    turned = _group([-x for x in values])
    other = skewness_adjusted_interval(
        turned, estimate_variance_slopes(turned), Z, is_fraction=False
    )
    assert -other.high[0] == pytest.approx(ends.low[0], abs=1e-6)


def test_fractions_begin_with_the_logit_scale_and_stay_between_0_and_1():
    group = _group([0.0] * 2 + [0.99] * 40)
    none = VarianceSlopes(np.zeros(1), np.zeros(1))
    plain = logit_t_interval(group.value, np.sqrt(group.variance), group.dof, Z)
    assert _ends(group, none, fraction=True) == (plain.low[0], plain.high[0])
    steep = VarianceSlopes(np.full(1, -1.0), np.full(1, 1.0))
    assert _ends(group, steep, fraction=True) == (0.0, 1.0)


def test_scores_of_any_size_have_the_same_interval():
    values = np.random.default_rng(2).lognormal(0.0, 1.2, 60)
    low, high = _ends(_group(values), estimate_variance_slopes(_group(values)))
    for times in (1e-9, 1e40, 1e70):
        group = _group(values * times)
        found = _ends(group, estimate_variance_slopes(group))
        assert found == pytest.approx(
            (low * times, high * times), rel=1e-9 if times < 1e50 else 0.3
        )


def test_answers_of_0_and_1_have_no_slope():
    one = np.ones(1, dtype=np.int64)
    sums, counts = csr_array(np.array([[3.0]])), csr_array(np.array([[4.0]]))
    assert estimate_variance_slopes(means_from_cluster_sums(sums, counts, one, 0.0)) is None
