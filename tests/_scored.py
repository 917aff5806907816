"""Scores and memberships from a few lists, for tests of groups and disparities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from isolux.core.containers import Scores
from isolux.core.info import Metric, Reference, TaskInfo
from isolux.core.tables import MEMBERSHIP, SCORES, check
from isolux.tasks.classification.evidence import CalibrationBins

ACCURACY = Metric(name="accuracy", title="Accuracy", definition="share right", direction="higher")
ERROR = Metric(name="error", title="Error", definition="share wrong", direction="lower")
SELECTION = Metric(
    name="selection_rate", title="Selected", definition="share selected", direction="none"
)


def binned(table: pl.DataFrame, bins: CalibrationBins = CalibrationBins()) -> pl.DataFrame:  # noqa: B008 - frozen
    """Add the bins of confidences, as the task does; a table without a model is of one."""
    others = {"model": "m", "positive_score": None, "is_positive": None}
    absent = {name: pl.lit(value) for name, value in others.items() if name not in table.columns}
    return bins.add_columns(table.with_columns(**absent), None)


def scored(
    values: Sequence[float | None],
    clusters: Sequence[str | None] | None = None,
    *,
    metric: Metric = ACCURACY,
    model: str = "m",
    evidence: Mapping[str, pl.DataFrame] | None = None,
    others: Sequence[Metric] = (),
) -> Scores:
    """Score units u0, u1, … one after the other."""
    n = len(values)
    rows = pl.DataFrame(
        {
            "model": [model] * n,
            "task": ["classification"] * n,
            "metric": [metric.name] * n,
            "label": pl.Series([None] * n, dtype=pl.String),
            "threshold": pl.Series([None] * n, dtype=pl.Float64),
            "unit_kind": ["instance"] * n,
            "unit_id": [f"u{k}" for k in range(n)],
            "cluster_id": pl.Series([None] * n if clusters is None else clusters, dtype=pl.String),
            "value": pl.Series(values, dtype=pl.Float64),
            "reason": pl.Series([None] * n, dtype=pl.String),
        }
    )
    info = TaskInfo(
        title="t", summary="s", references=(Reference("k", "c"),), metrics=(metric, *others)
    )
    return Scores(check(rows, SCORES), info, evidence or {})


def stacked(*parts: Scores) -> Scores:
    """Put the units of several scores into one, with the first's info."""
    return Scores(pl.concat([p.units for p in parts]), parts[0].info)


def members(**attributes: Sequence[str | Sequence[str] | None]) -> pl.DataFrame:
    """Give unit k the k-th group (or groups, or none) of each attribute."""
    parts = []
    for attribute, groups in attributes.items():
        named = [(given,) if isinstance(given, str) else given or () for given in groups]
        part = pl.DataFrame(
            {
                "unit_id": [f"u{k}" for k, names in enumerate(named) for _ in names],
                "group": [name for names in named for name in names],
            },
            schema={"unit_id": pl.String, "group": pl.String},
        )
        part = part.with_columns(attribute=pl.lit(attribute), values=pl.concat_list("group"))
        parts.append(part.select(list(MEMBERSHIP.schema)))
    frame = pl.concat(parts)
    return check(frame.sort("attribute", "group", maintain_order=True), MEMBERSHIP)
