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
from tests.laws._peers import METHODS, OF_SUBJECTS, SLOW

pytestmark = pytest.mark.law
WORLDS = scaled(2000, 80)
HOLDS, NEAR = 0.065, 0.05
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


UNMARKED = [name for name in CELLS if not name.startswith("12 clusters")]
"""Of the other, 12 clusters alike within, every method errs; its rows are `few clusters`."""


def _row(name, delta, drawn):
    row = {"world": name, "differs by, points": 100 * delta}
    for method, test in METHODS.items():
        every = SLOW.get(method, 1)
        p = test(*(part[::every] for part in drawn), np.random.default_rng(5))
        row[f"{method} %"] = None if np.isnan(p).any() else float(np.mean(p <= 0.05))
    return row


@pytest.mark.parametrize("name", CELLS)
def test_level_and_power_beside_others(name):
    cell, apart = CELLS[name]
    rows = [
        _row(name, delta, worlds_of(replace(cell, delta=delta), WORLDS, seed=3))
        for delta in (0.0, apart)
    ]
    record(f"peers-{list(CELLS).index(name):02d}", rows, worlds=WORLDS, replicates=399)
    null, found = ({m: row[f"{m} %"] for m in METHODS} for row in rows)
    if name in UNMARKED:
        assert null["ours"] <= (HOLDS if FULL else 0.15), rows
    holding = [
        found[m]
        for m in METHODS
        if m not in OF_SUBJECTS and null[m] is not None and null[m] <= HOLDS
    ]
    assert found["ours"] >= max(holding) - (NEAR + 0.01 if FULL else 0.2), rows


def _large_are_easier(rng, worlds):
    """Photos of both groups are right alike; a subject's mean is lower in the first group."""
    n = np.broadcast_to([2, 14] * 30 + [8] * 60, (worlds, 120))
    p = np.where(n == 2, 0.6, np.where(n == 14, 0.9, (2 * 0.6 + 14 * 0.9) / 16))
    return _alike(rng, n, p, np.arange(120) < 60)


def _hard_subjects_wear_it(rng, worlds):
    """Photos of both kinds are right alike; of one subject those of the first kind more often."""
    hard = np.broadcast_to(np.arange(100) % 2 == 0, (worlds, 100))
    n = np.full((worlds, 100), 8)
    in_a = rng.binomial(n, np.where(hard, 0.75, 0.25))
    photos = np.stack([in_a, n - in_a], axis=1)
    p = _drawn(rng, np.where(hard, 0.7, 0.85))
    # (.25 × .85 + .75 × .7) (1 - c) + c = .75 × .85 + .25 × .7
    better = p + (1.0 - p) * 0.075 / 0.2625
    return photos, rng.binomial(photos, np.stack([better, p], axis=1))


def _drawn(rng, p):
    return rng.beta(p * 7 / 3, (1 - p) * 7 / 3)  # correlation .3


def _alike(rng, n, p, first):
    side = np.stack([np.broadcast_to(first, n.shape), np.broadcast_to(~first, n.shape)], axis=1)
    photos = n[:, None] * side
    return photos, rng.binomial(photos, _drawn(rng, p)[:, None])


OTHERS = {
    "large subjects are easier, photos alike": _large_are_easier,
    "hard subjects wear it, photos alike": _hard_subjects_wear_it,
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_test_of_subjects_asks_another_question_than_one_of_photos(name):
    """Photos of both groups are right alike; tests of subjects' means, or within them, claim."""
    row = _row(name, 0.0, OTHERS[name](np.random.default_rng(11), WORLDS))
    record(
        f"peers-{len(CELLS) + list(OTHERS).index(name):02d}", [row], worlds=WORLDS, replicates=399
    )
    assert row["ours %"] <= (HOLDS if FULL else 0.15), row
    if FULL or name.startswith("large"):  # few worlds are asked of the other
        assert max(row[f"{m} %"] or 0.0 for m in OF_SUBJECTS) > 0.2, row
