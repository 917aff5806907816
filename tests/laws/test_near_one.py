"""Intervals of few independent rows near 0 and 1, enumerated: every answer that they can give.

The coverage of an interval falls only where the rate passes an end of one, so its smallest value
lies just inside or just outside an end (Brown, Cai and DasGupta 2001).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import bdtr
from scipy.stats import binom

from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.intervals import two_sided_normal_quantile
from isolux.stats.proportion_difference import ProportionDifferences
from tests.laws._figures import FULL, record

pytestmark = pytest.mark.law(whole=True)

SIZES = range(20, 2001) if FULL else (20, 21, 25, 30, 38, 50, 51, 75, 87, 100, 250, 400, 1000, 2000)
LEAST = {0.9: 0.86, 0.95: 0.93, 0.99: 0.985}
"""Errors of at most 1.5 times those of the level."""


def _means(right: np.ndarray, n: float, pairs: float = 0.0) -> ClusterMeans:
    """Reduce n independent rows, of which ``pairs`` clusters have two that are not alike."""
    one, p = np.ones(len(right)), right / n
    size = (n + 2.0 * pairs) / n * one
    return ClusterMeans(
        p, n * one, p * (1.0 - p) / (n - 1.0), (n - pairs - 1.0) * one, size,
        np.minimum(right, n - right), 0.0,
    )  # fmt: skip


def _smallest_coverage(n: int, z: float) -> tuple[float, float]:
    """Return the smallest coverage of n rows, and the rate at which it is found."""
    ends = _means(np.arange(n + 1.0), n).score_interval(z)
    assert (np.diff(ends.low) > 0).all()
    assert (np.diff(ends.high) > 0).all()
    rates = np.concatenate([ends.low, ends.high])
    rates = np.concatenate([rates * (1.0 - 1e-10), rates * (1.0 + 1e-10)])
    rates = rates[(rates > 0.0) & (rates < 1.0)]
    fewest = np.searchsorted(ends.high, rates, "left")  # the first whose interval reaches the rate
    most = np.searchsorted(ends.low, rates, "right") - 1
    below = np.where(fewest > 0, bdtr(np.maximum(fewest - 1, 0), n, rates), 0.0)
    held = bdtr(most, n, rates) - below
    return float(held.min()), float(rates[held.argmin()])


@pytest.mark.parametrize("level", LEAST)
def test_independent_rows_hold_at_every_rate(level):
    z = two_sided_normal_quantile(level)
    found = [(*_smallest_coverage(n, z), n) for n in SIZES]
    held, rate, n = min(found)
    row = {"level": f"{level:g}", "smallest coverage, %": held, "at rate": rate,
           "of rows": str(n)}  # fmt: skip
    record(f"near-one-{level}", [row], worlds=len(SIZES), replicates=1)
    assert held >= LEAST[level], row


def test_that_is_bought_with_less_than_a_tenth_of_the_width():
    """At every rate, over all answers, beside Wilson's interval written out."""
    z, rates = two_sided_normal_quantile(0.95), np.linspace(0.5, 0.9999, 200)
    rows = []
    for n in (20, 50, 100, 400, 2000):
        right = np.arange(n + 1.0)
        ends, p = _means(right, n).score_interval(z), right / n
        wilson = 2 * z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        chances = binom.pmf(right[:, None], n, rates)
        ratio = ((ends.high - ends.low) @ chances) / (wilson @ chances)
        rows.append({"rows": str(n), "width over Wilson's, at most": ratio.max(),
                     "at rate": rates[ratio.argmax()]})  # fmt: skip
    record("near-one-width", rows, worlds=len(rows), replicates=1)
    assert max(row["width over Wilson's, at most"] for row in rows) <= 1.1, rows


@pytest.mark.parametrize("errors", [0, 1, 2, 5, 20])
def test_a_cluster_of_two_among_singles_moves_no_end_far(errors):
    """200 rows, two of them in one cluster: 1 % larger clusters, so an end moves about as far."""
    right = np.array([200.0 - errors])
    alone, pair = (_means(right, 200.0, pairs).score_interval(1.96) for pairs in (0.0, 1.0))
    width = (alone.high - alone.low).item()
    assert abs(pair.low - alone.low).item() <= 0.02 * width
    assert abs(pair.high - alone.high).item() <= 0.02 * width


def test_ends_reach_farther_for_a_higher_level_and_start_at_the_rate():
    right = np.array([0.0, 0.4, 1.0, 7.0, 25.0, 49.0, 50.0])
    ends = _means(right, 50.0).score_interval(np.linspace(0.01, 8.0, 400)[:, None])
    assert (np.diff(ends.low, axis=0) <= 0).all()
    assert (np.diff(ends.high, axis=0) >= 0).all()
    assert np.abs(ends.high[0] - ends.low[0]).max() < 0.002


@pytest.mark.parametrize("n", [50, 100])
def test_differences_of_equal_groups_hold_near_one(n):
    """Every answer of two groups of n people, at rates from .8 to .998."""
    a, b = (x.ravel() / n for x in np.indices((n + 1, n + 1)).astype(float))
    rows, far = np.full(len(a), float(n)), np.full(len(a), np.inf)
    parts = 1.0 / rows, 1.0 / rows, 0.0 * rows
    pairs = ProportionDifferences(a, b, (rows, rows), parts, parts, far, far)
    ends = pairs.interval(two_sided_normal_quantile(0.95))
    chances = {p: binom.pmf(np.arange(n + 1), n, p)
               for p in (0.8, 0.9, 0.95, 0.98, 0.985, 0.99, 0.995, 0.998)}  # fmt: skip
    cells = [
        {"people": f"{n} and {n}", "rates": f"{p:g} and {q:g}",
         "held, %": float(np.outer(x, y).ravel() @ (
             (ends.low <= p - q + 1e-12) & (p - q - 1e-12 <= ends.high)))}
        for p, x in chances.items() for q, y in chances.items() if p >= q
    ]  # fmt: skip
    least = min(cells, key=lambda row: row["held, %"])
    alike = [row for row in cells if row["rates"] == "0.99 and 0.99"]
    record(f"near-one-differences-{n}", [least, *alike], worlds=len(cells), replicates=1)
    assert least["held, %"] >= 0.93, least
