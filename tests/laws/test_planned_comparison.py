"""Is the second model better? One planned test, for everyone: its errors and its power."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from isolux.core.spec import ComparisonSettings
from isolux.disparity.models import PLANNED_FAMILY, compare_models
from isolux_worlds._random_streams import beta_quantile_from_mean_and_icc
from tests.laws._figures import at_most, record, scaled, sized
from tests.laws._worlds import a_mean, crossed_entries, estimates_of, with_bootstrap

pytestmark = pytest.mark.law
WORLDS, REPLICATES = scaled(1000, 40), sized(999, 199)
GROUPS, CHANGE = 4, 0.05

# Subjects, photos each, the rate of the first model, the correlation within a subject, and the
# share of answers in which the two models share their luck.
CELLS = {
    "120 subjects, 8 photos, rate .8, correlation .3": (120, 8, 0.8, 0.3, 0.5),
    "40 subjects, 8 photos, rate .9, correlation .1": (40, 8, 0.9, 0.1, 0.5),
    "32 subjects, 8 photos, rate .8, correlation .3": (32, 8, 0.8, 0.3, 0.5),
    "800 people, rate .85, most answers alike": (800, 1, 0.85, 0.0, 0.8),
    "300 people, rate .93, answers drawn anew": (300, 1, 0.93, 0.0, 0.0),
}


def _right(rng, cell, rates):
    """Count the photos of each subject that either model has right."""
    subjects, photos, _, icc, shared = cell
    subject, luck = rng.random(subjects), rng.random((subjects, photos))
    other = np.where(rng.random(luck.shape) < shared, luck, rng.random(luck.shape))
    chances = [
        beta_quantile_from_mean_and_icc(np.array(r), icc, subject) if icc else np.full(subjects, r)
        for r in rates
    ]
    return [(drawn < chance[:, None]).sum(axis=1)
            for drawn, chance in zip((luck, other), chances, strict=True)]  # fmt: skip


def _planned(right, photos, seed):
    """Compare the models of one world, of four groups, and return the planned comparison's p."""
    subjects = len(right[0])
    member = np.repeat(np.eye(GROUPS, dtype=np.int64), subjects // GROUPS, axis=1)[None]
    entries = crossed_entries(member * photos, [member * of_model for of_model in right])
    measures = (a_mean(1, model="a"), a_mean(3, model="b"))
    spec = ComparisonSettings(replicates=REPLICATES, seed=seed)
    world = with_bootstrap(estimates_of(entries, {"a": GROUPS}, measures), spec)
    row = (
        compare_models(world, spec, ("a", "b"))
        .table.filter(family=PLANNED_FAMILY)
        .row(0, named=True)
    )
    return 1.0 if row["p_adjusted"] is None else row["p_adjusted"]


@pytest.mark.parametrize("name", CELLS)
def test_the_planned_comparison_errs_seldom_and_finds_what_a_paired_t_finds(name):
    cell, k = CELLS[name], list(CELLS).index(name)
    rng = np.random.default_rng([35, k])
    errors, found, by_t = [], [], []
    for world in range(WORLDS):
        rate = cell[2]
        errors.append(_planned(_right(rng, cell, (rate, rate)), cell[1], world) <= 0.05)
        if world % 2:
            continue
        right = _right(rng, cell, (rate, rate + CHANGE * (-1) ** (world // 2)))
        found.append(_planned(right, cell[1], world) <= 0.05)
        by_t.append(stats.ttest_1samp(right[1] - right[0], 0.0).pvalue <= 0.05)
    row = {"worlds": name, "errs, %": float(np.mean(errors)), "5 points found, %":
           float(np.mean(found)), "by a paired t, %": float(np.mean(by_t))}  # fmt: skip
    record(f"planned-{k}", [row], worlds=WORLDS, replicates=REPLICATES)
    assert row["errs, %"] <= at_most(0.05, WORLDS, full=0.06), row
    assert row["5 points found, %"] >= row["by a paired t, %"] - 0.05, row
