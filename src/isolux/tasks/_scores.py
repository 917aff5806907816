"""Names of metrics as a task reads them, and rows of the table ``scores``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.info import TaskInfo
from isolux.core.tables import SCORES


def read_metrics(task_info: TaskInfo, metrics: Sequence[str]) -> tuple[str, ...]:
    """Read the names of metrics that a user requested, and check that the task has them."""
    # A single string would otherwise be read letter by letter.
    names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    for name in names:
        task_info.metric(name)
    return names


def restrict_task_info(
    task_info: TaskInfo, names: Collection[str], *, cites: bool = False
) -> TaskInfo:
    """Restrict a task's declaration to the measured metrics and, with ``cites``, their sources."""
    metrics = tuple(metric for metric in task_info.metrics if metric.name in names)
    # dict.fromkeys removes duplicates and keeps the order, so that reports are reproducible.
    references = tuple(dict.fromkeys(metric.reference for metric in metrics if metric.reference))
    return replace(
        task_info,
        metrics=metrics,
        defaults=tuple(metric.name for metric in metrics),
        references=references if cites else task_info.references,
    )


def score_rows(
    units: pl.DataFrame | pl.LazyFrame,
    task: str,
    metric: str,
    values: pl.Expr | npt.NDArray[np.float64],
    *,
    model: str | None = None,
    label: pl.Expr | str | None = None,
    threshold: float | None = None,
    reason: pl.Expr | str = "reason",
) -> pl.DataFrame:
    """Build rows of the table ``scores``: one metric of each unit, null where there is a reason."""
    reason_expr = pl.col(reason) if isinstance(reason, str) else reason
    value_expr = (
        values if isinstance(values, pl.Expr) else pl.lit(pl.Series(values, dtype=pl.Float64))
    )
    rows = units.lazy().select(
        "unit_id",
        "cluster_id",
        model=pl.col("model") if model is None else pl.lit(model),
        task=pl.lit(task),
        metric=pl.lit(metric),
        # Typed nulls: frames of several metrics must have equal columns to be stacked.
        label=label if isinstance(label, pl.Expr) else pl.lit(label, dtype=pl.String),
        threshold=pl.lit(threshold, dtype=pl.Float64),
        unit_kind=pl.lit("instance"),
        # A value and a reason exclude each other: a reader of the table needs no second check.
        value=pl.when(reason_expr.is_null()).then(value_expr.cast(pl.Float64)),
        reason=reason_expr,
    )
    return SCORES.conform(rows.collect())


def stack_scores(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate the rows of several metrics."""
    return pl.concat(frames) if frames else SCORES.empty()
