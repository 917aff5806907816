"""The smallest detectable difference: its formula, and that it is found with the promised power."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from isolux.core.errors import SpecError
from isolux.stats.power_analysis import bonferroni_critical_t, minimum_detectable_difference

NAN = float("nan")


def test_by_hand():
    # (1.959964 + 0.841621) x .02
    assert minimum_detectable_difference(0.02, 1.959964) == pytest.approx(0.0560317, abs=1e-7)
    # power .5 is the critical value itself
    assert minimum_detectable_difference(0.02, 3.0, power=0.5) == pytest.approx(0.06)


def test_critical_values_are_the_quantiles_of_bonferronis_share():
    assert bonferroni_critical_t() == pytest.approx(stats.norm.ppf(0.975), abs=1e-12)
    assert bonferroni_critical_t(0.05, 412) == pytest.approx(stats.norm.isf(0.025 / 412), abs=1e-12)


def test_more_tests_and_more_power_ask_for_more():
    critical = [bonferroni_critical_t(n_tests=m) for m in (1, 10, 1000)]
    found = minimum_detectable_difference(0.1, critical)
    assert (np.diff(found) > 0).all()
    assert minimum_detectable_difference(0.1, 2.0, power=0.9) > minimum_detectable_difference(
        0.1, 2.0, power=0.8
    )


def test_no_spread_is_no_knowledge_and_no_critical_value_detects_nothing():
    found = minimum_detectable_difference([0.0, NAN, 0.1, 0.1], [2.0, 2.0, np.inf, NAN])
    np.testing.assert_array_equal(found, [NAN, NAN, np.inf, NAN])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: minimum_detectable_difference(0.1, 2.0, power=1.0), "power is not a probability"),
        (lambda: bonferroni_critical_t(0.0), "alpha is not a probability"),
        (lambda: bonferroni_critical_t(n_tests=0), "a family has no test"),
        (
            lambda: minimum_detectable_difference(-0.1, 2.0),
            "a standard error or a critical value is negative",
        ),
    ],
)
def test_refuses(call, words):
    with pytest.raises(SpecError, match=words):
        call()


@pytest.mark.law
@pytest.mark.parametrize("tests", [1, 100])
def test_a_injected_difference_of_that_size_is_found_four_times_in_five(tests):
    # Two groups of 800 people with rates around .6; 5,000 worlds: the standard error is .006.
    rng = np.random.default_rng(tests)
    n, worlds, middle = 800, 5000, 0.6
    critical = bonferroni_critical_t(n_tests=tests)
    injected = minimum_detectable_difference(np.sqrt(2 * middle * (1 - middle) / n), critical)
    a = rng.binomial(n, middle - injected / 2, worlds) / n
    b = rng.binomial(n, middle + injected / 2, worlds) / n
    error = np.sqrt((a * (1 - a) + b * (1 - b)) / n)
    assert (np.abs(a - b) / error > critical).mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.law
def test_a_injected_ratio_of_that_size_is_found_four_times_in_five():
    rng = np.random.default_rng(11)
    n, worlds, rate = 2000, 5000, 0.3
    critical = bonferroni_critical_t()
    ratio = np.exp(minimum_detectable_difference(np.sqrt(2 * (1 - rate) / rate / n), critical))
    a = rng.binomial(n, rate * np.sqrt(ratio), worlds) / n
    b = rng.binomial(n, rate / np.sqrt(ratio), worlds) / n
    error = np.sqrt((1 - a) / a / n + (1 - b) / b / n)
    assert (np.log(a / b) / error > critical).mean() == pytest.approx(0.8, abs=0.03)
