"""Means of clustered scores, overall and by group, and effective sample sizes.

With a table ``sample`` the cluster sums have weights and strata, and so have the means.
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
"""A fraction of a cluster's weight below this is rounding: the whole cluster is in the group."""

Means = tuple[ClusterMeans | None, ...]
"""One entry per measure; None where it is not a mean."""


def all_means(cluster_sums: Design, measures: tuple[Measure, ...], n_groups: int) -> Means:
    """Estimate all means, overall and by group; None where a measure is not a mean."""
    group_rows = np.arange(n_groups)
    return tuple(
        means_of(cluster_sums, measure, group_rows) if measure.mean else None
        for measure in measures
    )


def means_of(cluster_sums: Design, measure: Measure, rows: IntArray) -> ClusterMeans:
    """Estimate one measure's mean for rows of the cluster sums."""
    if isinstance(cluster_sums, DrawnDesign):
        return drawn_means(cluster_sums, measure, rows)
    rho, is_proportion = correlation_of(cluster_sums, measure)
    sums, counts = (cluster_sums.rows(rows, column) for column in measure.mean_columns)
    return cluster_means(sums, counts, cluster_sums.copies, rho, shares=is_proportion).moved(
        measure.centre
    )


def means_of_others(
    cluster_sums: Design, measure: Measure, rows: IntArray, domain: int = 0
) -> ClusterMeans:
    """Estimate the mean of a domain's units that are not in each of some rows (complements)."""
    clusterings = (
        cluster_sums.each_way if isinstance(cluster_sums, DrawnDesign) else (cluster_sums,)
    )
    means_by_clustering = []
    for clustering in clusterings:
        n_per_batch = max(
            1, AT_ONCE // max(clustering.rows(domain, measure.mean_columns[1]).nnz, 1)
        )
        batches = (rows[start : start + n_per_batch] for start in range(0, len(rows), n_per_batch))
        means_by_clustering.append(
            joined([_left(clustering, measure, domain, batch) for batch in batches])
        )
    means = (
        means_by_clustering[0] if len(means_by_clustering) == 1 else both_ways(*means_by_clustering)
    )
    return means.moved(measure.centre)


def _left(cluster_sums: Design, measure: Measure, domain: int, rows: IntArray) -> ClusterMeans:
    """Estimate the means of a domain's cluster sums minus those of each row."""
    sums, counts = measure.mean_columns
    domain_columns = [cluster_sums.rows(domain, q) for q in (sums, counts)]
    group_columns = [cluster_sums.rows(rows, q) for q in (sums, counts)]
    if not isinstance(cluster_sums, DrawnDesign):
        s, n = (
            less_each(domain_columns[1], *column_pair)
            for column_pair in zip(domain_columns, group_columns, strict=True)
        )
        rho, is_proportion = correlation_of(cluster_sums, measure)
        return cluster_means(s, n, cluster_sums.copies, rho, shares=is_proportion)
    domain_columns.append(cluster_sums.rows_of_squares(domain, counts))
    group_columns.append(cluster_sums.rows_of_squares(rows, counts))
    s, n, squared_sums = (
        less_each(domain_columns[1], *column_pair)
        for column_pair in zip(domain_columns, group_columns, strict=True)
    )
    # Clusters entirely in the group leave a rounding error, which is set to 0.
    n.data[n.data <= np.tile(domain_columns[1].data, len(rows)) * _FULL] = 0.0
    rho, is_proportion = correlation_of(cluster_sums, measure)
    weighting_effect = rows_effect(cluster_sums, measure) if is_proportion else None
    residual_rows = (
        None
        if cluster_sums.calibration is None
        else _complement_residuals(cluster_sums, measure, domain, rows)
    )
    return weighted_means(
        (s, n, squared_sums),
        cluster_sums.strata,
        rho,
        weighting_effect,
        residual_rows,
        shares=is_proportion,
    )


def _complement_residuals(
    survey_sums: DrawnDesign, measure: Measure, domain: int, rows: IntArray
) -> tuple[csr_array, csr_array]:
    """Return residual sums and counts (after calibration) of the domain minus each group."""
    from scipy.sparse import csr_array, vstack

    sums, counts = (
        csr_array(
            vstack([survey_sums.varying(domain, q)] * len(rows)) - survey_sums.varying(rows, q)
        )
        for q in measure.mean_columns
    )
    return sums, counts


def drawn_means(survey_sums: DrawnDesign, measure: Measure, rows: IntArray) -> ClusterMeans:
    """Estimate one measure's mean in a survey sample, for rows of the cluster sums."""
    if survey_sums.ways is None:
        return _means_one_way(survey_sums, measure, rows).moved(measure.centre)
    first_means, second_means, cell_means = (
        _means_one_way(clustering, measure, rows) for clustering in survey_sums.each_way
    )
    return both_ways(first_means, second_means, cell_means).moved(measure.centre)


def correlation_of(cluster_sums: Design, measure: Measure) -> tuple[float, bool]:
    """Return the overall intracluster correlation, and whether rows are 0 or 1."""
    sums, counts = measure.mean_columns
    unweighted_sums = unweighted(cluster_sums)
    overall_columns = unweighted_sums.rows(0, sums), unweighted_sums.rows(0, counts)
    rho = float(pooled_correlation(*overall_columns, unweighted_sums.copies)[0])
    return rho, measure.fraction and are_shares(*overall_columns)


def _means_one_way(survey_sums: DrawnDesign, measure: Measure, rows: IntArray) -> ClusterMeans:
    sums, counts = measure.mean_columns
    rho, is_proportion = correlation_of(survey_sums, measure)
    weighting_effect = rows_effect(survey_sums, measure) if is_proportion else None

    def reduce_batch(batch: IntArray) -> ClusterMeans:
        squared_sums = survey_sums.rows_of_squares(batch, counts)
        columns = survey_sums.rows(batch, sums), survey_sums.rows(batch, counts), squared_sums
        residual_rows = None
        if survey_sums.calibration is not None:
            residual_rows = survey_sums.varying(batch, sums), survey_sums.varying(batch, counts)
        return weighted_means(
            columns, survey_sums.strata, rho, weighting_effect, residual_rows, shares=is_proportion
        )

    first = rows * survey_sums.n_columns + counts
    entry_counts = np.cumsum(
        survey_sums.matrix.indptr[first + 1] - survey_sums.matrix.indptr[first]
    )
    batches = np.split(rows, np.flatnonzero(np.diff(entry_counts // AT_ONCE)) + 1)
    return joined([reduce_batch(batch) for batch in batches])


def rows_effect(survey_sums: DrawnDesign, measure: Measure) -> RowsEffect:
    """Estimate the overall weighting effect of 0/1 rows."""
    sums, counts = measure.mean_columns
    s, n = survey_sums.rows(0, sums).toarray()[0], survey_sums.rows(0, counts).toarray()[0]
    event_square, total_square = (
        float(survey_sums.rows_of_squares(0, q).data.sum()) for q in (sums, counts)
    )
    n_clusters_with_event = min(int((s > 0).sum()), int((s < n * (1.0 - 1e-9)).sum()))
    return RowsEffect.of(
        float(s.sum() / n.sum()) if n.sum() > 0 else 0.0,
        event_square,
        total_square,
        n_clusters_with_event,
    )


def worth_of(cluster_sums: Design, counts: list[int], n_groups: int) -> Worth | None:
    """Compute the effective numbers of units and clusters of each cell (Kish).

    Shapes: ``counts`` [m].
    """
    if not isinstance(cluster_sums, DrawnDesign):
        return None
    if cluster_sums.ways is not None:
        first_size, second_size = (
            worth_of(clustering, counts, n_groups) for clustering in cluster_sums.each_way[:2]
        )
        assert first_size is not None and second_size is not None  # noqa: S101, PT018 - both are samples
        return Worth(first_size.units, np.minimum(first_size.clusters, second_size.clusters))
    n_units, n_clusters = np.zeros((n_groups, len(counts))), np.zeros((n_groups, len(counts)))
    rows = np.arange(n_groups)
    for j, column in enumerate(counts):
        weight, squared_weight = (
            cluster_sums.rows(rows, column),
            cluster_sums.rows_of_squares(rows, column),
        )
        total = np.asarray(weight.sum(axis=1)).ravel()
        n_units[:, j] = _kish(total, np.asarray(squared_weight.sum(axis=1)).ravel())
        # A cluster's mean weight, not its sum: many photos of one person do not reduce the
        # effective number of people.
        mean_weight = squared_weight.copy()
        mean_weight.data = squared_weight.data / weight.data
        mean_total = np.asarray(mean_weight.sum(axis=1)).ravel()
        n_clusters[:, j] = _kish(mean_total, np.asarray(mean_weight.power(2).sum(axis=1)).ravel())
    return Worth(n_units, n_clusters)


def _kish(total: FloatArray, square: FloatArray) -> FloatArray:
    return np.divide(total**2, square, out=np.zeros_like(total), where=square > 0)
