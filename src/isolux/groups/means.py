"""Means of clustered scores, overall and by group, and effective sample sizes.

With a table ``sample`` the cluster sums have weights and strata, and so have the means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolux.groups.estimates import EffectiveSampleSize, Measure
from isolux.stats.cluster_sums import ClusterSums
from isolux.stats.clustered_proportions import (
    ClusterMeans,
    are_rows_zero_or_one,
    concatenate_means,
    means_from_cluster_sums,
    pooled_intracluster_correlation,
)
from isolux.stats.sparse_rows import MAX_ENTRIES_PER_BATCH, subtract_rows_from_total
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.survey_sums import SurveyClusterSums, unweighted_cluster_sums
from isolux.stats.weighted_means import (
    WeightingEffect,
    combine_two_way_means,
    estimate_weighted_means,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array


_RELATIVE_TOLERANCE = 1e-9
"""A fraction of a cluster's weight below this is rounding: the whole cluster is in the group."""

Means = tuple[ClusterMeans | None, ...]
"""One entry per measure; None where it is not a mean."""


def estimate_all_means(
    cluster_sums: ClusterSums, measures: tuple[Measure, ...], n_groups: int
) -> Means:
    """Estimate all means, overall and by group; None where a measure is not a mean."""
    group_rows = np.arange(n_groups)
    return tuple(
        estimate_group_means(cluster_sums, measure, group_rows) if measure.mean else None
        for measure in measures
    )


def estimate_group_means(
    cluster_sums: ClusterSums, measure: Measure, rows: IntArray
) -> ClusterMeans:
    """Estimate one measure's mean for rows of the cluster sums."""
    if isinstance(cluster_sums, SurveyClusterSums):
        return estimate_survey_means(cluster_sums, measure, rows)
    rho, is_proportion = intracluster_correlation_and_is_binary(cluster_sums, measure)
    sums, counts = (
        cluster_sums.group_rows(rows, column) for column in measure.sum_and_count_columns
    )
    # Values are summed as differences from the centre, which is added back.
    return means_from_cluster_sums(
        sums, counts, cluster_sums.multiplicity, rho, is_proportion=is_proportion
    ).shift(measure.centre)


def estimate_complement_means(
    cluster_sums: ClusterSums, measure: Measure, rows: IntArray, domain: int = 0
) -> ClusterMeans:
    """Estimate the mean of a domain's units that are not in each of some rows (complements)."""
    # With two-way clustering, both kinds of clusters and their cells have complements of their own.
    clusterings = (
        cluster_sums.components if isinstance(cluster_sums, SurveyClusterSums) else (cluster_sums,)
    )
    means_by_clustering = []
    for clustering in clusterings:
        n_per_batch = max(
            1,
            MAX_ENTRIES_PER_BATCH
            // max(clustering.group_rows(domain, measure.sum_and_count_columns[1]).nnz, 1),
        )
        batches = (rows[start : start + n_per_batch] for start in range(0, len(rows), n_per_batch))
        means_by_clustering.append(
            concatenate_means(
                [
                    _subtract_from_domain_means(clustering, measure, domain, batch)
                    for batch in batches
                ]
            )
        )
    means = (
        means_by_clustering[0]
        if len(means_by_clustering) == 1
        else combine_two_way_means(*means_by_clustering)
    )
    return means.shift(measure.centre)


def _subtract_from_domain_means(
    cluster_sums: ClusterSums, measure: Measure, domain: int, rows: IntArray
) -> ClusterMeans:
    """Estimate the means of a domain's cluster sums minus those of each row."""
    sums, counts = measure.sum_and_count_columns
    domain_columns = [cluster_sums.group_rows(domain, q) for q in (sums, counts)]
    group_columns = [cluster_sums.group_rows(rows, q) for q in (sums, counts)]
    if not isinstance(cluster_sums, SurveyClusterSums):
        s, n = (
            subtract_rows_from_total(domain_columns[1], *column_pair)
            for column_pair in zip(domain_columns, group_columns, strict=True)
        )
        rho, is_proportion = intracluster_correlation_and_is_binary(cluster_sums, measure)
        return means_from_cluster_sums(
            s, n, cluster_sums.multiplicity, rho, is_proportion=is_proportion
        )
    domain_columns.append(cluster_sums.squared_rows(domain, counts))
    group_columns.append(cluster_sums.squared_rows(rows, counts))
    s, n, squared_sums = (
        subtract_rows_from_total(domain_columns[1], *column_pair)
        for column_pair in zip(domain_columns, group_columns, strict=True)
    )
    # Clusters entirely in the group leave a rounding error, which is set to 0.
    n.data[n.data <= np.tile(domain_columns[1].data, len(rows)) * _RELATIVE_TOLERANCE] = 0.0
    rho, is_proportion = intracluster_correlation_and_is_binary(cluster_sums, measure)
    # The weighting effect is relative to p (1 - p), so only proportions have one.
    weighting_effect = estimate_weighting_effect(cluster_sums, measure) if is_proportion else None
    cluster_contributions = (
        None
        if cluster_sums.calibration is None
        else _complement_residuals(cluster_sums, measure, domain, rows)
    )
    return estimate_weighted_means(
        (s, n, squared_sums),
        cluster_sums.strata,
        rho,
        weighting_effect,
        cluster_contributions,
        is_proportion=is_proportion,
    )


def _complement_residuals(
    survey_sums: SurveyClusterSums, measure: Measure, domain: int, rows: IntArray
) -> tuple[csr_array, csr_array]:
    """Return residual sums and counts (after calibration) of the domain minus each group."""
    from scipy.sparse import csr_array, vstack

    sums, counts = (
        # Residuals are linear in the rows, so those of a complement are a difference.
        csr_array(
            vstack([survey_sums.cluster_contributions(domain, q)] * len(rows))
            - survey_sums.cluster_contributions(rows, q)
        )
        for q in measure.sum_and_count_columns
    )
    return sums, counts


def estimate_survey_means(
    survey_sums: SurveyClusterSums, measure: Measure, rows: IntArray
) -> ClusterMeans:
    """Estimate one measure's mean in a survey sample, for rows of the cluster sums."""
    if survey_sums.other_clusterings is None:
        return _estimate_one_way_means(survey_sums, measure, rows).shift(measure.centre)
    first_means, second_means, cell_means = (
        _estimate_one_way_means(clustering, measure, rows) for clustering in survey_sums.components
    )
    return combine_two_way_means(first_means, second_means, cell_means).shift(measure.centre)


def intracluster_correlation_and_is_binary(
    cluster_sums: ClusterSums, measure: Measure
) -> tuple[float, bool]:
    """Return the overall intracluster correlation, and whether rows are 0 or 1."""
    sums, counts = measure.sum_and_count_columns
    unweighted_sums = unweighted_cluster_sums(cluster_sums)
    overall_columns = unweighted_sums.group_rows(0, sums), unweighted_sums.group_rows(0, counts)
    rho = float(pooled_intracluster_correlation(*overall_columns, unweighted_sums.multiplicity)[0])
    # Years or counts may happen to be 0 and 1; only fractions are then proportions.
    return rho, measure.is_fraction and are_rows_zero_or_one(*overall_columns)


def _estimate_one_way_means(
    survey_sums: SurveyClusterSums, measure: Measure, rows: IntArray
) -> ClusterMeans:
    sums, counts = measure.sum_and_count_columns
    rho, is_proportion = intracluster_correlation_and_is_binary(survey_sums, measure)
    weighting_effect = estimate_weighting_effect(survey_sums, measure) if is_proportion else None

    def reduce_batch(batch: IntArray) -> ClusterMeans:
        squared_sums = survey_sums.squared_rows(batch, counts)
        columns = (
            survey_sums.group_rows(batch, sums),
            survey_sums.group_rows(batch, counts),
            squared_sums,
        )
        cluster_contributions = None
        if survey_sums.calibration is not None:
            cluster_contributions = (
                survey_sums.cluster_contributions(batch, sums),
                survey_sums.cluster_contributions(batch, counts),
            )
        return estimate_weighted_means(
            columns,
            survey_sums.strata,
            rho,
            weighting_effect,
            cluster_contributions,
            is_proportion=is_proportion,
        )

    # Batches of about equally many entries, because groups differ much in size.
    first = rows * survey_sums.n_columns + counts
    entry_counts = np.cumsum(
        survey_sums.matrix.indptr[first + 1] - survey_sums.matrix.indptr[first]
    )
    batches = np.split(rows, np.flatnonzero(np.diff(entry_counts // MAX_ENTRIES_PER_BATCH)) + 1)
    return concatenate_means([reduce_batch(batch) for batch in batches])


def estimate_weighting_effect(survey_sums: SurveyClusterSums, measure: Measure) -> WeightingEffect:
    """Estimate the overall weighting effect of 0/1 rows."""
    sums, counts = measure.sum_and_count_columns
    s, n = (
        survey_sums.group_rows(0, sums).toarray()[0],
        survey_sums.group_rows(0, counts).toarray()[0],
    )
    event_square, total_square = (
        float(survey_sums.squared_rows(0, q).data.sum()) for q in (sums, counts)
    )
    # A cluster of events only may differ from its weight by rounding.
    n_clusters_with_event = min(int((s > 0).sum()), int((s < n * (1.0 - 1e-9)).sum()))
    return WeightingEffect.from_overall(
        float(s.sum() / n.sum()) if n.sum() > 0 else 0.0,
        event_square,
        total_square,
        n_clusters_with_event,
    )


def effective_sample_sizes(
    cluster_sums: ClusterSums, counts: list[int], n_groups: int
) -> EffectiveSampleSize | None:
    """Compute the effective numbers of units and clusters of each cell (Kish).

    Shapes: ``counts`` [m].
    """
    if not isinstance(cluster_sums, SurveyClusterSums):
        return None
    if cluster_sums.other_clusterings is not None:
        first_size, second_size = (
            effective_sample_sizes(clustering, counts, n_groups)
            for clustering in cluster_sums.components[:2]
        )
        assert first_size is not None and second_size is not None  # noqa: S101, PT018 - both are samples
        # The kind with fewer clusters decides (docs/methods/samples.md).
        return EffectiveSampleSize(
            first_size.n_units, np.minimum(first_size.n_clusters, second_size.n_clusters)
        )
    n_units, n_clusters = np.zeros((n_groups, len(counts))), np.zeros((n_groups, len(counts)))
    rows = np.arange(n_groups)
    for j, column in enumerate(counts):
        weight, squared_weight = (
            cluster_sums.group_rows(rows, column),
            cluster_sums.squared_rows(rows, column),
        )
        total = np.asarray(weight.sum(axis=1)).ravel()
        n_units[:, j] = _kish_effective_size(total, np.asarray(squared_weight.sum(axis=1)).ravel())
        # A cluster's mean weight, not its sum: many photos of one person do not reduce the
        # effective number of people.
        mean_weight = squared_weight.copy()
        mean_weight.data = squared_weight.data / weight.data
        mean_total = np.asarray(mean_weight.sum(axis=1)).ravel()
        n_clusters[:, j] = _kish_effective_size(
            mean_total, np.asarray(mean_weight.power(2).sum(axis=1)).ravel()
        )
    return EffectiveSampleSize(n_units, n_clusters)


def _kish_effective_size(total: FloatArray, square: FloatArray) -> FloatArray:
    # Kish (1965): (Σ w)² / Σ w².
    return np.divide(total**2, square, out=np.zeros_like(total), where=square > 0)
