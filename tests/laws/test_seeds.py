"""Models of several seeds: their intervals hold the rate over people and over seeds."""

from __future__ import annotations

import pytest

from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized
from tests.laws._seeds import Cell, held

pytestmark = pytest.mark.law
WORLDS = scaled(100, 24)
CELLS = [
    # Seeds: none differ, as much as people do (an SD of about .03), four times as much.
    *[Cell(runs=(k, k), vary=False) for k in (2, 3, 5)],
    *[Cell(runs=(k, k)) for k in (2, 3, 5)],
    *[Cell(runs=(k, k), spoilt=0.4) for k in (2, 3, 5)],
    Cell(runs=(5, 2)),
    Cell(runs=(3, 1), vary=False),
    Cell(runs=(3, 3), smaller=0.2, clusters=90),
    Cell(runs=(2, 2), spoilt=0.3, smaller=0.2, clusters=90),
    Cell(runs=(2, 2), weights=True),
    Cell(runs=(3, 3), spoilt=0.3, weights=True, clusters=90),
    Cell(runs=(3, 3), weights=True, smaller=0.2, clusters=90),
    # Hardly a mistake: 240 people, 5 to 10 wrong answers, seeds that hardly differ.
    Cell(runs=(3, 3), rate=0.98, spoilt=0.01, vary=False),
    Cell(runs=(3, 3), rate=0.98, spoilt=0.01, icc=0.02, vary=False, smaller=0.2, clusters=90),
]


@pytest.mark.parametrize("k", range(len(CELLS)) if FULL else [3])
def test_a_mean_over_seeds_is_as_sure_as_its_interval_says(k):
    row = held(CELLS[k], WORLDS, sized(200, 100))
    record(f"seeds-{k:02}", [row], worlds=WORLDS, replicates=sized(200, 100))
    # 200 worlds at .95 have a standard error of .015.
    for name, share in row.items():
        if name.endswith("held, %"):
            assert share >= at_least(0.95, WORLDS, full=0.885), (name, row)
    assert row["difference: p <= .05, %"] <= at_most(0.05, WORLDS, full=0.116), row
