"""Homes whose true rates are drawn, photos of them, and what an interval over homes covers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.core.containers import Scores
from isolux.core.spec import Statistics
from isolux.core.tables import MEMBERSHIP, SCORES
from isolux.groups.measure import measure_groups
from isolux.stats.proportions import wilson_interval
from isolux.tasks.geodiversity import EVIDENCE, INFO


@dataclass(frozen=True)
class Homes:
    """Rates of homes are Beta(mean · size, (1 − mean) · size); busy homes do better or not.

    ``slope``: by how much the mean rate of homes with 60 photos lies above that of those with 1.
    """

    homes: int
    mean: float = 0.5
    size: float = 6.0
    slope: float = 0.0

    def draw(self, rng: np.random.Generator) -> pl.DataFrame:
        """Draw the evidence of one world."""
        photos = rng.integers(1, 61, self.homes)
        mean = self.mean + self.slope * ((photos - 1) / 59 - 0.5)
        rate = rng.beta(mean * self.size, (1 - mean) * self.size)
        home = np.repeat(np.arange(self.homes), photos)
        names = pl.Series(home).cast(pl.String)
        return pl.DataFrame(
            {
                "model": "m",
                "unit_id": [f"p{i}" for i in range(len(home))],
                "cluster_id": names,
                "household": names,
                "hit": (rng.random(len(home)) < rate[home]).astype(np.float64),
                "reason": pl.Series([None] * len(home), dtype=pl.String),
            }
        )


def covered(world: Homes, worlds: int, seed: int = 1) -> dict[str, float]:
    """Say how often the interval of homes, and Wilson's over photos, hold the homes' mean rate.

    The number of photos is uniform, so the mean over homes of the true rates is ``mean``.
    """
    rng = np.random.default_rng(seed)
    info = INFO.metric("household_hit_rate")
    task = type(INFO)(title="t", summary="s", references=(), metrics=(info,), defaults=(info.name,))
    ours = naive = 0
    for _ in range(worlds):
        evidence = world.draw(rng)
        scores = Scores(SCORES.empty(), task, {EVIDENCE: evidence}, task="geodiversity")
        row = (
            measure_groups(scores, MEMBERSHIP.empty(), Statistics(replicates=200))
            .to_table()
            .row(0, named=True)
        )
        ours += row["low"] <= world.mean <= row["high"]
        ends = wilson_interval(evidence["hit"].sum(), evidence.height, 0.95)
        naive += bool(ends.low <= world.mean <= ends.high)
    return {"homes": ours / worlds, "photos": naive / worlds}
