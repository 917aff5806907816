"""Means of clustered scores, of everyone and every group: what their clusters add up to.

A sample that stands for a population: who weighs how much, among those who were scored.

The table ``sample`` beside the scores turns the design of an audit into one of weights and strata;
without it nothing here does anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolux.groups.estimates import Measure, Worth
from isolux.stats.design import Design
from isolux.stats.drawn_design import DrawnDesign, unweighted
from isolux.stats.rows import AT_ONCE, less_each
from isolux.stats.shares import ClusterMeans, are_shares, cluster_means, joined, pooled_correlation
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.weighted_means import RowsEffect, both_ways, weighted_means

if TYPE_CHECKING:
    from scipy.sparse import csr_array


_FULL = 1e-9
"""A share of a cluster's weight below this is rounding: everyone of it is in the group."""

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
    rho, shares = correlation_of(design, measure)
    sums, counts = (design.rows(rows, column) for column in measure.mean_columns)
    return cluster_means(sums, counts, design.copies, rho, shares=shares).moved(measure.centre)


def means_of_others(
    design: Design, measure: Measure, rows: IntArray, domain: int = 0
) -> ClusterMeans:
    """Reduce the clusters of everyone of a row of the design who is not in each of some others."""
    ways = design.each_way if isinstance(design, DrawnDesign) else (design,)
    parts = []
    for way in ways:
        at_once = max(1, AT_ONCE // max(way.rows(domain, measure.mean_columns[1]).nnz, 1))
        some = (rows[start : start + at_once] for start in range(0, len(rows), at_once))
        parts.append(joined([_left(way, measure, domain, own) for own in some]))
    found = parts[0] if len(parts) == 1 else both_ways(*parts)
    return found.moved(measure.centre)


def _left(design: Design, measure: Measure, domain: int, some: IntArray) -> ClusterMeans:
    """Reduce what a row's clusters hold beyond each of some rows."""
    sums, counts = measure.mean_columns
    whole = [design.rows(domain, q) for q in (sums, counts)]
    own = [design.rows(some, q) for q in (sums, counts)]
    if not isinstance(design, DrawnDesign):
        s, n = (less_each(whole[1], *both) for both in zip(whole, own, strict=True))
        rho, shares = correlation_of(design, measure)
        return cluster_means(s, n, design.copies, rho, shares=shares)
    whole.append(design.rows_of_squares(domain, counts))
    own.append(design.rows_of_squares(some, counts))
    s, n, squares = (less_each(whole[1], *both) for both in zip(whole, own, strict=True))
    # Of clusters that are wholly in the group, rounding is left.
    n.data[n.data <= np.tile(whole[1].data, len(some)) * _FULL] = 0.0
    rho, shares = correlation_of(design, measure)
    effect = rows_effect(design, measure) if shares else None
    varying = None if design.calibration is None else _varying(design, measure, domain, some)
    return weighted_means((s, n, squares), design.strata, rho, effect, varying, shares=shares)


def _varying(
    design: DrawnDesign, measure: Measure, domain: int, some: IntArray
) -> tuple[csr_array, csr_array]:
    """Return sums and counts of everyone less each group, as far as left to chance."""
    from scipy.sparse import csr_array, vstack

    sums, counts = (
        csr_array(vstack([design.varying(domain, q)] * len(some)) - design.varying(some, q))
        for q in measure.mean_columns
    )
    return sums, counts


def drawn_means(design: DrawnDesign, measure: Measure, rows: IntArray) -> ClusterMeans:
    """Reduce one mean's clusters in a sample with weights, for some rows of the design."""
    if design.ways is None:
        return _means_one_way(design, measure, rows).moved(measure.centre)
    one, two, cells = (_means_one_way(way, measure, rows) for way in design.each_way)
    return both_ways(one, two, cells).moved(measure.centre)


def correlation_of(design: Design, measure: Measure) -> tuple[float, bool]:
    """Return the correlation of two rows of one cluster, and whether rows are 0 or 1."""
    sums, counts = measure.mean_columns
    plain = unweighted(design)
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
