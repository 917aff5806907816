"""Pairs of groups: the largest differences, the pair that leads, what could have been seen."""

from __future__ import annotations

from typing import Any

import polars as pl

from isolux.groups.large import size_rank
from isolux.groups.unknown import UNKNOWN
from isolux.report._lines import LINE, key_of

__all__ = ["BLOCK", "Rows", "detectable", "keyed", "largest_pairs", "lead", "pair_counts"]

PAIRS_SHOWN = 10
"""Pairs printed for each metric; all of them are in disparities.parquet."""

BLOCK = ("model", "task", "metric", "threshold", "attribute")
"""The columns that name a block: the lines of a metric that differ only in their class."""

_READ = (
    *LINE, "attribute", "group_a", "group_b", "value", "low", "high", "p_adjusted", "detectable",
    "n_units_a", "n_units_b", "status", "reason",
)  # fmt: skip
"""What is read of each pair: of 200 groups there are 20,000 for every metric."""

Rows = dict[tuple[Any, ...], list[dict[str, Any]]]
"""Rows of a table by their line and what else was asked for."""


def keyed(frame: pl.DataFrame, *more: str) -> Rows:
    found: Rows = {}
    for row in frame.iter_rows(named=True):
        found.setdefault((*key_of(row), *(row[name] for name in more)), []).append(row)
    return found


def largest_pairs(disparities: pl.DataFrame) -> Rows:
    ratios = disparities.filter(pl.col("kind") == "ratio").select(
        *LINE, "attribute", "group_a", "group_b", ratio="value"
    )
    largest = (
        disparities.select(*_READ, "kind")
        .filter(pl.col("kind") == "difference")
        .with_columns(_size=pl.col("value").abs())
        .sort("_size", descending=True, nulls_last=True, maintain_order=True)
        .group_by(BLOCK, maintain_order=True)
        .head(PAIRS_SHOWN)
        .join(
            ratios,
            on=[*LINE, "attribute", "group_a", "group_b"],
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
    )
    found: Rows = {}
    for row in largest.iter_rows(named=True):
        found.setdefault(tuple(row[name] for name in BLOCK), []).append(row)
    return found


def lead(group_metrics: pl.DataFrame, disparities: pl.DataFrame, alpha: float) -> Rows:
    """Choose the pair that speaks for each attribute: both groups known, large, surely apart.

    The end of the interval that is nearer to 0 ranks pairs of groups of like size: a small
    group's wild estimate does not lead.
    """
    unknown = group_metrics.filter(pl.col("values").list.contains(UNKNOWN))
    unnamed = unknown.select("attribute", "group").unique()
    everyone = group_metrics.filter(pl.col("attribute").is_null()).select(*LINE, n="n_units")
    pairs = disparities.select(*_READ, "kind").filter(
        (pl.col("kind") == "difference")
        & pl.col("value").is_not_null()
        & (pl.col("p_adjusted") <= alpha)
    )
    for side in ("group_a", "group_b"):
        pairs = pairs.join(
            unnamed, left_on=["attribute", side], right_on=unnamed.columns, how="anti"
        )
    pairs = pairs.join(everyone, on=list(LINE), how="left", nulls_equal=True)
    ranked = pairs.with_columns(ratio=pl.lit(None, pl.Float64)).sort(
        size_rank("n_units_a", "n_units_b", "n"),
        pl.max_horizontal(-pl.col("high"), pl.col("low"), 0.0).fill_null(0.0),
        pl.col("value").abs(),
        "group_a",
        "group_b",
        descending=[True, True, True, False, False],
    )
    return keyed(
        ranked.unique([*LINE, "attribute"], keep="first", maintain_order=True), "attribute"
    )


def pair_counts(disparities: pl.DataFrame) -> dict[tuple[Any, ...], int]:
    counted = disparities.filter(pl.col("kind") == "difference").group_by(BLOCK).len("n")
    return {tuple(row[:-1]): row[-1] for row in counted.select(*BLOCK, "n").iter_rows()}


def detectable(
    disparities: pl.DataFrame,
) -> dict[tuple[Any, ...], tuple[float | None, float | None]]:
    ends = (
        disparities.filter(pl.col("kind") == "difference")
        .group_by(*LINE, "attribute")
        .agg(low=pl.col("detectable").min(), high=pl.col("detectable").max())
        .select(*LINE, "attribute", "low", "high")
    )
    return {tuple(row[:-2]): (row[-2], row[-1]) for row in ends.iter_rows()}
