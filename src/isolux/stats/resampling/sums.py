"""Bootstrap replicates of statistics of sums: means, shares and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolux.core.spec import Bootstrap
from isolux.stats.cluster_sums import ClusterSums, sort_by_column
from isolux.stats.multiplier_bootstrap import draw_correlated_normals, sum_row_cross_products
from isolux.stats.sampling import bootstrap_covariance_of_sums
from isolux.stats.statistic import FloatArray, IntArray, SumStatistic
from isolux.stats.survey_sums import SurveyClusterSums
from isolux.stats.weighted_means import TWO_WAY_WEIGHT
from isolux.stats.weights import draw_weight_batches, iterate_seeded_replicate_blocks

if TYPE_CHECKING:
    from scipy.sparse import csr_array


_MAX_DRAWN_ENTRIES = 2e9
"""Entries times replicates above which sums are drawn from a normal approximation instead."""
_MAX_BLOCK_NUMBERS = 500_000
"""Numbers up to which a block of replicates is evaluated at once: batches would cost more."""
_MAX_COVARIANCE_ROWS = 1000
"""Rows up to which their covariance is cheap compared with the draws that it saves."""


@dataclass(frozen=True, slots=True)
class StatisticColumns:
    """A statistic of sums, and its columns of the cluster sums."""

    statistic: SumStatistic
    start: int
    stop: int

    def evaluate(self, sums: FloatArray) -> FloatArray:
        """Compute values ``[g, r]`` from sums ``[g, n_columns, r]``."""
        return self.statistic.finish(self.select_columns(sums))

    def evaluate_replicates(self, sums: FloatArray, first: int) -> FloatArray:
        """Compute values from resampled sums; ``first`` is the number of the first replicate."""
        finish_replicates = self.statistic.finish_replicates
        return (
            self.evaluate(sums)
            if finish_replicates is None
            else finish_replicates(self.select_columns(sums), first)
        )

    def select_columns(self, sums: FloatArray) -> FloatArray:
        """Select the statistic's columns of sums ``[g, n_columns, r]``: ``[g, r, k]``."""
        return np.ascontiguousarray(np.moveaxis(sums[:, self.start : self.stop], 1, -1))


def replicate_sum_statistics(
    cluster_sums: ClusterSums, measures: list[StatisticColumns], bootstrap: Bootstrap
) -> FloatArray:
    """Evaluate statistics of sums on resampled clusters.

    Returns [g, m, r].
    """
    replicates = np.empty((cluster_sums.n_groups, len(measures), bootstrap.replicates))
    if _needs_normal_approximation(cluster_sums, measures, bootstrap.replicates):
        sums = _draw_normal_approximation_sums(cluster_sums, bootstrap)
        for j, measure in enumerate(measures):
            replicates[:, j] = measure.evaluate(sums)
        return replicates
    start = 0
    cluster_contributions = _calibration_residuals(cluster_sums)
    resampled_sums = cluster_sums
    if isinstance(cluster_sums, SurveyClusterSums) and cluster_sums.other_clusterings is not None:
        resampled_sums = cluster_sums.other_clusterings[1]
    resampled_sums = sort_by_column(resampled_sums)  # once for all batches
    for rng, size in iterate_seeded_replicate_blocks(
        bootstrap.replicates, bootstrap.seed, "bootstrap"
    ):
        weight_batches = _draw_cluster_weights(rng, cluster_sums, size, bootstrap)
        if max(resampled_sums.matrix.shape) * size <= _MAX_BLOCK_NUMBERS:
            weight_batches = iter([np.hstack(list(weight_batches))])
        for cluster_weights in weight_batches:
            if cluster_contributions is not None:
                sums = _linearised_calibrated_sums(
                    cluster_sums, cluster_contributions, cluster_weights
                )
            else:
                sums = resampled_sums.weighted_sums(cluster_weights)
            for j, measure in enumerate(measures):
                replicates[:, j, start : start + cluster_weights.shape[1]] = (
                    measure.evaluate_replicates(sums, start)
                )
            start += cluster_weights.shape[1]
    if isinstance(cluster_sums, SurveyClusterSums) and cluster_sums.other_clusterings is not None:
        observed_sums = cluster_sums.totals()[:, :, None]
        estimates = np.stack([measure.evaluate(observed_sums) for measure in measures], axis=1)
        replicates = (
            estimates + (replicates - estimates) / TWO_WAY_WEIGHT
        )  # replicates have half of each clustering's deviation
    return replicates


def _draw_cluster_weights(
    rng: np.random.Generator, cluster_sums: ClusterSums, n_replicates: int, bootstrap: Bootstrap
) -> Iterator[FloatArray]:
    """Draw replicate weights of distinct clusters, ``[n_distinct, batch]``."""
    if isinstance(cluster_sums, SurveyClusterSums):
        return cluster_sums.draw_cluster_weights(rng, n_replicates)
    return draw_weight_batches(bootstrap.weights, rng, cluster_sums.multiplicity, n_replicates)


def _calibration_residuals(cluster_sums: ClusterSums) -> csr_array | None:
    """Return residual contributions of clusters after calibration; None: not calibrated."""
    if not isinstance(cluster_sums, SurveyClusterSums) or cluster_sums.calibration is None:
        return None
    # With two-way clustering, of its cells.
    return _all_residual_rows(
        cluster_sums
        if cluster_sums.other_clusterings is None
        else cluster_sums.other_clusterings[1]
    )


def _all_residual_rows(survey_sums: SurveyClusterSums) -> csr_array:
    assert survey_sums.calibration is not None  # noqa: S101 - callers ask of calibrated designs
    return survey_sums.calibration.residuals(
        survey_sums.matrix, np.arange(survey_sums.matrix.shape[0])
    )


def _linearised_calibrated_sums(
    cluster_sums: ClusterSums, cluster_contributions: csr_array, cluster_weights: FloatArray
) -> FloatArray:
    """Return sums ``[g, columns, r]`` of replicates with calibrated weights, linearised."""
    deviations = np.asarray(cluster_contributions @ (cluster_weights - 1.0)).reshape(
        cluster_sums.n_groups, cluster_sums.n_columns, -1
    )
    # A linearised replicate may fall below 0, which a sum of contributions of 0 or more cannot.
    lower_bounds = _zero_where_nonnegative_else_minus_inf(cluster_sums).reshape(
        cluster_sums.n_groups, cluster_sums.n_columns, 1
    )
    return np.asarray(np.maximum(cluster_sums.totals()[:, :, None] + deviations, lower_bounds))


def _zero_where_nonnegative_else_minus_inf(cluster_sums: ClusterSums) -> FloatArray:
    """Return the lower bound of each sum: 0 without negative contributions, ``[rows]``."""
    smallest_entries = np.asarray(cluster_sums.matrix.min(axis=1).toarray()).ravel()
    return np.where(smallest_entries < 0.0, -np.inf, 0.0)


def _needs_normal_approximation(
    cluster_sums: ClusterSums, measures: list[StatisticColumns], replicates: int
) -> bool:
    """Check whether resampling would take too long, and all statistics are means."""
    rows = cluster_sums.matrix.shape[0]
    are_all_means = all(measure.statistic.centre is not None for measure in measures)
    return (
        are_all_means
        and rows <= _MAX_COVARIANCE_ROWS
        and cluster_sums.matrix.nnz * replicates > _MAX_DRAWN_ENTRIES
    )


def _draw_normal_approximation_sums(cluster_sums: ClusterSums, bootstrap: Bootstrap) -> FloatArray:
    """Draw sums ``[g, columns, r]`` from the normal approximation of resampled clusters."""
    totals = cluster_sums.totals()
    flat_totals = totals.ravel()
    if isinstance(cluster_sums, SurveyClusterSums):
        covariance = np.zeros((cluster_sums.matrix.shape[0],) * 2)
        # Both kinds of clusters, without subtracting their cells: replicates have this variance too
        # (stats/weighted_means.py).
        for clustering in (cluster_sums, *(cluster_sums.other_clusterings or ())[:1]):
            rows = (
                clustering.matrix
                if clustering.calibration is None
                else _all_residual_rows(clustering)
            )
            covariance = covariance + bootstrap_covariance_of_sums(rows, clustering.strata)
    else:
        covariance = sum_row_cross_products(cluster_sums.matrix, cluster_sums.multiplicity)
        # Multinomial weights have a fixed sum: minus the outer product of totals over C.
        covariance -= np.outer(flat_totals, flat_totals) / max(cluster_sums.n_clusters, 1)
    deviations = draw_correlated_normals(covariance, bootstrap.replicates, bootstrap.seed)
    sums: FloatArray = flat_totals[:, None] + deviations
    return np.maximum(sums, _zero_where_nonnegative_else_minus_inf(cluster_sums)[:, None]).reshape(
        *totals.shape, -1
    )


def bca_acceleration_by_jackknife(
    cluster_sums: ClusterSums, measure: StatisticColumns, groups: IntArray
) -> FloatArray:
    """Acceleration of BCa intervals by the jackknife over clusters, for each group ``[g]``.

    ``sum(d³) / (6 sum(d²)^1.5)`` with d the mean leave-one-out value minus each (Efron &
    Tibshirani 1993, equation 14.15), over the clusters of the group.
    """
    acceleration = np.zeros(len(groups))
    totals = cluster_sums.totals()
    width = measure.stop - measure.start
    for k, g in enumerate(groups):
        first = int(g) * cluster_sums.n_columns + measure.start
        group_columns = cluster_sums.matrix[first : first + width].tocsc()
        clusters = np.flatnonzero(np.diff(group_columns.indptr))
        contributions = np.asarray(group_columns[:, clusters].todense())
        leave_one_out_sums = totals[g, measure.start : measure.stop][:, None] - contributions
        values = measure.statistic.finish(np.ascontiguousarray(leave_one_out_sums.T))
        # Without some clusters the statistic is undefined: these do not count.
        multiplicity = np.where(np.isfinite(values), cluster_sums.multiplicity[clusters], 0).astype(
            float
        )
        if multiplicity.sum() < 2:
            continue
        values = np.nan_to_num(values)
        deviations = (multiplicity @ values) / multiplicity.sum() - values
        sum_of_squares = float(multiplicity @ deviations**2)
        if sum_of_squares > 0:  # a sixth of the skewness of the jackknife's values (Efron 1987)
            acceleration[k] = float(multiplicity @ deviations**3) / (6.0 * sum_of_squares**1.5)
    return acceleration
