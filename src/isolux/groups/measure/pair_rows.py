"""Rows of pairs of units: units and clusters as integers, sorted by similarity.

Also the common threshold of pairs in a survey sample. A task chooses it on the sampled pairs for a
false accept rate; with unequal weights the rate in the population differs, so the threshold is
chosen again by weight. A given threshold is unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import IntArray, PairStatistic, UnitPairs
from isolux.stats.verification import lowest_threshold_at_far, sort_pairs_by_descending_similarity

PairIndices = npt.NDArray[Any]
"""Indices of units or clusters, int32: half the memory of numpy's default."""


@dataclass(frozen=True, slots=True)
class PairRows:
    """The pairs of one model, with ``first`` and ``second`` as units; ``units`` are all that occur.

    If ``max_pairs`` is set, a group uses this many pairs of each type, those of lowest ``draw
    [m]``. ``has_given_threshold``: the threshold was given, not chosen on these pairs.
    ``is_distance``: similarities are negative distances.
    """

    pairs: UnitPairs
    cluster_index: PairIndices
    units: IntArray
    draw: npt.NDArray[np.uint32] | None = None
    max_pairs: int | None = None
    has_given_threshold: bool = False
    is_distance: bool = False

    def needs_min_impostors(self, statistic: PairStatistic) -> bool:
        """Check whether a value needs enough impostor pairs to resolve its false accept rate."""
        return statistic.needs_rare_impostors and not (
            self.has_given_threshold and statistic.operating_point == "threshold"
        )

    def operating_point(self, statistic: PairStatistic) -> float | None:
        """Return the operating point: the FAR, the similarity or the distance, if any."""
        if statistic.operating_point is None:
            return None
        threshold = -self.pairs.threshold if self.is_distance else self.pairs.threshold
        point = self.pairs.false_accept_rate if statistic.operating_point == "far" else threshold
        return point if math.isfinite(point) else None

    def select_pairs(self, inside: npt.NDArray[np.bool_]) -> UnitPairs:
        """Select the pairs whose units are both ``inside [n_units]``, indexed by clusters."""
        all_pairs = self.pairs
        rows = self._sample_pairs(
            np.flatnonzero(inside[all_pairs.first] & inside[all_pairs.second])
        )
        first, second = all_pairs.first[rows], all_pairs.second[rows]
        return replace(
            all_pairs,
            similarity=all_pairs.similarity[rows],
            is_genuine=all_pairs.is_genuine[rows],
            first=self.cluster_index[first],
            second=self.cluster_index[second],
        )

    def _sample_pairs(self, rows: IntArray) -> IntArray:
        if self.draw is None or self.max_pairs is None:
            return rows
        sampled = []
        for is_genuine in (False, True):
            type_rows = rows[self.pairs.is_genuine[rows] == is_genuine]
            # By the pairs' own random numbers: groups with common pairs sample the same ones.
            sampled.append(
                type_rows[np.argsort(self.draw[type_rows], kind="stable")[: self.max_pairs]]
            )
        # Back in order of similarity, on which all statistics of pairs depend.
        return np.sort(np.concatenate(sampled))


def build_pair_rows(
    evidence: pl.DataFrame, units: pl.DataFrame, *, counts_failures: bool = False
) -> PairRows:
    """Assign numbers to units and clusters of pairs, and sort by similarity."""
    false_accept_rate, threshold = (
        float("nan") if evidence[c].first() is None else float(evidence[c][0])
        for c in ("far", "threshold")
    )
    unit_numbers = units.select("unit_id", unit=pl.col("unit").cast(pl.Int32))
    # Columns are flattened one by one: all at once would be several lists of every pair in memory.
    unit = _look_up_unit_numbers(evidence["unit_id"], unit_numbers)
    second = _look_up_unit_numbers(_explode_to_pairs(evidence, "other_id"), unit_numbers)
    similarity = _explode_to_pairs(evidence, "similarity").cast(pl.Float64)
    if counts_failures:
        # A failed comparison counts as rejected: its similarity is below all others.
        similarity = similarity.fill_null(_number_below_similarities(similarity, threshold))
    genuine = _explode_to_pairs(evidence, "genuine").cast(pl.Boolean)
    is_known: slice | npt.NDArray[np.bool_] = slice(None)
    if (unit < 0).any() or (second < 0).any() or similarity.null_count() + genuine.null_count():
        is_compared = (similarity.is_not_null() & genuine.is_not_null()).to_numpy()
        is_known = is_compared & (second >= 0) & (_repeat_by_pair(evidence, unit) >= 0)
    order, sorted_similarity, sorted_genuine = sort_pairs_by_descending_similarity(
        similarity.to_numpy()[is_known], genuine.fill_null(value=False).to_numpy()[is_known]
    )
    del similarity, genuine
    second = second[is_known][order]
    first = _repeat_by_pair(evidence, unit)[is_known][order]
    is_sampled = "draw" in evidence.columns and evidence.height > 0
    draw = _explode_to_pairs(evidence, "draw").to_numpy()[is_known][order] if is_sampled else None
    max_pairs = int(evidence["most"][0]) if is_sampled else None
    pairs = UnitPairs(
        sorted_similarity, sorted_genuine, first, second, false_accept_rate, threshold
    )
    cluster_index = units["cluster"].to_numpy().astype(np.int32)
    has_given_threshold, is_distance = (
        name in evidence.columns and bool(evidence[name].any()) for name in ("given", "turned")
    )
    occurring_units = _list_paired_units(first, second, len(cluster_index))
    return PairRows(
        pairs, cluster_index, occurring_units, draw, max_pairs, has_given_threshold, is_distance
    )


def _number_below_similarities(similarity: pl.Series, threshold: float) -> float:
    """Return a number below all similarities and the threshold, but close, for binning."""
    known_similarity = similarity.drop_nulls().to_numpy()
    lower_limits = [float(known_similarity.min())] if len(known_similarity) else []
    lower_limits += [threshold] if math.isfinite(threshold) else []
    lowest = min(lower_limits, default=0.0)
    # At least 1 lower, so that rounding cannot make it equal to the lowest similarity.
    return lowest - max(1.0, abs(lowest))


def _look_up_unit_numbers(ids: pl.Series, unit_numbers: pl.DataFrame) -> PairIndices:
    """Look up the numbers of units; −1: no such unit."""
    is_enum = isinstance(ids.dtype, pl.Enum)
    names = ids.dtype.categories if isinstance(ids.dtype, pl.Enum) else ids.cast(pl.String)
    unit_rows = pl.DataFrame({"unit_id": names}).join(
        unit_numbers, on="unit_id", how="left", maintain_order="left"
    )
    number = unit_rows["unit"].fill_null(-1).to_numpy()
    return number[ids.to_physical().to_numpy()] if is_enum else number


def _explode_to_pairs(evidence: pl.DataFrame, name: str) -> pl.Series:
    """Flatten a column to one entry per pair; a list has one for each pair of its row."""
    column = evidence[name]
    return column.explode() if isinstance(column.dtype, pl.List) else column


def _repeat_by_pair(evidence: pl.DataFrame, row_values: PairIndices) -> PairIndices:
    """Repeat a row's value for each of its pairs."""
    if not isinstance(evidence.schema["other_id"], pl.List):
        return row_values
    return np.repeat(row_values, evidence["other_id"].list.len().to_numpy())


def _list_paired_units(first: PairIndices, second: PairIndices, n_units: int) -> IntArray:
    """List the units that occur in pairs."""
    occurs = np.zeros(n_units, dtype=np.bool_)
    occurs[first] = occurs[second] = True
    return np.flatnonzero(occurs)


PAIRS = "pairs"
"""The evidence of a verifier's comparisons."""
_LIST_COLUMNS = ("other_id", "similarity", "genuine")


def recompute_weighted_thresholds(
    pairs: pl.DataFrame, units: pl.DataFrame, sample: pl.DataFrame
) -> pl.DataFrame:
    """Choose each model's threshold with pairs weighted by the product of people's weights."""
    if not pairs.height or pairs["given"].any():
        return pairs
    unit_clusters = units.select(pl.col("unit_id").cast(pl.String), "cluster_id").unique("unit_id")
    weight = sample.select(pl.col("unit_id").cast(pl.String), "weight").unique("unit_id")
    unit_weights = unit_clusters.join(weight, on="unit_id").select(
        "unit_id", "cluster_id", "weight"
    )
    model_parts = []
    for _, model_pairs in pairs.group_by("model", maintain_order=True):
        is_unset = model_pairs["threshold"].null_count() == model_pairs.height
        threshold = None if is_unset else _weighted_threshold(model_pairs, unit_weights)
        model_parts.append(model_pairs.with_columns(threshold=pl.lit(threshold, pl.Float64)))
    return pl.concat(model_parts)


def _weighted_threshold(model_pairs: pl.DataFrame, unit_weights: pl.DataFrame) -> float:
    text = pl.col("unit_id", "other_id").cast(pl.String)
    impostors = (
        model_pairs.select("unit_id", *_LIST_COLUMNS).explode(*_LIST_COLUMNS).with_columns(text)
    )
    impostors = impostors.filter(~pl.col("genuine"), pl.col("similarity").is_not_null())
    weighted_pairs = impostors.join(unit_weights, on="unit_id").join(
        unit_weights, left_on="other_id", right_on="unit_id", suffix="_b"
    )
    weight_a, weight_b = weighted_pairs["weight"].to_numpy(), weighted_pairs["weight_b"].to_numpy()
    is_same_cluster = (
        weighted_pairs["cluster_id"].eq_missing(weighted_pairs["cluster_id_b"])
        & weighted_pairs["cluster_id"].is_not_null()
    )
    # A pair in one cluster has that cluster's weight, as in replicates.
    weight = np.where(is_same_cluster.to_numpy(), weight_a, weight_a * weight_b)
    false_accept_rate = float(model_pairs["far"][0])
    return lowest_threshold_at_far(
        weighted_pairs["similarity"].to_numpy().astype(np.float64), false_accept_rate, weight
    )
