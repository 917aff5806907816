"""Results of tested pairs: adjusted p, the worse group, D and its interval.

FHIBE's own procedure (Bonferroni within an attribute, units treated as people) and the recommended
one are both given; one pair leads each attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses.rank_tests.pairs import AttributeGroups, ScoreVectors
from isolux.core.info import Metric
from isolux.statements.leading import MEASURE_COLUMNS
from isolux.stats.cluster_sums import IntArray
from isolux.stats.multiplicity import (
    adjust_p_benjamini_hochberg,
    adjust_p_bonferroni,
    adjust_p_holm,
)
from isolux.stats.ranks import fhibe_median_disparity, replicate_medians
from isolux.stats.sampling import draw_rao_wu_weights
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import draw_multinomial_weights, iterate_seeded_replicate_blocks

Test = Literal["clustered", "naive"]
Correction = Literal["holm", "bh", "published"]
ATTRIBUTE_KEY = (*MEASURE_COLUMNS, "attribute")
_GROUP_COLUMNS = ("group", "n", "clusters", "median", "mean")


def add_adjusted_p_to_pairs(
    pairs: pl.DataFrame, test: Test, correction: Correction, alpha: float
) -> pl.DataFrame:
    """Add ``p``, ``p_adjusted``, ``found``, and ``p_published``, ``found_published``."""
    pairs = pairs.with_columns(p=pl.col(f"p_{test}"))
    line_index = pairs.select(pl.struct("vector", "place").rank("dense")).to_series().to_numpy()
    published = _adjust_p_within_lines(pairs["p_naive"].to_numpy(), line_index)
    p = pairs["p"].to_numpy()
    if correction == "published":
        p_adjusted = _adjust_p_within_lines(p, line_index)
    else:
        p_adjusted = adjust_p_holm(p) if correction == "holm" else adjust_p_benjamini_hochberg(p)
    return pairs.with_columns(
        p_published=pl.Series(published, dtype=pl.Float64).fill_nan(None),
        p_adjusted=pl.Series(p_adjusted, dtype=pl.Float64).fill_nan(None),
    ).with_columns(
        found=(pl.col("p_adjusted") <= alpha).fill_null(value=False),
        found_published=(pl.col("p_published") < alpha).fill_null(value=False),
    )


def _adjust_p_within_lines(p: FloatArray, line_index: npt.NDArray[np.uint32]) -> FloatArray:
    p_adjusted = np.full(len(p), np.nan)
    order = np.argsort(line_index, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(line_index[order])) + 1):
        p_adjusted[rows] = adjust_p_bonferroni(p[rows])
    return p_adjusted


def orient_worse_group_first(pairs: pl.DataFrame, metrics: Mapping[str, Metric]) -> pl.DataFrame:
    """Orient pairs so that ``a`` is the worse group, and add D."""
    directions = {name: metric.direction for name, metric in metrics.items()}
    metric = pl.col("metric")
    pairs = pairs.with_columns(
        direction=metric.replace_strict(directions, default="none", return_dtype=pl.String)
    )
    direction_sign = pl.when(pl.col("direction") == "lower").then(-1.0).otherwise(1.0)
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
    with_turn = pairs.with_columns(turn=direction_sign * gap > 0)
    swapped = [
        pl.when("turn")
        .then(f"{name}_{other_suffix}")
        .otherwise(f"{name}_{suffix}")
        .alias(f"{name}_{suffix}")
        for name in _GROUP_COLUMNS
        for suffix, other_suffix in (("a", "b"), ("b", "a"))
    ]
    superiority = pl.when("turn").then(1.0 - pl.col("superiority")).otherwise("superiority")
    oriented = with_turn.with_columns(*swapped, superiority=superiority).drop("turn")
    low = oriented.select(pl.min_horizontal("median_a", "median_b")).to_series().to_numpy()
    high = oriented.select(pl.max_horizontal("median_a", "median_b")).to_series().to_numpy()
    reversed_score = pl.col("direction") == "lower"
    return oriented.with_columns(
        disparity=pl.Series(fhibe_median_disparity(low, high)).fill_nan(None),
        worse=pl.when(reversed_score).then("superiority").otherwise(1.0 - pl.col("superiority")),
    ).with_columns(against=pl.col("worse") < 0.5)


def select_leading_pair_by_attribute(pairs: pl.DataFrame) -> pl.DataFrame:
    """Select one pair for each measure and attribute: the significant one with the highest D."""
    counts = pairs.group_by(ATTRIBUTE_KEY, maintain_order=True).agg(
        pairs=pl.len(), n_found=pl.sum("found"), n_published=pl.sum("found_published")
    )
    superiority_distance = (pl.col("worse") - 0.5).abs()
    ordered = pairs.with_columns(
        first=pl.when("found").then(pl.col("disparity").fill_null(0.0)).otherwise(-1.0),
        second=pl.when("found")
        .then(superiority_distance)
        .otherwise(1.0 - pl.col("p").fill_null(1.0)),
    ).sort(
        "vector",
        "place",
        "first",
        "second",
        descending=[False, False, True, True],
        maintain_order=True,
    )
    first_pairs = ordered.unique(ATTRIBUTE_KEY, keep="first", maintain_order=True).drop(
        "first", "second"
    )
    return first_pairs.join(
        counts, on=ATTRIBUTE_KEY, how="left", nulls_equal=True, maintain_order="left"
    )


def add_disparity_intervals(
    leading_pairs: pl.DataFrame,
    score_vectors: ScoreVectors,
    attributes: list[AttributeGroups],
    *,
    replicates: int,
    seed: int,
    level: float,
) -> pl.DataFrame:
    """Add ``low`` and ``high`` of D: percentiles on resampled clusters."""
    intervals: list[tuple[float | None, float | None]] = []
    for row in leading_pairs.iter_rows(named=True):
        if not row["found"] or row["disparity"] is None or row["decided_by"] != "median":
            intervals.append((None, None))
            continue
        groups = attributes[row["place"]]
        values = score_vectors.values[row["vector"]]
        # The observed order of the two stays, so a replicate's D may be negative.
        group_units = [
            units[~np.isnan(values[units])]
            for units in (groups.get_units(row["group_a"]), groups.get_units(row["group_b"]))
        ]
        if row["direction"] == "lower":
            group_units.reverse()
        replicate_disparities = _replicate_median_disparity(
            values, score_vectors, group_units, replicates, seed
        )
        bounds = np.nanquantile(replicate_disparities, [(1 - level) / 2, (1 + level) / 2])
        intervals.append((float(bounds[0]), float(bounds[1])))
    return leading_pairs.with_columns(
        low=pl.Series([low for low, _ in intervals], dtype=pl.Float64),
        high=pl.Series([high for _, high in intervals], dtype=pl.Float64),
    )


def _replicate_median_disparity(
    values: FloatArray,
    score_vectors: ScoreVectors,
    group_units: list[IntArray],
    replicates: int,
    seed: int,
) -> FloatArray:
    """Compute D of two groups, the lower first, on resampled clusters, within strata: ``[r]``."""
    cluster, survey_weights = score_vectors.cluster, score_vectors.survey_weights
    cluster_ids, code = np.unique(cluster[np.concatenate(group_units)], return_inverse=True)
    codes = np.split(code, [len(group_units[0])])
    blocks_evaluated = []
    for rng, size in iterate_seeded_replicate_blocks(replicates, seed, "rank bootstrap"):
        if survey_weights is None:
            weights = draw_multinomial_weights(rng, np.ones(len(cluster_ids), dtype=np.int64), size)
            low, high = (
                replicate_medians(values[units], cluster_code, weights)
                for units, cluster_code in zip(group_units, codes, strict=True)
            )
        else:
            resampling_weights = draw_rao_wu_weights(
                rng, int(cluster.max(initial=-1)) + 1, survey_weights.strata, size
            )
            low, high = (
                replicate_medians(
                    values[units],
                    np.arange(len(units)),
                    survey_weights.weight[units][:, None] * resampling_weights[cluster[units]],
                )
                for units in group_units
            )
        defined = (high > 0.0) & (low >= 0.0)
        blocks_evaluated.append(
            1.0 - np.where(defined, low, np.nan) / np.where(defined, high, np.nan)
        )
    return np.concatenate(blocks_evaluated)
