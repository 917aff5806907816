"""Means of clustered scores, of everyone and every group: what their clusters add up to.

A sample that stands for a population: who weighs how much, among those who were scored.

The table ``sample`` beside the scores turns the design of an audit into one of weights and strata;
without it nothing here does anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolux.groups.estimates import Measure, Worth
from isolux.stats.design import Design, IntArray
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.rows import AT_ONCE, less_each
from isolux.stats.shares import ClusterMeans, are_shares, cluster_means, joined, pooled_correlation
from isolux.stats.statistic import FloatArray
from isolux.stats.weighted_means import RowsEffect, both_ways, weighted_means

if TYPE_CHECKING:
    from scipy.sparse import csr_array


Means = tuple[ClusterMeans | None, ...]
"""Of each measure; None where it is no mean."""


def all_means(design: Design, measures: tuple[Measure, ...], n_groups: int) -> Means:
    """Reduce every mean's clusters, for everyone and every group; None where it is no mean."""
    rows = np.arange(n_groups)
    return tuple(means_of(design, measure, rows) if measure.mean else None for measure in measures)


def means_of(design: Design, measure: Measure, rows: IntArray) -> ClusterMeans:
    """Reduce one mean's clusters, for some rows of the design."""
    if isinstance(design, DrawnDesign):
        return drawn_means(design, measure, rows)
    sums, counts = measure.mean_columns
    held = design.rows(rows, sums), design.rows(rows, counts)
    return _reduced(design, measure, held)


def means_of_others(design: Design, measure: Measure, rows: IntArray) -> ClusterMeans:
    """Reduce the clusters of everyone who is not in each of some rows of a plain design."""
    counts = design.rows(0, measure.mean_columns[1])
    left = [
        less_each(counts, design.rows(0, q), design.rows(rows, q)) for q in measure.mean_columns
    ]
    return _reduced(design, measure, (left[0], left[1]))


def _reduced(design: Design, measure: Measure, held: tuple[csr_array, csr_array]) -> ClusterMeans:
    sums, counts = measure.mean_columns
    everyone = design.rows(0, sums), design.rows(0, counts)
    rho = float(pooled_correlation(*everyone, design.copies)[0])
    shares = measure.fraction and are_shares(*everyone)
    found = cluster_means(*held, design.copies, rho, shares=shares)
    return found.moved(measure.centre)


def drawn_means(design: DrawnDesign, measure: Measure, rows: IntArray) -> ClusterMeans:
    """Reduce one mean's clusters in a sample with weights, for some rows of the design."""
    if design.ways is None:
        return _means_one_way(design, measure, rows).moved(measure.centre)
    one, two, cells = (_means_one_way(way, measure, rows) for way in design.each_way)
    return both_ways(one, two, cells).moved(measure.centre)


def correlation_of(design: DrawnDesign, measure: Measure) -> tuple[float, bool]:
    """Return the correlation of two rows of one cluster, and whether rows are 0 or 1."""
    sums, counts = measure.mean_columns
    plain = design.unweighted
    everyone = plain.rows(0, sums), plain.rows(0, counts)
    rho = float(pooled_correlation(*everyone, plain.copies)[0])
    return rho, measure.fraction and are_shares(*everyone)


def _means_one_way(design: DrawnDesign, measure: Measure, rows: IntArray) -> ClusterMeans:
    sums, counts = measure.mean_columns
    rho, shares = correlation_of(design, measure)
    effect = rows_effect(design, measure) if shares else None

    def reduced(some: IntArray) -> ClusterMeans:
        squares = design.rows_of_squares(some, counts)
        parts = design.rows(some, sums), design.rows(some, counts), squares
        varying = None
        if design.calibration is not None:
            varying = design.varying(some, sums), design.varying(some, counts)
        return weighted_means(parts, design.strata, rho, effect, varying, shares=shares)

    first = rows * design.n_columns + counts
    ends = np.cumsum(design.matrix.indptr[first + 1] - design.matrix.indptr[first])
    turns = np.split(rows, np.flatnonzero(np.diff(ends // AT_ONCE)) + 1)
    return joined([reduced(some) for some in turns])


def rows_effect(design: DrawnDesign, measure: Measure) -> RowsEffect:
    """Say how much rows of 0 and 1 vary beyond what their weights say, from everyone."""
    sums, counts = measure.mean_columns
    s, n = design.rows(0, sums).toarray()[0], design.rows(0, counts).toarray()[0]
    right, every = (float(design.rows_of_squares(0, q).data.sum()) for q in (sums, counts))
    rare = min(int((s > 0).sum()), int((s < n * (1.0 - 1e-9)).sum()))
    return RowsEffect.of(float(s.sum() / n.sum()) if n.sum() > 0 else 0.0, right, every, rare)


def worth_of(design: Design, counts: list[int], groups: int) -> Worth | None:
    """Say how many units and clusters of one weight those of each cell are worth.

    Shapes: ``counts`` [m].
    """
    if not isinstance(design, DrawnDesign):
        return None
    if design.ways is not None:
        one, two = (worth_of(way, counts, groups) for way in design.each_way[:2])
        assert one is not None and two is not None  # noqa: S101, PT018 - both are drawn
        return Worth(one.units, np.minimum(one.clusters, two.clusters))
    units, clusters = np.zeros((groups, len(counts))), np.zeros((groups, len(counts)))
    rows = np.arange(groups)
    for j, column in enumerate(counts):
        weight, square = design.rows(rows, column), design.rows_of_squares(rows, column)
        total = np.asarray(weight.sum(axis=1)).ravel()
        units[:, j] = _kish(total, np.asarray(square.sum(axis=1)).ravel())
        # A cluster's mean weight, not its sum: many photos of one person are no reason to count
        # fewer people.
        mean = square.copy()
        mean.data = square.data / weight.data
        of_means = np.asarray(mean.sum(axis=1)).ravel()
        clusters[:, j] = _kish(of_means, np.asarray(mean.power(2).sum(axis=1)).ravel())
    return Worth(units, clusters)


def _kish(total: FloatArray, square: FloatArray) -> FloatArray:
    return np.divide(total**2, square, out=np.zeros_like(total), where=square > 0)
