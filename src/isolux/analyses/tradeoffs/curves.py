"""Curves of a score by group on resampled clusters, as arrays, for ``tradeoffs``.

Two kinds: the threshold at which each group's positives have the overall rate, and the people and
errors that remain when the least confident predictions are rejected. Every replicate resamples
clusters once, for overall and for every group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._regrouping import OWN_CLUSTER
from isolux.core.spec import Statistics
from isolux.groups.interval_methods import standard_error
from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import (
    draw_multinomial_weights,
    draw_poisson_weights,
    iterate_seeded_replicate_blocks,
)

_BoolArray = npt.NDArray[np.bool_]
_WEIGHT_FUNCTIONS = {"multinomial": draw_multinomial_weights, "poisson": draw_poisson_weights}


@dataclass(frozen=True, slots=True)
class SortedScoreRows:
    """Units by descending score, and the groups of each; group 0 is overall.

    Parameters
    ----------
    score : [n] float
        Descending; −infinity: never detected.
    is_marked : [n] bool
        Positive, or misclassified.
    cluster : [n] int
    start, group : [n + 1], [m] int
        Row i is in the groups ``group[start[i]:start[i + 1]]``.
    names : tuple of (str or None, str)
        Attribute and group; None: overall.
    """

    score: FloatArray
    is_marked: _BoolArray
    cluster: IntArray
    start: IntArray
    group: IntArray
    names: tuple[tuple[str | None, str], ...]

    def count_complement_clusters(self) -> IntArray:
        """Count the clusters of each group's complement: ``[g]``."""
        row_index = np.repeat(np.arange(len(self.score)), np.diff(self.start))
        n_clusters = np.zeros(len(self.names), dtype=np.int64)
        for g in range(len(self.names)):  # groups, a few dozen
            is_outside = np.ones(len(self.score), dtype=np.bool_)
            is_outside[row_index[self.group == g]] = False
            n_clusters[g] = len(np.unique(self.cluster[is_outside]))
        return n_clusters

    def count_units(self, rows: _BoolArray) -> tuple[IntArray, IntArray]:
        """Count each group's units among these rows, and their clusters: ``[g]`` both."""
        row_index = np.repeat(np.arange(len(self.score)), np.diff(self.start))
        is_counted, g = rows[row_index], len(self.names)
        n_clusters = int(self.cluster.max(initial=0)) + 1
        pairs = (
            np.unique(self.group[is_counted] * n_clusters + self.cluster[row_index[is_counted]])
            // n_clusters
        )
        return np.bincount(self.group[is_counted], minlength=g), np.bincount(pairs, minlength=g)


@dataclass(frozen=True, slots=True)
class OperatingRates:
    """Rates at the operating threshold, and thresholds with the overall rate; replicates last.

    ``positive_rate, false_rate [g, 1 + r]``: at the operating threshold; ``threshold [g, 1 + r]``:
    at which the group has the overall true positive rate; ``false_there [g, 1 + r]``: the false
    positive rate at that threshold. The first column is of the data.
    """

    positive_rate: FloatArray
    false_rate: FloatArray
    threshold: FloatArray
    false_rate_at_threshold: FloatArray


@dataclass(frozen=True, slots=True)
class CoverageCurves:
    """Curves by overall coverage: ``[k, g, 1 + r]``, the first column of the data.

    ``coverage``: share of the group that is not rejected; ``error``: error rate of those; ``gap``:
    that, minus the complement's. NaN where no person remains.
    """

    coverage: FloatArray
    error: FloatArray
    gap: FloatArray

    def standard_error(self, curves: FloatArray, clusters: FloatArray) -> FloatArray:
        """Return the standard error of one of these curves from its replicates."""
        return standard_error(curves[..., 1:], clusters.astype(np.int64))


def build_sorted_score_rows(people: pl.DataFrame, members: pl.DataFrame) -> SortedScoreRows:
    """Build the rows: people by descending score, with their groups."""
    ordered = people.sort("score", "unit_id", descending=[True, False])
    number = OWN_CLUSTER.rank("dense").cast(pl.Int64) - 1
    cluster = ordered.select(number).to_series().to_numpy()
    names = members.select("attribute", "group").unique(maintain_order=True).with_row_index("at", 1)
    row_index = ordered.select("unit_id").with_row_index("row")
    inside = (
        members.join(names, on=["attribute", "group"])
        .join(row_index, on="unit_id")
        .select(pl.col("row").cast(pl.Int64), pl.col("at").cast(pl.Int64))
    )
    overall = row_index.select(pl.col("row").cast(pl.Int64), at=pl.lit(0, pl.Int64))
    memberships = pl.concat([overall, inside]).sort("row", "at")
    row, group = memberships["row"].to_numpy(), memberships["at"].to_numpy()
    starts = np.searchsorted(row, np.arange(ordered.height + 1)).astype(np.int64)
    return SortedScoreRows(
        ordered["score"].cast(pl.Float64).to_numpy(),
        ordered["mark"].to_numpy(),
        cluster,
        starts,
        np.ascontiguousarray(group),
        ((None, "overall"), *names.select("attribute", "group").rows()),
    )


def find_equal_rate_thresholds(
    rows: SortedScoreRows, operating: float, spec: Statistics
) -> OperatingRates:
    """Find each group's threshold with the overall true positive rate at ``operating``."""
    from isolux.analyses.tradeoffs.tradeoff_kernels import find_equal_tpr_thresholds

    g = len(rows.names)

    def evaluate(weights: FloatArray) -> Sequence[FloatArray]:
        r = len(weights)
        rate, threshold, false_rates = np.empty((2, g, r)), np.empty((g, r)), np.empty((g, r))
        find_equal_tpr_thresholds(
            weights,
            rows.cluster,
            rows.score,
            rows.is_marked,
            rows.start,
            rows.group,
            operating,
            rate,
            threshold,
            false_rates,
        )
        return rate[1], rate[0], threshold, false_rates

    return OperatingRates(*_evaluate_data_and_replicates(evaluate, rows, spec))


def estimate_coverage_curves(
    rows: SortedScoreRows, coverages: Sequence[float], spec: Statistics
) -> CoverageCurves:
    """Estimate each group's coverage, error and gap when the least confident are rejected."""
    from isolux.analyses.tradeoffs.tradeoff_kernels import sum_weights_within_coverages

    coverage_levels = np.unique([*coverages, 1.0])
    k, g = len(coverage_levels), len(rows.names)

    def evaluate(weights: FloatArray) -> Sequence[FloatArray]:
        kept_weights = np.zeros((2, k, g, len(weights)))
        sum_weights_within_coverages(
            weights,
            rows.cluster,
            rows.score,
            rows.is_marked,
            rows.start,
            rows.group,
            coverage_levels,
            kept_weights,
        )
        n, error_weights = kept_weights.sum(axis=0)[::-1], kept_weights[1, ::-1]
        error = _divide_or_nan(error_weights, n)
        complement_error = _divide_or_nan(error_weights[:, :1] - error_weights, n[:, :1] - n)
        return _divide_or_nan(n, np.broadcast_to(n[:1], n.shape)), error, error - complement_error

    return CoverageCurves(*_evaluate_data_and_replicates(evaluate, rows, spec))


def _divide_or_nan(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    # Sums of small integers are exact: the complement of a group that is everyone has exactly 0.
    share: FloatArray = np.divide(
        numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > 0
    )
    return share


def _evaluate_data_and_replicates(
    evaluate: Callable[[FloatArray], Sequence[FloatArray]], rows: SortedScoreRows, spec: Statistics
) -> list[FloatArray]:
    """Evaluate on the data, then on resampled clusters; concatenated on the last axis."""
    n = int(rows.cluster.max(initial=-1)) + 1
    unit_counts, draw_weights = np.ones(n, dtype=np.int64), _WEIGHT_FUNCTIONS[spec.weights]
    blocks_evaluated = [evaluate(np.ones((1, n)))]
    for rng, size in iterate_seeded_replicate_blocks(spec.replicates, spec.seed, "rank bootstrap"):
        weights = np.ascontiguousarray(draw_weights(rng, unit_counts, size).T)  # [size, n]
        blocks_evaluated.append(evaluate(weights))
    return [np.concatenate(columns, axis=-1) for columns in zip(*blocks_evaluated, strict=True)]
