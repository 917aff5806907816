"""How often do the intervals of a whole family hold together, also that of the widest gap?

Two attributes of 2 to 8 groups: of the one, rates differ or do not; the other is dealt by chance.
"""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from isolux.core.spec import ComparisonSettings
from isolux.disparity.disparity_table import measure_disparities
from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized
from tests.laws._worlds import a_mean, crossed_entries, estimates_of, with_bootstrap

pytestmark = pytest.mark.law
WORLDS, REPLICATES = scaled(1000, 12), sized(499, 299)
SIZES = {2: [60, 300], 4: [40, 80, 160, 320], 8: [30, 40, 50, 60, 80, 100, 120, 160]}
DIFFER = {2: [0.8, 0.9], 4: [0.7, 0.9, 0.85, 0.9], 8: [0.7, 0.75, 0.8, 0.9, 0.9, 0.9, 0.9, 0.95]}
CELLS = [
    (groups, differ, photos, within)
    for groups, differ in itertools.product(SIZES, (False, True))
    for photos, within in ((1, False), (8, False), (8, True))
]
"""Groups, whether rates differ, photos a subject, and whether each photo is in a group of its own.

Of eight photos the answers are correlated by .3."""


def _world(groups, rates, photos, *, within, seed):
    """Draw one world: its comparisons, and what is true of each pair of groups."""
    rng = np.random.default_rng([35, groups, photos, within, seed])
    sizes = np.array(SIZES[groups])
    subjects = int(sizes.sum())
    own = np.repeat(np.arange(groups), sizes)
    shape = (subjects, photos)
    label = rng.choice(groups, shape, p=sizes / subjects) if within else own[:, None]
    label = np.broadcast_to(label, shape)
    luck = rng.random((subjects, 1))
    if photos > 1:  # a subject's photos go well or badly together: beta with a correlation of .3
        k = (1.0 - 0.3) / 0.3
        from scipy.special import betaincinv

        table = np.array([betaincinv(r * k, (1.0 - r) * k, luck[:, 0]) for r in rates])
        chance = table[label, np.arange(subjects)[:, None]]
    else:
        chance = np.array(rates)[label]
    right = rng.random(shape) < chance
    dealt = np.broadcast_to(rng.integers(0, groups, (subjects, 1)), shape)
    labels = np.stack([label, dealt])
    member = labels[:, None] == np.arange(groups)[None, :, None, None]
    counts, hits = member.sum(axis=-1), (member & right).sum(axis=-1)
    spec = ComparisonSettings(replicates=REPLICATES, seed=seed)
    entries = crossed_entries(counts, [hits])
    made = estimates_of(entries, {"a": groups, "b": groups}, (a_mean(1),))
    table = measure_disparities(with_bootstrap(made, spec), spec).table
    # Everyone is who was photographed: a group is held to them as they are mixed.
    photographed = counts[0].sum(axis=1)
    everyone = float(np.dot(rates, photographed) / photographed.sum())
    return table, {"overall": everyone, **{f"g{k}": r for k, r in enumerate(rates)}}


def _held(row, truth, sides=("simultaneous_low", "simultaneous_high")):
    gap = 0.0
    if row["attribute"] == "a":
        gap = truth[row["group_a"]] - truth[row["group_b"]]
    return row[sides[0]] - 1e-9 <= gap <= row[sides[1]] + 1e-9


@pytest.mark.parametrize(("groups", "differ", "photos", "within"), CELLS)
def test_intervals_hold_together(groups, differ, photos, within):
    rates = DIFFER[groups] if differ else [0.85] * groups
    counts = dict.fromkeys(("attribute", "family", "widest", "its own interval"), 0)
    claims = 0
    for seed in range(WORLDS):
        table, truth = _world(groups, rates, photos, within=within, seed=seed)
        kinds = ["difference", "difference_to_overall"]
        rows = table.filter(pl.col("kind").is_in(kinds)).to_dicts()
        for row in rows:
            outside = row["simultaneous_low"] > 0 or row["simultaneous_high"] < 0
            assert outside == (row["p_adjusted"] <= 0.05), row
            claims += outside
        pairs = [r for r in rows if r["kind"] == "difference" and r["attribute"] == "a"]
        widest = max(pairs, key=lambda row: abs(row["value"]))
        counts["attribute"] += all(_held(row, truth) for row in pairs)
        counts["family"] += all(_held(row, truth) for row in rows)
        counts["widest"] += _held(widest, truth)
        counts["its own interval"] += _held(widest, truth, ("low", "high"))
    share = {name: count / WORLDS for name, count in counts.items()}
    row = {
        "groups": groups, "rates differ": differ, "photos each": photos,
        "group of the": "photo" if within else "subject",
        "all pairs of the attribute, %": share["attribute"], "the family, %": share["family"],
        "the widest gap, %": share["widest"],
        "the widest gap's own interval, %": share["its own interval"],
    }  # fmt: skip
    cell = (groups, "apart" if differ else "alike", photos, row["group of the"])
    record("simultaneous-" + "-".join(map(str, cell)), [row], worlds=WORLDS, replicates=REPLICATES)
    for what in ("attribute", "family", "widest"):
        assert share[what] >= at_least(0.95, WORLDS, full=0.93), row
    assert claims or not differ
    if FULL and not differ and groups == 8:
        assert share["its own interval"] <= at_most(0.8, WORLDS, full=0.8), row
