"""Proxies, control and standardisation: by hand, against plain loops, and laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.stats.confounding import (
    dispersion_along_last_axis,
    expected_values_from_composition,
    mean_within_stratum_dispersion,
    normalise_compositions,
    share_of_replicates_ranked_first,
    standardise_means_to_overall,
)

VALUE = st.floats(0, 1)


def test_dispersion_by_hand():
    # Mean 2; squares 1, 0, 1: 2/3 of population variance, 1 with one degree of freedom less.
    values = np.array([1.0, 2.0, 3.0, np.nan])
    assert dispersion_along_last_axis(values, "variance", 0).item() == pytest.approx(2 / 3)
    assert dispersion_along_last_axis(values, "variance", 1).item() == 1.0
    assert dispersion_along_last_axis(values, ddof=0).item() == pytest.approx((2 / 3) ** 0.5)
    assert np.isnan(dispersion_along_last_axis(np.array([1.0, np.nan])))
    assert dispersion_along_last_axis(np.array([0.3, 0.3])).item() == 0.0


def test_proxies_by_hand():
    # a: 3/4 small. .75 x .4 + .25 x .8 = .5; b: .25 x .4 + .75 x .8 = .7. c has nobody.
    counts = np.array([[30.0, 10.0], [10.0, 30.0], [0.0, 0.0]])
    found = expected_values_from_composition(normalise_compositions(counts), np.array([0.4, 0.8]))
    assert found[:2].tolist() == pytest.approx([0.5, 0.7])
    assert np.isnan(found[2])


def test_a_value_that_nobody_has_needs_no_score():
    counts = np.array([[10.0, 0.0], [20.0, 0.0]])
    assert expected_values_from_composition(
        normalise_compositions(counts), np.array([0.4, np.nan])
    ).tolist() == [0.4, 0.4]


def test_control_by_hand():
    # Within small .1 apart, within large .3 apart: population standard deviations .05 and .15.
    within = np.array([[0.4, 0.8], [0.5, 0.5]])
    both = np.array([True, True])
    assert mean_within_stratum_dispersion(within, both, ddof=0).item() == pytest.approx(0.1)
    assert mean_within_stratum_dispersion(
        within, np.array([True, False]), ddof=0
    ).item() == pytest.approx(0.05)
    assert np.isnan(mean_within_stratum_dispersion(within, np.array([False, False])))


def test_standardisation_by_hand():
    # Everyone: 60 small, 40 large. .6 x .4 + .4 x .8 = .56; .6 x .5 + .4 x .5 = .5.
    within = np.array([[0.4, 0.8], [0.5, 0.5]])
    counts, both = np.array([60.0, 40.0]), np.array([True, True])
    assert standardise_means_to_overall(within, counts, both).tolist() == pytest.approx([0.56, 0.5])
    # Without the large, whose mix is all small.
    assert standardise_means_to_overall(within, counts, np.array([True, False])).tolist() == [
        0.4,
        0.5,
    ]
    assert np.isnan(standardise_means_to_overall(within, counts, np.array([False, False]))).all()


def test_a_replicate_that_drew_nobody_has_no_value():
    within = np.array([[[0.4, np.nan], [0.5, 0.5]]])
    found = standardise_means_to_overall(within, np.array([[60.0, 40.0]]), np.array([True, True]))
    assert np.isnan(found[0, 0])
    assert found[0, 1] == 0.5


def test_who_ranks_first():
    # Replicates: first alone, both, second alone, nobody (left out): 1.5 and 1.5 of 3.
    strength = np.array([[2.0, 1.0], [1.0, 1.0], [np.nan, 1.0], [np.nan, np.nan]])
    assert share_of_replicates_ranked_first(strength).tolist() == [0.5, 0.5]
    assert np.isnan(share_of_replicates_ranked_first(np.full((2, 3), np.nan))).all()


@st.composite
def tables(draw):
    """Cells of up to three groups and four values, with counts above 0."""
    g, k = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    cells = st.lists(st.lists(VALUE, min_size=k, max_size=k), min_size=g, max_size=g)
    counts = st.lists(st.lists(st.integers(1, 50), min_size=k, max_size=k), min_size=g, max_size=g)
    return np.array(draw(cells)), np.array(draw(counts), dtype=float)


@given(tables())
def test_against_plain_loops(table):
    value, counts = table
    g, k = value.shape
    everyone = [sum(value[a, e] * counts[a, e] for a in range(g)) / sum(counts[:, e])
                for e in range(k)]  # fmt: skip
    for a in range(g):
        proxy = sum(counts[a, e] / sum(counts[a]) * everyone[e] for e in range(k))
        assert expected_values_from_composition(normalise_compositions(counts), np.array(everyone))[
            a
        ] == pytest.approx(proxy)
        level = sum(sum(counts[:, e]) * value[a, e] for e in range(k)) / counts.sum()
        found = standardise_means_to_overall(value, counts.sum(axis=0), np.ones(k, dtype=bool))
        assert found[a] == pytest.approx(level)


@given(tables())
def test_where_nothing_but_the_value_matters_no_gap_is_left(table):
    value, counts = table
    same = np.broadcast_to(value[:1], value.shape)
    usable = np.ones(value.shape[1], dtype=bool)
    found = standardise_means_to_overall(same, counts.sum(axis=0), usable)
    assert np.ptp(found) == pytest.approx(0.0, abs=1e-12)
    # And a group's value is then its proxy.
    own = (same * normalise_compositions(counts)).sum(axis=1)
    assert expected_values_from_composition(
        normalise_compositions(counts), same[0]
    ) == pytest.approx(own)


@given(tables())
def test_equal_mixes_have_equal_proxies(table):
    value, counts = table
    alike = np.broadcast_to(counts[:1], counts.shape)
    assert np.ptp(
        expected_values_from_composition(normalise_compositions(alike), value[0])
    ) == pytest.approx(0.0, abs=1e-12)
