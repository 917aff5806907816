"""Whether the gap of two groups changed, where the mean of both models chooses the pair."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from isolux.api._tables_from_memory import to_scores
from isolux.core.spec import parse_spec
from isolux.core.tables import ATTRIBUTES, Status
from isolux.disparity.models import compare_models
from isolux.groups.measure import measure_groups
from isolux.groups.membership import build_membership
from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized

pytestmark = pytest.mark.law
WORLDS, REPLICATES = scaled(400, 15), sized(999, 199)
LEVEL = 0.95

# Subjects a group, photos each, for each group how often a photo goes from wrong to right and from
# right to wrong, and the correlation of changes within a subject.
SAME = {
    "2 groups of 30, 8 photos, 5 % each way, correlation .1": ((30, 30), 8, [(0.05, 0.05)], 0.1),
    "12 and 100, 5 photos, 10 % each way, .2": ((12, 100), 5, [(0.1, 0.1)], 0.2),
    "60 and 60 people, 10 % gained, 2 % lost": ((60, 60), 1, [(0.1, 0.02)], 0.0),
    "200 and 200 people, 2 % each way": ((200, 200), 1, [(0.02, 0.02)], 0.0),
    "60 and 1,000 people, 3 % gained": ((60, 1000), 1, [(0.03, 0.0)], 0.0),
    "40 and 40, 8 photos, 2 % gained, .5 % lost, .3": ((40, 40), 8, [(0.02, 0.005)], 0.3),
    "5 groups of 20 to 60, 5 photos, 10 % each way, .1": (
        (20, 30, 40, 50, 60), 5, [(0.1, 0.1)], 0.1,
    ),
}  # fmt: skip
PLANTED = {
    "40 and 40, 8 photos, one gains 15 points, .2": (
        (40, 40), 8, [(0.02, 0.02), (0.17, 0.02)], 0.2,
    ),
    "100 and 400 people, one loses 5 points, the other none changed": (
        (100, 400), 1, [(0.0, 0.05), (0.0, 0.0)], 0.0,
    ),
    "60 and 60 people, churn of 40 % in one, 2 % in the other": (
        (60, 60), 1, [(0.2, 0.2), (0.02, 0.0)], 0.0,
    ),
    "3 groups of 30, 5 photos, changes of 10, 0 and −10 points, .1": (
        (30, 30, 30), 5, [(0.12, 0.02), (0.05, 0.05), (0.02, 0.12)], 0.1,
    ),
}  # fmt: skip


def _drawn(rng, sizes, photos, chances, icc):
    """Draw each photo's change, alike within a subject: subject, group and change of each."""
    subjects, groups, changes = [], [], []
    for group, size in enumerate(sizes):
        gain, loss = chances[group % len(chances)]
        mean = np.array([loss, 1.0 - gain - loss, gain])
        own = np.tile(mean, (size, 1))
        if icc:
            drawn = rng.gamma(np.maximum(mean * (1.0 - icc) / icc, 1e-9), size=(size, 3))
            own = drawn / drawn.sum(axis=1, keepdims=True)
        luck = rng.random((size, photos))
        steps = own.cumsum(axis=1)[:, :2]
        changes.append((luck[:, :, None] >= steps[:, None, :]).sum(axis=2).ravel() - 1)
        groups += [f"g{group}"] * (size * photos)
        subjects.append(np.repeat(np.arange(size) + sum(sizes[:group]), photos))
    return np.concatenate(subjects), groups, np.concatenate(changes)


def _compared(rng, world, cell):
    """Let a model be right or wrong about each photo, and the next as the changes say."""
    sizes, photos, chances, icc = cell
    subject, group, change = _drawn(rng, sizes, photos, chances, icc)
    before = np.where(change == 0, rng.random(len(change)) < 0.8, change < 0).astype(float)
    ids = [f"p{k}" for k in range(len(change))]
    frame = pl.DataFrame({"unit_id": ids, "cluster_id": [f"s{k}" for k in subject]})
    both = [
        frame.with_columns(model=pl.lit(name), value=pl.Series(values))
        for name, values in (("old", before), ("new", before + change))
    ]
    scores = to_scores(pl.concat(both))
    attributes = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": ids, "attribute": "group", "value": group}
    )
    members = build_membership(
        ATTRIBUTES.conform(attributes), ["group"], units=scores.evaluated_units()
    )
    spec = parse_spec(
        {"data": "table:people.csv", "by": ["group"], "replicates": REPLICATES, "seed": world}
    )
    estimates = measure_groups(scores, members, spec.statistics)
    return compare_models(estimates, spec.comparing, ("old", "new")).table.filter(
        pl.col("kind") == "gap_change"
    )


def _held(table, cell):
    """Tell of each pair that is ``ok`` whether its interval holds the truth."""
    _, _, chances, _ = cell
    gain = [up - down for up, down in chances]
    truth = [
        gain[int(b[1:]) % len(gain)] - gain[int(a[1:]) % len(gain)]
        for a, b in table.select("group_a", "group_b").rows()
    ]
    ok = (table["status"] == Status.OK.value).to_numpy()
    low, high = table["low"].to_numpy(), table["high"].to_numpy()
    return ((low <= np.array(truth) + 1e-12) & (high >= np.array(truth) - 1e-12))[ok]


def _found_by_welch(cell):
    """Return how often Welch's t of two groups' subjects, each with its mean change, finds it."""
    rng, n = np.random.default_rng(5), cell[0][0]
    p = []
    for _ in range(WORLDS):
        subject, _, change = _drawn(rng, *cell)
        means = np.bincount(subject, change) / cell[1]
        p.append(stats.ttest_ind(means[:n], means[n:], equal_var=False).pvalue)
    return float(np.mean(np.array(p) <= 1 - LEVEL))


@pytest.mark.parametrize("name", SAME)
def test_groups_that_change_alike_are_seldom_told_apart(name):
    rng = np.random.default_rng([13, list(SAME).index(name)])
    claimed, raw, held = [], [], []
    for world in range(WORLDS):
        table = _compared(rng, world, SAME[name])
        claimed.append(bool((table["p_adjusted"] <= 1 - LEVEL).any()))
        raw += (table["p_value"].fill_null(1.0) <= 1 - LEVEL).to_list()
        held += _held(table, SAME[name]).tolist()
    row = {"worlds": name, "any claim, %": float(np.mean(claimed)), "p <= .05, %":
           float(np.mean(raw)), "covered, %": float(np.mean(held)) if held else None}  # fmt: skip
    record(f"changes-same-{list(SAME).index(name)}", [row], worlds=WORLDS, replicates=REPLICATES)
    assert row["any claim, %"] <= at_most(0.05, WORLDS, full=0.083), row
    assert not held or row["covered, %"] >= at_least(0.94, WORLDS, full=0.915), row


@pytest.mark.parametrize("name", PLANTED)
def test_a_difference_of_changes_is_held_by_its_interval(name):
    rng = np.random.default_rng([14, list(PLANTED).index(name)])
    found, held = [], []
    for world in range(WORLDS):
        table = _compared(rng, world, PLANTED[name])
        found.append(bool((table["p_adjusted"] <= 1 - LEVEL).any()))
        held += _held(table, PLANTED[name]).tolist()
    row = {"worlds": name, "covered, %": float(np.mean(held)) if held else None,
           "any found, %": float(np.mean(found))}  # fmt: skip
    if len(PLANTED[name][0]) == 2:
        row["by Welch's t, %"] = _found_by_welch(PLANTED[name])
        # It errs in 16 of 100 where 3 % of 60 and 1,000 gain, which costs the second world's power.
        assert row["any found, %"] >= row["by Welch's t, %"] - (0.2 if FULL else 0.5), row
    record(f"changes-planted-{list(PLANTED).index(name)}", [row], worlds=WORLDS,
           replicates=REPLICATES)  # fmt: skip
    assert not held or row["covered, %"] >= at_least(0.94, WORLDS, full=0.915), row
