"""Classes in the order of their disparities, by two models, and how far the orders agree."""

from __future__ import annotations

import polars as pl

from isolux.vocabulary import registry
from isolux.vocabulary.tables import GROUP_METRICS, Status


def class_rankings(group_metrics: pl.DataFrame, models: tuple[str, str]) -> pl.DataFrame:
    """Rank classes by their largest gap, both models side by side (FACET, Tables 11 and 12)."""
    labelled = GROUP_METRICS.conform(group_metrics).filter(
        pl.col("label").is_not_null()
        & pl.col("attribute").is_not_null()
        & pl.col("value").is_not_null()
        & (pl.col("status") != Status.INSUFFICIENT_CLUSTERS.value).fill_null(value=True)
    )
    keys = ["metric", "threshold", "attribute", "label"]
    tasks = set(labelled["task"]) & set(registry.names("tasks"))
    metrics = [m for task in tasks for m in registry.task_info(task).metrics]
    falling = pl.col("metric").is_in([m.name for m in metrics if m.direction == "lower"])
    labelled = labelled.with_columns(
        _good=pl.when(falling).then(-pl.col("value")).otherwise(pl.col("value"))
    )
    sides = []
    for side, model in zip("ab", models, strict=True):
        gaps = (
            labelled.filter(pl.col("model") == model)
            .group_by(keys, maintain_order=True)
            .agg(
                n=pl.len(),
                gap=pl.col("value").max() - pl.col("value").min(),
                worst=pl.col("group").sort_by("_good").first(),
                best=pl.col("group").sort_by("_good").last(),
            )
            .filter(pl.col("n") > 1)
            .with_columns(
                rank=pl.col("gap")
                .rank("min", descending=True)
                .over("metric", "threshold", "attribute")
            )
        )
        sides.append(
            gaps.select(
                *keys, *(pl.col(c).alias(f"{c}_{side}") for c in ("rank", "gap", "worst", "best"))
            )
        )
    both = sides[0].join(sides[1], on=keys, how="full", coalesce=True, nulls_equal=True)
    order = pl.min_horizontal("rank_a", "rank_b")
    return both.sort("metric", "threshold", "attribute", order, "label", nulls_last=True)
