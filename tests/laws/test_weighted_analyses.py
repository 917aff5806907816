"""Analyses of a sample: rank tests, and gaps at an equal mix, with weights and strata.

Worlds are those of ``_samples``: two groups of one rate in the population, of which a reader who
ignores weights sees another.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.analyses._survey_sample import SurveySample
from isolux.analyses.confounders.audit_tests import gap_t_interval
from isolux.analyses.confounders.effects import AdjustmentSettings, estimate_confounder_effects
from isolux.analyses.confounders.groups import ExplanatoryStrata, SensitiveAttribute
from isolux.analyses.confounders.strata import build_stratum_layout, estimate_cell_means
from isolux.stats.ranks.weighted import RankWeights, weighted_rank_test_two_groups
from isolux.stats.sampling import Strata as Drawn
from tests.laws._figures import FULL, record, scaled
from tests.laws._samples import Cell, World, draw, judged

pytestmark = pytest.mark.law
WORLDS = scaled(1000, 150)
CELLS = [
    Cell(rate=0.5, icc=0.3, clusters=60, drawn="errors"),
    Cell(rate=0.9, icc=0.0, clusters=60, drawn="noise", within=True),
    Cell(rate=0.9, icc=0.2, clusters=60),
    Cell(rate=0.97, icc=0.3, clusters=200, drawn="strata", within=True),
    Cell(rate=0.97, icc=0.2, clusters=60),
    Cell(rate=0.8, icc=0.2, clusters=200, prevalence=0.1),
]
ALL = range(len(CELLS))
FEW = [0, 2, 4]


def _worlds(cell: Cell, seed: int):
    rng = np.random.default_rng([seed, int(1000 * cell.rate), cell.clusters])
    for _ in range(WORLDS):
        world = draw(rng, cell)
        if judged(world):
            yield rng, world


def _strata(world: World) -> Drawn | None:
    return Drawn(world.stratum, np.bincount(world.stratum)) if world.stratum.max() else None


def _scores(rng, world: World) -> np.ndarray:
    """Turn right and wrong into scores in tenths that overlap."""
    return np.round(world.right * 0.3 + rng.random(len(world.right)) * 0.7, 1)


@pytest.mark.parametrize("k", ALL if FULL else FEW)
def test_weighted_ranks_claim_seldom_what_is_not_there(k):
    p = []
    for rng, world in _worlds(CELLS[k], 1):
        drawn = RankWeights(world.weight, world.cluster, _strata(world))
        sides = np.flatnonzero(world.group == 0), np.flatnonzero(world.group == 1)
        graded = weighted_rank_test_two_groups(_scores(rng, world), sides, drawn).p
        p.append((graded, weighted_rank_test_two_groups(world.right, sides, drawn).p))
    found = (np.array(p) <= 0.05).mean(axis=0)
    row = {**CELLS[k].row(), "judged": len(p), "graded scores: p <= .05, %": found[0],
           "right or wrong: p <= .05, %": found[1]}  # fmt: skip
    record(f"weighted-ranks-{k}", [row], worlds=WORLDS, replicates=1)
    assert len(p) > WORLDS / 2
    # Small: more than 15 of 150 come about once in 200 times at .05.
    assert found.max() <= (0.07 if FULL else 0.1), row


def _mixed(rng, world: World, replicates: int) -> tuple[float, float]:
    """Return the ends of the gap at an equal mix of a light that goes with the group."""
    n = len(world.right)
    light = (rng.random(n) < np.where(world.group == 0, 0.7, 0.4)).astype(np.int64)
    groups = SensitiveAttribute("tone", ("a", "b"), np.arange(n), world.group)
    layout = build_stratum_layout(
        groups, [ExplanatoryStrata(("light",), ("dim", "bright"), light, is_image_level=False)]
    )
    scored = pl.DataFrame({"unit": np.arange(n), "cluster": world.cluster, "value": world.right})
    scaled_ = world.weight / world.weight.mean()
    sampled = SurveySample(scaled_, _strata(world), is_calibrated=False)
    clusters = len(world.stratum)
    settings = replicates, int(rng.integers(1 << 30)), "multinomial"
    cells = estimate_cell_means(layout, scored, clusters, settings, sampled)
    gap = (
        estimate_confounder_effects(layout, cells, AdjustmentSettings(min_mix=5))
        .explanations[0]
        .standardised.gap
    )
    least = layout.take_groups(cells.independent_clusters).min(keepdims=True)
    ends = gap_t_interval(gap, least, 0.95)
    return float(ends.low[0]), float(ends.high[0])


@pytest.mark.parametrize("k", ALL if FULL else FEW)
def test_a_gap_at_an_equal_mix_of_a_sample_holds_what_is_there(k):
    """Light goes with the group and with nothing else, so at an equal mix nothing differs."""
    ends = np.array([_mixed(rng, world, 200) for rng, world in _worlds(CELLS[k], 2)])
    ends = ends[np.isfinite(ends).all(axis=1)]
    held = float(((ends[:, 0] <= 0) & (ends[:, 1] >= 0)).mean())
    row = {**CELLS[k].row(), "judged": len(ends), "gap at an equal mix held, %": held}
    record(f"weighted-mix-{k}", [row], worlds=WORLDS, replicates=200)
    assert len(ends) > WORLDS / 2
    assert held >= (0.925 if FULL else 0.89), row
