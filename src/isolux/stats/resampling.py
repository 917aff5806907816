"""Bootstrap replicates of any statistic, for all groups on the same resampled clusters.

Groups that share people see the same weights, so their differences have the right variance; a
metric of two models on the same people likewise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isolux.stats.design import Design, IntArray
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.joint_law import correlated_normals, products
from isolux.stats.sampling import variance_of_sums
from isolux.stats.statistic import (
    MEAN,
    DetectionStatistic,
    FloatArray,
    Pairs,
    PairStatistic,
    Ranking,
    RankStatistic,
    SumStatistic,
)
from isolux.stats.two_ways import HALF
from isolux.stats.weights import blocks, multinomial, poisson
from isolux.vocabulary.spec import Bootstrap

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "Columns",
    "jackknife_acceleration",
    "replicate_pairs",
    "replicate_rankings",
    "replicate_ranks",
    "replicate_sums",
]

_LONG = 2e9
"""Entries times replicates beyond which clusters take too long to draw; sums are, as normal."""
_FEW_ROWS = 1000
"""Groups up to which their covariance is small beside the draws that it saves."""
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
        NaN where a replicate drew no one of a group.
    """
    out = np.empty((design.n_groups, len(measures), bootstrap.replicates))
    if _is_large(design, measures, bootstrap.replicates):
        sums = _normal_sums(design, bootstrap)
        for j, measure in enumerate(measures):
            out[:, j] = measure.value(sums)
        return out
    at = 0
    varies = _calibrated(design)
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "bootstrap"):
        times = _drawn(rng, design, size, bootstrap)
        if varies is not None:
            sums = _calibrated_sums(design, varies, times)
        elif isinstance(design, DrawnDesign) and design.ways is not None:
            sums = design.ways[1].sums(times)
        else:
            sums = design.sums(times)
        for j, measure in enumerate(measures):
            out[:, j, at : at + size] = measure.value(sums)
        at += size
    if isinstance(design, DrawnDesign) and design.ways is not None:
        as_is = design.totals()[:, :, None]
        value = np.stack([measure.value(as_is) for measure in measures], axis=1)
        out = value + (out - value) / HALF  # half of each way's weights was drawn
    return out


def _drawn(rng: np.random.Generator, design: Design, size: int, bootstrap: Bootstrap) -> FloatArray:
    """Draw how often each distinct cluster counts in some replicates, ``[n_distinct, size]``."""
    if isinstance(design, DrawnDesign):
        return design.times(rng, size)
    return _WEIGHTS[bootstrap.weights](rng, design.copies, size)


def _calibrated(design: Design) -> csr_array | None:
    """Return what clusters add as far as it is left to chance, of calibrated weights."""
    if not isinstance(design, DrawnDesign) or design.calibration is None:
        return None
    return design.calibration.left(design.matrix, np.arange(design.matrix.shape[0]))


def _calibrated_sums(design: Design, varies: csr_array, times: FloatArray) -> FloatArray:
    """Return sums ``[g, columns, r]`` of replicates whose weights are brought to the population.

    To first order: what the population's cells explain does not vary.
    """
    around = np.asarray(varies @ (times - 1.0)).reshape(design.n_groups, design.n_columns, -1)
    return np.asarray(np.maximum(design.totals()[:, :, None] + around, 0.0))


def _is_large(design: Design, measures: list[Columns], replicates: int) -> bool:
    """Tell whether drawing every cluster would take long, and only means are asked for.

    Their law is then normal to more digits than replicates can show, but for groups of few rows;
    neither intervals nor tests of means read replicates.
    """
    rows = design.matrix.shape[0]
    means = all(measure.statistic is MEAN for measure in measures)
    return means and rows <= _FEW_ROWS and design.matrix.nnz * replicates > _LONG


def _normal_sums(design: Design, bootstrap: Bootstrap) -> FloatArray:
    """Draw sums ``[g, columns, r]`` from the normal law that resampled clusters tend to."""
    totals = design.totals()
    flat = totals.ravel()
    if isinstance(design, DrawnDesign):
        varies = _calibrated(design)
        rows = design.matrix if varies is None else varies
        around = variance_of_sums(rows, design.strata)
        if design.ways is not None:
            around = around + variance_of_sums(design.ways[0].matrix, None)
    else:
        around = products(design.matrix, design.copies)
        around -= np.outer(flat, flat) / max(design.n_clusters, 1)
    drawn = correlated_normals(around, bootstrap.replicates, bootstrap.seed)
    sums: FloatArray = flat[:, None] + drawn
    return np.maximum(sums, 0.0).reshape(*totals.shape, -1)


def replicate_ranks(
    statistic: RankStatistic,
    rows: FloatArray,
    cluster_of_row: IntArray,
    rows_of_group: list[IntArray],
    n_clusters: int,
    bootstrap: Bootstrap,
    sample: tuple[DrawnDesign, IntArray] | None = None,
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
    sample : (DrawnDesign, [n] int), optional
        A sample that stands for a population, and the unit of each row.

    Returns
    -------
    value : [g] float
    replicates : [g, r] float
    """
    value = np.full(len(rows_of_group), np.nan)
    out = np.full((len(rows_of_group), bootstrap.replicates), np.nan)
    draw = _WEIGHTS[bootstrap.weights]
    each = np.ones(n_clusters, dtype=np.int64)
    own = [1.0] * len(rows_of_group)
    plain = np.ones(len(rows))
    if sample is not None:
        plain = sample[0].unit_weight[sample[1]]
        # A group's weights add up to its rows: quantiles count rows.
        own = [float(plain[rows].mean()) if len(rows) else 1.0 for rows in rows_of_group]
    for g, members in enumerate(rows_of_group):
        if len(members):
            value[g] = statistic.evaluate(rows[members], plain[members][:, None] / own[g])[0]
    at = 0
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        if sample is None:
            weights, row = draw(rng, each, size), cluster_of_row
        else:
            weights, row = _weights_of_rows(rng, sample, cluster_of_row, size), np.arange(len(rows))
        for g, members in enumerate(rows_of_group):
            if len(members):
                drawn = weights[row[members]]
                drawn = drawn if own[g] == 1.0 else drawn / own[g]
                out[g, at : at + size] = statistic.evaluate(rows[members], drawn)
        at += size
    if sample is not None and sample[0].ways is not None:
        out = value[:, None] + (out - value[:, None]) / HALF
    return value, out


def _weights_of_rows(
    rng: np.random.Generator,
    sample: tuple[DrawnDesign, IntArray],
    cluster_of_row: IntArray,
    size: int,
) -> FloatArray:
    """Draw each row's weight in replicates of a sample, ``[n, size]``."""
    design, unit_of_row = sample
    if design.calibration is not None:
        return np.asarray(design.replicates_of_units(rng, size)[unit_of_row])
    times = design.times(rng, size)
    at = cluster_of_row
    if design.ways is not None:
        at = design.cell_of_unit[unit_of_row]
    return np.asarray(design.unit_weight[unit_of_row][:, None] * times[at])


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
    asked: list[tuple[DetectionStatistic, int | None]],
    rankings: list[Ranking],
    peers: list[IntArray],
    n_clusters: int,
    bootstrap: Bootstrap,
    *,
    common: float | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Evaluate statistics of each group's detections, on the data and on resampled clusters.

    Parameters
    ----------
    asked : list of (DetectionStatistic, int or None)
        And of which class; default: the mean over classes.
    rankings : list of Ranking
        One a group, all of the same classes.
    peers : list of [p] int
        The groups whose mean count is a group's N of normalised statistics: those of its attribute,
        itself among them. Groups without anyone of a class in the data are left out of its mean.
    n_clusters : int
        Of the whole audit and of images without people.
    bootstrap : Bootstrap
    common : float, optional
        N of every group and class instead, on every replicate.

    Returns
    -------
    value : [g, s] float
    replicates : [g, s, r] float
    """
    plain = np.ones((n_clusters, 1))
    n_normalised = sum(statistic.normalised for statistic, _ in asked)
    held = _counts(rankings, plain, n_normalised)[:, 0] > 0
    value = _of_rankings(asked, rankings, (peers, held, common), plain)[..., 0]
    out = np.full((*value.shape, bootstrap.replicates), np.nan)
    draw = _WEIGHTS[bootstrap.weights]
    each = np.ones(n_clusters, dtype=np.int64)
    at = 0
    for rng, size in blocks(bootstrap.replicates, bootstrap.seed, "rank bootstrap"):
        weights = np.ascontiguousarray(draw(rng, each, size).T).T  # a replicate's lie side by side
        out[..., at : at + size] = _of_rankings(asked, rankings, (peers, held, common), weights)
        at += size
    return value, out


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
    mean: FloatArray = np.divide(total, n, out=np.ones_like(total), where=n > 0)
    return mean


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
        if square > 0:  # a sixth of the skewness of the jackknife's values (Efron 1987)
            out[k] = float(copies @ d**3) / (6.0 * square**1.5)
    return out
