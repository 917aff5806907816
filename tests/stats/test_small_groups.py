"""Estimates of cells that borrow strength: limits that are known, and what may not matter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import ndtri

from isolux.core.errors import InputError
from isolux.stats.small_groups import estimate_intersection_cells
from isolux.stats.small_groups.laplace import (
    IntersectionCells,
    build_effect_covariances,
    find_posterior_modes,
    laplace_cell_posteriors,
)

LEVELS = np.array(list(itertools.product(range(3), range(2), range(2))))
RATES = np.array([0.9, 0.85, 0.92, 0.8, 0.7, 0.75, 0.72, 0.6, 0.9, 0.88, 0.95, 0.9])


def _of(people, share=RATES, **settings):
    return estimate_intersection_cells(share, np.diag(1.0 / people), LEVELS, **settings)


def test_of_very_many_people_the_raw_value_stands_and_its_interval_is_the_normal_one():
    people = np.full(12, 1e6)
    found = _of(people)
    assert found.value == pytest.approx(RATES, abs=1e-4)
    half = 1.96 * np.sqrt(RATES * (1 - RATES) / people)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.03)


def test_of_one_person_the_kin_decide():
    """One cell of a single person, wrong; its kin at .9 and .7 by the first attribute."""
    share = np.where(LEVELS[:, 0] == 1, 0.7, 0.9)
    people = np.full(12, 200.0)
    for at, kin in ((0, 0.9), (4, 0.7)):
        own, own_people = share.copy(), people.copy()
        own[at], own_people[at] = 0.0, 1.0
        found = _of(own_people, own)
        assert kin - 0.12 < found.value[at] < kin
        assert found.low[at] < 0.4  # it may be unlike them


def test_an_empty_cell_has_its_kins_prediction_and_a_wider_interval():
    share = RATES.copy()
    share[5] = np.nan
    found = _of(np.full(12, 100.0), share)
    assert 0.6 < found.value[5] < 0.85  # 0.7, 0.72 and 0.6 beside it, .85 to .95 elsewhere
    width = found.high - found.low
    assert width[5] > 2 * width[4]


def test_of_an_empty_cell_among_equals_nothing_is_known_but_how_odd_it_may_be():
    """65 of 100 cells may be unlike their kin by 2 (SD, in log-odds): .65 Φ(end / 2) = .025."""
    share = np.full(12, 0.8)
    share[5] = np.nan
    found = _of(np.full(12, 1e4), share)
    ends = np.array([found.low[5], found.high[5]])
    reach = np.log(ends / (1 - ends)) - np.log(0.8 / 0.2)
    assert reach == pytest.approx([2 * ndtri(0.025 / 0.65), -2 * ndtri(0.025 / 0.65)], abs=0.02)


def test_cells_that_are_alike_are_pulled_together_and_stay_between_their_extremes():
    rng = np.random.default_rng(1)
    share = rng.binomial(20, 0.8, 12) / 20
    found = _of(np.full(12, 20.0), share)
    assert np.ptp(found.value) < 0.6 * np.ptp(share)
    assert share.min() < found.value.min()
    assert found.value.max() < share.max()
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()


def test_the_other_answer_gives_the_mirror_image():
    one, other = _of(np.full(12, 15.0)), _of(np.full(12, 15.0), 1 - RATES)
    assert other.value == pytest.approx(1 - one.value, abs=1e-6)
    assert other.low == pytest.approx(1 - one.high, abs=1e-6)


def test_the_order_of_cells_and_of_attributes_and_names_of_values_do_not_matter():
    people = np.linspace(3, 40, 12)
    found = _of(people)
    order = np.random.default_rng(0).permutation(12)
    again = estimate_intersection_cells(
        RATES[order], np.diag(1.0 / people[order]), (7 - LEVELS)[order][:, [2, 0, 1]]
    )
    assert again.value == pytest.approx(found.value[order], abs=1e-6)


def test_other_means_keep_their_unit_and_may_be_below_0():
    """Ten times the scores, ten times the estimates: the model knows no unit."""
    people = np.full(12, 8.0)
    value = RATES - 0.9
    one = _of(people, value, is_proportion=False, unit_variance=0.04)
    ten = _of(people, 10 * value, is_proportion=False, unit_variance=4.0)
    assert ten.value == pytest.approx(10 * one.value, rel=1e-6, abs=1e-9)
    assert (one.low < 0).all()


def test_cells_that_share_their_people_do_not_count_them_twice():
    """By pairs of the same people: what all share is known as if there were half as many cells."""
    apart = np.diag(np.full(12, 0.1))
    same = apart.copy()
    for a in range(0, 12, 2):
        same[a, a + 1] = same[a + 1, a] = 0.1
    held, (shared, _) = np.ones(12, dtype=bool), build_effect_covariances(LEVELS)
    log_sd = np.log(np.full((1, 7), 1e-4))  # nothing but everyone's mean is open
    widths = []
    for noise in (apart, same):
        cells = IntersectionCells.from_estimates(RATES, noise, held, is_proportion=True)
        found = laplace_cell_posteriors(
            cells, shared, log_sd, find_posterior_modes(cells, shared, log_sd)
        )
        widths.append(found.variance[0, 0])
    assert widths[1] == pytest.approx(2 * widths[0], rel=0.03)


def test_the_likelihood_of_normal_means_is_the_textbooks():
    """Log density of N(0, K + R) up to a constant, against numpy's own determinant and inverse."""
    levels = LEVELS[:6]
    noise = np.diag(np.linspace(0.1, 0.3, 6))
    value = np.array([0.3, -0.2, 0.5, 0.1, 0.0, 0.4])
    cells = IntersectionCells.from_estimates(
        value, noise, np.ones(6, dtype=bool), is_proportion=False
    )
    shared, _ = build_effect_covariances(levels)
    log_sd = np.log([[0.5, 0.4, 0.3, 0.2, 0.3, 0.1, 0.6], [0.1, 0.2, 0.05, 0.1, 0.1, 0.3, 0.2]])
    found = find_posterior_modes(cells, shared, log_sd)
    of_cells = laplace_cell_posteriors(cells, shared, log_sd, found)
    for h in range(2):
        whole = np.tensordot(np.exp(2 * log_sd[h]), shared, 1) + 2.25 + noise
        y = value - cells.overall_mean
        law = -0.5 * (y @ np.linalg.solve(whole, y) + np.linalg.slogdet(whole)[1])
        assert found.evidence[h] == pytest.approx(law, abs=1e-9)
        prior = whole - noise
        mean = cells.overall_mean + prior @ np.linalg.solve(whole, y)
        assert of_cells.mean[h] == pytest.approx(mean)
        variance = np.diag(prior - prior @ np.linalg.solve(whole, prior))
        assert of_cells.variance[h] == pytest.approx(variance)


def test_two_cells_and_fewer_have_no_kin():
    nan = np.full(12, np.nan)
    nan[0] = 0.5
    assert np.isnan(_of(np.full(12, 5.0), nan).value).all()


def test_cells_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="cells do not fit one another") as error:
        estimate_intersection_cells(RATES, np.eye(3), LEVELS)
    assert "noise (3, 3)" in str(error.value)


def test_of_many_attributes_single_ones_pairs_and_whole_cells_have_effects():
    levels = np.array(list(itertools.product(range(2), repeat=6)))
    shared, order = build_effect_covariances(levels)
    assert np.bincount(order).tolist() == [0, 6, 15, 0, 0, 0, 1]
    assert shared.shape == (22, 64, 64)
    assert (shared[-1] == np.eye(64)).all()
