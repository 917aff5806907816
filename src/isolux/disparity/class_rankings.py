"""Ranks of classes by their largest gap between groups, for two models side by side."""

from __future__ import annotations

import polars as pl

from isolux.core import registry
from isolux.core.tables import GROUP_METRICS, Status


def rank_classes_by_largest_gap(
    group_metrics: pl.DataFrame, models: tuple[str, str]
) -> pl.DataFrame:
    """Rank classes by their largest gap, both models side by side (FACET, Tables 11 and 12)."""
    # Decision 10: a group of too few clusters has a value, but is compared with nothing.
    labelled = GROUP_METRICS.conform(group_metrics).filter(
        pl.col("label").is_not_null()
        & pl.col("attribute").is_not_null()
        & pl.col("value").is_not_null()
        & (pl.col("status") != Status.INSUFFICIENT_CLUSTERS.value).fill_null(value=True)
    )
    keys = ["metric", "threshold", "attribute", "label"]
    tasks = set(labelled["task"]) & set(registry.names("tasks"))
    metrics = [m for task in tasks for m in registry.task_info(task).metrics]
    is_lower_better = pl.col("metric").is_in([m.name for m in metrics if m.direction == "lower"])
    # Orders groups from worst to best whatever the metric's direction.
    labelled = labelled.with_columns(
        _good=pl.when(is_lower_better).then(-pl.col("value")).otherwise(pl.col("value"))
    )
    model_tables = []
    for suffix, model in zip("ab", models, strict=True):
        gaps = (
            labelled.filter(pl.col("model") == model)
            .group_by(keys, maintain_order=True)
            .agg(
                n=pl.len(),
                gap=pl.col("value").max() - pl.col("value").min(),
                worst=pl.col("group").sort_by("_good").first(),
                best=pl.col("group").sort_by("_good").last(),
            )
            # One group has no gap.
            .filter(pl.col("n") > 1)
            .with_columns(
                rank=pl.col("gap")
                .rank("min", descending=True)
                .over("metric", "threshold", "attribute")
            )
        )
        model_tables.append(
            gaps.select(
                *keys, *(pl.col(c).alias(f"{c}_{suffix}") for c in ("rank", "gap", "worst", "best"))
            )
        )
    rankings = model_tables[0].join(
        model_tables[1], on=keys, how="full", coalesce=True, nulls_equal=True
    )
    order = pl.min_horizontal("rank_a", "rank_b")
    return rankings.sort("metric", "threshold", "attribute", order, "label", nulls_last=True)
