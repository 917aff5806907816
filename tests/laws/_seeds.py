"""Two models of the same recipe, each trained with several seeds, judged on the same people.

Run s of a model spoils a share e_s of the answers that it would have given right. Subjects are not
equally easy, and half of the answers share their luck between runs. The rate of the model (over
people and seeds) is the subjects' mean rate times 1 - E(e), to the last digit; both models have it,
and so has every group. All is drawn with numpy alone; the product's own functions measure it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux.api._tables_from_memory import to_scores
from isolux.api.side_by_side.changes import compare_pairs
from isolux.api.side_by_side.seeds import ModelRuns, build_model_values
from isolux.core.spec import ComparisonSettings, Statistics
from isolux.core.survey_sample import SAMPLE
from isolux.groups.measure import measure_groups
from isolux.groups.membership import build_membership

SPOILT = 0.3
"""Deviation of e_s over its mean, where seeds differ: below 0 in 4 runs of 10,000, drawn as 0."""


@dataclass(frozen=True)
class Cell:
    """One kind of world: runs of both models, and what differs between whom."""

    runs: tuple[int, int] = (3, 3)
    spoilt: float = 0.1
    vary: bool = True
    rate: float = 0.9
    clusters: int = 60
    photos: int = 4
    icc: float = 0.2
    smaller: float = 0.5
    weights: bool = False

    def row(self) -> dict[str, object]:
        """Return what names the cell in a table."""
        return {
            "runs": "/".join(map(str, self.runs)), "rate": self.truth(),
            "seeds' SD": self.rate * self.spoilt * SPOILT if self.vary else 0.0,
            "clusters": self.clusters, "smaller group": self.smaller,
            "weights": "with strata" if self.weights else "none",
        }  # fmt: skip

    def truth(self) -> float:
        """Return the rate of both models, in the population of people and of seeds."""
        return self.rate * (1.0 - self.spoilt)


def compared(rng: np.random.Generator, cell: Cell, replicates: int, seed: int):
    """Draw a world and lay it side by side: the tables of values and of changes."""
    n = cell.clusters * cell.photos
    cluster = np.repeat(np.arange(cell.clusters), cell.photos)
    # Strata of a half, a third and a sixth of the population are drawn as often as one another.
    # Their rates differ by as much up as down: weighed, they have the rate of all.
    stratum = np.arange(cell.clusters) % 3
    shares = np.array([1 / 2, 1 / 3, 1 / 6])
    apart = np.array([0.02, -0.02, -0.02]) if cell.weights else np.zeros(3)
    rates = (cell.rate + apart)[stratum]
    p = rng.beta(rates * (1 - cell.icc) / cell.icc, (1 - rates) * (1 - cell.icc) / cell.icc)
    small = np.arange(cell.clusters) // 3 < round(cell.smaller * cell.clusters / 3)
    who = pl.DataFrame({"unit_id": np.arange(n).astype(str), "cluster_id": cluster.astype(str)})
    luck = rng.random(n)
    labels = [tuple(f"{m} ({i})" for i in range(k)) for m, k in zip("ab", cell.runs, strict=True)]
    parts = []
    for label in (*labels[0], *labels[1]):
        e = max(cell.spoilt * (1 + SPOILT * rng.normal() * cell.vary), 0.0)
        own = np.where(rng.random(n) < 0.5, luck, rng.random(n))
        right = (own < p[cluster]) & (rng.random(n) >= e)
        parts.append(who.with_columns(model=pl.lit(label), value=right.astype(float)))
    scores = to_scores(pl.concat(parts))
    if cell.weights:
        table = who.with_columns(
            weight=(3 * shares)[stratum][cluster], stratum=pl.Series(stratum[cluster].astype(str)),
            stratum_clusters=pl.lit(cell.clusters // 3),
        )  # fmt: skip
        scores = replace(scores, evidence={SAMPLE: table})
    people = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": who["unit_id"], "attribute": "tone",
         "value": np.where(small[cluster], "small", "large")}
    )  # fmt: skip
    spec = Statistics(replicates=replicates, seed=seed, min_units=20, min_clusters=5)
    members = build_membership(people, ("tone",), units=scores.evaluated_units())
    estimates = measure_groups(scores, members, spec)
    models = ModelRuns({"a": labels[0], "b": labels[1]})
    comparing = ComparisonSettings(replicates=replicates, seed=seed)
    values = build_model_values(estimates, models, spec.level)
    return values, compare_pairs(estimates, models, comparing, {}, ())


def held(cell: Cell, worlds: int, replicates: int) -> dict[str, object]:
    """Count how often intervals hold the truth, and how often a difference is claimed."""
    rng = np.random.default_rng([15, *cell.runs, int(1000 * cell.spoilt), cell.clusters])
    found: dict[str, list[float]] = {}
    for world in range(worlds):
        values, changes = compared(rng, cell, replicates, world)
        rate = cell.truth()
        rows = [("value", values.filter(model="a"), rate)]
        groups = changes.filter(kind="model_difference")
        rows.append(("difference", groups, 0.0))
        for name, frame, truth in rows:
            for group, low, high in frame.select(
                pl.col("group" if name == "value" else "group_a"), "low", "high"
            ).iter_rows():
                within = "overall" if group == "overall" else "groups"
                key = f"{name}, {within}: held, %"
                found.setdefault(key, []).append(float(low <= truth <= high))
        everyone = groups.filter(group_a="overall")["p_value"].item()
        found.setdefault("difference: p <= .05, %", []).append(float(everyone <= 0.05))
        gap = changes.filter(kind="gap_change").row(0, named=True)
        if gap["low"] is not None:
            key = "change of gap: held, %"
            found.setdefault(key, []).append(float(gap["low"] <= 0 <= gap["high"]))
        one = values.filter(model="a", group="overall")
        found.setdefault("width, everyone", []).append((one["high"] - one["low"]).item())
    return {**cell.row(), **{name: float(np.mean(list_)) for name, list_ in found.items()}}
