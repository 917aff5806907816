"""How many more people decide: against a plain simulation, and where it must be monotone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from isolux.stats import power_analysis
from isolux.stats.power_analysis import DecisionCases, max_se_for_decision_power

Z = 1.6448536


def chance_of_deciding(cases, most):
    return power_analysis._probability_rule_is_decided(
        cases, most, power_analysis._draw_correlated_case_normals(cases)
    )


def one_value(slack: float, *, error: float = 1.0, fail: float = Z) -> DecisionCases:
    one, first = np.ones(1), np.zeros(1, dtype=np.int64)
    return DecisionCases(
        slack * one, Z * error * one, fail * error * one, error * one, first, first - 1, one
    )


@pytest.mark.parametrize("slack", [0.0, 0.7, 1.5, -1.2])
@pytest.mark.parametrize("factor", [1.5, 4.0, 30.0])
def test_the_chance_of_one_case_is_the_closed_form(slack, factor):
    # The later slack is normal around today's with variance 1 - 1/f; its bounds reach Z / sqrt(f).
    spread, reach = np.sqrt(1 - 1 / factor), Z / np.sqrt(factor)
    exact = norm.cdf((slack - reach) / spread) + norm.cdf((-slack - reach) / spread)
    assert chance_of_deciding(one_value(slack), factor**-0.5) == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("slack", [0.3, 1.0, 1.6, -0.9])
def test_the_error_that_is_found_has_the_power(slack):
    cases = one_value(slack, error=2.0)
    for power in (0.6, 0.8, 0.9):
        found = max_se_for_decision_power(cases, power)
        assert chance_of_deciding(cases, found) == pytest.approx(power, abs=0.01)


def test_two_stages_of_a_flat_prior_decide_as_promised():
    """Draw truths from a flat law, measure, add the people asked for, measure again."""
    rng = np.random.default_rng(1)
    decided = []
    while len(decided) < 400:
        truth = rng.uniform(-4, 4)
        first = truth + rng.standard_normal()
        if abs(first) >= Z:
            continue  # decided at once
        error = max_se_for_decision_power(one_value(first))
        weight = error**2  # of today's people among all
        later = weight * first + (1 - weight) * (
            truth + rng.standard_normal() * np.sqrt(error**2 / (1 - error**2))
        )
        decided.append(abs(later) >= Z * error)
    assert np.mean(decided) == pytest.approx(0.8, abs=0.07)  # 3.5 standard errors


def test_a_rule_of_several_cases_waits_for_all_or_for_one_that_fails():
    first = np.arange(2)
    alone, ones = one_value(1.0), np.ones(2)
    both = DecisionCases(ones, Z * ones, Z * ones, ones, first, first * 0 - 1, ones)
    assert max_se_for_decision_power(both) < max_se_for_decision_power(alone)
    beyond = DecisionCases(
        np.array([1.0, -3.0]), Z * ones, Z * ones, ones, first, first * 0 - 1, ones
    )
    assert chance_of_deciding(beyond, 1.0) == 1.0  # one case has failed already


def test_the_least_sure_group_gets_people_first():
    ones, zero = np.ones(1), np.zeros(1, dtype=np.int64)
    pair = DecisionCases(
        1.2 * ones, Z * ones, Z * ones, np.array([0.99, 0.14]), zero, zero + 1, ones
    )
    assert 0.14 < max_se_for_decision_power(pair) < 0.99  # the sure one is left as it is


def test_what_is_not_known_is_not_reckoned():
    assert np.isnan(max_se_for_decision_power(one_value(np.nan)))
    assert np.isnan(max_se_for_decision_power(one_value(1.0, error=0.0)))
    none = np.zeros(0)
    assert np.isnan(
        max_se_for_decision_power(DecisionCases(*[none] * 4, *[none.astype(int)] * 2, none))
    )
