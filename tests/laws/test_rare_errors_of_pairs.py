"""Two groups of independent rows with few errors, every answer counted: error, coverage, power."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom, hypergeom, norm

from isolux.stats.proportion_difference import ProportionDifferences
from tests.laws._figures import FULL, record

pytestmark = pytest.mark.law(whole=True)
SIZES = ((20, 50), (50, 50), (50, 200), (20, 5_000), (50, 5_000), *(
    ((20, 1_000), (50, 1_000), (100, 200), (100, 1_000), (200, 200), (200, 1_000), (200, 5_000))
    if FULL else ()))  # fmt: skip
RATES = (0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
Z_95, Z_FAMILY = 1.959963984540054, 3.0


def _answers(p: float, q: float, n: int, m: int):
    """List the answers that two groups can give, as differences, and the chance of each."""
    first, second = binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(m + 1), m, q)
    i, j = np.nonzero(np.outer(first, second) > 1e-10)
    one, far = np.ones(len(i)), np.full(len(i), np.inf)
    terms = one / n, one / m, 0.0 * one
    pairs = ProportionDifferences(i / n, j / m, (n * one, m * one), terms, terms, far, far)
    return (i, j), pairs, first[i] * second[j]


def _score_z(pairs: ProportionDifferences) -> np.ndarray:
    """Return the plain score statistic (Mee 1984; Miettinen and Nurminen 1985)."""
    n, m = pairs.n_effective
    share = (n * pairs.a + m * pairs.b) / (n + m)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (pairs.a - pairs.b) / np.sqrt(share * (1 - share) * (1 / n + 1 / m))
    return np.nan_to_num(z)


def _mid_p_z(i: np.ndarray, j: np.ndarray, n: int, m: int) -> np.ndarray:
    """Return the normal deviate of Fisher's mid-p, given all right answers of both."""
    chance = hypergeom.pmf(i, n + m, i + j, n) / 2
    low, high = (hypergeom.cdf(i - 1, n + m, i + j, n), hypergeom.sf(i, n + m, i + j, n))
    return np.where(low < high, norm.ppf(low + chance), -norm.ppf(high + chance))


def _shapes():
    return [(n, m, rate) for (n, m), rate in itertools.product(SIZES, RATES)]


def test_rare_errors_are_claimed_as_often_as_asked_on_each_side():
    rows = []
    for n, m, rate in _shapes():
        (i, j), pairs, chance = _answers(rate, rate, n, m)
        ways = {"isolux": pairs.z_statistics(), "score": _score_z(pairs),
                "mid-p": _mid_p_z(i, j, n, m)}  # fmt: skip
        both = {name: float(chance[np.abs(z) > Z_95].sum()) for name, z in ways.items()}
        far = {name: max(float(chance[side * z > Z_FAMILY].sum()) for side in (1, -1))
               for name, z in ways.items()}  # fmt: skip
        rows.append((both, far))
    told = [
        {"by": name, "shapes": len(rows), "p <= .05, largest %": max(r[0][name] for r in rows),
         "one side beyond z = 3, times asked": max(r[1][name] for r in rows) / norm.sf(Z_FAMILY)}
        for name in rows[0][0]
    ]  # fmt: skip
    record("rare-pairs-null", told, worlds=len(rows), replicates=1)
    assert told[0]["p <= .05, largest %"] < 0.051, told
    assert told[0]["one side beyond z = 3, times asked"] < 2.0, told
    assert told[1]["one side beyond z = 3, times asked"] > 10, "the law must see a normal tail"


def test_intervals_of_rare_errors_hold_the_difference():
    held = []
    for (n, m, rate), gap in itertools.product(_shapes(), (0.0, 0.01, -0.01, 0.04)):
        p, q = rate - max(gap, 0.0), rate + min(gap, 0.0)
        _, pairs, chance = _answers(p, q, n, m)
        inside = np.abs(pairs.z_statistics(p - q)) <= Z_95
        held.append((float(chance[inside].sum()), f"{n} and {m:,}, {p:g} and {q:g}"))
    row = {"shapes": len(held), "smallest coverage, %": min(held)[0], "people and rates":
           min(held)[1]}  # fmt: skip
    record("rare-pairs-held", [row], worlds=len(held), replicates=1)
    assert row["smallest coverage, %"] > 0.94, row


POWER = ((50, 5_000, 0.9, 0.99), (200, 5_000, 0.96, 0.99), (50, 200, 0.85, 0.97),
         (200, 5_000, 0.99, 0.96), (300, 300, 0.85, 0.92), (1_000, 3_000, 0.95, 0.97))  # fmt: skip


def test_gaps_are_found_about_as_often_as_by_mid_p():
    rows = []
    for n, m, p, q in POWER:
        (i, j), pairs, chance = _answers(p, q, n, m)
        ways = {"isolux": pairs.z_statistics(), "score": _score_z(pairs),
                "mid-p": _mid_p_z(i, j, n, m)}  # fmt: skip
        found = {f"{name}, {at}": float(chance[np.abs(z) > limit].sum())
                 for at, limit in (("p <= .05, %", Z_95), ("z > 3, %", Z_FAMILY))
                 for name, z in ways.items()}  # fmt: skip
        rows.append({"people": f"{n} and {m:,}", "rates": f"{p:g} and {q:g}", **found})
    record("rare-pairs-power", rows, worlds=len(rows), replicates=1)
    for row in rows:
        for at in ("p <= .05, %", "z > 3, %"):
            # Where the small group is better, the score asks for more than mid-p.
            least = min(row[f"mid-p, {at}"], row[f"score, {at}"])
            assert row[f"isolux, {at}"] > least - 0.035, row
