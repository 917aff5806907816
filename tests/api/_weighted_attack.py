"""An attack on published weighted numbers that shares no line with what protects them.

The attacker knows everybody's weight and groups, and reads the page: of each row the range that its
rounded value leaves. People's answers are then unknown zeros and ones, and whole-number programs
look for answers that agree with every row and have one person the other way round.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import Bounds, LinearConstraint, milp

from isolux.api.audit import Audit, audit


def random_survey(seed: int) -> pl.DataFrame:
    """Draw people with two attributes, unequal weights and answers of which few are wrong."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(120, 400))
    kinds = {name: draw.dirichlet(np.full(int(draw.integers(2, 5)), 2.0)) for name in "ab"}
    people = {
        name: draw.choice([f"{name}{i}" for i in range(len(share))], size=n, p=share)
        for name, share in kinds.items()
    }
    weight = draw.lognormal(0.0, 0.5, n)
    if draw.random() < 0.5:  # a few strata, each with a weight of its own
        weight = np.array([1.0, 2.5, 6.0])[draw.integers(0, 3, n)]
    rate = draw.choice([0.5, 0.8, 0.95, 0.99, 1.0], size=n, p=draw.dirichlet(np.ones(5)))
    return pl.DataFrame({
        "unit_id": [f"p{i}" for i in range(n)], **people, "weight": weight,
        "value": (draw.random(n) < rate).astype(float),
    })  # fmt: skip


def audited(people: pl.DataFrame) -> Audit:
    """Audit them by both attributes and their crossing."""
    return audit(
        people.select("unit_id", "value"), people.drop("value"), by=["a", "b", "a*b"],
        weight="weight", min_units=5, min_clusters=3, replicates=100,
    )  # fmt: skip


class Attack:
    """What follows about single people from published rows."""

    def __init__(self, shown: pl.DataFrame, people: pl.DataFrame, steps: list[float]) -> None:
        self.truth = people["value"].to_numpy()
        weight = people["weight"].to_numpy()
        rows, low, high = [], [], []
        for row, step in zip(shown.to_dicts(), steps, strict=True):
            names = str(row["attribute"]).split("*") if row["attribute"] else []
            inside = np.ones(len(weight), dtype=bool)
            for name, value in zip(names, row["values"], strict=True):
                inside &= (people[name] == value).to_numpy()
            share = np.where(inside, weight, 0.0) / weight[inside].sum()
            rows.append(share)
            low.append(row["value"] - step / 2)
            high.append(row["value"] + step / 2)
        self.known = LinearConstraint(np.array(rows), np.array(low) - 1e-9, np.array(high) + 1e-9)
        self.seen = [self.truth]

    def recovered(self) -> list[int]:
        """Name the people who have one answer in every solution."""
        n, found = len(self.truth), []
        for i in range(n):
            told = np.array(self.seen)[:, i]
            if told.min() < 0.5 < told.max():
                continue  # answers that were found for others do for this person
            low, high = np.zeros(n), np.ones(n)
            low[i] = high[i] = 1.0 - self.truth[i]
            answer = self._solve(Bounds(low, high))
            if answer is None:
                found.append(i)
            else:
                self.seen.append(answer)
        return found

    def _solve(self, bounds: Bounds) -> Any:
        towards = np.random.default_rng(len(self.seen)).normal(size=len(self.truth))
        done = milp(
            towards, integrality=np.ones(len(self.truth)), bounds=bounds, constraints=self.known,
            options={"mip_rel_gap": 1.0, "time_limit": 20.0},
        )  # fmt: skip
        return None if done.x is None else done.x.round()
