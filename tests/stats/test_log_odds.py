"""Log odds ratios by hand, and that their intervals know of clusters."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.log_odds import log_odds_ratio_with_interval


def test_by_hand():
    """10 of 20 against 5 of 50: ln((10.5/10.5) / (5.5/45.5)) = ln(8.2727) = 2.113."""
    said = np.r_[np.ones(10), np.zeros(10), np.ones(5), np.zeros(45)]
    found = log_odds_ratio_with_interval(said, np.repeat([1.0, 0.0], [20, 50]), np.arange(70))
    assert found.value == pytest.approx(2.1130, abs=1e-4)
    assert (found.n_with_answer, found.n_asked, found.other_n_with_answer, found.other_n_asked) == (
        10,
        20,
        5,
        50,
    )


def test_an_answer_that_nobody_gets_has_a_finite_ratio_and_wide_interval():
    said = np.r_[np.zeros(60), np.ones(30), np.zeros(30)]
    found = log_odds_ratio_with_interval(said, np.repeat([1.0, 0.0], 60), np.arange(120))
    # Woolf's variance, 1/.5 + 1/60.5 + 2/30.5, is above 2: the interval reaches 5 and more
    assert found.value == pytest.approx(np.log(0.5 / 60.5))
    assert found.high - found.low > 5


def test_photos_of_one_person_are_not_as_many_answers():
    draw = np.random.default_rng(1)
    inside = np.repeat(draw.permutation(np.r_[np.ones(30), np.zeros(30)]), 10)
    said = np.repeat((draw.random(60) < 0.4).astype(float), 10)
    alone = log_odds_ratio_with_interval(said, inside, np.arange(600))
    of_people = log_odds_ratio_with_interval(said, inside, np.repeat(np.arange(60), 10))
    # ten photos with one answer: the standard error grows by about the root of ten
    ratio = (of_people.high - of_people.low) / (alone.high - alone.low)
    assert 2.7 < ratio < 3.7


def test_the_other_way_round_has_the_other_sign():
    draw = np.random.default_rng(2)
    said, inside = (draw.random(100) < 0.3).astype(float), (draw.random(100) < 0.4).astype(float)
    one = log_odds_ratio_with_interval(said, inside, np.arange(100))
    two = log_odds_ratio_with_interval(said, 1.0 - inside, np.arange(100))
    assert one.value == pytest.approx(-two.value)
    assert one.low == pytest.approx(-two.high)


def test_an_empty_group_has_none():
    assert np.isnan(log_odds_ratio_with_interval(np.ones(3), np.zeros(3), np.arange(3)).value)
