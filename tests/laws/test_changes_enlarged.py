"""Two models on the same people, of values that chance enlarges or that rest on far errors.

Where the models differ in nothing but how sure they are, or in which far errors were drawn, no
change is found; where one is too sure, it is. Beside: by values and standard errors alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

from isolux.core.spec import ComparisonSettings
from isolux.disparity.models import compare_models
from isolux.groups.measure import measure_groups
from isolux.stats.test_inversion import two_sided_p_from_z
from tests._scored import binned, members, scored
from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized
from tests.laws.test_calibration import CONFIDENCE, METRIC
from tests.laws.test_far_errors import ROOT

pytestmark = pytest.mark.law
Draw = Callable[[np.random.Generator, int], dict[str, np.ndarray]]


def _sure(kind, over=0.0):
    def draw(rng, n):
        sure = np.clip(CONFIDENCE[kind](rng, n), 1e-3, 1.0 - 1e-3)
        return {"confidence": sure, "correct": rng.random(n) < expit(logit(sure) * (1.0 - over))}

    return draw


def _rare(rng, n):
    far = np.where(rng.random(n) < 0.01, 14.0, rng.normal(size=n))
    return {"error": far / np.sqrt(0.01 * 14.0**2 + 0.99)}


@dataclass(frozen=True)
class Cell:
    """What two models give of so many people: calibration errors, or numbers of equal error."""

    name: str
    people: int
    first: Draw
    second: Draw
    truth: float | None = 0.0


CELLS = [
    Cell("calibrated: scores high; in the middle", 300, _sure("high"), _sure("middle")),
    Cell("calibrated: scores nearly 1; any", 1000, _sure("nearly 1"), _sure("any")),
    Cell("errors: normal; 1 of 100 far", 300, lambda r, n: {"error": r.normal(size=n)}, _rare),
    Cell("errors: both t, 3", 300, *(2 * [lambda r, n: {"error": r.standard_t(3, n)}])),
    Cell("scores high: too sure by .8; by .2", 300, _sure("high", 0.8), _sure("high", 0.2), None),
    Cell("errors: normal, 1.3 as large; 1", 300, lambda r, n: {"error": 1.3 * r.normal(size=n)},
         lambda r, n: {"error": r.normal(size=n)}, -0.3),
]  # fmt: skip


def asked(rng, cell, replicates, seed):
    """Return p and the interval of each change, and p by values and standard errors."""
    n = cell.people
    ids = {"unit_id": [f"u{k}" for k in range(n)], "cluster_id": [f"s{k}" for k in range(n)]}
    parts = []
    for model, draw in (("a", cell.first), ("b", cell.second)):
        own = draw(rng, n)
        metric, name = (ROOT, "own") if "error" in own else (METRIC, "classification")
        table = pl.DataFrame({"model": [model] * n, **ids, **own})
        table = binned(table) if metric is METRIC else table
        parts.append(scored([0.0] * n, ids["cluster_id"], model=model, evidence={name: table},
                            others=(metric,)))  # fmt: skip
    both = replace(
        parts[0],
        units=pl.concat([part.units for part in parts]),
        evidence={name: pl.concat([part.evidence[name] for part in parts])},
    )
    spec = ComparisonSettings(replicates=replicates, seed=seed)
    groups = np.repeat(["x", "y"], [3 * n // 10, n - 3 * n // 10]).tolist()
    found = measure_groups(both, members(g=groups), spec)
    table = compare_models(found, spec, ("a", "b")).table
    rows = table.filter(metric=metric.name, kind="model_difference")
    a, b = (j for j, m in enumerate(found.measures) if m.metric == metric.name)
    error = np.hypot(found.standard_error[:, a], found.standard_error[:, b])
    plain = two_sided_p_from_z((found.value[:, b] - found.value[:, a]) / error)
    return np.column_stack([rows.select("p_value", "low", "high").to_numpy(), plain])


@pytest.mark.parametrize("k", range(len(CELLS)) if FULL else (1, 2))
def test_changes_of_what_chance_enlarges(k):
    cell, worlds, replicates = CELLS[k], scaled(150, 20), sized(200, 100)
    found = np.array([
        asked(np.random.default_rng([163, k, world]), cell, replicates, world)
        for world in range(worlds)
    ])  # fmt: skip
    p, low, high, plain = np.moveaxis(found, -1, 0)
    truth = cell.truth if cell.truth is not None else np.nan
    held = (low <= truth) & (truth <= high)
    row = {"two models": cell.name, "people": cell.people,
           "everyone: p <= .05, %": float((p[:, 0] <= 0.05).mean()),
           "two groups: p <= .05, %": float((p[:, 1:] <= 0.05).mean()),
           "values and errors alone, two groups, %": float((plain[:, 1:] <= 0.05).mean()),
           "covered, %": None if cell.truth is None else float(held.mean()),
           }  # fmt: skip
    record(f"changes-enlarged-{k}", [row], worlds=worlds, replicates=replicates)
    if cell.truth == 0.0:
        assert row["everyone: p <= .05, %"] <= at_most(0.05, worlds, full=0.104), row
        assert row["two groups: p <= .05, %"] <= at_most(0.05, worlds, full=0.088), row
    else:
        assert row["everyone: p <= .05, %"] >= 0.8, row
    if cell.truth is not None:
        assert row["covered, %"] >= at_least(0.95, worlds, full=0.9), row
