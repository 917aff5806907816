"""Clusters both ways: raw p and coverage, beside clusters of subjects alone."""

from __future__ import annotations

import pytest

from tests.laws._figures import FULL, record, scaled
from tests.laws._two_ways import Cell, judge

pytestmark = pytest.mark.law
WORLDS = scaled(500, 100)
CELLS = [
    Cell(rate=rate, subjects=one, photographers=two, whose=whose)
    for whose in ("subject", "photographer", "photo")
    for one, two in ((0.8, 0.8), (0.0, 1.0), (0.0, 0.0))
    for rate in (0.7, 0.95)
]
WEIGHTED = [
    Cell(rate=rate, subjects=one, photographers=two, whose=whose, weights=weights)
    for weights in ("errors", "strata", "population")
    for one, two, whose in ((0.8, 0.8, "subject"), (0.8, 0.8, "photographer"), (0.0, 1.0, "photo"),
                            (0.8, 0.0, "photo"))
    for rate in (0.7, 0.95)
]  # fmt: skip


@pytest.mark.parametrize("cell", [CELLS[0], CELLS[8]], ids=lambda cell: cell.whose)
def test_clusters_both_ways_keep_what_intervals_and_tests_promise(cell):
    row = judge(cell, WORLDS)
    assert row["p <= .05, %"] <= (0.08 if FULL else 0.12), row
    assert row["covered where ok, %"] >= (0.921 if FULL else 0.89), row


def test_photographers_who_are_not_counted_make_tests_of_them_claim_too_much():
    row = judge(CELLS[8], WORLDS, beside=1)
    assert row["subjects alone: p <= .05, %"] > 0.15, row


@pytest.mark.skipif(not FULL, reason="takes minutes")
def test_both_ways_over_spreads_and_rates():
    rows = [judge(cell, WORLDS) for cell in CELLS]
    record("two-ways", rows, worlds=WORLDS, replicates=1)
    for row in rows:
        assert row["p <= .05, %"] <= 0.085, row


@pytest.mark.parametrize("cell", WEIGHTED[::8], ids=lambda cell: cell.weights)
def test_both_ways_with_weights_keep_what_intervals_and_tests_promise(cell):
    row = judge(cell, WORLDS)
    assert row["p <= .05, %"] <= (0.08 if FULL else 0.12), row
    assert row["covered where ok, %"] >= (0.921 if FULL else 0.89), row


@pytest.mark.skipif(not FULL, reason="takes minutes")
def test_both_ways_with_weights_over_spreads_and_rates():
    rows = [judge(cell, WORLDS) for cell in WEIGHTED]
    record("two-ways-weighted", rows, worlds=WORLDS, replicates=1)
    for row in rows:
        assert row["p <= .05, %"] <= 0.085, row
        assert row["covered where ok, %"] is None or row["covered where ok, %"] >= 0.912, row
