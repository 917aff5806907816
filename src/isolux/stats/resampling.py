"""Bootstrap replicates of any statistic, for all groups on the same resampled clusters.

Groups that share people see the same weights, so their differences have the right variance; a
metric of two models on the same people likewise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.spec import Bootstrap
from isolux.stats.design import Design, IntArray
from isolux.stats.statistic import (
    DetectionStatistic,
    FloatArray,
    Pairs,
    PairStatistic,
    Ranking,
    RankStatistic,
    SumStatistic,
)
from isolux.stats.weights import blocks, multinomial, poisson

__all__ = [
    "Columns",
    "jackknife_acceleration",
    "replicate_pairs",
    "replicate_rankings",
    "replicate_ranks",
    "replicate_sums",
]

_WEIGHTS = {"multinomial": multinomial, "poisson": poisson}


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a design a statistic reads, and how it turns their sums into a value."""

    statistic: SumStatistic
    start: int
    stop: int

    def value(self, sums: FloatArray) -> FloatArray:
        """Turn sums ``[g, n_columns, r]`` into values ``[g, r]``."""
        own = np.moveaxis(sums[:, self.start : self.stop], 1, -1)
        return self.statistic.finish(np.ascontiguousarray(own))


def replicate_sums(design: Design, measures: list[Columns], bootstrap: Bootstrap) -> FloatArray:
    """Evaluate statistics of sums on resampled clusters.

    Returns
    -------
    [g, m, r] float
        NaN where a replicate drew nobody of a group.
    """
    out = np.empty((design.n_groups, len(measures), bootstrap.replicates))
    at = 0
    draw = _WEIGHTS[bootstrap.weights]
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "bootstrap"):
        sums = design.sums(draw(rng, design.copies, size))
        for j, measure in enumerate(measures):
            out[:, j, at : at + size] = measure.value(sums)
        at += size
    return out


def replicate_ranks(
    statistic: RankStatistic,
    rows: FloatArray,
    cluster_of_row: IntArray,
    rows_of_group: list[IntArray],
    n_clusters: int,
    bootstrap: Bootstrap,
) -> tuple[FloatArray, FloatArray]:
    """Evaluate a statistic that needs single rows, on the data and on resampled clusters.

    Parameters
    ----------
    statistic : RankStatistic
    rows : [n, k] float
        ``statistic.columns(evidence)``.
    cluster_of_row : [n] int
    rows_of_group : list of [m] int
        The rows of each group.
    n_clusters : int
        Of the whole audit, those without a row included.
    bootstrap : Bootstrap

    Returns
    -------
    value : [g] float
    replicates : [g, r] float
    """
    value = np.full(len(rows_of_group), np.nan)
    out = np.full((len(rows_of_group), bootstrap.replicates), np.nan)
    draw = _WEIGHTS[bootstrap.weights]
    each = np.ones(n_clusters, dtype=np.int64)
    for g, members in enumerate(rows_of_group):
        if len(members):
            value[g] = statistic.evaluate(rows[members], np.ones((len(members), 1)))[0]
    at = 0
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        weights = draw(rng, each, size)
        for g, members in enumerate(rows_of_group):
            if len(members):
                drawn = weights[cluster_of_row[members]]
                out[g, at : at + size] = statistic.evaluate(rows[members], drawn)
        at += size
    return value, out


def replicate_pairs(
    statistics: list[PairStatistic], pairs: Pairs, n_clusters: int, bootstrap: Bootstrap
) -> tuple[FloatArray, FloatArray]:
    """Evaluate statistics of one group's pairs, on the data and on resampled clusters.

    The same replicate has the same weights in every group: they are drawn again from the seed.

    Parameters
    ----------
    statistics : list of PairStatistic
    pairs : Pairs
    n_clusters : int
        Of the whole audit, those without a pair included.
    bootstrap : Bootstrap

    Returns
    -------
    value : [s] float
    replicates : [s, r] float
    """
    value = np.full(len(statistics), np.nan)
    out = np.full((len(statistics), bootstrap.replicates), np.nan)
    if not len(pairs.genuine):
        return value, out
    value[:] = [float(statistic(pairs, np.ones(n_clusters))) for statistic in statistics]
    draw = _WEIGHTS[bootstrap.weights]
    each = np.ones(n_clusters, dtype=np.int64)
    at = 0
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        weights = draw(rng, each, size)
        for s, statistic in enumerate(statistics):
            out[s, at : at + size] = statistic(pairs, weights)
        at += size
    return value, out


def replicate_rankings(
    statistics: list[DetectionStatistic],
    rankings: list[Ranking],
    n_clusters: int,
    bootstrap: Bootstrap,
) -> tuple[FloatArray, FloatArray]:
    """Evaluate statistics of each group's detections, on the data and on resampled clusters.

    Parameters
    ----------
    statistics : list of DetectionStatistic
    rankings : list of Ranking
        One a group.
    n_clusters : int
        Of the whole audit and of images without people.
    bootstrap : Bootstrap

    Returns
    -------
    value : [g, s] float
    replicates : [g, s, r] float
    """
    value = np.full((len(rankings), len(statistics)), np.nan)
    out = np.full((*value.shape, bootstrap.replicates), np.nan)
    draw = _WEIGHTS[bootstrap.weights]
    each = np.ones(n_clusters, dtype=np.int64)
    for g, ranking in enumerate(rankings):
        value[g] = [float(statistic(ranking, np.ones(n_clusters))) for statistic in statistics]
    at = 0
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        weights = np.ascontiguousarray(draw(rng, each, size).T).T  # a replicate's lie side by side
        for g, ranking in enumerate(rankings):
            for s, statistic in enumerate(statistics):
                out[g, s, at : at + size] = statistic(ranking, weights)
        at += size
    return value, out


def jackknife_acceleration(design: Design, measure: Columns, groups: IntArray) -> FloatArray:
    """Acceleration of BCa intervals, leaving out one cluster at a time, for each group ``[g]``.

    ``sum(d³) / (6 sum(d²)^1.5)`` with d the mean leave-one-out value less each of them (Efron &
    Tibshirani 1993, equation 14.15), over the clusters that the group holds.
    """
    out = np.zeros(len(groups))
    totals = design.totals()
    width = measure.stop - measure.start
    for k, g in enumerate(groups):
        first = int(g) * design.n_columns + measure.start
        own = design.matrix[first : first + width].tocsc()
        held = np.flatnonzero(np.diff(own.indptr))
        added = np.asarray(own[:, held].todense())
        left = totals[g, measure.start : measure.stop][:, None] - added
        values = measure.statistic.finish(np.ascontiguousarray(left.T))
        copies = np.where(np.isfinite(values), design.copies[held], 0).astype(float)
        if copies.sum() < 2:
            continue
        values = np.nan_to_num(values)
        d = (copies @ values) / copies.sum() - values
        square = float(copies @ d**2)
        if square > 0:
            out[k] = float(copies @ d**3) / (6.0 * square**1.5)
    return out
