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

from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.statistic import (
    DetectionStatistic,
    FloatArray,
    IntArray,
    Pairs,
    PairStatistic,
    Ranking,
    RankStatistic,
    Weighted,
)
from isolux.stats.weighted_means import HALF
from isolux.stats.weights import blocks, in_parts
from isolux.vocabulary.spec import Bootstrap


@dataclass(frozen=True, slots=True)
class PairSample:
    """A survey sample of clusters, with one weight in each cluster.

    Parameters
    ----------
    design : DrawnDesign
    weight : [c] float
    unit_of : [c] int
        One unit of each cluster.
    """

    design: DrawnDesign
    weight: FloatArray
    unit_of: IntArray

    def drawn(self, rng: np.random.Generator, replicates: int) -> Iterator[FloatArray]:
        """Draw replicate weights of clusters, ``[c, batch]``."""
        if self.design.calibration is not None:
            for unit_weights in self.design.replicates_of_units(rng, replicates):
                yield unit_weights[self.unit_of]
            return
        for cluster_weights in self.design.times(rng, replicates):
            yield self.weight[:, None] * cluster_weights


def replicate_pairs(
    statistics: list[PairStatistic],
    pairs: Pairs,
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: PairSample | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Evaluate statistics of one group's pairs on the data and on resampled clusters.

    Returns ``value`` [s], ``replicates`` [s, r].
    """
    estimates = np.full(len(statistics), np.nan)
    replicates = np.full((len(statistics), bootstrap.replicates), np.nan)
    if not len(pairs.genuine):
        return estimates, replicates
    observed_weights = np.ones(n_clusters) if sample is None else sample.weight
    estimates[:] = [float(statistic(pairs, observed_weights)) for statistic in statistics]
    start = 0
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        for weights in _of_clusters(rng, size, n_clusters, bootstrap, sample):
            columns = slice(start, start + weights.shape[1])
            for s, statistic in enumerate(statistics):
                replicates[s, columns] = statistic(pairs, weights)
            start = columns.stop
    return estimates, replicates


def _of_clusters(
    rng: np.random.Generator,
    n_replicates: int,
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: PairSample | None,
) -> Iterator[FloatArray]:
    """Draw replicate weights of clusters for pairs, ``[c, batch]``."""
    if sample is not None:
        yield from sample.drawn(rng, n_replicates)
        return
    yield from in_parts(bootstrap.weights, rng, np.ones(n_clusters, dtype=np.int64), n_replicates)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A statistic of single rows, its rows, and their clusters and groups.

    Parameters
    ----------
    statistic : RankStatistic
    rows : [n, k] float
        ``statistic.columns(evidence)``.
    cluster_of_row : [n] int
    rows_of_group : list of [m] int
        The rows of each group.
    unit_of_row : [n] int, optional
        Of a survey sample.
    """

    statistic: RankStatistic
    rows: FloatArray
    cluster_of_row: IntArray
    rows_of_group: list[IntArray]
    unit_of_row: IntArray | None = None


@dataclass(frozen=True, slots=True)
class ReplicatedRanks:
    """Estimates and replicates of a statistic of single rows.

    Parameters
    ----------
    value : [g] float
    drawn : [g, r] float
        Replicates.
    units : [g, r + 1] float
        Total weight of each group's rows, observed and then in each replicate.
    """

    value: FloatArray
    drawn: FloatArray
    units: FloatArray

    def halved(self) -> ReplicatedRanks:
        """Rescale replicates of two-way clustering, whose weights have half of each deviation."""
        estimates, observed_weights = self.value[:, None], self.units[:, :1]
        replicates = estimates + (self.drawn - estimates) / HALF
        return ReplicatedRanks(
            self.value, replicates, observed_weights + (self.units - observed_weights) / HALF
        )


@dataclass(frozen=True, slots=True)
class _Held:
    """One statistic of one group: the indices and factors of its rows' weights."""

    value: Weighted
    at: IntArray
    factor: FloatArray | None
    mean: float

    def sizes(self, n: int) -> FloatArray:
        """Return the factor of each of n weights in the total weight of the group's rows."""
        return np.bincount(self.at, weights=self.factor, minlength=n).astype(np.float64)

    def of(self, weights: FloatArray) -> FloatArray:
        """Evaluate at ``weights [c, r]``."""
        if self.factor is None and self.mean == 1.0:
            return self.value(weights, self.at)
        row_weights = weights[self.at]
        if self.factor is not None:
            row_weights *= self.factor[:, None]
        row_weights /= self.mean
        return self.value(row_weights, None)


def replicate_ranks(
    row_statistics: Sequence[Ranked],
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: DrawnDesign | None = None,
) -> list[ReplicatedRanks]:
    """Evaluate statistics of single rows on the data and on resampled clusters."""
    evaluations = [
        _nothing(len(row_statistic.rows_of_group), bootstrap.replicates)
        for row_statistic in row_statistics
    ]
    group_rows: list[tuple[int, int, _Held]] = []
    for k, row_statistic in enumerate(row_statistics):
        unit_weights = np.ones(len(row_statistic.rows))
        if sample is not None:
            unit_weights = sample.unit_weight[row_statistic.unit_of_row]
        for group_index, members in enumerate(row_statistic.rows_of_group):
            if len(members):
                # A group's weights sum to its number of rows, as quantiles count rows.
                mean = 1.0 if sample is None else float(unit_weights[members].mean())
                group = _held(row_statistic, members, sample, mean)
                evaluations[k].value[group_index] = group.value(
                    unit_weights[members][:, None] / mean, None
                )[0]
                evaluations[k].units[group_index, 0] = unit_weights[members].sum()
                group_rows.append((k, group_index, group))
    start = 0
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        for weights in _weights(rng, size, n_clusters, bootstrap, sample):
            columns = slice(start, start + weights.shape[1])
            for k, group_index, group in group_rows:
                evaluations[k].drawn[group_index, columns] = group.of(weights)
                evaluations[k].units[group_index, 1:][columns] = group.sizes(len(weights)) @ weights
            start += weights.shape[1]
    if sample is not None and sample.ways is not None:
        return [row_statistic.halved() for row_statistic in evaluations]
    return evaluations


def _nothing(groups: int, replicates: int) -> ReplicatedRanks:
    return ReplicatedRanks(
        np.full(groups, np.nan),
        np.full((groups, replicates), np.nan),
        np.zeros((groups, replicates + 1)),
    )


def _held(
    row_statistic: Ranked, members: IntArray, sample: DrawnDesign | None, mean: float
) -> _Held:
    evaluate = row_statistic.statistic.of(row_statistic.rows[members])
    if sample is None or row_statistic.unit_of_row is None:
        return _Held(evaluate, row_statistic.cluster_of_row[members], None, mean)
    unit_rows = row_statistic.unit_of_row[members]
    if sample.calibration is not None:  # units have weights of their own
        return _Held(evaluate, unit_rows, None, mean)
    weight_rows = (
        row_statistic.cluster_of_row[members]
        if sample.ways is None
        else sample.cell_of_unit[unit_rows]
    )
    return _Held(evaluate, weight_rows, sample.unit_weight[unit_rows], mean)


def _weights(
    rng: np.random.Generator,
    n_replicates: int,
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: DrawnDesign | None,
) -> Iterator[FloatArray]:
    """Draw weights of clusters, of two-way cells or, calibrated, of units: ``[c, batch]``."""
    if sample is None:
        multiplicity = np.ones(n_clusters, dtype=np.int64)
        return in_parts(bootstrap.weights, rng, multiplicity, n_replicates)
    if sample.calibration is not None:
        return sample.replicates_of_units(rng, n_replicates)
    return sample.times(rng, n_replicates)


def replicate_rankings(
    statistics: list[tuple[DetectionStatistic, int | None]],
    rankings: list[Ranking],
    peers: list[IntArray],
    n_clusters: int,
    bootstrap: Bootstrap,
    *,
    common: float | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Evaluate statistics of each group's detections on the data and on resampled clusters.

    Shapes: ``peers`` [p]; returns ``value`` [g, s], ``replicates`` [g, s, r].
    """
    unit_weights = np.ones((n_clusters, 1))
    n_normalised = sum(statistic.normalised for statistic, _ in statistics)
    has_people = _counts(rankings, unit_weights, n_normalised)[:, 0] > 0
    estimates = _evaluate_rankings(statistics, rankings, (peers, has_people, common), unit_weights)[
        ..., 0
    ]
    replicates = np.full((*estimates.shape, bootstrap.replicates), np.nan)
    start = 0
    for cluster_weights in _draw_all_weights(n_clusters, bootstrap):
        weights = np.ascontiguousarray(cluster_weights.T).T  # weights of a replicate are contiguous
        batch_values = _evaluate_rankings(
            statistics, rankings, (peers, has_people, common), weights
        )
        replicates[..., start : start + weights.shape[1]] = batch_values
        start += weights.shape[1]
    return estimates, replicates


def _draw_all_weights(n_clusters: int, bootstrap: Bootstrap) -> Iterator[FloatArray]:
    """Draw the weights of all replicates in batches: ``[n_clusters, batch]``."""
    multiplicity = np.ones(n_clusters, dtype=np.int64)
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        yield from in_parts(bootstrap.weights, rng, multiplicity, size)


def _counts(rankings: list[Ranking], weights: FloatArray, n_normalised: int) -> FloatArray:
    """Weight of each group's people by class: ``[g, r, K]``; empty if no statistic needs it."""
    from isolux.stats.precision_recall import people_of_classes

    counts = [people_of_classes(ranking, weights) for ranking in rankings if n_normalised]
    return np.stack(counts) if counts else np.zeros((len(rankings), weights.shape[1], 0))


def _evaluate_rankings(
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
        statistics_by_table.setdefault((statistic.table, statistic.normalised), []).append(s)
    n_normalised = sum(statistic.normalised for statistic, _ in statistics)
    counts = _counts(rankings, weights, 0 if common_count is not None else n_normalised)
    for g, ranking in enumerate(rankings):
        for (build_table, normalised), statistic_indices in statistics_by_table.items():
            overlaps = sorted({t for s in statistic_indices for t in statistics[s][0].overlaps})
            class_counts = None
            if normalised and common_count is not None:
                class_counts = np.full(
                    (weights.shape[1], len(ranking.starts) - 1), float(common_count)
                )
            elif normalised:
                class_counts = _mean_count(counts[peers[g]], has_people[peers[g]])
            table = build_table(ranking, weights, overlaps, class_counts)
            for s in statistic_indices:
                statistic, k = statistics[s]
                selected = table[:, :, [overlaps.index(t) for t in statistic.overlaps]]
                out[g, s] = statistic.mean(selected if k is None else selected[:, k : k + 1])
    return out


def _mean_count(counts: FloatArray, has_people: npt.NDArray[np.bool_]) -> FloatArray:
    """Mean of counts ``[p, r, K]`` over the groups with people of a class: ``[r, K]``."""
    n = has_people.sum(axis=0)
    total = np.where(has_people[:, None, :], counts, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, n, out=np.ones_like(total), where=n > 0))
