"""Runs counted by hand: so many of so many right in each group, each person sampled alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

import isolux
from isolux.core.containers import Run

Right = Mapping[str, tuple[int, int]]
"""Of each group how many of how many are right."""


def run_of(
    right: Right,
    *,
    metric: str = "accuracy",
    model: str = "m",
    ids: str = "",
    photos: int = 1,
    silent: int = 0,
    **settings: Any,
) -> Run:
    """Audit people of light day, night, …; ``photos`` alike ones of each person are a cluster.

    The last ``silent`` of night have no prediction.
    """
    rows = [
        {"unit_id": f"{ids}{group}-{k}", "light": group,
         "value": None if group == "night" and k >= of - silent else float(k < good),
         "cluster_id": f"{ids}{group}-{k // photos}"}
        for group, (good, of) in right.items()
        for k in range(of)
    ]  # fmt: skip
    frame = pl.DataFrame(rows).with_columns(
        reason=pl.when(pl.col("value").is_null()).then(pl.lit("no prediction")),
        model=pl.lit(model),
        metric=pl.lit(metric),
        task=pl.lit("classification"),
    )
    return isolux.audit(
        frame.drop("light"), frame.select("unit_id", "light"), by="light", replicates=100,
        **settings,
    ).run  # fmt: skip


def policy_of(*rules: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Write a policy of some rules."""
    return {"policy": 1, **more, "rules": list(rules)}


def accuracy(**rule: Any) -> dict[str, Any]:
    """Ask about accuracy by light; ``attribute=None``: of everyone."""
    asked = {"metric": "accuracy", "attribute": "light", **rule}
    return {key: value for key, value in asked.items() if value is not None}
