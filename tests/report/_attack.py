"""Published counts, and an attack on them that shares no line with what protects them.

The attacker knows every published count and that each person has one value of each attribute (or
none) and one class. People are then atoms: a combination of values and a class. What is published
are sums of atoms' counts; a hidden count is recovered if all solutions agree on it.
"""

from __future__ import annotations

from itertools import combinations, product

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
    return pl.DataFrame(people), names


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
                    or None, "group": " × ".join(values) or "everyone", "values": values,
                }  # fmt: skip
                label = row["truth"] if labels else None
                metric = "recall" if labels else "accuracy"
                rows.append({**shared, "metric": metric, "label": label, "n_units": row["len"]})
                if labels:  # a metric of who is of another class
                    group = known.filter(*(pl.col(k) == row[k] for k in chosen)).height
                    n = group - row["len"]
                    rows.append({**shared, "metric": "false", "label": label, "n_units": n})
    schema = {"threshold": pl.Float64, "label": pl.String, "attribute": pl.String}
    return pl.DataFrame(rows, schema_overrides={**schema, "values": pl.List(pl.String)})


def recovered(
    shown: pl.DataFrame, hidden: pl.DataFrame, people: pl.DataFrame, names: list[str], bounds: int
) -> list[tuple[str, int]]:
    """Solve for hidden counts: those that all solutions share; ``bounds`` of them by ranges too."""
    kinds = [sorted(people[name].unique()) for name in [*names, "truth"]]
    atoms = list(product(*kinds))
    place = {name: at for at, name in enumerate(names)}

    def sum_of(row: dict[str, object]) -> np.ndarray:
        chosen = [] if row["attribute"] is None else str(row["attribute"]).split("*")
        held = dict(zip(chosen, row["values"], strict=True))  # type: ignore[call-overload]
        other = row["metric"] == "false"
        inside = [
            all(atom[place[k]] == v for k, v in held.items())
            and (row["label"] is None or (atom[-1] != row["label"]) == other)
            for atom in atoms
        ]
        return np.array(inside, dtype=float)

    known = np.array([sum_of(row) for row in shown.iter_rows(named=True)])
    counts = shown["n_units"].to_numpy().astype(float)
    _, values, right = np.linalg.svd(known, full_matrices=True)
    free = right[int((values > 1e-9 * values[0]).sum()) :]
    found = []
    for at, row in enumerate(hidden.iter_rows(named=True)):
        wanted = sum_of(row)
        fixed = not free.size or np.abs(free @ wanted).max() < 1e-7
        if not fixed and at < bounds:
            ends = [
                linprog(sign * wanted, A_eq=known, b_eq=counts, bounds=(0, None)).fun
                for sign in (1, -1)
            ]
            fixed = -ends[1] - ends[0] < 1.0 - 1e-6
        if fixed:
            found.append((f"{row['group']} {row['label']} {row['metric']}", row["n_units"]))
    return found
