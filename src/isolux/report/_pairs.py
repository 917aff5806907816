"""Pairs of groups: the largest differences, and what could have been seen."""

from __future__ import annotations

from typing import Any

import polars as pl

from isolux.statements.lines import LINE, key_of

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


def pair_counts(disparities: pl.DataFrame) -> dict[tuple[Any, ...], int]:
    counted = disparities.filter(pl.col("kind") == "difference").group_by(BLOCK).len("n")
    return {tuple(row[:-1]): row[-1] for row in counted.select(*BLOCK, "n").iter_rows()}
