"""Measures of disparity: by hand, beside FairFace's own table, and what NaN does to them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isolux.core.errors import SpecError
from isolux.disparity.formulas import (
    difference,
    epsilon,
    log_ratio,
    mean_absolute_gap,
    ratio,
    ratio_min_max,
    standard_deviation,
    value_range,
)

NAN = float("nan")

# FairFace (Kärkkäinen and Joo 2021), table 4: accuracy of four models in 14 groups of race and
# perceived gender (men, women of each race in turn), then the printed max, min, SD and epsilon.
TABLE_4 = {
    "FairFace": (
        [
            0.967,
            0.954,
            0.958,
            0.917,
            0.873,
            0.939,
            0.909,
            0.906,
            0.977,
            0.960,
            0.966,
            0.947,
            0.991,
            0.946,
        ],
        (0.991, 0.873, 0.032, 0.055),
    ),
    "UTK": (
        [
            0.926,
            0.864,
            0.909,
            0.795,
            0.841,
            0.824,
            0.906,
            0.795,
            0.939,
            0.821,
            0.978,
            0.742,
            0.949,
            0.730,
        ],
        (0.978, 0.730, 0.078, 0.127),
    ),
    "LFWA+": (
        [
            0.946,
            0.680,
            0.974,
            0.432,
            0.826,
            0.684,
            0.938,
            0.574,
            0.951,
            0.613,
            0.968,
            0.518,
            0.988,
            0.635,
        ],
        (0.988, 0.432, 0.196, 0.359),
    ),
    "CelebA": (
        [
            0.829,
            0.958,
            0.819,
            0.919,
            0.653,
            0.939,
            0.768,
            0.923,
            0.843,
            0.955,
            0.866,
            0.856,
            0.924,
            0.874,
        ],
        (0.958, 0.653, 0.083, 0.166),
    ),
}

rates = arrays(np.float64, st.integers(2, 12), elements=st.floats(0.01, 1.0))
OF_GROUPS = {
    "value_range": value_range,
    "ratio_min_max": ratio_min_max,
    "epsilon": epsilon,
    "standard_deviation": standard_deviation,
}


@pytest.mark.parametrize("model", TABLE_4)
def test_fairface_table_4_is_base_10_and_ddof_1(model):
    accuracies, (top, bottom, spread, disparity) = TABLE_4[model]
    assert (max(accuracies), min(accuracies)) == (top, bottom)
    # Computed from printed numbers, of which each is right to .0005.
    assert standard_deviation(accuracies) == pytest.approx(spread, abs=0.0006)
    assert epsilon(accuracies) == pytest.approx(disparity, abs=0.0006)
    # ... and not the other readings of the paper's text.
    assert epsilon(accuracies, base=np.e) != pytest.approx(disparity, abs=0.06)
    assert value_range(accuracies) == pytest.approx(top - bottom)


def test_ddof_1_fits_fairface_where_0_does_not():
    gap = {
        ddof: sum(
            abs(standard_deviation(accuracies, ddof).item() - printed[2])
            for accuracies, printed in TABLE_4.values()
        )
        for ddof in (0, 1)
    }
    assert gap[1] < 0.002 < gap[0]


def test_epsilon_is_the_largest_log_ratio_over_ordered_pairs():
    values = np.array([0.4188, 0.8473, 0.6388, 0.7712])
    pairs = [np.log10(a / b) for a in values for b in values]
    assert epsilon(values) == pytest.approx(max(pairs), abs=1e-12)
    assert log_ratio(0.8473, 0.4188) == pytest.approx(max(pairs), abs=1e-12)


def test_pairs_by_hand():
    assert difference(0.25, 0.75).item() == -0.5
    assert ratio(0.25, 0.5).item() == 0.5
    assert log_ratio(0.25, 0.5, base=2).item() == -1.0
    np.testing.assert_array_equal(difference([0.5, NAN], [NAN, 0.5]), [NAN, NAN])
    np.testing.assert_array_equal(ratio([0.5, NAN, 0.0, 0.5], [0.0, 0.5, 0.0, NAN]), [NAN] * 4)
    assert ratio(0.0, 0.5).item() == 0.0
    np.testing.assert_array_equal(log_ratio([0.0, 0.5, -1.0], [0.5, 0.0, -1.0]), [NAN] * 3)
    assert ratio(np.ones((3, 1)), np.ones(2)).shape == (3, 2)


@given(a=st.floats(0.01, 1), b=st.floats(0.01, 1), base=st.sampled_from([2.0, np.e, 10.0]))
def test_log_ratio_turns_with_the_pair_and_undoes_in_its_base(a, b, base):
    assert log_ratio(a, b, base) == pytest.approx(-log_ratio(b, a, base), abs=1e-12)
    assert base ** log_ratio(a, b, base) == pytest.approx(ratio(a, b), rel=1e-12)


def test_groups_by_hand():
    values = [0.5, 0.9, NAN, 0.7]
    assert value_range(values) == pytest.approx(0.4)
    assert ratio_min_max(values) == pytest.approx(5 / 9)
    # mean .7, squares .04 .04 0
    assert standard_deviation(values) == pytest.approx(0.2)
    assert standard_deviation(values, ddof=0) == pytest.approx(np.sqrt(0.08 / 3))
    # |.5 - .8| |.9 - .8| |.7 - .8| = .3 .1 .1
    assert mean_absolute_gap(values, 0.8) == pytest.approx(0.5 / 3)


@pytest.mark.parametrize("measure", OF_GROUPS.values(), ids=OF_GROUPS)
@pytest.mark.parametrize("values", [[0.5], [NAN, 0.5, NAN], [NAN, NAN], []])
def test_fewer_than_two_judged_groups_are_not_compared(measure, values):
    assert np.isnan(measure(values))


def test_what_a_formula_does_not_define_is_nan():
    assert np.isnan(ratio_min_max([0.0, 0.0]))
    assert ratio_min_max([0.0, 0.5]) == 0.0
    assert np.isnan(ratio_min_max([-0.5, 0.5]))
    assert np.isnan(ratio_min_max([-0.5, -0.25]))
    assert np.isnan(epsilon([0.0, 0.5]))
    assert value_range([-0.5, 0.5]) == 1.0
    assert np.isnan(mean_absolute_gap([NAN, NAN], 0.5))
    assert np.isnan(mean_absolute_gap([0.5, 0.6], NAN))
    assert mean_absolute_gap([0.5, NAN], 0.75) == 0.25


@pytest.mark.parametrize("measure", OF_GROUPS.values(), ids=OF_GROUPS)
@given(values=rates, seed=st.integers(0, 99))
def test_order_and_unjudged_groups_do_not_matter(measure, values, seed):
    plain = measure(values)
    order = np.random.default_rng(seed).permutation(values.size)
    assert measure(values[order]) == pytest.approx(plain, abs=1e-12)
    assert measure(np.append(values, NAN)) == pytest.approx(plain, abs=1e-12)


@pytest.mark.parametrize("measure", OF_GROUPS.values(), ids=OF_GROUPS)
def test_replicates_are_measured_one_by_one(measure):
    rng = np.random.default_rng(4)
    values = rng.uniform(0.1, 1.0, (3, 20, 5))
    values[rng.random(values.shape) < 0.4] = NAN
    before = values.copy()
    whole = measure(values)
    assert whole.shape == (3, 20)
    one_by_one = [[measure(row).item() for row in block] for block in values]
    np.testing.assert_allclose(whole, one_by_one, atol=1e-15)
    np.testing.assert_array_equal(values, before)
    assert np.isnan(whole).any()
    gaps = mean_absolute_gap(values, np.full((3, 20), 0.5))
    np.testing.assert_allclose(
        gaps, [[mean_absolute_gap(row, 0.5).item() for row in block] for block in values]
    )


@given(values=rates)
def test_equal_groups_differ_by_nothing(values):
    alike = np.full_like(values, values[0])
    assert value_range(alike) == 0.0
    assert ratio_min_max(alike) == 1.0
    assert epsilon(alike) == 0.0
    assert standard_deviation(alike) == pytest.approx(0.0, abs=1e-12)


def test_refusals():
    with pytest.raises(SpecError, match="a logarithm has no such base"):
        epsilon([0.5, 0.6], base=1.0)
    with pytest.raises(SpecError, match="has no such degrees of freedom"):
        standard_deviation([0.5, 0.6], ddof=2)
