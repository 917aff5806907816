"""Rare people who are wholly wrong: what it costs, and why no mark that looks at answers helps.

Nothing differs between a group of few people with many photos, some of whom are wholly right or
wholly wrong, and 300 people with eight independent photos. Where too few were drawn to show one who
is wholly wrong, the small group looks better than it is.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.laws._cells import Z, apart
from tests.laws._figures import record, scaled
from tests.laws._grid import _rates

pytestmark = pytest.mark.law

CELLS = [  # people, photos each, rate, share who are wholly right or wrong, correlation of others
    (20, 40, 0.9, 0.3, 0.0), (20, 40, 0.95, 0.3, 0.0), (60, 20, 0.9, 0.2, 0.0),
    (60, 20, 0.95, 0.2, 0.0), (100, 8, 0.95, 0.2, 0.0), (60, 8, 0.9, 0.0, 0.6),
    (30, 8, 0.9, 0.0, 0.3), (20, 40, 0.9, 0.0, 0.0),
]  # fmt: skip
_OTHERS, _PHOTOS = 300, 8


def _draw(cell, worlds: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw photos and right ones: ``[w, 2, clusters]``."""
    people, photos, rate, whole, icc = cell
    rng = np.random.default_rng([people, photos, int(100 * rate), int(10 * whole), int(10 * icc)])
    shape = worlds, 2, people + _OTHERS
    n, right = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    p = _rates(rng, rate, np.full((worlds, people), icc))
    p = np.where(rng.random(p.shape) < whole, rng.random(p.shape) < rate, p)
    n[:, 0, :people], n[:, 1, people:] = photos, _PHOTOS
    right[:, 0, :people] = rng.binomial(photos, p)
    right[:, 1, people:] = rng.binomial(_PHOTOS, rate, (worlds, _OTHERS))
    return n, right


def _of_one_answer(photos: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Tell whether more of the first group's people have one answer alone than chance would: [w].

    The best mark that we found of those that look at answers: two standard errors above what
    independent photos would give.
    """
    n, r = photos[:, 0], right[:, 0]
    p = (r.sum(axis=1) / n.sum(axis=1))[:, None]
    expected = np.where(n > 0, p**n + (1.0 - p) ** n, 0.0)
    seen = (((r == 0) | (r == n)) & (n > 0)).sum(axis=1)
    error = np.sqrt((expected * (1.0 - expected)).sum(axis=1) + 0.25)
    return (seen - expected.sum(axis=1)) / error > 2.0


def _share(held: np.ndarray, at: np.ndarray) -> float | None:
    return float(held[at].mean()) if at.sum() > 20 else None


@pytest.mark.parametrize("k", range(len(CELLS)))
def test_rows_without_a_sign_of_it_hold_no_more(k):
    people, photos, rate, whole, icc = CELLS[k]
    n, right = _draw(CELLS[k], worlds := scaled(2000, 300))
    found = apart(n, right)
    claims = (ends := found.interval(Z)).low * ends.high > 0
    own = found.group_means[0].score_interval(Z)
    held = (own.low <= rate) & (rate <= own.high)
    marked = _of_one_answer(n, right)
    row = {
        "people": people, "photos each": photos, "rate": rate, "wholly right or wrong, %": whole,
        "correlation of the others": icc, "p <= .05, %": float(claims.mean()),
        "small group held, %": float(held.mean()),
        "people of one answer stand out, %": float(marked.mean()),
        "held where they do, %": _share(held, marked),
        "held where they do not, %": _share(held, ~marked),
    }  # fmt: skip
    record(f"wholly-wrong-{k}", [row], worlds=worlds, replicates=1)
    if whole == 0.0:
        assert row["small group held, %"] >= 0.88, row
        return
    # If this fails, the worlds hold after all, or the mark would do: change the page.
    assert row["p <= .05, %"] > 0.055, row
    without = row["held where they do not, %"]
    assert without is None or without < 0.93, row
