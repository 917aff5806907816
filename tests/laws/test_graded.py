"""Graded scores of a small group: what was not seen in it may still happen."""

from __future__ import annotations

import pytest

from tests.laws._figures import FULL, at_least, at_most, record, scaled
from tests.laws._graded import graded

pytestmark = pytest.mark.law

SELDOM, OFTEN = ("overlap", 0.02), ("overlap", 0.1)
NARROW, WIDE, SKEWED = ("normal", 1.0), ("normal", 2.0), ("lognormal", 1.2)
CELLS = (
    ((SELDOM, SELDOM), (528, 72), 0.0),
    ((WIDE, NARROW), (425, 75), 0.042),
    ((SELDOM, SELDOM), (2000, 150), 0.0),
    ((OFTEN, OFTEN), (300, 60), 0.0),
    ((SKEWED, SKEWED), (425, 75), 0.0),
    ((NARROW, NARROW), (425, 75), 0.0),
    ((NARROW, WIDE), (425, 75), 0.0),
    ((WIDE, NARROW), (425, 75), 0.0),
    ((NARROW, NARROW), (425, 75), 0.035),
    ((OFTEN, OFTEN), (528, 72), 0.1),
)


@pytest.mark.parametrize("place", range(len(CELLS) if FULL else 2))
def test_a_small_group_without_a_bad_score_is_no_finding(place):
    laws, sizes, apart = CELLS[place]
    worlds = scaled(2000, 100)
    found = graded(laws, sizes, worlds, apart=apart)
    record(f"graded-{place}", [found], worlds=worlds, replicates=1)
    assert found["held, %"] >= at_least(0.95, worlds, full=0.93), found
    if apart:  # a small group that varies less keeps its power, but for five points
        own = found["by own variances: p <= .05, %"]
        assert found["p <= .05, %"] >= own - (0.05 if FULL else 0.1), found
    else:
        assert found["p <= .05, %"] <= at_most(0.05, worlds, full=0.065), found
        assert found["p <= .005, %"] <= at_most(0.005, worlds, full=0.01), found
