"""Bootstrap replicates of statistics of pairs, whose two people are drawn apart.

Bootstrap replicates of statistics of ranks: medians, AUC, average precision of scores.

Bootstrap replicates of average precision of boxes, whose ranking is redrawn by image.
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
    """A sample of clusters that weigh unequally, each as a whole.

    Parameters
    ----------
    design : DrawnDesign
    weight : [c] float
    unit_of : [c] int
        One unit of each cluster: all of a cluster weigh alike.
    """

    design: DrawnDesign
    weight: FloatArray
    unit_of: IntArray

    def drawn(self, rng: np.random.Generator, replicates: int) -> Iterator[FloatArray]:
        """Draw clusters' weights in replicates, ``[c, part]``."""
        if self.design.calibration is not None:
            for units in self.design.replicates_of_units(rng, replicates):
                yield units[self.unit_of]
            return
        for times in self.design.times(rng, replicates):
            yield self.weight[:, None] * times


def replicate_pairs(
    statistics: list[PairStatistic],
    pairs: Pairs,
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: PairSample | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Evaluate statistics of one group's pairs, on the data and on resampled clusters.

    Returns ``value`` [s], ``replicates`` [s, r].
    """
    value = np.full(len(statistics), np.nan)
    out = np.full((len(statistics), bootstrap.replicates), np.nan)
    if not len(pairs.genuine):
        return value, out
    as_is = np.ones(n_clusters) if sample is None else sample.weight
    value[:] = [float(statistic(pairs, as_is)) for statistic in statistics]
    at = 0
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        for weights in _of_clusters(rng, size, n_clusters, bootstrap, sample):
            own = slice(at, at + weights.shape[1])
            for s, statistic in enumerate(statistics):
                out[s, own] = statistic(pairs, weights)
            at = own.stop
    return value, out


def _of_clusters(
    rng: np.random.Generator,
    size: int,
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: PairSample | None,
) -> Iterator[FloatArray]:
    """Draw clusters' weights for pairs, ``[c, part]``."""
    if sample is not None:
        yield from sample.drawn(rng, size)
        return
    yield from in_parts(bootstrap.weights, rng, np.ones(n_clusters, dtype=np.int64), size)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A statistic that needs single rows, the rows, and whose they are.

    Parameters
    ----------
    statistic : RankStatistic
    rows : [n, k] float
        ``statistic.columns(evidence)``.
    cluster_of_row : [n] int
    rows_of_group : list of [m] int
        The rows of each group.
    unit_of_row : [n] int, optional
        Of a sample that stands for a population.
    """

    statistic: RankStatistic
    rows: FloatArray
    cluster_of_row: IntArray
    rows_of_group: list[IntArray]
    unit_of_row: IntArray | None = None


@dataclass(frozen=True, slots=True)
class ReplicatedRanks:
    """A statistic that needs single rows, evaluated.

    Parameters
    ----------
    value : [g] float
    drawn : [g, r] float
        Replicates.
    units : [g, r + 1] float
        What the rows of each group weigh, as they are and then in each replicate.
    """

    value: FloatArray
    drawn: FloatArray
    units: FloatArray

    def halved(self) -> ReplicatedRanks:
        """Take half of each replicate's way from the values: of weights drawn both ways."""
        value, plain = self.value[:, None], self.units[:, :1]
        drawn = value + (self.drawn - value) / HALF
        return ReplicatedRanks(self.value, drawn, plain + (self.units - plain) / HALF)


@dataclass(frozen=True, slots=True)
class _Held:
    """One statistic of one group: where its rows' weights are, and what they are times."""

    value: Weighted
    at: IntArray
    factor: FloatArray | None
    mean: float

    def sizes(self, n: int) -> FloatArray:
        """Return what each of n rows of weights is times in what the group's rows weigh."""
        return np.bincount(self.at, weights=self.factor, minlength=n).astype(np.float64)

    def of(self, weights: FloatArray) -> FloatArray:
        """Evaluate at ``weights [c, r]``."""
        if self.factor is None and self.mean == 1.0:
            return self.value(weights, self.at)
        own = weights[self.at]
        if self.factor is not None:
            own *= self.factor[:, None]
        own /= self.mean
        return self.value(own, None)


def replicate_ranks(
    asked: Sequence[Ranked],
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: DrawnDesign | None = None,
) -> list[ReplicatedRanks]:
    """Evaluate statistics that need single rows, on the data and on resampled clusters."""
    found = [_nothing(len(one.rows_of_group), bootstrap.replicates) for one in asked]
    held: list[tuple[int, int, _Held]] = []
    for k, one in enumerate(asked):
        plain = np.ones(len(one.rows))
        if sample is not None:
            plain = sample.unit_weight[one.unit_of_row]
        for g, members in enumerate(one.rows_of_group):
            if len(members):
                # A group's weights add up to its rows: quantiles count rows.
                mean = 1.0 if sample is None else float(plain[members].mean())
                group = _held(one, members, sample, mean)
                found[k].value[g] = group.value(plain[members][:, None] / mean, None)[0]
                found[k].units[g, 0] = plain[members].sum()
                held.append((k, g, group))
    at = 0
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        for weights in _weights(rng, size, n_clusters, bootstrap, sample):
            part = slice(at, at + weights.shape[1])
            for k, g, group in held:
                found[k].drawn[g, part] = group.of(weights)
                found[k].units[g, 1:][part] = group.sizes(len(weights)) @ weights
            at += weights.shape[1]
    if sample is not None and sample.ways is not None:
        return [one.halved() for one in found]
    return found


def _nothing(groups: int, replicates: int) -> ReplicatedRanks:
    return ReplicatedRanks(
        np.full(groups, np.nan),
        np.full((groups, replicates), np.nan),
        np.zeros((groups, replicates + 1)),
    )


def _held(one: Ranked, members: IntArray, sample: DrawnDesign | None, mean: float) -> _Held:
    value = one.statistic.of(one.rows[members])
    if sample is None or one.unit_of_row is None:
        return _Held(value, one.cluster_of_row[members], None, mean)
    unit = one.unit_of_row[members]
    if sample.calibration is not None:  # units have weights of their own
        return _Held(value, unit, None, mean)
    at = one.cluster_of_row[members] if sample.ways is None else sample.cell_of_unit[unit]
    return _Held(value, at, sample.unit_weight[unit], mean)


def _weights(
    rng: np.random.Generator,
    size: int,
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: DrawnDesign | None,
) -> Iterator[FloatArray]:
    """Draw weights of clusters, of a sample's cells or, calibrated, of its units: ``[c, part]``."""
    if sample is None:
        each = np.ones(n_clusters, dtype=np.int64)
        return in_parts(bootstrap.weights, rng, each, size)
    if sample.calibration is not None:
        return sample.replicates_of_units(rng, size)
    return sample.times(rng, size)


def replicate_rankings(
    asked: list[tuple[DetectionStatistic, int | None]],
    rankings: list[Ranking],
    peers: list[IntArray],
    n_clusters: int,
    bootstrap: Bootstrap,
    *,
    common: float | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Evaluate statistics of each group's detections, on the data and on resampled clusters.

    Shapes: ``peers`` [p]; returns ``value`` [g, s], ``replicates`` [g, s, r].
    """
    plain = np.ones((n_clusters, 1))
    n_normalised = sum(statistic.normalised for statistic, _ in asked)
    held = _counts(rankings, plain, n_normalised)[:, 0] > 0
    value = _of_rankings(asked, rankings, (peers, held, common), plain)[..., 0]
    out = np.full((*value.shape, bootstrap.replicates), np.nan)
    at = 0
    for drawn in _all_weights(n_clusters, bootstrap):
        weights = np.ascontiguousarray(drawn.T).T  # a replicate's lie side by side
        part = _of_rankings(asked, rankings, (peers, held, common), weights)
        out[..., at : at + weights.shape[1]] = part
        at += weights.shape[1]
    return value, out


def _all_weights(n_clusters: int, bootstrap: Bootstrap) -> Iterator[FloatArray]:
    """Draw the weights of all replicates, some at a time: ``[n_clusters, part]``."""
    each = np.ones(n_clusters, dtype=np.int64)
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        yield from in_parts(bootstrap.weights, rng, each, size)


def _counts(rankings: list[Ranking], weights: FloatArray, wanted: int) -> FloatArray:
    """Weight of each group's people by class: ``[g, r, K]``; nothing if no statistic wants it."""
    from isolux.stats.precision_recall import people_of_classes

    counted = [people_of_classes(ranking, weights) for ranking in rankings if wanted]
    return np.stack(counted) if counted else np.zeros((len(rankings), weights.shape[1], 0))


def _of_rankings(
    asked: list[tuple[DetectionStatistic, int | None]],
    rankings: list[Ranking],
    normal: tuple[list[IntArray], npt.NDArray[np.bool_], float | None],
    weights: FloatArray,
) -> FloatArray:
    """Evaluate every statistic of every group at ``weights [n_clusters, r]``: ``[g, s, r]``."""
    peers, held, common = normal
    out = np.full((len(rankings), len(asked), weights.shape[1]), np.nan)
    alike: dict[tuple[Any, bool], list[int]] = {}  # statistics that read one table
    for s, (statistic, _) in enumerate(asked):
        alike.setdefault((statistic.table, statistic.normalised), []).append(s)
    n_normalised = sum(statistic.normalised for statistic, _ in asked)
    counts = _counts(rankings, weights, 0 if common is not None else n_normalised)
    for g, ranking in enumerate(rankings):
        for (table_of, normalised), own in alike.items():
            overlaps = sorted({t for s in own for t in asked[s][0].overlaps})
            n = None
            if normalised and common is not None:
                n = np.full((weights.shape[1], len(ranking.starts) - 1), float(common))
            elif normalised:
                n = _mean_count(counts[peers[g]], held[peers[g]])
            table = table_of(ranking, weights, overlaps, n)
            for s in own:
                statistic, k = asked[s]
                read = table[:, :, [overlaps.index(t) for t in statistic.overlaps]]
                out[g, s] = statistic.mean(read if k is None else read[:, k : k + 1])
    return out


def _mean_count(counts: FloatArray, held: npt.NDArray[np.bool_]) -> FloatArray:
    """Mean of counts ``[p, r, K]`` over the groups that hold anyone of a class: ``[r, K]``."""
    n = held.sum(axis=0)
    total = np.where(held[:, None, :], counts, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, n, out=np.ones_like(total), where=n > 0))
