"""The common threshold of pairs in a sample: that at which the population's false accepts are few.

A task sets it on pairs as they were drawn. Where people stand for unequally many, the share of
impostor pairs that are accepted is another in the population, so it is set again by weight. One
that was given stays.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.stats.verification import threshold_at_far

PAIRS = "pairs"
"""The evidence of a verifier's comparisons."""
_LISTS = ("other_id", "similarity", "genuine")


def with_weighted_thresholds(
    pairs: pl.DataFrame, units: pl.DataFrame, sample: pl.DataFrame
) -> pl.DataFrame:
    """Set each model's threshold again, a pair standing for the product of its people's weights."""
    if not pairs.height or pairs["given"].any():
        return pairs
    of = units.select(pl.col("unit_id").cast(pl.String), "cluster_id").unique("unit_id")
    weight = sample.select(pl.col("unit_id").cast(pl.String), "weight").unique("unit_id")
    known = of.join(weight, on="unit_id").select("unit_id", "cluster_id", "weight")
    parts = []
    for _, part in pairs.group_by("model", maintain_order=True):
        unset = part["threshold"].null_count() == part.height
        at = None if unset else _threshold(part, known)
        parts.append(part.with_columns(threshold=pl.lit(at, pl.Float64)))
    return pl.concat(parts)


def _threshold(part: pl.DataFrame, known: pl.DataFrame) -> float:
    text = pl.col("unit_id", "other_id").cast(pl.String)
    held = part.select("unit_id", *_LISTS).explode(*_LISTS).with_columns(text)
    held = held.filter(~pl.col("genuine"), pl.col("similarity").is_not_null())
    both = held.join(known, on="unit_id").join(
        known, left_on="other_id", right_on="unit_id", suffix="_b"
    )
    one, two = both["weight"].to_numpy(), both["weight_b"].to_numpy()
    alike = both["cluster_id"].eq_missing(both["cluster_id_b"]) & both["cluster_id"].is_not_null()
    weight = np.where(alike.to_numpy(), one, one * two)
    far = float(part["far"][0])
    return threshold_at_far(both["similarity"].to_numpy().astype(np.float64), far, weight)
