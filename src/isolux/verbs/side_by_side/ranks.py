"""Classes by disparity, all models side by side (FACET, Tables 11 and 12, for any number)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.disparity.class_rankings import class_rankings

_KEYS = ["metric", "threshold", "attribute", "label"]


def class_ranks(values: pl.DataFrame, models: Sequence[str]) -> pl.DataFrame:
    """Rank classes by their largest gap under each model; rank 1 is the largest."""
    found: pl.DataFrame | None = None
    for name in models:
        both = class_rankings(values, (name, name))
        own = both.select(
            *_KEYS,
            pl.col("rank_a").cast(pl.Int64).alias(f"rank: {name}"),
            pl.col("gap_a").alias(f"gap: {name}"),
        )
        found = (
            own
            if found is None
            else found.join(own, on=_KEYS, how="full", coalesce=True, nulls_equal=True)
        )
    assert found is not None  # noqa: S101 - there are two models or more
    best = pl.min_horizontal(pl.col("^rank: .*$"))
    return found.sort("metric", "threshold", "attribute", best, "label", nulls_last=True)
