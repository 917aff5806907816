"""What `ratio_at_least` promises, counted over all answers that two groups can give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from isolux.stats.proportion_difference import ProportionDifferences
from tests.laws._figures import FULL, record
from tests.laws._gates import Z

pytestmark = pytest.mark.law(whole=True)

SIZES = (
    (50, 70), (150, 150), (50, 200), (50, 1000),
    *(((50, 50), (50, 60), (50, 100), (50, 150), (50, 500), (60, 600), (80, 80), (80, 1000),
       (100, 100), (100, 150), (100, 1000), (200, 1000), (400, 400), (700, 1000)) if FULL else ()),
)  # fmt: skip
LARGER = (0.3, 0.5, 0.9, 0.975, 0.995, *((0.05, 0.1, 0.7, 0.8, 0.95) if FULL else ()))
RATIOS = (0.5, 0.8, 0.9, 0.98, *((0.7, 0.95) if FULL else ()))
WHAT = ("passes", "fails", "by the plain bound passes", "by the plain bound fails")


def _counted(share: float, ratio: float, n: int, m: int) -> list[float]:
    """Chances of wrong answers where n people's rate is exactly ``ratio`` of that of m."""
    first, second = (binom.pmf(np.arange(k + 1), k, p) for k, p in ((n, share * ratio), (m, share)))
    x, y = np.flatnonzero(first > 1e-8), np.flatnonzero(second > 1e-8)
    i, j = (part.ravel() for part in np.meshgrid(x[x > 0], y[y > 0], indexing="ij"))
    one = np.ones(len(i))
    parts, far = (one / n, one / m, 0.0 * one), np.inf * one
    apart = ProportionDifferences(i / n, j / m, (n * one, m * one), parts, parts, far, far)
    off, chance = apart.a - ratio * apart.b, first[i] * second[j]
    found = []
    for careful in (True, False):
        reach = apart.half_width(Z, ratio=ratio, conservative=careful)
        found += [float(chance[off >= reach].sum()), float(chance[off < -reach].sum())]
    return found


def test_wrong_answers_of_a_ratio_are_counted_exactly():
    rows = []
    for (n, m), share, ratio in itertools.product(SIZES, LARGER, RATIOS):
        for few, many in ((n, m), (m, n)) if n != m else ((n, m),):
            shape = f"{few:,} and {many:,} people, {share:g} times {ratio:g} and {share:g}"
            rows.append((shape, *_counted(share, ratio, few, many)))
    told = []
    for k, what in enumerate(WHAT, start=1):
        own = np.array([row[k] for row in rows])
        told.append({"what": what, "shapes": len(rows), "mean, %": own.mean(),
                     "shapes above 5, %": float((own > 0.05).mean()), "largest, %": own.max(),
                     "where": rows[int(own.argmax())][0]})  # fmt: skip
    record("gate-exact-ratio", told, worlds=len(rows), replicates=1)
    assert max(row["largest, %"] for row in told[:2]) <= 0.05, told
    assert min(row["largest, %"] for row in told[2:]) > 0.055, "the law must see a short bound"
    assert min(row["mean, %"] for row in told[:2]) > 0.025, "the bound must not be far too long"
