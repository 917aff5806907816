"""Few people with many photos that are alike, beside many people with few: what tests err there."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laws._cells import Z, apart
from tests.laws._figures import record, scaled
from tests.laws._grid import _rates

pytestmark = pytest.mark.law

CELLS = [  # both groups' people, photos each and correlation
    ((30, 30, 0.5), (300, 8, 0.1)), ((30, 30, 0.3), (300, 8, 0.1)), ((40, 20, 0.3), (300, 4, 0.1)),
    ((30, 30, 0.1), (300, 8, 0.1)),
]  # fmt: skip
RATE = 0.95


def _draw(cell, worlds: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw photos and right ones: ``[w, 2, clusters]``."""
    rng = np.random.default_rng([39, *(int(100 * x) for group in cell for x in group)])
    shape = worlds, 2, sum(people for people, _, _ in cell)
    n, right = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    start = 0
    for g, (people, photos, icc) in enumerate(cell):
        own = slice(start, start := start + people)
        n[:, g, own] = photos
        rates = _rates(rng, RATE, np.full((worlds, people), icc))
        right[:, g, own] = rng.binomial(photos, rates)
    return n, right


@pytest.mark.parametrize("k", range(len(CELLS)))
def test_few_people_with_photos_that_are_alike_differ_too_often(k):
    found = apart(*_draw(CELLS[k], worlds := scaled(2000, 300)))
    ends, (few, many) = found.interval(Z), CELLS[k]
    claims = float((ends.low * ends.high > 0).mean())
    row = {"few: people": str(few[0]), "photos each": str(few[1]), "correlation": f"{few[2]:g}",
           "many: people": str(many[0]), "photos each of them": str(many[1]),
           "their correlation": f"{many[2]:g}", "p <= .05, %": claims}  # fmt: skip
    record(f"few-people-{k}", [row], worlds=worlds, replicates=1)
    assert claims <= 0.16, row
    # If this fails, the limit on the page is gone: change the page.
    assert k == len(CELLS) - 1 or claims > 0.05, row
