"""What the gate's answers promise: wrong passes, wrong fails, power, and people who decide."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

import isolux
from isolux.policy.margins import n_standard_errors_of_margin
from isolux.stats.proportion_difference import ProportionDifferences
from tests.laws._figures import FULL, record, scaled
from tests.laws._gates import (
    LEVEL,
    World,
    Z,
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


EXACT_SIZES = (
    (50, 70), (150, 150), (50, 200), (200, 1000), (50, 1000),
    *(((50, 50), (50, 60), (50, 100), (50, 150), (50, 500), (60, 600), (80, 80), (80, 1000),
       (100, 100), (100, 150), (100, 1000), (400, 400), (700, 1000)) if FULL else ()),
)  # fmt: skip
EXACT_SHARES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99)
EXACT_MARGINS = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
EXACT = (
    "one direction passes, %", "within passes, %", "one direction fails, %", "within fails, %",
    "by the plain bound passes, %", "by the plain bound fails, %", "alike: passes, %",
    "alike, by the plain bound: passes, %",
)  # fmt: skip
PLAIN = EXACT[4:6]


def exact(p, q, n, m):
    """Chances of wrong answers, of all answers that two groups of independent people can give.

    The first's rate lies exactly at the margin from the second's. One direction passes where the
    bound of the gap at 1.645 lies inside, and fails where it lies outside; ``max_difference``
    asks both directions, and fails at 1.96: of two directions each has half of 5 %. Then what
    one direction answers by the plain bound, and how often it passes by either where groups do
    not differ.
    """
    first, second = (binom.pmf(np.arange(k + 1), k, share) for k, share in ((n, p), (m, q)))
    x, y = np.arange(n + 1), np.flatnonzero(second > 1e-7)
    if n > 200:  # of large groups those counts that come about at either rate
        x = np.flatnonzero((first > 1e-7) | (binom.pmf(x, n, q) > 1e-7))
        x = np.arange(x[0], x[-1] + 1)
    i, j = (part.ravel() for part in np.meshgrid(x, y, indexing="ij"))
    one = np.ones(len(i))
    parts = one / n, one / m, 0.0 * one
    far = np.inf * one
    apart = ProportionDifferences(i / n, j / m, (n * one, m * one), parts, parts, far, far)
    off, inside, plain = [], [], []
    for side in (1.0, -1.0):
        gap = side * (p - q)
        off.append((apart.a - apart.b - gap) * np.sign(gap))
        inside.append(off[-1] < -apart.half_width(Z, gap, conservative=True))
        plain.append(off[-1] < -apart.half_width(Z, gap))
    over, plainly = (
        off[0] > apart.half_width(Z, p - q, conservative=careful) for careful in (True, False)
    )
    both = off[0] > apart.half_width(float(ndtri(1 - (1 - LEVEL) / 2)), p - q, conservative=True)
    chance = first[i] * second[j]
    alike = binom.pmf(x, n, q)[i - x[0]] * second[j]
    asked = inside[0], inside[0] & inside[1], over, both, plain[0], plainly
    found = [float(chance[of].sum()) for of in asked]
    return (*found, *(float(alike[of].sum()) for of in (inside[0], plain[0])))


@pytest.mark.law(whole=True)
def test_wrong_answers_of_a_margin_are_counted_exactly():
    """Every answer of two groups counted, no simulation: the shapes in which 5 % are exceeded."""
    rows = []
    for n, m in EXACT_SIZES:
        for share, margin in itertools.product(EXACT_SHARES, EXACT_MARGINS):
            if share + margin >= 1.0 - 1e-9:
                continue
            low, high = share, round(share + margin, 4)
            for p, q in ((high, low), (low, high)) if n != m else ((high, low),):
                rows.append({"people": f"{n:,} and {m:,}", "rates": f"{p:g} and {q:g}",
                             "margin, points": 100 * margin,
                             **dict(zip(EXACT, exact(p, q, n, m), strict=True))})  # fmt: skip
    found = {name: np.array([row[name] for row in rows]) for name in EXACT}
    told = [{"what": name.removesuffix(", %"), "shapes": len(rows), "mean, %": own.mean(),
             "shapes above 5, %": float((own > 0.05).mean()), "largest, %": own.max()}
            for name, own in found.items() if not name.startswith("alike")]  # fmt: skip
    alike, plainly = (found[name] for name in EXACT[-2:])
    fair = (plainly > 0.1) & (plainly < 0.97)
    cost = {"shapes": int(fair.sum()), "groups alike: passes, mean %": alike[fair].mean(),
            "by the plain bound, mean %": plainly[fair].mean(),
            "largest loss, points": 100 * (plainly - alike)[fair].max()}  # fmt: skip
    worst = {name: sorted(rows, key=lambda row: -row[name])[:6] for name in PLAIN}
    shown = list({id(row): row for name in PLAIN for row in worst[name]}.values())
    record("gate-exact", told, worlds=len(rows), replicates=1)
    record("gate-exact-cost", [cost], worlds=len(rows), replicates=1)
    near = [{k: row[k] for k in row if not k.startswith("alike")} for row in shown]
    record("gate-exact-near", near, worlds=len(rows), replicates=1)
    for name in EXACT[:4]:
        at_limit = max(rows, key=lambda row: row[name])
        assert at_limit[name] <= 0.05, at_limit
    for name in PLAIN:
        assert found[name].max() > 0.055, "the law must see a bound that does not hold"
    assert alike[fair].mean() > plainly[fair].mean() - 0.05, cost


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
    ("max_drop 2 points", World((0.88, 0.88), MANY), lost(0.02, 0.9)),
    ("max_drop 2 points", World((0.88, 0.88), FEW, 6, 0.3), lost(0.02, 0.9)),
    ("three rules, one at its limit", World((0.9, 0.85), MANY), three_rules),
]  # fmt: skip
HOLDS = [  # worlds in which every rule just holds
    ("at_least 90 %, all at it", World((0.9,) * 4, (200,) * 4), at_least(0.9)),
    ("at_least 98 %, all at it", World((0.98,) * 4, (60,) * 4, 6, 0.3), at_least(0.98)),
    ("at_least 60 %, all at it", World((0.6,) * 6, (80,) * 6), at_least(0.6)),
    ("within 5 points", World((0.9, 0.85, 0.9, 0.85), (300,) * 4), within(0.05)),
    ("within 5 points", World((0.9, 0.85), (1000, 60)), within(0.05)),
    ("max_drop 2 points", World((0.88, 0.88), MANY), lost(0.02, 0.9)),
    ("four rules, all at their limits", World((0.85, 0.9), (200, 200)), all_at_limits),
    ("four rules, all at their limits", World((0.85, 0.9), (80, 80), 6, 0.3), all_at_limits),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(LIMIT)))
def test_a_policy_that_is_at_its_limit_passes_seldom(case):
    rule, world, asked = LIMIT[case]
    worlds = scaled(1000, 200)
    found = float(passes(asked(*worlds_of(world, worlds, case))).mean())
    row = {"rule": rule, "world": world.name(), "passes, %": found}
    record(f"gate-limit-{case:02}", [row], worlds=worlds, replicates=1)
    # Small: more than 19 of 200 come about once in 250 times at .05.
    assert found <= (0.071 if FULL else 0.095), row


@pytest.mark.parametrize("case", range(len(HOLDS)))
def test_a_policy_that_just_holds_fails_seldom(case):
    rule, world, asked = HOLDS[case]
    worlds = scaled(1000, 200)
    found = float(fails(asked(*worlds_of(world, worlds, 100 + case))).mean())
    row = {"rules": rule, "world": world.name(), "fails, %": found}
    record(f"gate-fails-{case:02}", [row], worlds=worlds, replicates=1)
    assert found <= (0.071 if FULL else 0.095), row


ALIKE = [
    World((0.9, 0.9), MANY), World((0.9,) * 4, (300,) * 4), World((0.97,) * 3, (300,) * 3),
    World((0.9,) * 3, (150,) * 3, 6, 0.3), World((0.9, 0.9), (1000, 120)),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(ALIKE)))
def test_what_init_proposes_is_kept_with_the_power_that_it_says(case):
    """Propose from one world as ``policy/proposal.py`` does, ask another of the same law."""
    world, worlds = ALIKE[case], scaled(1000, 200)
    first, later = (worlds_of(world, worlds, seed) for seed in (200 + case, 300 + case))
    n = len(world.rates) * (len(world.rates) - 1)
    reach = n_standard_errors_of_margin(n)
    margins = np.max(
        [np.maximum(d.interval(reach).high - (d.a - d.b), d.a - d.b - d.interval(reach).low)
         for _, _, d in pairs(*first)], axis=0,
    )  # fmt: skip
    margins = np.ceil(100 * margins - 1e-9) / 100
    kept = passes([within_cells(*later, margins)])
    floor = (
        np.floor(
            100
            * sides(*first)[0]
            .one_sample_intervals()(n_standard_errors_of_margin(1, math.sqrt(2)))
            .low
        )
        / 100
    )
    above = sides(*later)[0].one_sample_intervals()(1.6448536).low >= floor
    row = {"world": world.name(), "within passes, %": float(kept.mean()),
           "at_least passes, %": float(above.mean())}  # fmt: skip
    record(f"gate-power-{case}", [row], worlds=worlds, replicates=1)
    assert min(row["within passes, %"], row["at_least passes, %"]) >= (0.77 if FULL else 0.7), row


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
    # As the fourth and the seventh, but with truths that may lie far beyond the limit, too.
    ("at_least 80 %", World((0.8,) * 4, (120,) * 4), 0.19, above(0.8)),
    ("within 10 points", World((0.7,) * 3, (200, 200, 80)), 0.3, closer(0.1)),
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
    # The aim is .8; groups that cannot be far below the limit miss it, as the page says.
    least = 0.6 if case in (3, 6) else 0.73
    assert share >= (least if FULL else 0.5), row


@pytest.mark.law(whole=True)
@pytest.mark.parametrize(("limit", "margin"), [(0.75, 0.2), (0.83, 0.13), (0.9, 0.02)])
def test_one_world_at_a_time_gives_the_same_answers(limit, margin):
    """The worlds of this page are decided, and people asked for, as ``isolux.gate`` does it."""
    photos, right = worlds_of(World((0.9, 0.82), (200, 150)), 6, 500)
    ours = answers([value_cells(photos, right, limit), within_cells(photos, right, margin)])
    rules = accuracy(at_least=f"{limit} share"), accuracy(max_difference=f"{margin} share")
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
