"""Runs to look at: a real small audit, and one of a thousand groups."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl

import isolux
from isolux.core.containers import Run
from tests.report import _runs as runs


def people(n: int = 3000, seed: int = 0) -> pl.DataFrame:
    """Draw people of three attributes; those in dusk are scored lower, two lights are rare."""
    draw = np.random.default_rng(seed)
    light = draw.choice(["day", "dusk", "night", "dawn"], n, p=[0.5, 0.3, 0.19, 0.01])
    tone = draw.choice(["1-3", "4-6", "7-10"], n)
    size = draw.choice(["large", "small"], n)
    chance = 0.9 - 0.15 * (light == "dusk") - 0.1 * (size == "small")
    value = (draw.random(n) < chance).astype(float)
    missing = draw.random(n) < 0.01
    return pl.DataFrame(
        {
            "unit_id": [f"p{i}" for i in range(n)],
            "light": light,
            "tone": tone,
            "size": size,
            "value": pl.Series(value).set(pl.Series(missing), None),
        }
    )


@cache
def audited(seed: int = 0) -> Run:
    """Audit those people, in memory."""
    found = isolux.audit(
        people(seed=seed), by=["light", "tone", "size", "light*tone", "light*tone*size"],
        replicates=200,
    )  # fmt: skip
    return found.run


@cache
def crowd() -> Run:
    """Audit 50,000 people."""
    return isolux.audit(people(50_000), by=["light", "tone", "size", "light*tone"]).run


def many_groups(n: int = 1000) -> Run:
    """Make a run with a metric of ``n`` groups."""
    tables = runs.Tables()
    for metric, shift in (("accuracy", 0.0), ("balanced_accuracy", -0.02)):
        of = runs.line(metric)
        runs.add_everyone(tables, of, 200 * n, 0.75 + shift)
        rates = {
            (f"region {i:04d}",): (60 + (i * 37) % 900, 0.5 + 0.4 * (i * 7919 % n) / n + shift)
            for i in range(n)
        }
        runs.add_attribute(tables, of, "region", rates, everyone=0.75 + shift, pairs=False)
    return runs.run_of(tables)
