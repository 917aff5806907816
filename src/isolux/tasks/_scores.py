"""What every task does with its metrics: reads their names, and writes a row for each unit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.tables import SCORES


def read_metrics(info: TaskInfo, metrics: Sequence[str]) -> tuple[str, ...]:
    """Read the names of metrics that a user gave, each known to the task."""
    names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    for name in names:
        info.metric(name)
    return names


def measured_info(info: TaskInfo, names: Collection[str], *, cites: bool = False) -> TaskInfo:
    """Give a task's declaration with the metrics measured and, if asked, their sources alone."""
    metrics = tuple(metric for metric in info.metrics if metric.name in names)
    cited = tuple(dict.fromkeys(metric.reference for metric in metrics if metric.reference))
    return replace(
        info,
        metrics=metrics,
        defaults=tuple(metric.name for metric in metrics),
        references=cited if cites else info.references,
    )


def score_rows(
    units: pl.DataFrame | pl.LazyFrame,
    task: str,
    metric: str,
    value: pl.Expr | npt.NDArray[np.float64],
    *,
    model: str | None = None,
    label: pl.Expr | str | None = None,
    threshold: float | None = None,
    reason: pl.Expr | str = "reason",
) -> pl.DataFrame:
    """Write one metric of each unit, null where there is a reason: table ``scores``."""
    why = pl.col(reason) if isinstance(reason, str) else reason
    given = value if isinstance(value, pl.Expr) else pl.lit(pl.Series(value, dtype=pl.Float64))
    rows = units.lazy().select(
        "unit_id",
        "cluster_id",
        model=pl.col("model") if model is None else pl.lit(model),
        task=pl.lit(task),
        metric=pl.lit(metric),
        label=label if isinstance(label, pl.Expr) else pl.lit(label, dtype=pl.String),
        threshold=pl.lit(threshold, dtype=pl.Float64),
        unit_kind=pl.lit("instance"),
        value=pl.when(why.is_null()).then(given.cast(pl.Float64)),
        reason=why,
    )
    return SCORES.conform(rows.collect())


def stack_scores(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Put the rows of several metrics under one another."""
    return pl.concat(parts) if parts else SCORES.empty()
