"""What tested pairs say: which group is worse, by how much, and whether that may be believed.

FHIBE's own way (Bonferroni within an attribute, units taken for people) and the recommended one
stand side by side; one pair leads each attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses.rank_tests.pairs import Grouped, Ranked
from isolux.statements.leading import MEASURE
from isolux.stats.design import IntArray
from isolux.stats.multiplicity import benjamini_hochberg, bonferroni, holm
from isolux.stats.ranks import disparity_of_medians, median_replicates
from isolux.stats.sampling import rao_wu
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import blocks, multinomial
from isolux.vocabulary.info import Metric

Test = Literal["clustered", "naive"]
Correction = Literal["holm", "bh", "published"]
LINE = (*MEASURE, "attribute")
_SIDE = ("group", "n", "clusters", "median", "mean")


def adjusted(pairs: pl.DataFrame, test: Test, correction: Correction, alpha: float) -> pl.DataFrame:
    """Add ``p``, ``p_adjusted``, ``found``, and ``p_published``, ``found_published``."""
    pairs = pairs.with_columns(p=pl.col(f"p_{test}"))
    of_line = pairs.select(pl.struct("vector", "place").rank("dense")).to_series().to_numpy()
    published = _within(pairs["p_naive"].to_numpy(), of_line)
    p = pairs["p"].to_numpy()
    if correction == "published":
        own = _within(p, of_line)
    else:
        own = holm(p) if correction == "holm" else benjamini_hochberg(p)
    return pairs.with_columns(
        p_published=pl.Series(published, dtype=pl.Float64).fill_nan(None),
        p_adjusted=pl.Series(own, dtype=pl.Float64).fill_nan(None),
    ).with_columns(
        found=(pl.col("p_adjusted") <= alpha).fill_null(value=False),
        found_published=(pl.col("p_published") < alpha).fill_null(value=False),
    )


def _within(p: FloatArray, of_line: npt.NDArray[np.uint32]) -> FloatArray:
    out = np.full(len(p), np.nan)
    order = np.argsort(of_line, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(of_line[order])) + 1):
        out[rows] = bonferroni(p[rows])
    return out


def ordered_sides(pairs: pl.DataFrame, metrics: Mapping[str, Metric]) -> pl.DataFrame:
    """Let side ``a`` be the worse group, and add D."""
    directions = {name: metric.direction for name, metric in metrics.items()}
    metric = pl.col("metric")
    pairs = pairs.with_columns(
        direction=metric.replace_strict(directions, default="none", return_dtype=pl.String)
    )
    lower = pl.when(pl.col("direction") == "lower").then(-1.0).otherwise(1.0)
    by_median = pl.col("median_a") - pl.col("median_b")
    by_mean = pl.col("mean_a") - pl.col("mean_b")
    pairs = pairs.with_columns(
        decided_by=pl.when(by_median != 0)
        .then(pl.lit("median"))
        .when(by_mean.abs() > 1e-12)  # sums of the same scores in another order differ by rounding
        .then(pl.lit("mean"))
        .otherwise(pl.lit("superiority"))
    )
    gap = (
        pl.when(pl.col("decided_by") == "median")
        .then(by_median)
        .when(pl.col("decided_by") == "mean")
        .then(by_mean)
        .otherwise(pl.col("superiority") - 0.5)
    )
    turned = pairs.with_columns(turn=lower * gap > 0)
    swapped = [
        pl.when("turn").then(f"{name}_{there}").otherwise(f"{name}_{here}").alias(f"{name}_{here}")
        for name in _SIDE
        for here, there in (("a", "b"), ("b", "a"))
    ]
    over = pl.when("turn").then(1.0 - pl.col("superiority")).otherwise("superiority")
    found = turned.with_columns(*swapped, superiority=over).drop("turn")
    low = found.select(pl.min_horizontal("median_a", "median_b")).to_series().to_numpy()
    high = found.select(pl.max_horizontal("median_a", "median_b")).to_series().to_numpy()
    reversed_score = pl.col("direction") == "lower"
    return found.with_columns(
        disparity=pl.Series(disparity_of_medians(low, high)).fill_nan(None),
        worse=pl.when(reversed_score).then("superiority").otherwise(1.0 - pl.col("superiority")),
    ).with_columns(against=pl.col("worse") < 0.5)


def leading(pairs: pl.DataFrame) -> pl.DataFrame:
    """Keep one pair for each measure and attribute: of those found, the one with the highest D."""
    counts = pairs.group_by(LINE, maintain_order=True).agg(
        pairs=pl.len(), n_found=pl.sum("found"), n_published=pl.sum("found_published")
    )
    odds = (pl.col("worse") - 0.5).abs()
    ordered = pairs.with_columns(
        first=pl.when("found").then(pl.col("disparity").fill_null(0.0)).otherwise(-1.0),
        second=pl.when("found").then(odds).otherwise(1.0 - pl.col("p").fill_null(1.0)),
    ).sort(
        "vector",
        "place",
        "first",
        "second",
        descending=[False, False, True, True],
        maintain_order=True,
    )
    kept = ordered.unique(LINE, keep="first", maintain_order=True).drop("first", "second")
    return kept.join(counts, on=LINE, how="left", nulls_equal=True, maintain_order="left")


def with_intervals(
    lead: pl.DataFrame,
    ranked: Ranked,
    attributes: list[Grouped],
    *,
    replicates: int,
    seed: int,
    level: float,
) -> pl.DataFrame:
    """Add ``low`` and ``high`` of D: percentiles on resampled clusters."""
    ends: list[tuple[float | None, float | None]] = []
    for row in lead.iter_rows(named=True):
        if not row["found"] or row["disparity"] is None or row["decided_by"] != "median":
            ends.append((None, None))
            continue
        own = attributes[row["place"]]
        values = ranked.values[row["vector"]]
        # The observed order of the two stays, so a replicate's D may be negative.
        sides = [
            units[~np.isnan(values[units])]
            for units in (own.units_of(row["group_a"]), own.units_of(row["group_b"]))
        ]
        if row["direction"] == "lower":
            sides.reverse()
        drawn = _disparities(values, ranked, sides, replicates, seed)
        told = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2])
        ends.append((float(told[0]), float(told[1])))
    return lead.with_columns(
        low=pl.Series([low for low, _ in ends], dtype=pl.Float64),
        high=pl.Series([high for _, high in ends], dtype=pl.Float64),
    )


def _disparities(
    values: FloatArray, ranked: Ranked, sides: list[IntArray], replicates: int, seed: int
) -> FloatArray:
    """D of two groups, the lower first, on clusters drawn anew, within strata if any: ``[r]``."""
    cluster, drawn = ranked.cluster, ranked.drawn
    owners, code = np.unique(cluster[np.concatenate(sides)], return_inverse=True)
    codes = np.split(code, [len(sides[0])])
    parts = []
    for rng, size in blocks(replicates, seed, "rank bootstrap"):
        if drawn is None:
            weights = multinomial(rng, np.ones(len(owners), dtype=np.int64), size)
            low, high = (
                median_replicates(values[units], own, weights)
                for units, own in zip(sides, codes, strict=True)
            )
        else:
            times = rao_wu(rng, int(cluster.max(initial=-1)) + 1, drawn.strata, size)
            low, high = (
                median_replicates(
                    values[units],
                    np.arange(len(units)),
                    drawn.weight[units][:, None] * times[cluster[units]],
                )
                for units in sides
            )
        defined = (high > 0.0) & (low >= 0.0)
        parts.append(1.0 - np.where(defined, low, np.nan) / np.where(defined, high, np.nan))
    return np.concatenate(parts)
