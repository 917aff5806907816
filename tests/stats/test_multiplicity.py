"""Corrections for a family of tests: by hand, beside statsmodels, and by what they promise."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import studentized_range
from statsmodels.stats.multitest import multipletests

from isolux.core.errors import InputError, SpecError
from isolux.stats.multiplicity import (
    MaxNormalTail,
    adjust_p_benjamini_hochberg,
    adjust_p_bonferroni,
    adjust_p_holm,
    adjust_p_max_t,
    adjust_p_weighted_holm,
    is_null_t_at_least_observed,
    max_t_critical_value,
)

NAN = float("nan")
CORRECTIONS = {
    "bonferroni": adjust_p_bonferroni,
    "holm": adjust_p_holm,
    "fdr_bh": adjust_p_benjamini_hochberg,
}

p_values = arrays(np.float64, st.integers(1, 40), elements=st.floats(0.0, 1.0))


def test_bonferroni_multiplies_by_the_number_of_tests_that_were_made():
    # Three tests and one that was not: each p times 3, at most 1.
    np.testing.assert_allclose(adjust_p_bonferroni([0.01, NAN, 0.2, 0.5]), [0.03, NAN, 0.6, 1.0])


def test_holm_steps_down_and_stays_monotone():
    # Sorted .01 .02 .03 .9 times 4 3 2 1 = .04 .06 .06 .9; the third is raised to .06 (it is .06).
    # With .022 in place of .03: .04 .06 .044 -> raised to .06.
    np.testing.assert_allclose(
        adjust_p_holm([0.022, 0.9, NAN, 0.01, 0.02]), [0.06, 0.9, NAN, 0.04, 0.06]
    )


def test_weighted_holm_by_hand():
    # p over weight: .01/.5 = .02, .02/.25 = .08, .015/.25 = .06. In order .02 .06 .08, times the
    # weights that are left 1, .5, .25: .02, .03, .02 -> raised to .03.
    found = adjust_p_weighted_holm([0.01, 0.02, NAN, 0.015], [0.5, 0.25, 9.0, 0.25])
    np.testing.assert_allclose(found, [0.02, 0.03, NAN, 0.03])


@given(p_values)
def test_weighted_holm_with_equal_weights_is_holm(p):
    np.testing.assert_allclose(
        adjust_p_weighted_holm(p, np.full(len(p), 0.3)), adjust_p_holm(p), atol=1e-12
    )


def test_weighted_holm_holds_its_error_whatever_the_weights():
    """One question of 40 cases and one of 1, all true: 5 of 100 worlds reject anything."""
    rng = np.random.default_rng(0)
    weights = np.concatenate([np.full(40, 1 / 40), [1.0]])
    p = rng.random((4000, 41))
    any_found = np.array([(adjust_p_weighted_holm(row, weights) <= 0.05).any() for row in p])
    alone = np.array([adjust_p_weighted_holm(row, weights)[-1] <= 0.05 for row in p])
    assert any_found.mean() == pytest.approx(0.05, abs=0.012)
    assert alone.mean() > 0.02  # Holm without weights would leave it 0.0012


def test_benjamini_hochberg_steps_up():
    # Sorted .01 .02 .03 .9 times 4/1 4/2 4/3 4/4 = .04 .04 .04 .9.
    np.testing.assert_allclose(
        adjust_p_benjamini_hochberg([0.9, 0.03, NAN, 0.02, 0.01]), [0.9, 0.04, NAN, 0.04, 0.04]
    )


@pytest.mark.parametrize("name", CORRECTIONS)
@settings(max_examples=30)
@given(p=p_values)
def test_agrees_with_statsmodels(name, p):
    with mock.patch("gc.collect"):  # statsmodels' Holm collects garbage: 20 s in a long session
        expected = multipletests(p, method=name)[1]
    np.testing.assert_allclose(CORRECTIONS[name](p), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("correct", CORRECTIONS.values())
@given(p=p_values, seed=st.integers(0, 100))
def test_neither_order_nor_untested_rows_matter(correct, p, seed):
    order = np.random.default_rng(seed).permutation(p.size)
    adjusted = correct(p)
    np.testing.assert_allclose(correct(p[order]), adjusted[order], atol=1e-15)
    padded = np.append(p, [NAN, NAN])
    np.testing.assert_allclose(correct(padded), np.append(adjusted, [NAN, NAN]), atol=1e-15)
    assert (adjusted >= p).all()


@pytest.mark.parametrize("correct", CORRECTIONS.values())
def test_shape_is_kept_and_input_unchanged(correct):
    p = np.array([[0.01, NAN], [0.5, 0.02]])
    before = p.copy()
    assert correct(p).shape == (2, 2)
    np.testing.assert_array_equal(p, before)
    assert correct([]).shape == (0,)
    assert np.isnan(correct([NAN, NAN])).all()


@pytest.mark.parametrize("correct", CORRECTIONS.values())
@pytest.mark.parametrize("wrong", [-0.1, 1.5])
def test_refuses_what_is_no_probability(correct, wrong):
    with pytest.raises(InputError, match="a p-value is not a probability") as error:
        correct([0.1, wrong])
    assert f"found: {wrong}" in str(error.value)


def test_max_t_counts_the_observed_world_among_the_null_ones():
    # 9 null maxima 1..9. |t| = 8 is reached by 8 and 9: (1 + 2) / 10. 20: (1 + 0) / 10.
    observed = [8.0, -20.0, 0.5, NAN]
    np.testing.assert_allclose(adjust_p_max_t(observed, np.arange(1.0, 10.0)), [0.3, 0.1, 1.0, NAN])


def test_max_t_takes_ties_wide_and_what_was_not_computed_as_reached():
    assert adjust_p_max_t(2.0 * (1 + 1e-13), [2.0, 1.0, 1.0]).item() == 0.5
    assert adjust_p_max_t(2.0, [NAN, 1.0, 1.0]).item() == 0.5
    assert adjust_p_max_t(np.inf, [np.inf, 1.0, 1.0]).item() == 0.5
    assert adjust_p_max_t(5.0, []).item() == 1.0


def test_max_t_counts_as_reached_does():
    rng = np.random.default_rng(5)
    null = np.append(rng.integers(0, 6, 40).astype(float), NAN)
    for t in [0.0, 1.0, 3.0 + 1e-12, 3.0 - 1e-12, 5.5, 7.0]:
        assert (
            adjust_p_max_t(t, null).item() == (1 + is_null_t_at_least_observed(null, t).sum()) / 42
        )


@given(
    null=arrays(np.float64, st.integers(1, 60), elements=st.integers(0, 12).map(float)),
    alpha=st.sampled_from([0.01, 0.05, 0.1, 0.25, 0.5]),
)
def test_exceeding_the_critical_value_is_significance(null, alpha):
    critical = max_t_critical_value(null, alpha)
    for t in np.arange(0.0, 13.5, 0.5):
        assert (adjust_p_max_t(t, null).item() <= alpha + 1e-12) == (t > critical)


def test_critical_value_by_hand():
    # 1,999 replicates, alpha .05: p <= .05 with at most 99 at or above: the 100th largest.
    assert max_t_critical_value(np.arange(1.0, 2000.0), 0.05) == 1900.0
    assert max_t_critical_value([1.0, 2.0, 3.0], 0.05) == np.inf
    assert max_t_critical_value([NAN] + [1.0] * 18, 0.05) == np.inf


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, NAN])
def test_critical_value_refuses_an_impossible_error(alpha):
    with pytest.raises(SpecError, match="the family-wise error cannot be kept"):
        max_t_critical_value([1.0], alpha)


@pytest.mark.law
def test_family_wise_error_is_kept_and_max_t_gains_where_tests_overlap():
    # 20 tests with correlation .8, nothing differs. 2,000 worlds: the standard error of a rate of
    # .05 is .005, so .03 to .07 is four of them away.
    rng = np.random.default_rng(20)
    worlds, m, r = 2000, 20, 999

    def statistics(n):
        return np.sqrt(0.8) * rng.normal(size=(1, n)) + np.sqrt(0.2) * rng.normal(size=(m, n))

    null_max = np.abs(statistics(r)).max(axis=0)
    observed = statistics(worlds)
    error = (adjust_p_max_t(observed, null_max).min(axis=0) <= 0.05).mean()
    assert 0.03 <= error <= 0.07
    from scipy.special import ndtr

    raw = 2 * ndtr(-np.abs(observed))
    by_holm = np.mean([(adjust_p_holm(raw[:, w]) <= 0.05).any() for w in range(worlds)])
    assert by_holm <= 0.03 < (raw.min(axis=0) <= 0.05).mean()


@pytest.mark.parametrize("n_groups", [2, 3, 7, 20])
@pytest.mark.parametrize("p", [0.2, 0.02, 0.002, 1e-5])
def test_the_tail_of_all_pairs_is_that_of_the_studentised_range(n_groups, p):
    # The largest |z| over all pairs of independent means is the range over root 2 (scipy).
    z = studentized_range.isf(p, n_groups, np.inf) / np.sqrt(2.0)
    rng = np.random.default_rng(n_groups)
    n_tests = n_groups * (n_groups - 1) // 2
    tails = [
        MaxNormalTail(np.ptp(rng.normal(size=(n_groups, 2000)), axis=0) / np.sqrt(2.0), n_tests)
        for _ in range(40)
    ]
    # Beyond the 50 largest of 2,000, p is fitted with an error of about 1 / root 50 each: of 40
    # fits the mean has .022. The fit is meant to be a little too large rather than too small.
    ratio = np.mean([tail.adjust_p(z) for tail in tails]) / p
    assert 0.95 <= ratio <= 1.1, ratio
    critical = np.mean([tail.find_critical_value(p) for tail in tails])
    assert critical == pytest.approx(z, abs=0.04)
    for tail in tails:  # p and critical value are one statement, whatever was drawn
        own = tail.find_critical_value(p)
        assert tail.adjust_p(own + 1e-6) <= p


def test_a_tail_without_variation_is_never_exceeded():
    tail = MaxNormalTail(np.zeros(100), 3)
    assert tail.adjust_p([0.0, NAN]).tolist() == pytest.approx([1.0, NAN], nan_ok=True)
    assert MaxNormalTail(np.full(100, NAN), 3).find_critical_value(0.05) == np.inf
