"""Shrunken gaps: by hand, and beside the normal prior where that is the truth."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.shrinkage import shrink_differences_empirical_bayes


def test_alone_a_gap_shrinks_by_its_own_noise():
    # The likeliest normal law around 0 has variance d² - s², so d keeps 1 - s² / d² of its size.
    assert shrink_differences_empirical_bayes(np.array([4.0]), np.array([2.0]))[0] == pytest.approx(
        3.0, abs=0.15
    )


def test_noise_shrinks_to_all_but_nothing():
    rng = np.random.default_rng(0)
    assert (
        np.abs(shrink_differences_empirical_bayes(rng.normal(0, 1, 200), np.ones(200))).max() < 0.35
    )


def test_where_gaps_are_normal_it_is_the_normal_priors_answer():
    rng = np.random.default_rng(1)
    true = rng.normal(0, 2, 400)
    gap = true + rng.normal(0, 1, 400)
    found = shrink_differences_empirical_bayes(gap, np.ones(400))
    assert found == pytest.approx(gap * 4 / 5, abs=0.5)
    assert np.mean((found - true) ** 2) < 0.9 * np.mean((gap - true) ** 2)


def test_it_keeps_the_sign_and_never_grows():
    rng = np.random.default_rng(2)
    gap, error = rng.normal(0, 3, 900), rng.uniform(0.2, 4, 900)
    found = shrink_differences_empirical_bayes(gap, error)
    assert (found * gap >= 0).all()
    assert (np.abs(found) <= np.abs(gap)).all()


def test_order_and_what_is_unknown_do_not_matter():
    gap, error = np.array([3.0, 0.2, -1.0, np.nan, 2.0]), np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    found = shrink_differences_empirical_bayes(gap, error)
    assert np.isnan(found[3:]).all()
    assert found[:3] == pytest.approx(
        shrink_differences_empirical_bayes(gap[2::-1], error[2::-1])[::-1]
    )
    assert np.isnan(shrink_differences_empirical_bayes(np.array([np.nan]), np.ones(1))).all()
