"""Intervals that hold for the whole family: by hand, by another way, and with the adjusted p."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.special import xlogy

from isolux.core.info import Metric
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import DISPARITIES, check
from isolux.disparity import family as families
from isolux.disparity.disparity_table import measure_disparities
from isolux.groups.measure import measure_groups
from tests._scored import members, scored

PAIRS = ("difference", "ratio", "log_ratio", "difference_to_overall")
POINTS = Metric(
    name="points", title="Points", definition="points", unit="points", direction="higher"
)


def _measured(scores, membership, references=None, *, share=1.0, **more):
    spec = ComparisonSettings(**{"min_units": 1, "min_clusters": 1, "replicates": 300, **more})
    estimates = measure_groups(scores, membership, spec)
    return measure_disparities(estimates, spec, references, share=share)


def _shares(*right_of: tuple[int, int], **more):
    """Audit groups a, b, …, of each of which so many of so many are right."""
    values = [v for right, n in right_of for v in [1.0] * right + [0.0] * (n - right)]
    groups = [name for name, (_, n) in zip("abcdef", right_of, strict=False) for _ in range(n)]
    return _measured(scored(values), members(g=groups), **more)


def _rows(found, *kinds):
    return found.table.filter(pl.col("kind").is_in(kinds or PAIRS)).to_dicts()


def test_three_groups_by_hand():
    """Of 30, 24 and 27 of 30 right; the critical value follows from geometry.

    Three groups of one size, alike: their standardised differences are the lengths of a normal
    vector in the plane along directions 30 degrees apart (pairs, and groups beside the rest, take
    turns). The largest is R cos(t), t at most 15 degrees: P(R cos t > c) is the mean of
    exp(-c² / (2 cos² t)) over t, which is .05 at c = 2.42.
    """

    def chance(c):
        mean = quad(lambda t: np.exp(-((c / np.cos(t)) ** 2) / 2.0), 0.0, np.pi / 12)[0]
        return mean / (np.pi / 12)

    critical = brentq(lambda c: chance(c) - 0.05, 1.0, 5.0)
    assert critical == pytest.approx(2.42, abs=0.01)
    found = _shares((30, 30), (24, 30), (27, 30), replicates=20_000)
    assert found.family.tested["g", 0].critical == pytest.approx(critical, abs=0.03)
    right = {"a": 30, "b": 24, "c": 27}
    rows = {(r["group_a"], r["group_b"]): r for r in _rows(found, "difference")}
    printed = {("b", "a"): (-0.4165, -0.0200), ("c", "a"): (-0.3012, 0.0702),
               ("b", "c"): (-0.3386, 0.1383)}  # fmt: skip
    assert set(rows) == set(printed)
    for pair, row in rows.items():
        one, two = ((right[name], 30) for name in pair)
        assert (row["low"], row["high"]) == pytest.approx(_mee(one, two, 1.959964), abs=1e-6)
        by_hand = _mee(one, two, critical)
        assert by_hand == pytest.approx(printed[pair], abs=2e-4)
        assert (row["simultaneous_low"], row["simultaneous_high"]) == pytest.approx(
            by_hand, abs=3e-3
        )


def _mee(one, two, z):
    """Find the gaps at which (a - b - g)² = z² V(g), as ``stats/share_gaps`` says of rows."""
    (right, n), (other, m) = one, two
    a, b = right / n, other / m
    rarer = min((right + other) / (n + m), 1.0 - (right + other) / (n + m))

    def variance(gap):
        """Sum p (1 - p) / n, of shares between the own and the likeliest at that gap."""

        def unlikely(p):
            of = xlogy(right, p) + xlogy(n - right, 1 - p)
            return -(of + xlogy(other, p - gap) + xlogy(m - other, 1 - p + gap))

        within = max(0.0, gap) + 1e-12, min(1.0, 1.0 + gap) - 1e-12
        first = minimize_scalar(unlikely, bounds=within, options={"xatol": 1e-12}).x
        own = ((a, first, n), (b, first - gap, m))
        shares = [((k * rarer * x + 40.0 * y) / (k * rarer + 40.0), k) for x, y, k in own]
        return sum(p * (1 - p) / k for p, k in shares)

    def excess(gap):
        return abs(a - b - gap) - z * np.sqrt(variance(gap))

    return brentq(excess, a - b - 0.6, a - b), brentq(excess, a - b, a - b + 0.6)


def _subjects(n, photos):
    return [f"s{k // photos}" for k in range(n)]


def _worlds():
    """Yield audits of shares and numbers, of people in one group and in several, with clusters."""
    rng = np.random.default_rng(5)
    sizes = {"a": 40, "b": 80, "c": 120, "d": 160}
    groups = [g for g, n in sizes.items() for _ in range(n)]
    at = np.repeat(range(4), list(sizes.values()))
    for seed in range(8):
        rates = rng.choice([0.7, 0.8, 0.85, 0.9, 0.97], 4)[at]
        right = (rng.random(400) < rates).astype(float)
        subjects = _subjects(400, 1 + seed % 4)
        light = rng.choice(["x", "y", "z"], 400).tolist()
        yield _measured(scored(right, subjects), members(g=groups, light=light), seed=seed)
        numbers = scored(rng.gamma(2.0, 3.0 * rates), subjects, metric=POINTS)
        yield _measured(numbers, members(g=groups, light=light), seed=seed)
        both = [[g, "e"] if k % 3 else [g] for k, g in enumerate(groups)]
        yield _measured(scored(right, subjects), members(g=both), seed=seed, share=0.8)
        yield _measured(
            scored(right, subjects), members(g=groups), {"g": "d"}, seed=seed, level=0.9
        )


def test_the_adjusted_p_and_the_interval_are_one_statement():
    seen = set()
    for found, alpha in zip(_worlds(), [0.05, 0.05, 0.05, 0.1] * 8, strict=True):
        for row in _rows(found):
            low, high = row["simultaneous_low"], row["simultaneous_high"]
            if row["p_adjusted"] is None or low is None:
                continue
            # MOVER of logarithms is another interval than MOVER: only shares' ratios must agree.
            if row["kind"] in ("ratio", "log_ratio") and not row["method"].endswith("of the pair"):
                continue
            nothing = 1.0 if row["kind"] == "ratio" else 0.0
            outside = low > nothing or high < nothing
            assert outside == (row["p_adjusted"] <= alpha), row
            assert low <= row["low"] <= row["high"] <= high
            seen.add((row["kind"], row["method"], outside))
    assert {(kind, outside) for kind, _, outside in seen} >= {
        (kind, outside) for kind in PAIRS for outside in (True, False)
    }
    assert len({method for _, method, _ in seen}) == 3


def test_deviates_next_to_the_critical_value_are_not_interpolated():
    """Elsewhere they are, a tenth apart, so that p and interval would part within 1e-4 of it."""
    rng = np.random.default_rng(2)
    numbers = scored(rng.gamma(1.0, np.repeat([1.0, 1.8], [60, 90])), metric=POINTS)
    found = _measured(numbers, members(g=["a"] * 60 + ["b"] * 90))
    tested = found.family.tested["g", 0]
    z = abs(tested.null.t[0])
    apart = tested.comparisons.compare_pairs(tested.members[:1], tested.members[1:])
    parted = 0
    for critical in np.linspace(z - 0.003, z + 0.003, 61):
        ends = apart.interval(critical)
        outside = bool(ends.low[0] > 0 or ends.high[0] < 0)
        settled = families._refine_z_near_critical(tested, ComparisonSettings(), critical)
        assert (abs(settled.null.t[0]) > critical) == outside
        parted += (z > critical) != outside
    assert parted, "the test must see what interpolation does"


@pytest.mark.parametrize(
    "named",
    [
        {"correction": "holm"}, {"correction": "bonferroni"}, {"correction": "bh"},
        {"correction": "none"}, {"interval": "percentile"}, {"interval": "wilson"},
    ],
)  # fmt: skip
def test_without_a_value_that_p_comes_from_there_is_none(named):
    rows = _rows(_shares((30, 40), (20, 40), (36, 40), **named))
    assert all(r["low"] is not None for r in rows if r["kind"] != "ratio")
    assert {r["simultaneous_low"] for r in rows} == {r["simultaneous_high"] for r in rows} == {None}


def test_whole_attributes_have_none_and_no_row_has_more_than_its_own():
    found = _shares((30, 40), (0, 40), (40, 40), (40, 40))
    rows = found.table.to_dicts()
    assert all(r["simultaneous_low"] is None for r in rows if r["kind"] not in PAIRS)
    for row in rows:
        if row["low"] is None:
            assert row["simultaneous_low"] is None
    flawless = next(r for r in rows if (r["group_a"], r["group_b"]) == ("c", "d"))
    assert flawless["p_adjusted"] is None, "nothing varies: no test"
    assert flawless["simultaneous_low"] < flawless["low"] < 0 < flawless["high"]


def test_everyone_else_times_their_share():
    found = _shares((30, 40), (20, 40), (36, 120))
    tested = found.family.tested["g", 0]
    for k, name in enumerate("abc"):
        ends = tested.comparisons.compare_with_complement(tested.members[k : k + 1]).interval(
            tested.critical
        )
        others = 1.0 - [40, 40, 120][k] / 200
        row = next(r for r in _rows(found, "difference_to_overall") if r["group_a"] == name)
        assert row["simultaneous_low"] == pytest.approx(others * ends.low.item())
        assert row["simultaneous_high"] == pytest.approx(others * ends.high.item())


def test_a_run_of_before_has_none():
    table = _shares((30, 40), (20, 40)).table
    before = table.drop("simultaneous_low", "simultaneous_high")
    assert check(before, DISPARITIES)["simultaneous_low"].null_count() == table.height
