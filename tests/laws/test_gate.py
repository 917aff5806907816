"""What the gate's answers promise: wrong passes, wrong fails, power, and people who decide."""

from __future__ import annotations

import math

import numpy as np
import pytest

import isolux
from isolux.policy.proposal import reach_of
from tests.laws._figures import FULL, record, scaled
from tests.laws._gates import (
    World,
    answers,
    asked_for,
    draw,
    fails,
    lost_cells,
    pairs,
    passes,
    ratio_cells,
    sides,
    value_cells,
    within_cells,
    worlds_of,
)
from tests.policy._runs import accuracy, policy_of, run_of

pytestmark = pytest.mark.law

FEW, MANY = (150, 150), (400, 400)
SHAPES = ((1, 0.0), (6, 0.3))


def at_least(limit):
    return lambda photos, right: [value_cells(photos, right, limit)]


def within(margin):
    return lambda photos, right: [within_cells(photos, right, margin)]


def three_rules(photos, right):
    return [within_cells(photos, right, 0.05), value_cells(photos, right, 0.5),
            within_cells(photos, right, 0.2)]  # fmt: skip


def all_at_limits(photos, right):
    return [within_cells(photos, right, 0.05), value_cells(photos, right, 0.85),
            ratio_cells(photos, right, 0.85 / 0.9), within_cells(photos, right, 0.05)]  # fmt: skip


def lost(margin, before):
    """Draw answers of before that are as alike as answers at that rate can be."""

    def cells(photos, right):
        rng = np.random.default_rng(5)
        rate = right.sum(axis=(0, 2), keepdims=True) / photos.sum(axis=(0, 2), keepdims=True)
        wrong = photos - right
        share = np.clip((before - rate) / (1 - rate), 0, 1)
        kept = np.clip(before / rate, 0, 1)
        then = rng.binomial(right, np.broadcast_to(kept, right.shape))
        then = then + rng.binomial(wrong, np.broadcast_to(share, wrong.shape))
        return [lost_cells(photos, (then, right), margin)]

    return cells


LIMIT = [  # a world that lies exactly at the limit of one case at least, and what is asked
    *[(f"at_least {100 * rate:g} %",
       World((rate, (1 + rate) / 2), (150 // photos + 60,) * 2, photos, icc), at_least(rate))
      for rate in (0.6, 0.8, 0.9, 0.95, 0.98) for photos, icc in SHAPES],
    ("at_least 90 %, 8 groups, one at it", World((0.9, *(0.96,) * 7), (150,) * 8), at_least(0.9)),
    ("at_least 97 %, others without an error", World((1.0, 0.97, 1.0), (150,) * 3), at_least(0.97)),
    ("within 5 points", World((0.9, 0.85), MANY), within(0.05)),
    ("within 2 points", World((0.995, 0.975), MANY), within(0.02)),
    ("within 1 point", World((1.0, 0.99), MANY), within(0.01)),
    ("within 5 points", World((0.9, 0.85), FEW, 6, 0.3), within(0.05)),
    ("within 10 points", World((0.6, 0.5), (60, 60), 6, 0.3), within(0.1)),
    ("within 5 points", World((0.9, 0.85, 0.87, 0.88), (300,) * 4), within(0.05)),
    ("within 5 points", World((0.9, 0.85), (1000, 80)), within(0.05)),
    ("ratio_at_least 0.9", World((0.81, 0.9), MANY), lambda p, r: [ratio_cells(p, r, 0.9)]),
    ("lost_at_most 2 points", World((0.88, 0.88), MANY), lost(0.02, 0.9)),
    ("lost_at_most 2 points", World((0.88, 0.88), FEW, 6, 0.3), lost(0.02, 0.9)),
    ("three rules, one at its limit", World((0.9, 0.85), MANY), three_rules),
]  # fmt: skip
HOLDS = [  # worlds in which every rule just holds
    ("at_least 90 %, all at it", World((0.9,) * 4, (200,) * 4), at_least(0.9)),
    ("at_least 98 %, all at it", World((0.98,) * 4, (60,) * 4, 6, 0.3), at_least(0.98)),
    ("at_least 60 %, all at it", World((0.6,) * 6, (80,) * 6), at_least(0.6)),
    ("within 5 points", World((0.9, 0.85, 0.9, 0.85), (300,) * 4), within(0.05)),
    ("within 5 points", World((0.9, 0.85), (1000, 60)), within(0.05)),
    ("lost_at_most 2 points", World((0.88, 0.88), MANY), lost(0.02, 0.9)),
    ("four rules, all at their limits", World((0.85, 0.9), (200, 200)), all_at_limits),
    ("four rules, all at their limits", World((0.85, 0.9), (80, 80), 6, 0.3), all_at_limits),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(LIMIT)))
def test_a_policy_that_is_at_its_limit_passes_seldom(case):
    rule, world, asked = LIMIT[case]
    worlds = scaled(2000, 200)
    found = float(passes(asked(*worlds_of(world, worlds, case))).mean())
    row = {"rule": rule, "world": world.name(), "passes, %": found}
    record(f"gate-limit-{case:02}", [row], worlds=worlds, replicates=1)
    # Small: more than 19 of 200 come about once in 250 times at .05.
    assert found <= (0.065 if FULL else 0.095), row


@pytest.mark.parametrize("case", range(len(HOLDS)))
def test_a_policy_that_just_holds_fails_seldom(case):
    rule, world, asked = HOLDS[case]
    worlds = scaled(2000, 200)
    found = float(fails(asked(*worlds_of(world, worlds, 100 + case))).mean())
    row = {"rules": rule, "world": world.name(), "fails, %": found}
    record(f"gate-fails-{case:02}", [row], worlds=worlds, replicates=1)
    assert found <= (0.065 if FULL else 0.095), row


ALIKE = [
    World((0.9, 0.9), MANY), World((0.9,) * 4, (300,) * 4), World((0.97,) * 3, (300,) * 3),
    World((0.9,) * 3, (150,) * 3, 6, 0.3), World((0.9, 0.9), (1000, 120)),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(ALIKE)))
def test_what_init_proposes_is_kept_with_the_power_that_it_says(case):
    """Propose from one world as ``policy/proposal.py`` does, ask another of the same law."""
    world, worlds = ALIKE[case], scaled(2000, 200)
    first, later = (worlds_of(world, worlds, seed) for seed in (200 + case, 300 + case))
    n = len(world.rates) * (len(world.rates) - 1)
    reach = reach_of(n)
    margins = np.max(
        [np.maximum(d.interval(reach).high - (d.a - d.b), d.a - d.b - d.interval(reach).low)
         for _, _, d in pairs(*first)], axis=0,
    )  # fmt: skip
    margins = np.ceil(100 * margins - 1e-9) / 100
    kept = passes([within_cells(*later, margins)])
    floor = np.floor(100 * sides(*first)[0].alone()(reach_of(1, math.sqrt(2))).low) / 100
    above = sides(*later)[0].alone()(1.6448536).low >= floor
    row = {"world": world.name(), "within passes, %": float(kept.mean()),
           "at_least passes, %": float(above.mean())}  # fmt: skip
    record(f"gate-power-{case}", [row], worlds=worlds, replicates=1)
    assert min(row["within passes, %"], row["at_least passes, %"]) >= (0.78 if FULL else 0.7), row


def above(limit):
    return lambda photos, right: value_cells(photos, right, limit)


def closer(margin):
    return lambda photos, right: within_cells(photos, right, margin)


MORE = [  # a world whose rates are drawn around the limit, how far either way, and the rule
    ("at_least 90 %", World((0.9,), (150,)), 0.08, above(0.9)),
    ("at_least 90 %", World((0.9, 0.9), FEW), 0.08, above(0.9)),
    ("at_least 98 %", World((0.975, 0.975), FEW), 0.024, above(0.98)),
    ("at_least 80 %", World((0.85,) * 4, (120,) * 4), 0.12, above(0.8)),
    ("at_least 90 %", World((0.88, 0.88), (60, 60), 6, 0.3), 0.11, above(0.9)),
    ("within 8 points", World((0.85, 0.85), FEW), 0.12, closer(0.08)),
    ("within 10 points", World((0.85,) * 3, (200, 200, 80)), 0.12, closer(0.1)),
    ("within 8 points", World((0.85, 0.85), (80, 80), 6, 0.3), 0.12, closer(0.08)),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(MORE)) if FULL else [0, 4, 5])
def test_the_people_that_are_asked_for_decide(case):
    rule, world, spread, asked = MORE[case]
    rng, worlds, k = np.random.default_rng(400 + case), scaled(300, 30), len(MORE[case][1].rates)
    decided, times, too_many = [], [], 0
    while len(decided) < worlds:
        rates = tuple(np.clip(np.array(world.rates) + rng.uniform(-spread, spread, k), 0.4, 0.999))
        own = World(rates, world.clusters, world.photos, world.icc)
        photos, right = draw(rng, own)
        cells = asked(photos[None], right[None])
        if answers([cells])[0] != "insufficient":
            continue
        more = np.ceil(asked_for(cells, k) / world.photos).astype(int)
        if more.sum() > 20_000:  # at the limit: more than a law can draw
            too_many += 1
            continue
        times.append(more.sum() / sum(world.clusters))
        added = draw(rng, World(rates, tuple(more.tolist()), world.photos, world.icc))
        together = zip((photos, right), added, strict=True)
        both = [np.concatenate(parts, axis=1)[None] for parts in together]
        decided.append(answers([asked(*both)])[0] != "insufficient")
    share = float(np.mean(decided))
    row = {"rule": rule, "world": f"{world.name()}, ± {100 * spread:g} points", "decided, %": share,
           "times as many people more, median": float(np.median(times)),
           "left out for asking too many, %": too_many / (too_many + worlds)}  # fmt: skip
    record(f"gate-more-{case}", [row], worlds=worlds, replicates=1)
    # The aim is .8; three groups of which one is small miss it, as the page says.
    assert share >= (0.6 if FULL else 0.5), row


@pytest.mark.parametrize(("limit", "margin"), [(0.75, 0.2), (0.83, 0.13), (0.9, 0.02)])
def test_one_world_at_a_time_gives_the_same_answers(limit, margin):
    """The worlds of this page are decided, and people asked for, as ``isolux.gate`` does it."""
    photos, right = worlds_of(World((0.9, 0.82), (200, 150)), 6, 500)
    ours = answers([value_cells(photos, right, limit), within_cells(photos, right, margin)])
    rules = accuracy(at_least=f"{limit} share"), accuracy(within=f"{margin} share")
    for w, expected in enumerate(ours):
        counts = {f"g{g}": (int(right[w, g].sum()), int(photos[w, g].sum())) for g in (0, 1)}
        found = isolux.gate(run_of(counts), policy_of(*rules))
        assert found.answer == expected
        alone = isolux.gate(run_of(counts), policy_of(rules[1])).rules[0]
        if alone.answer == "insufficient":
            told = [(c.group, c.more or 0) for c in alone.cases]
            told += [(c.other, c.more_other or 0) for c in alone.cases]
            more = [max(n for name, n in told if name == f"g{g}") for g in (0, 1)]
            own = asked_for(within_cells(photos[w : w + 1], right[w : w + 1], margin), 2)
            assert more == own.tolist()
