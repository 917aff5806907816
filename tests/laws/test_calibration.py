"""Calibration error of groups of unlike size that a model serves alike: no finding.

Chance alone enlarges a mean of absolute gaps, most where people are few. Beside: the same values
and standard errors without what chance may have added. And how often intervals of values called
``ok`` hold the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit, ndtr

from isolux.core.spec import ComparisonSettings
from isolux.core.survey_sample import SAMPLE
from isolux.disparity.comparisons import build_comparisons
from isolux.groups.measure import measure_groups
from isolux.stats.test_inversion import two_sided_p_from_z, z_statistics_by_test_inversion
from isolux.tasks.classification import INFO
from tests._scored import binned, members, scored
from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized

pytestmark = pytest.mark.law
Z = 1.9599639845400545
METRIC = next(m for m in INFO.metrics if m.name == "calibration_error")
CONFIDENCE = {
    "any": lambda rng, n: rng.random(n),
    "middle": lambda rng, n: rng.beta(2.0, 2.0, n),
    "high": lambda rng, n: rng.beta(8.0, 1.5, n),
    "nearly 1": lambda rng, n: 1.0 - 0.06 * rng.beta(0.6, 1.2, n),
    ".2 to .9": lambda rng, n: rng.uniform(0.2, 0.9, n),
    ".2 to .7": lambda rng, n: rng.uniform(0.2, 0.7, n),
    "two bins": lambda rng, n: rng.choice([0.3, 0.57], n) + rng.uniform(-0.02, 0.02, n),
}


@dataclass(frozen=True)
class Cell:
    """Clusters of two groups, how sure the model is of each, and by how much too sure of both."""

    clusters: tuple[int, int]
    sure: tuple[str, str] = ("any", "any")
    over: float = 0.0
    less: float = 0.0
    photos: int = 1
    icc: float = 0.0
    weights: bool = False
    apart: float = 0.0

    def row(self):
        """Return what names the cell in a table."""
        return {"clusters": "/".join(map(str, self.clusters)), "photos": self.photos,
                "confidences": " and ".join(dict.fromkeys(self.sure)),
                "too sure": self.over, "less often right, %": self.less,
                "the second more": self.apart,
                "correlation": self.icc, "weights": "unequal" if self.weights else "equal",
                }  # fmt: skip


NULL = [
    Cell((60, 540)),
    Cell((60, 540), ("middle", "middle"), 0.3),
    Cell((60, 540), ("high", "high"), 0.8),
    Cell((60, 2000), ("high", "high"), 0.3),
    Cell((100, 1000), ("high", "any")),
    Cell((100, 1000), ("any", "high")),
    Cell((300, 300), ("middle", "high")),
    Cell((1000, 1000), ("high", "high"), 0.5),
    Cell((40, 360), ("any", "any"), 0.3, photos=8, icc=0.3),
    Cell((60, 200), ("high", "high"), 0.3, photos=8, icc=0.3),
    Cell((100, 900), ("high", "high"), 0.3, weights=True),
    Cell((60, 5000), ("high", "high")),
    Cell((1000, 1000), (".2 to .7", "two bins"), less=0.1),
    Cell((60, 1400), ("nearly 1", "nearly 1")),
    Cell((800, 800), (".2 to .9", ".2 to .9"), less=0.1),
]
FOUND = [
    Cell((100, 1000), ("high", "high"), 0.8, apart=-0.6),
    Cell((300, 300), ("high", "high"), 0.1, apart=0.5),
    Cell((1000, 1000), ("any", "any"), 0.1, apart=0.4),
    Cell((60, 540), ("high", "high"), 0.8, apart=-0.7),
]


def _group(rng, clusters, sure, cell, over):
    n = clusters * cell.photos
    confidence = np.clip(CONFIDENCE[sure](rng, n), 1e-3, 1.0 - 1e-3)
    chance = expit(logit(confidence) * (1.0 - over)) - cell.less
    luck = np.repeat(rng.normal(0.0, np.sqrt(cell.icc), clusters), cell.photos)
    own = luck + rng.normal(0.0, np.sqrt(1.0 - cell.icc), n)
    return confidence, ndtr(own) < chance


@cache
def truths(cell):
    """Return both groups' calibration error among very many people."""
    rng, found = np.random.default_rng(17), []
    for sure, over in zip(cell.sure, (cell.over, cell.over + cell.apart), strict=True):
        confidence = np.clip(CONFIDENCE[sure](rng, 1_000_000), 1e-3, 1.0 - 1e-3)
        gap = expit(logit(confidence) * (1.0 - over)) - cell.less - confidence
        own = np.minimum(np.ceil(confidence * 15).astype(int), 15) - 1
        found.append(np.abs(np.bincount(own, gap, 15)).sum() / len(gap))
    return np.array(found)


def asked(rng, cell, replicates, seed):
    """Measure two groups, and ask for their difference both ways: two p-values, and more."""
    overs = cell.over, cell.over + cell.apart
    parts = [_group(rng, c, s, cell, o)
             for c, s, o in zip(cell.clusters, cell.sure, overs, strict=True)]  # fmt: skip
    confidence, right = (np.concatenate(one) for one in zip(*parts, strict=True))
    clusters = np.repeat(np.arange(sum(cell.clusters)), cell.photos)
    groups = np.repeat(["a", "b"], [c * cell.photos for c in cell.clusters])
    n = len(right)
    both = {"model": "m", "unit_id": [f"u{k}" for k in range(n)],
            "cluster_id": [f"s{k}" for k in clusters]}  # fmt: skip
    table = pl.DataFrame({**both, "confidence": confidence, "correct": right})
    evidence = {"classification": binned(table)}
    if cell.weights:
        evidence[SAMPLE] = pl.DataFrame({
            **both, "weight": rng.lognormal(0.0, 0.5, n),
            "stratum": pl.Series([None] * n, dtype=pl.String),
            "stratum_clusters": pl.Series([None] * n, dtype=pl.Int64),
        })  # fmt: skip
    scores = scored(right.astype(float).tolist(), both["cluster_id"], evidence=evidence,
                    others=(METRIC,))  # fmt: skip
    spec = ComparisonSettings(replicates=replicates, seed=seed)
    found = measure_groups(scores, members(g=groups.tolist()), spec)
    (j,) = (j for j, m in enumerate(found.measures) if m.metric == METRIC.name)
    one, two = (np.array([k]) for k, g in enumerate(found.groups) if g.name in ("a", "b"))
    apart = build_comparisons(found, "g", j).compare_pairs(one, two)
    raw = found.value[one, j] - found.value[two, j]
    error = np.hypot(found.standard_error[one, j], found.standard_error[two, j])
    p = two_sided_p_from_z(z_statistics_by_test_inversion(apart, (Z,))).item()
    ends = apart.interval(Z)
    assert (p <= 0.05) == (ends.low.item() > 0 or ends.high.item() < 0)
    rows = np.concatenate([one, two])
    own = np.concatenate([found.interval.low[rows, j], found.interval.high[rows, j]])
    truth = np.subtract(*truths(cell))
    covered = ends.low.item() <= truth <= ends.high.item()
    return (
        p,
        two_sided_p_from_z(raw / error).item(),
        *own,
        *(found.status[rows, j] == "ok"),
        covered,
    )


def _row(k, cell, worlds, replicates, key):
    found = np.array([
        asked(np.random.default_rng([131, key, k, world]), cell, replicates, world)
        for world in range(worlds)
    ])  # fmt: skip
    held = (found[:, 2:4] <= truths(cell)) & (found[:, 4:6] >= truths(cell))
    ok = found[:, 6:8] > 0
    return {**cell.row(), "p <= .05, %": float((found[:, 0] <= 0.05).mean()),
            "without that, %": float((found[:, 1] <= 0.05).mean()),
            "difference covered, %": float(found[:, 8].mean()),
            "ok, %": float(ok.mean()),
            "covered where ok, %": float(held[ok].mean()) if ok.any() else None,
            }  # fmt: skip


@pytest.mark.parametrize("k", range(len(NULL)) if FULL else (0, 4))
def test_size_alone_is_no_difference_in_calibration(k):
    worlds, replicates = scaled(300, 30), sized(250, 150)
    row = _row(k, NULL[k], worlds, replicates, 0)
    record(f"calibration-null-{k}", [row], worlds=worlds, replicates=replicates)
    # Whole: three standard errors of 300 worlds.
    assert row["p <= .05, %"] <= at_most(0.05, worlds, full=0.088), row
    if row["ok, %"] > 0.25:
        assert row["covered where ok, %"] >= at_least(0.95, worlds, full=0.92), row


@pytest.mark.parametrize("k", range(len(FOUND)) if FULL else (0,))
def test_a_difference_in_calibration_is_found(k):
    worlds, replicates = scaled(300, 20), sized(250, 150)
    row = _row(k, FOUND[k], worlds, replicates, 1)
    record(f"calibration-gap-{k}", [row], worlds=worlds, replicates=replicates)
    assert row["p <= .05, %"] >= (0.15 if k == len(FOUND) - 1 else 0.5), row
