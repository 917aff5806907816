"""Both error rates of a verifier in one number: by hand, at the edges, and their laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.stats.verification_disparity import (
    fairness_discrepancy_rate,
    gini_aggregation_rate,
    inequity_rate,
)


def test_summaries_by_hand():
    fmr, fnmr = np.array([0.001, 0.004, 0.002]), np.array([0.02, 0.08, 0.02])
    assert fairness_discrepancy_rate(fmr, fnmr) == pytest.approx(1 - (0.003 + 0.06) / 2)
    assert fairness_discrepancy_rate(fmr, fnmr, alpha=1.0) == pytest.approx(0.997)
    assert inequity_rate(fmr, fnmr) == pytest.approx(4.0)  # sqrt(4) sqrt(4)
    # Gini of FMR: sum |x_i − x_j| over ordered pairs 2 (3 + 1 + 2) = 12; 3/2 * 12 / (2 * 9 * 7/3)
    # = 3/7; of FNMR: 2 (6 + 0 + 6) = 24; 3/2 * 24 / (18 * 4) = 1/2.
    assert gini_aggregation_rate(fmr, fnmr) == pytest.approx((3 / 7 + 1 / 2) / 2)


@pytest.mark.parametrize(
    "summary", [fairness_discrepancy_rate, inequity_rate, gini_aggregation_rate]
)
def test_summaries_of_too_little_are_undefined(summary):
    some, missing = np.array([0.1, 0.2]), np.array([0.1, np.nan])
    assert np.isnan(summary(some[:1], some[:1]))
    assert np.isnan(summary(missing, some))
    assert np.isnan(summary(some, missing))


def test_a_ratio_to_nothing_is_no_number_and_equal_nothings_do_not_differ():
    none, some = np.zeros(3), np.array([0.1, 0.2, 0.3])
    assert np.isnan(inequity_rate(none, some))
    assert fairness_discrepancy_rate(none, none) == 1.0
    assert gini_aggregation_rate(none, none) == 0.0


@given(st.integers(0, 1000), st.integers(2, 7), st.floats(0.5, 2.0))
def test_summaries_over_replicates_and_their_laws(seed, groups, factor):
    rng = np.random.default_rng(seed)
    fmr, fnmr = rng.random((2, 5, groups)) / 2 + 1e-3
    gini = [
        groups / (groups - 1) * np.abs(x[:, None] - x).sum() / (2 * groups**2 * x.mean())
        for x in fmr
    ]
    np.testing.assert_allclose(gini_aggregation_rate(fmr, fnmr, alpha=1.0), gini, atol=1e-12)
    for summary in (gini_aggregation_rate, inequity_rate):  # relative: the unit does not matter
        np.testing.assert_allclose(summary(fmr * factor, fnmr * factor), summary(fmr, fnmr))
    order = rng.permutation(groups)
    for summary in (fairness_discrepancy_rate, gini_aggregation_rate, inequity_rate):
        found = summary(fmr, fnmr)
        assert found.shape == (5,)
        np.testing.assert_allclose(summary(fmr[:, order], fnmr[:, order]), found)
        assert found[0] == pytest.approx(float(summary(fmr[0], fnmr[0])))
