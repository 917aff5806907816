"""A home counts once: the interval of the hit rate of homes holds what it promises."""

from __future__ import annotations

import pytest

from tests.laws._figures import FULL, at_least, scaled
from tests.laws._households import Homes, covered

pytestmark = pytest.mark.law
WORLDS = scaled(2000, 50)


@pytest.mark.parametrize(
    "world",
    [Homes(20), Homes(60), Homes(60, mean=0.8), Homes(60, slope=0.4)],
    ids=["20 homes", "60 homes", "rate .8", "busy homes do better"],
)
def test_the_interval_of_homes_covers_as_promised_and_that_of_photos_does_not(world):
    found = covered(world, WORLDS)
    low, high = at_least(0.95, WORLDS, full=0.935), (0.97 if FULL else 1.0)
    assert low <= found["homes"] <= high, found
    assert found["photos"] < (0.7 if FULL else 0.75), found
