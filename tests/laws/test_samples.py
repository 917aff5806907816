"""Samples with weights and strata: raw p and coverage, beside what ignoring them costs."""

from __future__ import annotations

import pytest

from tests.laws._figures import FULL, record, scaled
from tests.laws._samples import DRAWN, Cell, judge

pytestmark = pytest.mark.law
WORLDS = scaled(1000, 100)
FEW = [
    Cell(rate=0.5, icc=0.3, clusters=60, drawn="errors"),
    Cell(rate=0.9, icc=0.0, clusters=60, drawn="noise", within=True),
    Cell(rate=0.9, icc=0.2, clusters=60),
    Cell(rate=0.93, icc=0.0, clusters=400, photos=1, drawn="heavy"),
    Cell(rate=0.97, icc=0.3, clusters=200, drawn="strata", within=True),
    Cell(rate=0.8, icc=0.2, clusters=60, drawn="population"),
    Cell(rate=0.8, icc=0.3, clusters=60, drawn="finite"),
]
GRID = [
    Cell(rate=rate, icc=icc, clusters=clusters, drawn=drawn, within=within)
    for drawn in DRAWN
    for rate in (0.5, 0.8, 0.9, 0.97, 0.99)
    for icc in (0.0, 0.3)
    for clusters in (24, 200)
    for within in (False, True)
]


@pytest.mark.parametrize("cell", FEW, ids=lambda cell: f"{cell.drawn}-{cell.rate}")
def test_weights_and_strata_keep_what_intervals_and_tests_promise(cell):
    row = judge(cell, WORLDS)
    assert (row["p <= .05, %"] or 0.0) <= (0.065 if FULL else 0.12), row
    assert row["covered where ok, %"] >= (0.93 if FULL else 0.89), row


def test_ignoring_weights_and_clusters_is_not_harmless():
    row = judge(FEW[0], WORLDS, beside=1)
    assert row["ignored: covered, %"] < 0.2, row
    assert row["ignored: p <= .05, %"] > 0.15, row


def summed(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Sum cells up by what weights go with and the rate: means and the worst cell."""
    found = []
    for drawn in DRAWN:
        for rate in (0.5, 0.8, 0.9, 0.97, 0.99):
            own = [r for r in rows if (r["weights go with"], r["rate"]) == (drawn, rate)]
            own = [r for r in own if "p <= .05, %" in r]
            held = [r["covered where ok, %"] for r in own if r["covered where ok, %"] is not None]
            if not own:
                continue
            p = [r["p <= .05, %"] for r in own if r["p <= .05, %"] is not None]
            naive, lost = (
                [r[name] for r in own if r[name] is not None]
                for name in ("ignored: p <= .05, %", "ignored: covered, %")
            )
            found.append(
                {"weights go with": drawn, "rate": rate, "cells": len(own),
                 "p <= .05, mean %": sum(p) / len(p) if p else None,
                 "largest p <= .05, %": max(p, default=None),
                 "covered where ok, mean %": sum(held) / len(held) if held else None,
                 "smallest covered where ok, %": min(held) if held else None,
                 "ignored, a fifth of the worlds: largest p <= .05, %": max(naive, default=None),
                 "ignored, a fifth of the worlds: smallest covered, %": min(lost, default=None)}
            )  # fmt: skip
    return found


@pytest.mark.skipif(not FULL, reason="the whole grid takes half an hour")
def test_the_whole_grid_of_samples():
    rows = [judge(cell, WORLDS) for cell in GRID]
    record("samples", summed(rows), worlds=WORLDS, replicates=1)
    for row in rows:
        # Nothing is promised of groups of few clusters; there three standard errors are bounds.
        promised = row.get("covered where ok, %") is not None
        most = 0.07 if promised else 0.05 + 3.0 * (0.05 * 0.95 / max(row["judged"], 1)) ** 0.5
        assert (row.get("p <= .05, %") or 0.0) <= most, row
    for row in summed(rows):
        assert (row["smallest covered where ok, %"] or 1.0) >= 0.93, row
