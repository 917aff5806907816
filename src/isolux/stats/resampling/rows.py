"""Bootstrap replicates of statistics of single rows: pairs, ranks and detections.

Pairs have the product of both people's weights; ranks are medians, AUC and average precision of
scores; the ranking of detections is resampled by the images' clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core.spec import Bootstrap
from isolux.stats.statistic import (
    DetectionStatistic,
    FloatArray,
    IntArray,
    PairStatistic,
    Ranking,
    RankStatistic,
    UnitPairs,
    WeightedValue,
)
from isolux.stats.survey_sums import SurveyClusterSums
from isolux.stats.weighted_means import TWO_WAY_WEIGHT
from isolux.stats.weights import draw_weight_batches, iterate_seeded_replicate_blocks


@dataclass(frozen=True, slots=True)
class PairSample:
    """A survey sample of clusters, with one weight in each cluster.

    Parameters
    ----------
    survey_sums : SurveyClusterSums
    weight : [c] float
    unit_index : [c] int
        One unit of each cluster.
    """

    survey_sums: SurveyClusterSums
    weight: FloatArray
    unit_index: IntArray

    def draw_weights(self, rng: np.random.Generator, replicates: int) -> Iterator[FloatArray]:
        """Draw replicate weights of clusters, ``[c, batch]``."""
        # Calibration changes weights within a cluster, so units have weights of their own.
        if self.survey_sums.calibration is not None:
            for unit_weights in self.survey_sums.draw_unit_weights(rng, replicates):
                yield unit_weights[self.unit_index]
            return
        for cluster_weights in self.survey_sums.draw_cluster_weights(rng, replicates):
            yield self.weight[:, None] * cluster_weights


def replicate_pair_statistics(
    statistics: list[PairStatistic],
    pairs: UnitPairs,
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: PairSample | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Evaluate statistics of one group's pairs on the data and on resampled clusters.

    Returns ``value`` [s], ``replicates`` [s, r].
    """
    estimates = np.full(len(statistics), np.nan)
    replicates = np.full((len(statistics), bootstrap.replicates), np.nan)
    if not len(pairs.is_genuine):
        return estimates, replicates
    observed_weights = np.ones(n_clusters) if sample is None else sample.weight
    estimates[:] = [float(statistic(pairs, observed_weights)) for statistic in statistics]
    start = 0
    for rng, size in iterate_seeded_replicate_blocks(
        bootstrap.replicates, bootstrap.seed, "rank bootstrap"
    ):
        for weights in _draw_pair_weights(rng, size, n_clusters, bootstrap, sample):
            columns = slice(start, start + weights.shape[1])
            for s, statistic in enumerate(statistics):
                replicates[s, columns] = statistic(pairs, weights)
            start = columns.stop
    return estimates, replicates


def _draw_pair_weights(
    rng: np.random.Generator,
    n_replicates: int,
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: PairSample | None,
) -> Iterator[FloatArray]:
    """Draw replicate weights of clusters for pairs, ``[c, batch]``."""
    if sample is not None:
        yield from sample.draw_weights(rng, n_replicates)
        return
    yield from draw_weight_batches(
        bootstrap.weights, rng, np.ones(n_clusters, dtype=np.int64), n_replicates
    )


@dataclass(frozen=True, slots=True)
class RowStatistic:
    """A statistic of single rows, its rows, and their clusters and groups.

    Parameters
    ----------
    statistic : RankStatistic
    rows : [n, k] float
        ``statistic.columns(evidence)``.
    cluster_of_row : [n] int
    rows_by_group : list of [m] int
        The rows of each group.
    unit_of_row : [n] int, optional
        Of a survey sample.
    """

    statistic: RankStatistic
    rows: FloatArray
    cluster_of_row: IntArray
    rows_by_group: list[IntArray]
    unit_of_row: IntArray | None = None


@dataclass(frozen=True, slots=True)
class EvaluatedRows:
    """Estimates and replicates of a statistic of single rows.

    Parameters
    ----------
    value : [g] float
    replicates : [g, r] float
        Replicates.
    total_weights : [g, r + 1] float
        Total weight of each group's rows, observed and then in each replicate.
    """

    value: FloatArray
    replicates: FloatArray
    total_weights: FloatArray

    def halve_deviations(self) -> EvaluatedRows:
        """Rescale replicates of two-way clustering, whose weights have half of each deviation."""
        estimates, observed_weights = self.value[:, None], self.total_weights[:, :1]
        replicates = estimates + (self.replicates - estimates) / TWO_WAY_WEIGHT
        return EvaluatedRows(
            self.value,
            replicates,
            observed_weights + (self.total_weights - observed_weights) / TWO_WAY_WEIGHT,
        )


@dataclass(frozen=True, slots=True)
class _GroupRows:
    """One statistic of one group: the indices and factors of its rows' weights."""

    evaluate_rows: WeightedValue
    weight_rows: IntArray
    factor: FloatArray | None
    mean: float

    def row_multipliers(self, n: int) -> FloatArray:
        """Return the factor of each of n weights in the total weight of the group's rows."""
        return np.bincount(self.weight_rows, weights=self.factor, minlength=n).astype(np.float64)

    def evaluate(self, weights: FloatArray) -> FloatArray:
        """Evaluate at ``weights [c, r]``."""
        # Weights that need no factor are read where they are, without a copy per group.
        if self.factor is None and self.mean == 1.0:
            return self.evaluate_rows(weights, self.weight_rows)
        row_weights = weights[self.weight_rows]
        if self.factor is not None:
            row_weights *= self.factor[:, None]
        row_weights /= self.mean
        return self.evaluate_rows(row_weights, None)


def replicate_row_statistics(
    row_statistics: Sequence[RowStatistic],
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: SurveyClusterSums | None = None,
) -> list[EvaluatedRows]:
    """Evaluate statistics of single rows on the data and on resampled clusters."""
    evaluations = [
        _build_nan_evaluated_rows(len(row_statistic.rows_by_group), bootstrap.replicates)
        for row_statistic in row_statistics
    ]
    group_rows: list[tuple[int, int, _GroupRows]] = []
    for k, row_statistic in enumerate(row_statistics):
        unit_weights = np.ones(len(row_statistic.rows))
        if sample is not None:
            unit_weights = sample.unit_weight[row_statistic.unit_of_row]
        for group_index, members in enumerate(row_statistic.rows_by_group):
            if len(members):
                # A group's weights sum to its number of rows, as quantiles count rows.
                mean = 1.0 if sample is None else float(unit_weights[members].mean())
                group = _select_group_rows(row_statistic, members, sample, mean)
                evaluations[k].value[group_index] = group.evaluate_rows(
                    unit_weights[members][:, None] / mean, None
                )[0]
                evaluations[k].total_weights[group_index, 0] = unit_weights[members].sum()
                group_rows.append((k, group_index, group))
    start = 0
    for rng, size in iterate_seeded_replicate_blocks(
        bootstrap.replicates, bootstrap.seed, "rank bootstrap"
    ):
        for weights in _draw_row_weights(rng, size, n_clusters, bootstrap, sample):
            columns = slice(start, start + weights.shape[1])
            for k, group_index, group in group_rows:
                evaluations[k].replicates[group_index, columns] = group.evaluate(weights)
                evaluations[k].total_weights[group_index, 1:][columns] = (
                    group.row_multipliers(len(weights)) @ weights
                )
            start += weights.shape[1]
    if sample is not None and sample.other_clusterings is not None:
        return [row_statistic.halve_deviations() for row_statistic in evaluations]
    return evaluations


def _build_nan_evaluated_rows(n_groups: int, n_replicates: int) -> EvaluatedRows:
    return EvaluatedRows(
        np.full(n_groups, np.nan),
        np.full((n_groups, n_replicates), np.nan),
        np.zeros((n_groups, n_replicates + 1)),
    )


def _select_group_rows(
    row_statistic: RowStatistic, members: IntArray, sample: SurveyClusterSums | None, mean: float
) -> _GroupRows:
    evaluate = row_statistic.statistic.build_value(row_statistic.rows[members])
    if sample is None or row_statistic.unit_of_row is None:
        return _GroupRows(evaluate, row_statistic.cluster_of_row[members], None, mean)
    unit_rows = row_statistic.unit_of_row[members]
    if sample.calibration is not None:  # units have weights of their own
        return _GroupRows(evaluate, unit_rows, None, mean)
    weight_rows = (
        row_statistic.cluster_of_row[members]
        if sample.other_clusterings is None
        else sample.unit_cell_index[unit_rows]
    )
    return _GroupRows(evaluate, weight_rows, sample.unit_weight[unit_rows], mean)


def _draw_row_weights(
    rng: np.random.Generator,
    n_replicates: int,
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: SurveyClusterSums | None,
) -> Iterator[FloatArray]:
    """Draw weights of clusters, of two-way cells or, calibrated, of units: ``[c, batch]``."""
    if sample is None:
        multiplicity = np.ones(n_clusters, dtype=np.int64)
        return draw_weight_batches(bootstrap.weights, rng, multiplicity, n_replicates)
    if sample.calibration is not None:
        return sample.draw_unit_weights(rng, n_replicates)
    return sample.draw_cluster_weights(rng, n_replicates)


def replicate_detection_statistics(
    statistics: list[tuple[DetectionStatistic, int | None]],
    rankings: list[Ranking],
    peers: list[IntArray],
    n_clusters: int,
    bootstrap: Bootstrap,
    *,
    common_count: float | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Evaluate statistics of each group's detections on the data and on resampled clusters.

    Shapes: ``peers`` [p]; returns ``value`` [g, s], ``replicates`` [g, s, r].
    """
    unit_weights = np.ones((n_clusters, 1))
    n_normalised = sum(statistic.is_normalised for statistic, _ in statistics)
    has_people = _sum_people_weights_by_group_class(rankings, unit_weights, n_normalised)[:, 0] > 0
    estimates = _evaluate_detection_statistics(
        statistics, rankings, (peers, has_people, common_count), unit_weights
    )[..., 0]
    replicates = np.full((*estimates.shape, bootstrap.replicates), np.nan)
    start = 0
    for cluster_weights in _draw_cluster_weight_batches(n_clusters, bootstrap):
        weights = np.ascontiguousarray(cluster_weights.T).T  # weights of a replicate are contiguous
        batch_values = _evaluate_detection_statistics(
            statistics, rankings, (peers, has_people, common_count), weights
        )
        replicates[..., start : start + weights.shape[1]] = batch_values
        start += weights.shape[1]
    return estimates, replicates


def _draw_cluster_weight_batches(n_clusters: int, bootstrap: Bootstrap) -> Iterator[FloatArray]:
    """Draw the weights of all replicates in batches: ``[n_clusters, batch]``."""
    multiplicity = np.ones(n_clusters, dtype=np.int64)
    for rng, size in iterate_seeded_replicate_blocks(
        bootstrap.replicates, bootstrap.seed, "rank bootstrap"
    ):
        yield from draw_weight_batches(bootstrap.weights, rng, multiplicity, size)


def _sum_people_weights_by_group_class(
    rankings: list[Ranking], weights: FloatArray, n_normalised: int
) -> FloatArray:
    """Weight of each group's people by class: ``[g, r, K]``; empty if no statistic needs it."""
    from isolux.stats.precision_recall import sum_people_weights_by_class

    counts = [sum_people_weights_by_class(ranking, weights) for ranking in rankings if n_normalised]
    return np.stack(counts) if counts else np.zeros((len(rankings), weights.shape[1], 0))


def _evaluate_detection_statistics(
    statistics: list[tuple[DetectionStatistic, int | None]],
    rankings: list[Ranking],
    normalisation: tuple[list[IntArray], npt.NDArray[np.bool_], float | None],
    weights: FloatArray,
) -> FloatArray:
    """Evaluate every statistic of every group at ``weights [n_clusters, r]``: ``[g, s, r]``."""
    peers, has_people, common_count = normalisation
    out = np.full((len(rankings), len(statistics), weights.shape[1]), np.nan)
    statistics_by_table: dict[tuple[Any, bool], list[int]] = {}  # statistics with a common table
    for s, (statistic, _) in enumerate(statistics):
        statistics_by_table.setdefault(
            (statistic.class_values, statistic.is_normalised), []
        ).append(s)
    n_normalised = sum(statistic.is_normalised for statistic, _ in statistics)
    counts = _sum_people_weights_by_group_class(
        rankings, weights, 0 if common_count is not None else n_normalised
    )
    for g, ranking in enumerate(rankings):
        for (build_table, normalised), statistic_indices in statistics_by_table.items():
            overlaps = sorted({t for s in statistic_indices for t in statistics[s][0].iou_indices})
            class_counts = None
            if normalised and common_count is not None:
                class_counts = np.full(
                    (weights.shape[1], len(ranking.starts) - 1), float(common_count)
                )
            elif normalised:
                class_counts = _mean_class_count_over_groups(counts[peers[g]], has_people[peers[g]])
            table = build_table(ranking, weights, overlaps, class_counts)
            for s in statistic_indices:
                statistic, k = statistics[s]
                selected = table[:, :, [overlaps.index(t) for t in statistic.iou_indices]]
                out[g, s] = statistic.average_classes(
                    selected if k is None else selected[:, k : k + 1]
                )
    return out


def _mean_class_count_over_groups(
    counts: FloatArray, has_people: npt.NDArray[np.bool_]
) -> FloatArray:
    """Mean of counts ``[p, r, K]`` over the groups with people of a class: ``[r, K]``."""
    n = has_people.sum(axis=0)
    # 1 where no group has people of the class: its value is NaN for any count above 0.
    total = np.where(has_people[:, None, :], counts, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, n, out=np.ones_like(total), where=n > 0))
