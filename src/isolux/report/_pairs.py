"""Pairs of groups: the largest differences, the pair that leads, what could have been seen."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import polars as pl

from isolux.statements.leading import find_leading_comparisons, flag_known_groups
from isolux.statements.lines import LINE, key_of

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


def lead(
    group_metrics: pl.DataFrame,
    disparities: pl.DataFrame,
    alpha: float,
    lower_is_better: Collection[str],
) -> Rows:
    """Choose the pair that speaks for each attribute: the known group that is served worst."""
    is_pair = pl.col("kind") == "difference"
    rows = disparities.select(*_READ, "kind").filter(
        is_pair | (pl.col("kind") == "difference_to_overall"), pl.col("value").is_not_null()
    )
    comparisons = flag_known_groups(rows, group_metrics).with_columns(
        pair=is_pair,
        differs=(pl.col("p_adjusted") <= alpha).fill_null(value=False),
        ratio=pl.lit(None, pl.Float64),
    )
    leading = find_leading_comparisons(comparisons, group_metrics, lower_is_better)
    return keyed(leading.filter("pair", "named"), "attribute")


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
