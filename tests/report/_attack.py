"""Published counts, and an attack on them that shares no line with what protects them.

The attacker knows every published count and rate, as printed, and that each person has one value
of each attribute (or none) and one class. People are then atoms: a combination of values and a
class. What is published are sums of atoms' counts, and of those of them who were judged rightly; a
hidden count is recovered if all solutions agree on it, and narrowed if they lie close together.
"""

from __future__ import annotations

import hashlib
import math
from itertools import combinations, product
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import linprog

UNKNOWN = "?"


def random_people(seed: int) -> tuple[pl.DataFrame, list[str]]:
    """Draw people of 2 or 3 attributes and a class, skewed so that small groups are common."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(60, 600))
    names = list("abc")[: int(draw.integers(2, 4))]
    people = {}
    for name in [*names, "truth"]:
        k = int(draw.integers(2, 4 if len(names) == 3 else 6))
        shares = draw.dirichlet(np.full(k, 0.6))
        values = [f"{name}{i}" for i in range(k)]
        if name != "truth" and draw.random() < 0.4:
            values[0] = UNKNOWN  # left out of the groups
        people[name] = draw.choice(values, size=n, p=shares)
    # Some combinations are judged well and some badly: their rates tell the more.
    combined = [hash_of("".join(p)) % 7 for p in zip(*people.values(), strict=True)]
    right = draw.random(n) < draw.random(7)[combined]
    return pl.DataFrame({**people, "right": right.astype(np.int64)}), names


def hash_of(text: str) -> int:
    """Give a number that is the same in every process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def counted(people: pl.DataFrame, names: list[str], seed: int) -> pl.DataFrame:
    """Count groups, some intersections and classes as a run's ``group_metrics`` do."""
    draw = np.random.default_rng(seed + 10_000)
    sets: list[tuple[str, ...]] = [(), *((name,) for name in names if draw.random() < 0.9)]
    for size in (2, 3):
        sets += [c for c in combinations(names, size) if draw.random() < 0.7]
    by_class = draw.random() < 0.7
    rows = []
    for chosen in sets:
        known = people.filter(*(pl.col(name) != UNKNOWN for name in chosen))
        for labels in (False, True) if by_class else (False,):
            keys = [*chosen, *(["truth"] if labels else [])]
            parts = known.group_by(keys, maintain_order=True).len() if keys else None
            for row in parts.iter_rows(named=True) if parts is not None else [{"len": len(known)}]:
                values = [row[name] for name in chosen]
                shared = {
                    "model": "m", "task": "t", "threshold": None, "attribute": "*".join(chosen)
                    or None, "group": " × ".join(values) or "overall", "values": values,
                }  # fmt: skip
                label = row["truth"] if labels else None
                metric = "recall" if labels else "accuracy"
                rows.append({**shared, "metric": metric, "label": label, "n_units": row["len"]})
                if labels:  # a metric of who is of another class
                    group = known.filter(*(pl.col(k) == row[k] for k in chosen)).height
                    n = group - row["len"]
                    rows.append({**shared, "metric": "false", "label": label, "n_units": n})
    schema = {"threshold": pl.Float64, "label": pl.String, "attribute": pl.String}
    table = pl.DataFrame(rows, schema_overrides={**schema, "values": pl.List(pl.String)})
    return table.with_columns(value=pl.Series([_rate(row, people) for row in table.to_dicts()]))


def _rate(row: dict[str, Any], people: pl.DataFrame) -> float | None:
    """Give the share of a row's people who were judged rightly; of another class: not told."""
    if row["metric"] == "false":
        return None
    names = str(row["attribute"]).split("*") if row["attribute"] else []
    held = {**dict(zip(names, row["values"], strict=True)), "truth": row["label"]}
    inside = people.filter(*(pl.col(k) == v for k, v in held.items() if v is not None))
    return float(inside["right"].mean())  # type: ignore[arg-type]


class Attack:
    """What follows from a published table."""

    def __init__(self, shown: pl.DataFrame, people: pl.DataFrame, names: list[str]) -> None:
        self.kinds = [sorted(people[name].unique()) for name in [*names, "truth"]]
        self.atoms = list(product(*self.kinds))
        self.place = {name: at for at, name in enumerate(names)}
        told = shown.to_dicts()
        self.known = np.array([self.sum_of(row) for row in told])
        self.counts = shown["n_units"].to_numpy().astype(float)
        held = people.group_by(*names, "truth").len().rows()
        there = {row[:-1]: float(row[-1]) for row in held}
        self.seen = [np.array([there.get(atom, 0.0) for atom in self.atoms])]
        # A share is printed to a tenth of a hundredth: so many were right, or nearly so.
        rated = [at for at, row in enumerate(told) if row["value"] is not None]
        rates = np.round([told[at]["value"] for at in rated], 3)
        n, sums = self.counts[rated], self.known[rated]
        both = np.hstack([sums, np.zeros_like(sums)])  # the right ones, then the wrong ones
        self.most = np.vstack([both, -both]), np.append(n * (rates + 5e-4), n * (5e-4 - rates))

    def sum_of(self, row: dict[str, Any]) -> np.ndarray:
        """Tell which atoms a row counts."""
        chosen = [] if row["attribute"] is None else str(row["attribute"]).split("*")
        held = dict(zip(chosen, row["values"], strict=True))
        other = row["metric"] == "false"
        inside = [
            all(atom[self.place[k]] == v for k, v in held.items())
            and (row["label"] is None or (atom[-1] != row["label"]) == other)
            for atom in self.atoms
        ]
        return np.array(inside, dtype=float)

    def recovered(self, hidden: pl.DataFrame) -> list[tuple[str, int]]:
        """Solve for hidden counts: those that all solutions share, whatever their sign."""
        _, values, right = np.linalg.svd(self.known, full_matrices=True)
        free = right[int((values > 1e-9 * values[0]).sum()) :]
        return [
            (f"{row['group']} {row['label']} {row['metric']}", row["n_units"])
            for row in hidden.to_dicts()
            if not free.size or np.abs(free @ self.sum_of(row)).max() < 1e-7
        ]

    def narrowed(self, hidden: pl.DataFrame, width: int) -> list[tuple[str, int, float, float]]:
        """Bound hidden counts by linear programs, and name those bounded within ``width``."""
        found = []
        for row in hidden.to_dicts():
            wanted = self.sum_of(row)
            held = np.array(self.seen) @ wanted
            if held.max() - held.min() >= width:
                continue  # solutions that were found for others do for this one
            low, high = (math.ceil(self._end(wanted, 1) - 1e-6),
                         math.floor(self._end(wanted, -1) + 1e-6))  # fmt: skip
            if high - low < width:
                what = f"{row['group']} {row['label']} {row['metric']}"
                found.append((what, row["n_units"], low, high))
        return found

    def _end(self, wanted: np.ndarray, sign: int) -> float:
        done = linprog(
            sign * np.append(wanted, wanted), A_ub=self.most[0], b_ub=self.most[1],
            A_eq=np.hstack([self.known, self.known]), b_eq=self.counts, bounds=(0, None),
        )  # fmt: skip
        assert done.x is not None, done.message
        self.seen.append(done.x[: len(self.atoms)] + done.x[len(self.atoms) :])
        return float(sign * done.fun)
