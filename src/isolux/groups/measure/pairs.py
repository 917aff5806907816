"""Evidence of two units each: a pair counts for a group when both of its units are in it.

A pair's weight on a replicate is the product of its clusters' weights, or the weight of the
cluster if both units are of one. A rate read at a false accept rate needs impostor pairs: below
1/FAR there is no value, below 30/FAR a value without an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError
from isolux.core.spec import Statistics
from isolux.core.tables import COMPARABLE_STATUSES, Status
from isolux.groups.measure.pair_rows import PairRows
from isolux.groups.statuses import flag_rare_class
from isolux.stats.cluster_sums import ClusterSums
from isolux.stats.constants import MIN_EXPECTED_IMPOSTORS
from isolux.stats.intervals import Interval
from isolux.stats.resampling.rows import PairSample, replicate_pair_statistics
from isolux.stats.sampling import kish_effective_size
from isolux.stats.statistic import FloatArray, IntArray, PairStatistic, UnitPairs
from isolux.stats.survey_sums import SurveyClusterSums
from isolux.stats.verification import count_pairs_by_cluster

_MAX_BYTES = 64 << 20
"""Bytes of memberships in memory at once."""

_WEIGHT_TOLERANCE = 1e-9
"""Relative difference below which weights are equal."""
_ABSOLUTE_TOLERANCE = 1e-9


PairMeasureRows = dict[int, tuple[PairStatistic, PairRows]]
"""By measure: the statistic, and its rows."""


@dataclass(frozen=True, slots=True)
class PairMeasures:
    """Values and replicates of groups by measure, with numbers of pairs and clusters.

    ``n_units[j]`` is the number of pairs in the denominator, ``[g]``, ``n_clusters[j]`` that of
    clusters in them; ``n_impostors[j]`` is the number of impostor pairs; ``false_accept_rate[j]``
    is the rate of those measures that must resolve one.
    ``n_rarest[j]`` is the number of pairs of the rarer required type ``[g]``, and
    ``n_rarest_clusters[j]`` the number of clusters in them. With survey weights the last three are
    effective sizes (Kish), and ``n_effective[j] [2, g]`` has those of ``n_units`` and
    ``n_clusters``.
    """

    value: dict[int, FloatArray]
    replicates: dict[int, FloatArray]
    n_units: dict[int, IntArray]
    n_clusters: dict[int, IntArray]
    n_impostors: dict[int, IntArray]
    false_accept_rate: dict[int, float]
    n_rarest: dict[int, IntArray]
    n_rarest_clusters: dict[int, IntArray]
    n_effective: dict[int, FloatArray]

    def fill(
        self, estimates: FloatArray, replicates: FloatArray, n_units: IntArray, n_clusters: IntArray
    ) -> None:
        """Write the columns of these measures into arrays ``[g, m]`` and ``[g, m, r]``."""
        for j, measure_values in self.value.items():
            estimates[:, j], replicates[:, j] = measure_values, self.replicates[j]
            n_units[:, j], n_clusters[:, j] = self.n_units[j], self.n_clusters[j]

    def fill_effective_sizes(self, units: FloatArray, clusters: FloatArray) -> None:
        """Write the effective numbers of pairs and clusters into arrays ``[g, m]``."""
        for j, effective_sizes in self.n_effective.items():
            units[:, j], clusters[:, j] = effective_sizes

    def remove_unstable_intervals(self, interval: Interval) -> Interval:
        """Remove the intervals of groups with fewer than 30/FAR impostor pairs."""
        low, high = interval.low.copy(), interval.high.copy()
        for j, has_few in self._flag_few_impostors(MIN_EXPECTED_IMPOSTORS).items():
            low[has_few, j] = high[has_few, j] = np.nan
        return Interval(low, high)

    def flag(
        self, status: npt.NDArray[np.object_], reason: npt.NDArray[np.object_], spec: Statistics
    ) -> None:
        """Flag the groups with too few pairs of a type, with the number that they need."""
        for j in self.value:
            reason_column = reason[:, j]
            # The general reason counts units; the units of these measures are pairs.
            start = f"fewer than {spec.min_units}"
            reason_column[reason_column == f"{start} units"] = f"{start} pairs"
        for j, n_rarest in self.n_rarest.items():
            flag_rare_class(
                (status[:, j], reason[:, j]),
                (n_rarest, self.n_rarest_clusters[j]),
                ("pairs of one kind", spec.min_units, spec.min_clusters),
            )
        # The graver status last, because it replaces the other.
        for min_accepted, flag in (
            (MIN_EXPECTED_IMPOSTORS, Status.FEW_IMPOSTORS.value),
            (1, Status.INSUFFICIENT_UNITS.value),
        ):
            for j, has_few in self._flag_few_impostors(min_accepted).items():
                false_accept_rate = self.false_accept_rate[j]
                for g in np.flatnonzero(has_few):
                    if status[g, j] not in (*COMPARABLE_STATUSES, Status.UNDEFINED.value):
                        continue
                    goal = "an interval" if min_accepted > 1 else "a value"
                    unstable = "unstable: " if min_accepted > 1 else ""
                    status[g, j] = flag
                    prefix = "impostor pairs worth " if self.n_effective else ""
                    unit_text = "of one weight" if self.n_effective else "impostor pairs"
                    n_required = required_impostors(false_accept_rate, min_accepted)
                    reason[g, j] = (
                        f"{unstable}{prefix}{self.n_impostors[j][g]:,} {unit_text}; {goal} at a "
                        f"false accept rate of {false_accept_rate:g} needs {n_required:,}"
                    )

    def _flag_few_impostors(self, min_accepted: int) -> dict[int, npt.NDArray[np.bool_]]:
        return {
            j: self.n_impostors[j] < required_impostors(false_accept_rate, min_accepted)
            for j, false_accept_rate in self.false_accept_rate.items()
        }


def required_impostors(false_accept_rate: float, min_accepted: int = 1) -> int:
    """Count the impostor pairs of which ``min_accepted`` are accepted at a false accept rate."""
    # A quotient that is above an integer only by rounding counts as that integer.
    return math.ceil(min_accepted / false_accept_rate * (1.0 - 1e-12))


def measure_pair_statistics(
    pair_measures: PairMeasureRows,
    entries: tuple[IntArray, IntArray],
    cluster_index: IntArray,
    n_groups: int,
    spec: Statistics,
    sample: PairSample | None = None,
) -> PairMeasures:
    """Evaluate every pair statistic for every group on the data and on resampled clusters.

    Shapes: ``entries`` [n], ``cluster_index`` [n_units].
    """
    group_index, unit_index = entries
    size = n_groups, spec.replicates
    measures_out = PairMeasures(
        {j: np.full(n_groups, np.nan) for j in pair_measures},
        {j: np.full(size, np.nan) for j in pair_measures},
        {j: np.zeros(n_groups, dtype=np.int64) for j in pair_measures},
        {j: np.zeros(n_groups, dtype=np.int64) for j in pair_measures},
        {j: np.zeros(n_groups, dtype=np.int64) for j in pair_measures},
        {
            j: rows.pairs.false_accept_rate
            for j, (s, rows) in pair_measures.items()
            if rows.needs_min_impostors(s)
        },
        {j: np.zeros(n_groups, dtype=np.int64) for j in pair_measures},
        {j: np.zeros(n_groups, dtype=np.int64) for j in pair_measures},
        {} if sample is None else {j: np.zeros((2, n_groups)) for j in pair_measures},
    )
    measures_by_rows: dict[int, list[int]] = {}  # measures of the same pairs
    for j, (_, rows) in pair_measures.items():
        measures_by_rows.setdefault(id(rows), []).append(j)
    n_clusters = int(cluster_index.max(initial=-1)) + 1
    for g in range(n_groups if pair_measures else 0):
        inside = np.zeros(len(cluster_index), dtype=np.bool_)
        inside[unit_index[group_index == g]] = True
        for measures in measures_by_rows.values():
            rows = pair_measures[measures[0]][1]
            group_pairs = rows.select_pairs(inside)
            statistics = [pair_measures[j][0] for j in measures]
            values_and_replicates = replicate_pair_statistics(
                statistics, count_pairs_by_cluster(group_pairs), n_clusters, spec, sample
            )
            counted_pairs = _GroupPairs(group_pairs, None if sample is None else sample.weight)
            for j, estimate, replicates in zip(measures, *values_and_replicates, strict=True):
                measures_out.value[j][g], measures_out.replicates[j][g] = estimate, replicates
                is_counted = np.isin(group_pairs.is_genuine, pair_measures[j][0].counted_kinds)
                measures_out.n_units[j][g] = int(is_counted.sum())
                measures_out.n_clusters[j][g] = len(counted_pairs.list_clusters(is_counted))
                measures_out.n_impostors[j][g] = counted_pairs.n_effective_pairs(
                    ~group_pairs.is_genuine
                )
                masks = [
                    group_pairs.is_genuine == pair_kind
                    for pair_kind in pair_measures[j][0].required_kinds
                ]
                measures_out.n_rarest[j][g] = min(
                    counted_pairs.n_effective_pairs(pair_kind) for pair_kind in masks
                )
                measures_out.n_rarest_clusters[j][g] = min(
                    counted_pairs.n_effective_clusters(pair_kind) for pair_kind in masks
                )
                if sample is not None:
                    measures_out.n_effective[j][:, g] = (
                        counted_pairs.n_effective_pairs(is_counted),
                        counted_pairs.n_effective_clusters(is_counted),
                    )
    return measures_out


@dataclass(frozen=True, slots=True)
class _GroupPairs:
    """One group's pairs, with effective numbers of selected pairs and clusters."""

    pairs: UnitPairs
    weight: FloatArray | None

    def list_clusters(self, mask: npt.NDArray[np.bool_]) -> IntArray:
        """List the clusters of selected pairs."""
        return np.unique(np.concatenate([self.pairs.first[mask], self.pairs.second[mask]]))

    def n_effective_clusters(self, mask: npt.NDArray[np.bool_]) -> int:
        """Count the clusters of selected pairs; with weights, Kish's effective number."""
        clusters = self.list_clusters(mask)
        return (
            len(clusters)
            if self.weight is None
            else _floor_size(kish_effective_size(self.weight[clusters]))
        )

    def n_effective_pairs(self, mask: npt.NDArray[np.bool_]) -> int:
        """Count selected pairs; with weights, Kish's effective number of weight products."""
        if self.weight is None:
            return int(mask.sum())
        first_clusters, second_clusters = self.pairs.first[mask], self.pairs.second[mask]
        # A pair within one cluster has that cluster's weight once, as in replicates.
        second_weights = np.where(
            first_clusters == second_clusters, 1.0, self.weight[second_clusters]
        )
        return _floor_size(kish_effective_size(self.weight[first_clusters] * second_weights))


def _floor_size(effective_size: float) -> int:
    # Rounded down: an effective size of 49.6 does not reach a minimum of 50.
    return math.floor(effective_size + _ABSOLUTE_TOLERANCE)


def build_pair_sample(
    cluster_sums: ClusterSums, paired: PairMeasureRows, cluster_index: IntArray, clusters: pl.Series
) -> PairSample | None:
    """Return the clusters' weights for pairs; None: no weights, or no pairs.

    Shapes: ``cluster_index`` [n_units], ``clusters`` [n_units].
    """
    if not paired or not isinstance(cluster_sums, SurveyClusterSums):
        return None
    if cluster_sums.other_clusterings is not None:
        raise SpecError(
            "pairs have clusters one way: a comparison of two photos by one photographer is alike "
            "with both people's others, and no variance is known for that",
            expected="one --cluster: the person",
            found="clusters both ways",
        )
    n = int(cluster_index.max(initial=-1)) + 1
    low, high = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(low, cluster_index, cluster_sums.unit_weight)
    np.maximum.at(high, cluster_index, cluster_sums.unit_weight)
    conflicting = np.flatnonzero(high > low * (1.0 + _WEIGHT_TOLERANCE))
    if len(conflicting):
        unit = int(np.flatnonzero(cluster_index == conflicting[0])[0])
        raise SpecError(
            f"weights differ within {len(conflicting):,} of {n:,} clusters, and a pair from one "
            "cluster represents as many people as the cluster does",
            expected="one weight for all images of a person (of a cluster)",
            found=f"{low[conflicting[0]]:g} and {high[conflicting[0]]:g} (1 is the mean) "
            "in that of "
            f"{clusters[unit]!r}",
            where="--weight",
        )
    unit_index = np.zeros(n, dtype=np.int64)
    unit_index[cluster_index] = np.arange(len(cluster_index))
    return PairSample(cluster_sums, cluster_sums.unit_weight[unit_index], unit_index)


def evaluate_rates_by_group(
    statistic: PairStatistic, rows: PairRows, members: npt.NDArray[np.bool_]
) -> FloatArray:
    """Evaluate a statistic for many groups in one pass, without replicates: ``[g]``.

    Shapes: ``members`` [n_units, g].
    """
    # In batches: all memberships as floats would be a dense matrix of units by groups.
    n_per_batch = max(1, _MAX_BYTES // (8 * max(len(members), 1)))
    batches = [
        statistic(rows.pairs, members[:, start : start + n_per_batch].astype(np.float64))
        for start in range(0, members.shape[1], n_per_batch)
    ]
    return np.concatenate(batches) if batches else np.zeros(0)
