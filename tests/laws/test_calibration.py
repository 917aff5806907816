"""Calibration error of groups of unlike size that a model serves alike: no finding.

Chance alone enlarges a mean of absolute gaps, most where people are few. Beside: the difference of
the raw values, by the same standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit, ndtr

from isolux.disparity.comparisons import compare_groups
from isolux.groups.measure import measure_groups
from isolux.stats.differences import deviates, two_sided
from isolux.tasks.classification import INFO
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.spec import Comparing
from tests._scored import members, scored
from tests.laws._figures import FULL, at_most, record, scaled, sized

pytestmark = pytest.mark.law
Z = 1.9599639845400545
METRIC = next(m for m in INFO.metrics if m.name == "calibration_error")
CONFIDENCE = {"any": (1.0, 1.0), "middle": (2.0, 2.0), "high": (8.0, 1.5)}


@dataclass(frozen=True)
class Cell:
    """Clusters of two groups, how sure the model is of each, and by how much too sure of both."""

    clusters: tuple[int, int]
    sure: tuple[str, str] = ("any", "any")
    over: float = 0.0
    photos: int = 1
    icc: float = 0.0
    weights: bool = False
    apart: float = 0.0

    def row(self):
        """Return what names the cell in a table."""
        return {"clusters": "/".join(map(str, self.clusters)), "photos": self.photos,
                "confidences": " and ".join(dict.fromkeys(self.sure)),
                "too sure by, %": self.over, "of the second, more": self.apart,
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
]
FOUND = [
    Cell((100, 1000), ("high", "high"), 0.8, apart=-0.6),
    Cell((300, 300), ("high", "high"), 0.1, apart=0.5),
    Cell((1000, 1000), ("any", "any"), 0.1, apart=0.4),
]


def _group(rng, clusters, sure, cell, over):
    n = clusters * cell.photos
    confidence = np.clip(rng.beta(*CONFIDENCE[sure], n), 1e-3, 1.0 - 1e-3)
    chance = expit(logit(confidence) * (1.0 - over))
    luck = np.repeat(rng.normal(0.0, np.sqrt(cell.icc), clusters), cell.photos)
    own = luck + rng.normal(0.0, np.sqrt(1.0 - cell.icc), n)
    return confidence, ndtr(own) < chance


def asked(rng, cell, replicates, seed):
    """Measure two groups, and ask for their difference both ways: two p-values, and the ends."""
    overs = cell.over, cell.over + cell.apart
    parts = [_group(rng, c, s, cell, o)
             for c, s, o in zip(cell.clusters, cell.sure, overs, strict=True)]  # fmt: skip
    confidence, right = (np.concatenate(one) for one in zip(*parts, strict=True))
    clusters = np.repeat(np.arange(sum(cell.clusters)), cell.photos)
    groups = np.repeat(["a", "b"], [c * cell.photos for c in cell.clusters])
    n = len(right)
    both = {"model": "m", "unit_id": [f"u{k}" for k in range(n)],
            "cluster_id": [f"s{k}" for k in clusters]}  # fmt: skip
    evidence = {
        "classification": pl.DataFrame({**both, "confidence": confidence, "correct": right})
    }
    if cell.weights:
        evidence[SAMPLE] = pl.DataFrame({
            **both, "weight": rng.lognormal(0.0, 0.5, n),
            "stratum": pl.Series([None] * n, dtype=pl.String),
            "stratum_clusters": pl.Series([None] * n, dtype=pl.Int64),
        })  # fmt: skip
    scores = scored(right.astype(float).tolist(), both["cluster_id"], evidence=evidence,
                    others=(METRIC,))  # fmt: skip
    spec = Comparing(replicates=replicates, seed=seed)
    found = measure_groups(scores, members(g=groups.tolist()), spec)
    (j,) = (j for j, m in enumerate(found.measures) if m.metric == METRIC.name)
    one, two = (np.array([k]) for k, g in enumerate(found.groups) if g.name in ("a", "b"))
    apart = compare_groups(found, "g", j).pairs(one, two)
    raw = found.value[one, j] - found.value[two, j]
    error = np.hypot(found.standard_error[one, j], found.standard_error[two, j])
    p = two_sided(deviates(apart, (Z,))).item()
    ends = apart.interval(Z)
    assert (p <= 0.05) == (ends.low.item() > 0 or ends.high.item() < 0)
    return p, two_sided(raw / error).item(), (apart.a - apart.b).item()


def _row(k, cell, worlds, replicates, key):
    found = np.array([
        asked(np.random.default_rng([131, key, k, world]), cell, replicates, world)
        for world in range(worlds)
    ])  # fmt: skip
    return {**cell.row(), "p <= .05, %": float((found[:, 0] <= 0.05).mean()),
            "raw values, %": float((found[:, 1] <= 0.05).mean()),
            "mean difference, %": float(found[:, 2].mean())}  # fmt: skip


@pytest.mark.parametrize("k", range(len(NULL)) if FULL else (0, 4))
def test_size_alone_is_no_difference_in_calibration(k):
    worlds, replicates = scaled(1000, 30), sized(400, 150)
    row = _row(k, NULL[k], worlds, replicates, 0)
    record(f"calibration-null-{k}", [row], worlds=worlds, replicates=replicates)
    # Whole: three standard errors of 1,000 worlds.
    assert row["p <= .05, %"] <= at_most(0.05, worlds, full=0.071), row


@pytest.mark.parametrize("k", range(len(FOUND)) if FULL else (0,))
def test_a_difference_in_calibration_is_found(k):
    worlds, replicates = scaled(300, 20), sized(400, 150)
    row = _row(k, FOUND[k], worlds, replicates, 1)
    record(f"calibration-gap-{k}", [row], worlds=worlds, replicates=replicates)
    assert row["p <= .05, %"] >= 0.5, row
