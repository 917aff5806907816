"""ICON² and the gap at an equal mix, in worlds where size, the attribute, both or nothing matters.

Whole: 100 to 2,000 worlds; small: a dozen or two, with bounds that hold but once in 5,000 runs.
"""

from __future__ import annotations

import pytest

from tests.laws._causes import claimed
from tests.laws._confounders import (
    audited_too,
    cover,
    false_findings,
    left_within_bins,
    ranks_first,
    small_cells,
    unequal_groups,
)
from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized
from tests.laws._minorities import Minority, minorities

pytestmark = pytest.mark.law

REPLICATES = sized(400, 150)


METRICS = ("recall_at_iou", "normalised_average_precision")


@pytest.mark.parametrize("metric", METRICS if FULL else METRICS[:1])
def test_size_ranks_first_where_it_alone_matters(metric):
    worlds = scaled(50, 2)  # of 200 size ranked first in all
    found = ranks_first(metric, worlds=worlds, replicates=100, clusters=1700)
    record(f"confounders-first-{metric}", [found], worlds=worlds, replicates=100)
    assert found["boxes"] > 19_000, found
    assert found["size first"] >= 0.95, found


COVERED = [(matters, varies) for matters in ("size", "both") for varies in ("person", "cluster")]


@pytest.mark.parametrize(("matters", "varies"), COVERED if FULL else COVERED[1:3])
def test_the_gap_at_an_equal_mix_holds_what_was_planted(matters, varies):
    worlds = scaled(500, 24)  # a standard error of a point
    found = cover(matters, varies, worlds=worlds, replicates=REPLICATES)
    record(f"confounders-cover-{matters}-{varies}", [found], worlds=worlds, replicates=REPLICATES)
    assert found["judged"] > 0.99, found
    lowest, highest = at_least(0.95, worlds, full=0.92), (0.98 if FULL else 1.0)
    assert lowest <= found["stratified"] <= highest, found
    # The logistic model is the world's own but for its mean over people: held more loosely.
    assert lowest - 0.02 <= found["regression"] <= 1.0, found
    assert found["agree"] > (0.9 if FULL else 0.8), found


def test_wide_bins_of_size_leave_a_gap_and_finer_ones_less():
    worlds = scaled(200, 8)
    bins = ["edges:1024,9216", "quantile:4", "quantile:10", "quantile:20"]
    rows = left_within_bins(bins if FULL else bins[::3], worlds=worlds, replicates=100)
    record("confounders-bins", rows, worlds=worlds, replicates=100)
    assert rows[0]["as it stands"] < -0.05, rows
    assert rows[0]["left"] < rows[-1]["left"] + 0.005, rows
    assert abs(rows[-1]["left"]) < 0.25 * abs(rows[-1]["as it stands"]) + (0 if FULL else 0.02), (
        rows
    )


NOTHING = [(metric, varies) for metric in METRICS for varies in ("cluster", "image")]


@pytest.mark.parametrize(("metric", "varies"), NOTHING if FULL else NOTHING[:3])
def test_where_nothing_matters_little_is_found(metric, varies):
    dear = metric == "normalised_average_precision"  # every replicate reads 10 curves a cell
    worlds = scaled(250, 10) if dear else scaled(400, 24)
    replicates = 199 if dear else sized(599, 199)
    found = false_findings(metric, varies, worlds=worlds, replicates=replicates)
    record(f"confounders-null-{metric}-{varies}", [found], worlds=worlds, replicates=replicates)
    # Three standard errors; of recall 2,000 worlds found less than .01.
    highest = at_most(0.05, worlds, full=0.092 if dear else 0.083)
    assert found["any finding"] <= highest, found


def test_small_cells_compare_more_people_and_keep_the_interval_honest():
    worlds, many = scaled(100, 15), (60, 150, 400) if FULL else (60,)
    sizes = (2, 5, 10, 20, 50) if FULL else (5, 50)
    rows = [
        row
        for clusters in many
        for row in small_cells(sizes, worlds=worlds, replicates=REPLICATES, clusters=clusters)
    ]
    record("confounders-cells", rows, worlds=worlds, replicates=REPLICATES)
    for row in (row for row in rows if row["people a cell"] == 5):
        lowest = at_least(0.95, worlds, full=0.884)  # three standard errors
        assert lowest <= row["covers 0"] <= (0.99 if FULL else 1.0), row
    at_sixty = {row["people a cell"]: row["compared"] for row in rows if row["clusters"] == 60}
    assert at_sixty[5] > at_sixty[50] + 0.2, rows


@pytest.mark.parametrize("varies", ["cluster", "image"] if FULL else ["image"])
def test_where_nothing_matters_and_the_audit_has_tested_the_gap(varies):
    worlds, replicates = scaled(500, 14), sized(599, 199)
    found = audited_too(varies, worlds=worlds, replicates=replicates)
    record(f"confounders-audited-{varies}", [found], worlds=worlds, replicates=replicates)
    # Two families at .05 of gaps that go together; each alone must hold its level, but for three
    # standard errors of 1,000 worlds.
    highest = at_most(0.05, worlds, full=0.079)
    assert max(found["the audit's gap"], found["the gaps at an equal mix"]) <= highest, found
    assert found["either"] <= at_most(0.0975, worlds, full=0.11), found


def test_the_published_reading_where_nothing_matters():
    worlds, replicates = scaled(100, 12), 199
    rows = [
        false_findings(metric, "cluster", worlds=worlds, replicates=replicates, published=True)
        for metric in (METRICS if FULL else METRICS[:1])
    ]
    record("confounders-published", rows, worlds=worlds, replicates=replicates)
    # Recall has no false alarms: the reading is the same, and the tests hold.
    assert rows[0]["any finding"] <= at_most(0.05, worlds, full=0.116), rows


def test_the_published_reading_favours_the_smaller_group():
    worlds, replicates = scaled(400, 6), 199
    rows = unequal_groups(worlds=worlds, replicates=replicates)
    record("confounders-unequal", rows, worlds=worlds, replicates=replicates)
    assert rows[0]["b less a"] > 0.02, rows
    assert abs(rows[1]["b less a"]) < (0.005 if FULL else 0.02), rows
    assert rows[0]["any finding"] > rows[1]["any finding"], rows


@pytest.mark.law(whole=True)
def test_the_law_can_see_what_is_left():
    """A planted effect of tone is found in nearly every world."""
    found = false_findings("recall_at_iou", "image", worlds=8, replicates=199, matters="attribute")
    assert found["any finding"] >= 0.6, found  # eight worlds


def test_counts_alike_and_causes_not_are_told_apart_by_the_role():
    """Row 10 of issue 12: a collider is no finding, the masked gap is one where it is said to be.

    The gap at an equal mix is there in both, whatever the role: the data are the same.
    """
    worlds, replicates = scaled(400, 8), 199
    asked = {
        "collider": ["unknown"], "masked": ["unknown", "before"],
        "mediated": ["unknown", "mediator"],
    }  # fmt: skip
    rows = [
        row
        for world, roles in asked.items()
        for row in claimed(world, roles, worlds=worlds, replicates=replicates)
    ]
    record("confounders-roles", rows, worlds=worlds, replicates=replicates)
    collider, masked, found, *mediated = rows
    assert collider["gap at an equal mix"] < -0.1, rows
    assert masked["gap at an equal mix"] < -0.1, rows
    most, least = at_most(0.05, worlds, full=0.065), at_least(0.95, worlds, full=0.93)
    assert max(r["a gap is found, %"] for r in (collider, masked)) <= most, rows
    assert min(r["said to be none, %"] for r in (collider, masked)) >= least, rows
    assert found["a gap is found, %"] >= (0.97 if FULL else 0.9), rows
    assert max(r["a gap is found, %"] for r in mediated) <= most, rows


MINORITIES = (
    Minority(0.99, small=60),
    Minority(0.985),
    Minority(0.97),
    Minority(0.9),
    Minority(0.7),
    Minority(0.97, small=30, large=120, photos=6, alike=0.3),
    Minority(0.97, small=60, large=240, photos=4, alike=0.3, within=True),
    Minority(0.95, gap=0.12),
    Minority(0.9, small=60, large=240, photos=4, alike=0.3, within=True, gap=0.08),
    Minority(0.9, small=60, large=240, photos=6, alike=0.3),
    Minority(0.8, small=100, large=400, photos=4, alike=0.3),
)
SURE = 1 + MINORITIES.index(Minority(0.9, small=60, large=240, photos=4, alike=0.3, within=True,
                                     gap=0.08))  # fmt: skip
"""From here the small group has mistakes in many clusters, and its own spread to go by."""


@pytest.mark.parametrize("place", range(len(MINORITIES)) if FULL else (0, 7, 9))
def test_a_small_group_that_is_flawless_by_chance_is_no_finding(place):
    world, worlds = MINORITIES[place], scaled(1000, 60)
    found = minorities(world, worlds)
    record(f"confounders-minorities-{place}", [found], worlds=worlds, replicates=199)
    assert found["judged"] == worlds, found
    assert found["held, %"] >= at_least(0.95, worlds, full=0.915), found
    if place >= SURE:
        assert found["width over replicates alone"] <= (1.035 if FULL else 1.055), found
    if world.gap:  # what is there is found as often as by replicates alone, but for two of 100
        alone = found["replicates alone: p <= .05, %"]
        assert found["p <= .05, %"] >= alone - (0.03 if FULL else 0.1), found
    else:
        assert found["p <= .05, %"] <= at_most(0.05, worlds, full=0.071), found
