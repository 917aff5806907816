"""The error rate is spent question by question: what is found, and what is claimed wrongly.

Each world is tested three ways on the same rows: isolux (an attribute has its own part of the error
rate), one max-T over everything that was compared, and Holm over everything.
"""

from __future__ import annotations

import numpy as np
import pytest

from isolux.core.spec import ComparisonSettings
from isolux.disparity.family import ComparisonFamily, run_family_tests
from isolux.stats.multiplicity import MaxNormalTail, adjust_p_holm
from tests.laws._figures import at_least, at_most, record, scaled, sized
from tests.laws._worlds import Estimates, a_mean, estimates_of

pytestmark = pytest.mark.law
WORLDS, REPLICATES = scaled(200, 20), sized(2000, 500)
_MANY_ATTRIBUTES = [2, 3, 10, 52, 20, 20, 20, 20, 12, 12, 10, 8, 7, 5, 4, 3]  # 208 groups


def _estimates(codes: dict[str, np.ndarray], is_right: np.ndarray) -> Estimates:
    """Lay out rows that are their own clusters; rows of the same codes and answer are one."""
    sizes = {name: int(groups.max()) + 1 for name, groups in codes.items()}
    starts = 1 + np.concatenate([[0], np.cumsum(list(sizes.values()))[:-1]])
    rows = [np.zeros(len(is_right), dtype=np.int64)]
    rows += [start + groups for start, groups in zip(starts, codes.values(), strict=True)]
    cluster = np.tile(np.arange(len(is_right)), len(rows))
    columns = np.ones((len(cluster), 3))
    columns[:, 1] = np.tile(is_right, len(rows))
    return estimates_of((columns, np.concatenate(rows), cluster), sizes, (a_mean(1),))


def _smallest_p(family: ComparisonFamily, attribute: str) -> dict[str, float]:
    """Return the smallest adjusted p of an attribute's tests, by each of the three ways."""
    tested = list(family.tested.values())
    rng = np.random.default_rng(0)
    # Attributes are nearly independent here: their replicates are paired at random.
    null_max = np.max([rng.permutation(test.null.max_z) for test in tested], axis=0)
    n_tests = sum(family.sizes.values())
    raw = np.concatenate([test.null.p_value for test in tested])
    own = family.tested[attribute, 0]
    is_own = np.concatenate([np.full(len(test.null.t), test is own) for test in tested])
    return {
        "isolux": float(np.nanmin(own.adjusted)),
        "one max-T": float(np.nanmin(MaxNormalTail(null_max, n_tests).adjust_p(own.null.t))),
        "Holm over all": float(np.nanmin(adjust_p_holm(raw)[is_own])),
    }


def _share_of_claims(p: list[dict[str, float]]) -> dict[str, float]:
    return {f"{name}, %": float(np.mean([row[name] <= 0.05 for row in p])) for name in p[0]}


def test_a_gap_of_a_small_group_is_found_among_sixteen_attributes():
    """Of 50,000 rows the 1,000 of one of three groups are 5 points below .85."""
    n_rows, worlds = 50_000, scaled(200, 2)
    spec = ComparisonSettings(replicates=sized(2000, 500))
    p = []
    for number in range(worlds):
        rng = np.random.default_rng([31, number])
        codes = {f"a{k}": rng.integers(0, n, n_rows) for k, n in enumerate(_MANY_ATTRIBUTES)}
        codes["a1"] = rng.permutation(np.repeat([0, 1, 2], [1_000, 24_000, 25_000]))
        is_right = rng.random(n_rows) < np.where(codes["a1"] == 0, 0.80, 0.85)
        family = run_family_tests(_estimates(codes, is_right), spec, {})
        p.append(_smallest_p(family, "a1"))
    row = {"world": "1,000 of 50,000 are 5 points lower; 16 attributes, 208 groups",
           "claim": "the gap is found", **_share_of_claims(p)}  # fmt: skip
    record("question-many", [row], worlds=worlds, replicates=spec.replicates)
    # Its z is 3.96 on average and must exceed 3.3: power .74, of 200 worlds with an error of .03.
    assert row["isolux, %"] >= at_least(0.74, worlds, full=0.65), row


def _two_attributes(rng, rates, n_cell: int) -> Estimates:
    """Draw people of two attributes of two groups each, with their intersection."""
    first, second = (np.repeat(x, n_cell) for x in ([0, 0, 1, 1], [0, 1, 0, 1]))
    is_right = rng.random(4 * n_cell) < np.repeat(np.ravel(rates), n_cell)
    return _estimates({"sex": first, "race": second, "sex*race": 2 * first + second}, is_right)


def test_harm_that_cancels_in_both_attributes_is_found_in_the_intersection():
    """Both attributes are equal at .85; the four intersections are 5 points above or below."""
    p, main_p = [], []
    for number in range(WORLDS):
        rng = np.random.default_rng([32, number])
        spec = ComparisonSettings(replicates=REPLICATES, seed=number)
        estimates = _two_attributes(rng, [[0.90, 0.80], [0.80, 0.90]], 400)
        family = run_family_tests(estimates, spec, {})
        p.append(_smallest_p(family, "sex*race"))
        by_attribute = [_smallest_p(family, name) for name in ("sex", "race")]
        main_p.append({way: min(row[way] for row in by_attribute) for way in by_attribute[0]})
    world = "harm cancels in both attributes, 400 people in each intersection"
    rows = [
        {"world": world, "claim": "the intersections differ", **_share_of_claims(p)},
        {"world": world, "claim": "an attribute differs (wrong)", **_share_of_claims(main_p)},
    ]
    record("question-cancelled", rows, worlds=WORLDS, replicates=REPLICATES)
    assert rows[0]["isolux, %"] >= at_least(0.9, WORLDS, full=0.9), rows
    assert rows[1]["isolux, %"] <= at_most(0.05, WORLDS, full=0.075), rows


@pytest.mark.parametrize("crossed", [False, True])
def test_an_intersection_hardly_changes_what_is_said_of_race(crossed):
    """Of seven equal groups of 1,500 one is 4 points lower; ``crossed`` adds race × sex."""
    p = []
    for number in range(WORLDS):
        rng = np.random.default_rng([33, number])
        race, sex = np.repeat(np.arange(7), 1_500), rng.integers(0, 2, 10_500)
        codes = {"race": race, "sex": sex} | ({"race*sex": 2 * race + sex} if crossed else {})
        is_right = rng.random(10_500) < np.where(race == 0, 0.86, 0.90)
        spec = ComparisonSettings(replicates=REPLICATES, seed=number)
        p.append(_smallest_p(run_family_tests(_estimates(codes, is_right), spec, {}), "race"))
    world = f"seven groups of race{', and race × sex' if crossed else ''}"
    row = {"world": world, "claim": "the gap of race is found", **_share_of_claims(p)}
    record(f"question-race-{crossed}", [row], worlds=WORLDS, replicates=REPLICATES)
    assert row["isolux, %"] >= at_least(0.8, WORLDS, full=0.8), row


RARE = ((50, 5_000, 0.99), (20, 5_000, 0.98), (200, 5_000, 0.998), (50, 200, 0.98),
        (20, 1_000, 0.95), (200, 200, 0.9))  # fmt: skip


@pytest.mark.parametrize(("small", "large", "rate"), RARE)
def test_rare_errors_of_ten_small_groups_beside_a_large_one_are_claimed_in_five_of_100(
    small, large, rate
):
    """With the score's variance alone the first of these worlds has a false claim in 9.5."""
    worlds, groups = scaled(1000, 40), np.repeat(np.arange(11), [large] + [small] * 10)
    spec, claims = ComparisonSettings(replicates=REPLICATES), 0
    for number in range(worlds):
        is_right = np.random.default_rng([34, number]).random(len(groups)) < rate
        family = run_family_tests(_estimates({"a": groups}, is_right), spec, {})
        claims += bool(np.nanmin(family.tested["a", 0].adjusted, initial=1.0) <= 0.05)
    row = {"groups": f"10 of {small} and one of {large:,}", "rate": f"{rate:g}",
           "any claim, %": claims / worlds}  # fmt: skip
    record(f"rare-small-{small}-{large}-{rate:g}", [row], worlds=worlds, replicates=REPLICATES)
    assert claims / worlds <= at_most(0.05, worlds, full=0.065), row
