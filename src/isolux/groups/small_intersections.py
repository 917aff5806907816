"""Shrinkage estimates of small intersections, in addition to the raw values.

They are the columns ``shrunken, shrunken_low, shrunken_high, shrunken_from`` of the table
``group_metrics``. Claims and tests use raw values only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux.core.spec import Statistics
from isolux.core.tables import Status
from isolux.groups.estimates import Estimates, Measure
from isolux.groups.means import estimate_group_means
from isolux.stats.cluster_sums import ClusterSums
from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.constants import MAX_CELLS, MIN_CELLS
from isolux.stats.small_groups import estimate_intersection_cells
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.survey_sums import unweighted_cluster_sums

if TYPE_CHECKING:
    from scipy.sparse import csr_array

COLUMNS = ("shrunken", "shrunken_low", "shrunken_high", "shrunken_from")


def add_shrinkage_estimates(estimates: Estimates, spec: Statistics) -> pl.DataFrame:
    """Return the table ``group_metrics`` with shrinkage estimates of small intersections.

    ``isolux.stats.small_groups``.
    """
    shrinkage = np.full((4, *estimates.value.shape), np.nan)
    for attribute in estimates.domain_rows:
        rows = estimates.attribute_rows(attribute)
        # With three cells, main effects and the cells' own cannot be distinguished; the time grows
        # with the cube of the cells (stats/constants.py).
        if not MIN_CELLS <= len(rows) <= MAX_CELLS:
            continue
        # Groups of one attribute have no related groups to shrink towards.
        if len(estimates.groups[rows[0]].values) < 2:
            continue
        levels = _encode_levels([estimates.groups[g].values for g in rows.tolist()])
        for j, measure in enumerate(estimates.measures):
            # Decision 22: only where a group is not ok; not for single classes, to save time.
            has_small_group = (estimates.status[rows, j] != Status.OK.value).any()
            if has_small_group and measure.mean is not None and measure.label is None:
                shrinkage[:, rows, j] = _shrink_cell_estimates(
                    estimates, measure, rows, levels, spec.level
                )
    columns = {
        name: pl.Series(values.ravel()).fill_nan(None)
        for name, values in zip(COLUMNS, shrinkage, strict=True)
    }
    return estimates.to_table().with_columns(**columns)


def _encode_levels(values: list[tuple[str, ...]]) -> IntArray:
    """Encode each attribute's values as integers, ``[d, k]``."""
    columns = [
        np.unique([str(v) for v in attribute_values], return_inverse=True)[1]
        for attribute_values in zip(*values, strict=True)
    ]
    return np.array(columns, dtype=np.int64).T


def _shrink_cell_estimates(
    estimates: Estimates, measure: Measure, rows: IntArray, levels: IntArray, level: float
) -> FloatArray:
    """Estimate one metric in the cells of an intersection: estimate, bounds and raw ``[4, d]``."""
    means = estimate_group_means(estimates.cluster_sums, measure, rows)
    counts = estimates.cluster_sums.group_rows(rows, measure.sum_and_count_columns[1])
    noise_covariance = _noise_covariance(counts, estimates.cluster_sums, measure, means)
    unit_variance = 1.0 if means.is_proportion else _unit_variance(means)
    raw_values = means.value
    if not unit_variance > 0.0:  # all clusters are equal: the variance of a mean is unknown
        return np.full((4, len(rows)), np.nan)
    shrinkage = estimate_intersection_cells(
        raw_values,
        noise_covariance,
        levels,
        is_proportion=means.is_proportion,
        unit_variance=unit_variance,
        level=level,
    )
    # A normal posterior of numbers knows no range.
    low = -np.inf if measure.info.low is None else measure.info.low
    high = np.inf if measure.info.high is None else measure.info.high
    bounded = [np.clip(x, low, high) for x in (shrinkage.value, shrinkage.low, shrinkage.high)]
    return np.stack([*bounded, raw_values])


def _noise_covariance(
    counts: csr_array, cluster_sums: ClusterSums, measure: Measure, means: ClusterMeans
) -> FloatArray:
    """Return the covariance of the cells' means, in variances of one score: ``[d, d]``."""
    # A number's unit is the mean of its cluster (see _unit_variance), and that is the same number
    # in every cell: correlation 1.
    rho = float(np.mean(means.intracluster_correlation)) if means.is_proportion else 1.0
    n_rows = np.asarray(counts @ cluster_sums.multiplicity.astype(np.float64)).ravel()
    column = measure.mean[1] if measure.mean else 0
    unweighted_sums = unweighted_cluster_sums(cluster_sums)
    sizes = unweighted_sums.group_rows(0, column).toarray()[0]
    if unweighted_sums is not cluster_sums:  # a sample with weights has a column for each cluster
        sizes = sizes[unweighted_sums.distinct_index]
    # A cluster of one unit is the same row in both cells: correlation 1.
    cluster_correlation = np.where(sizes > 1, rho, 1.0) * cluster_sums.multiplicity
    shared_covariance = (counts.multiply(cluster_correlation[None, :]) @ counts.T).toarray()
    with np.errstate(divide="ignore", invalid="ignore"):
        covariance = shared_covariance / (n_rows[:, None] * n_rows[None, :])
        np.fill_diagonal(
            covariance,
            # The pooled effect, because a cell with a few clusters cannot show its own.
            (means.pooled_design_effect() if means.is_proportion else means.kish_cluster_size)
            / means.n_units,
        )
    return np.asarray(covariance)


def _unit_variance(means: ClusterMeans) -> float:
    """Pool the variance of one cluster's mean over cells, weighted by degrees of freedom."""
    n_clusters = means.n_effective_clusters
    is_known = np.isfinite(means.value) & (n_clusters > 1.0)
    if not is_known.any():
        return 0.0
    weight = np.maximum(means.dof[is_known], 1.0)
    return float((weight * means.variance[is_known] * n_clusters[is_known]).sum() / weight.sum())
