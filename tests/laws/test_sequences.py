"""Watching over time: alarms without a gap, coverage at every look, and the delay to detection.

Whole: 1,000 looks and 2,000 series; small: a few dozen, with bounds of about four standard errors.
"""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.sequential_tests import pair_group_clusters_for_gap
from tests.laws._figures import FULL, record, scaled, sized
from tests.laws._sequences import closing, covers, delay, false_alarms, paired, weighted_alarms

pytestmark = pytest.mark.law


@pytest.mark.law(whole=True)
@pytest.mark.parametrize(("a", "b"), [(6, 6), (1, 6), (10, 3), (4, 1)])
def test_looks_drawn_together_are_paired_as_each_is(a, b):
    rng = np.random.default_rng(0)
    first, second = rng.random((5, a)), rng.random((5, b))
    expected = [pair_group_clusters_for_gap(*look) for look in zip(first, second, strict=True)]
    np.testing.assert_allclose(paired(first, second), expected)


@pytest.mark.parametrize("sizes", ["equal", "uneven"])
def test_a_thousand_looks_raise_few_alarms(sizes):
    worlds, looks = scaled(2000, 40), sized(1000, 250)
    rates = (0.5, 0.9, 0.95, 0.99) if FULL else (0.5, 0.99)
    rows = [false_alarms(rate, sizes, worlds=worlds, looks=looks) for rate in rates]
    record(f"sequences-null-{sizes}", rows, worlds=worlds, replicates=1)
    for row in rows:
        assert row["any alarm, %"] <= (0.05 if FULL else 0.2), row
        # What the promise is held against: a test a day is wrong most of the time.
        assert row["any daily test below .05, %"] > (0.3 if FULL else 0.15), row


def test_clusters_kept_by_weight_raise_few_alarms():
    worlds, looks = scaled(500, 40), sized(500, 120)
    rates = (0.5, 0.9, 0.95) if FULL else (0.9,)
    rows = [weighted_alarms(rate, worlds=worlds, looks=looks) for rate in rates]
    record("sequences-weighted", rows, worlds=worlds, replicates=1)
    for row in rows:
        assert row["any alarm, %"] <= (0.05 if FULL else 0.2), row
        assert row["weights ignored: any alarm, %"] > 0.5, row


def test_a_constant_gap_is_held_at_every_look():
    worlds = scaled(300, 25)
    cells = [(0.5, 0.1), (0.9, 0.0), (0.9, 0.1), (0.99, 0.02)] if FULL else [(0.9, 0.1)]
    rows = [covers(rate, gap, worlds=worlds) for rate, gap in cells]
    record("sequences-cover", rows, worlds=worlds, replicates=1)
    for row in rows:
        assert row["leaves the gap out at any look, %"] <= (0.05 if FULL else 0.2), row
        assert row["sees a change, %"] <= (0.05 if FULL else 0.2), row


def test_a_gap_that_begins_is_found():
    worlds = scaled(100, 12)
    cells = (
        [(0.5, 0.1), (0.9, 0.05), (0.9, 0.1), (0.95, 0.05), (0.99, 0.02)] if FULL else [(0.9, 0.1)]
    )
    rows = [delay(rate, gap, worlds=worlds) for rate, gap in cells]
    record("sequences-delay", rows, worlds=worlds, replicates=1)
    for row in rows:
        assert row["alarm before it began, %"] <= (0.05 if FULL else 0.3), row
        # 100 worlds at .95: fewer than 90 have a chance below 1 in 70; 12: fewer than 9, 1 in 500.
        assert row["20 looks later: interval of when holds it, %"] >= (0.9 if FULL else 0.7), row
        assert row["of how large holds it, %"] >= (0.9 if FULL else 0.7), row
    (tenth,) = (row for row in rows if (row["rate"], row["gap"]) == (0.9, 0.1))
    assert tenth["looks to the alarm, median"] <= 40, rows


def test_a_gap_that_closed_is_said_to_be_over():
    worlds = scaled(200, 10)
    cells = [(0.5, 0.2), (0.9, 0.1), (0.9, 0.2), (0.95, 0.1)] if FULL else [(0.9, 0.2)]
    rows = [closing(rate, gap, worlds=worlds) for rate, gap in cells]
    record("sequences-closing", rows, worlds=worlds, replicates=1)
    for row in rows:
        start, now, is_open, is_over, still_open, over, start_later = list(row.values())[4:]
        assert min(start, now) >= (0.95 if FULL else 0.6), row
        assert start_later >= (0.92 if FULL else 0.6), row
        assert is_open >= (0.9 if FULL else 0.5), row
        assert is_over <= (0.03 if FULL else 0.3), row
        assert still_open <= (0.05 if FULL else 0.3), row
        assert over >= (0.65 if FULL else 0.5), row
