"""Homes on the map, and what they earn."""

from __future__ import annotations

import numpy as np
import pytest

from isolux_worlds.photo_world.locations import (
    COUNTRIES,
    INCOMES,
    PLACE_VALUES,
    REGIONS,
    draw_country_and_coordinates,
    draw_monthly_incomes_usd,
)


def test_countries_are_told_apart_and_lie_on_their_continent():
    assert len({c.name for c in COUNTRIES}) == len({c.code for c in COUNTRIES}) == len(COUNTRIES)
    assert {c.region for c in COUNTRIES} == set(REGIONS)
    for c in COUNTRIES:
        lies = {
            "am": c.longitude < -30,
            "eu": -10 < c.longitude < 45 and c.latitude > 35,
            "af": -20 < c.longitude < 52 and -36 < c.latitude < 38,
            "as": c.longitude > 30,
        }
        assert lies[c.region], c


def test_income_groups_are_the_buckets_of_fairness_indicators():
    # round(ln(income) / 3): 1 low, 2 medium, 3 high; Dollar Street's homes earn 27 to 10,098.
    for group, bucket in (("low", 1), ("middle", 2), ("high", 3)):
        low, high = INCOMES[group]
        assert {round(np.log(x) / 3) for x in (low + 1e-6, high - 1e-6)} == {bucket}
    assert INCOMES["low"][0] == 27
    assert INCOMES["high"][1] == 10_098
    assert PLACE_VALUES["income_group"] == ("low", "middle", "high")


def test_incomes_are_within_their_group_and_log_normal_between():
    n = 60_000
    groups = np.arange(n) % 3
    drawn = draw_monthly_incomes_usd(groups, n, seed=3)
    for number, (low, high) in enumerate(INCOMES.values()):
        own = drawn[groups == number]
        assert low <= own.min() <= own.max() <= high
        assert len(np.unique(own)) > 100
    free = np.log(draw_monthly_incomes_usd(None, n, seed=3))
    # Median 320 and spread 1.3, cut at 27 and 10,098, 1.90 and 2.66 spreads away: truncnorm's
    # mean lies .07 spreads above the middle.
    from scipy.stats import truncnorm

    ends = (np.log([27, 10_098]) - np.log(320)) / 1.3
    mean, spread = truncnorm(*ends, loc=np.log(320), scale=1.3).stats("mv")
    assert free.mean() == pytest.approx(float(mean), abs=0.025)
    assert free.var() == pytest.approx(float(spread), abs=0.04)


def test_homes_lie_near_their_country():
    which, latitude, longitude = draw_country_and_coordinates(2000, seed=1)
    assert set(which.tolist()) == set(range(len(COUNTRIES)))
    centre = np.array([(c.latitude, c.longitude) for c in COUNTRIES])[which]
    assert np.abs(latitude - centre[:, 0]).max() <= 1.5 + 1e-4
    assert np.abs(longitude - centre[:, 1]).max() <= 1.5 + 1e-4
    assert np.abs(latitude).max() < 90
    assert np.abs(longitude).max() < 180


def test_injected_regions_and_countries_are_kept():
    code = np.arange(400) % 2
    which, *_ = draw_country_and_coordinates(400, seed=1, region=(("eu", "as"), code))
    assert all(COUNTRIES[w].region == ("eu", "as")[c] for w, c in zip(which, code, strict=True))
    which, *_ = draw_country_and_coordinates(400, seed=1, country=(("Peru", "Nepal"), code))
    assert all(COUNTRIES[w].name == ("Peru", "Nepal")[c] for w, c in zip(which, code, strict=True))
