"""Boxes through detection and groups: intervals hold what was planted, nothing claims nothing.

About 500 people in 200 images of 100 clusters a world; people of a cluster are found alike (a
correlation of .2 behind the answers), and size hangs on the attribute.
"""

from __future__ import annotations

import pytest

from tests.laws._figures import FULL, at_most, record, scaled, sized
from tests.laws._scenes import cover_scenes, false_findings

pytestmark = pytest.mark.law
WORLDS, REPLICATES = scaled(250, 12), sized(600, 200)
# Of 250 worlds a share of .95 has a standard error of at most .014. A small run has 60 rates a
# metric and 48 differences of 12 worlds, alike within a world: a standard error of about .034, and
# a bound of four of them.
LOWEST, HIGHEST = (0.908, 0.992) if FULL else (0.81, 1.0)


@pytest.mark.parametrize("varies", ["person", "cluster"])
@pytest.mark.parametrize("matters", ["both", "size"] if FULL else ["both"])
def test_intervals_hold_the_planted_recalls(matters, varies):
    found = cover_scenes(matters, varies, worlds=WORLDS, replicates=REPLICATES)
    record(f"scenes-cover-{matters}-{varies}", [found], worlds=WORLDS, replicates=REPLICATES)
    assert found["judged"] > 0.95, found
    for what in ("rates", "average recalls", "differences"):
        assert LOWEST <= found[what] <= HIGHEST, (what, found)


@pytest.mark.parametrize("varies", ["person", "cluster"])
def test_where_nothing_matters_little_is_claimed(varies):
    worlds, replicates = scaled(250, 12), sized(599, 199)
    found = false_findings(varies, worlds=worlds, replicates=replicates)
    record(f"scenes-null-{varies}", [found], worlds=worlds, replicates=replicates)
    assert found["tests"] > 20, found
    # Whole: three standard errors.
    assert found["any claim"] <= at_most(0.05, worlds, full=0.092), found


@pytest.mark.law(whole=True)
def test_the_law_can_see_what_differs():
    found = false_findings("person", worlds=5, replicates=199, matters="both")
    assert found["any claim"] >= 0.6, found  # five worlds
