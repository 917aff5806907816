"""The test of two groups beside those of others: level where nothing differs, power where it does.

On the same worlds. Our promise is the level in every one of them; the price is printed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.laws._cells import worlds_of
from tests.laws._figures import FULL, record, scaled
from tests.laws._grid import Cell
from tests.laws._peers import METHODS, SLOW

pytestmark = pytest.mark.law
WORLDS = scaled(1000, 60)
CELLS = {
    "as many photos each": (Cell(rate=0.8, clusters=60), 0.2),
    "as many photos each, rate .95": (Cell(rate=0.95, clusters=200), 0.07),
    "attribute of the photo": (Cell(rate=0.8, clusters=60, where="within"), 0.09),
    "attribute of the photo, rate .95": (Cell(rate=0.95, clusters=100, where="within"), 0.05),
    "geometric": (Cell(rate=0.8, clusters=100, sizes="geometric"), 0.17),
    "lognormal": (Cell(rate=0.8, clusters=100, sizes="lognormal"), 0.25),
    "12 clusters alike within, 60 not": (
        Cell(rate=0.8, icc=0.6, clusters=72, first=12, other_icc=0.0, prevalence=1 / 6), 0.3),
    "200 clusters not alike within, 12 alike": (
        Cell(rate=0.95, icc=0.0, clusters=212, first=200, other_icc=0.6, prevalence=200 / 212),
        0.25),
    "a rare attribute near 1": (
        Cell(rate=0.99, icc=0.0, clusters=200, where="within", prevalence=0.04), 0.1),
}  # fmt: skip
"""A world in which nothing differs, and a difference to be found."""


@pytest.mark.parametrize("name", CELLS)
def test_level_and_power_beside_others(name):
    cell, apart = CELLS[name]
    rows = []
    for delta in (0.0, apart):
        drawn = worlds_of(replace(cell, delta=delta), WORLDS, seed=3)
        row = {"world": name, "differs by, points": 100 * delta}
        for method, test in METHODS.items():
            every = SLOW.get(method, 1)
            p = test(*(part[::every] for part in drawn), np.random.default_rng(5))
            row[f"{method} %"] = None if np.isnan(p).any() else float(np.mean(p <= 0.05))
        rows.append(row)
    record(f"peers-{list(CELLS).index(name)}", rows, worlds=WORLDS, replicates=399)
    assert rows[0]["ours %"] <= (0.065 if FULL else 0.14), rows
    assert rows[1]["ours %"] > rows[0]["ours %"], rows
