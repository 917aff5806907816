"""Beside the raw values of an intersection: estimates that borrow strength from its attributes.

From ``Estimates`` to the columns ``shrunken, shrunken_low, shrunken_high, shrunken_from`` of the
table ``group_metrics``. Claims and tests do not read them: they stay on raw values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux.groups.estimates import Estimates, Measure
from isolux.groups.means import means_of
from isolux.stats.constants import MAX_CELLS, MIN_CELLS
from isolux.stats.design import Design
from isolux.stats.drawn_design import unweighted
from isolux.stats.shares import ClusterMeans
from isolux.stats.small_groups import cell_estimates
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import Status

if TYPE_CHECKING:
    from scipy.sparse import csr_array

COLUMNS = ("shrunken", "shrunken_low", "shrunken_high", "shrunken_from")


def with_small_groups(estimates: Estimates, spec: Statistics) -> pl.DataFrame:
    """Return the table ``group_metrics`` with estimates for intersections that have small groups.

    ``isolux.stats.small_groups``.
    """
    found = np.full((4, *estimates.value.shape), np.nan)
    for attribute in estimates.domain_of:
        rows = estimates.members(attribute)
        if not MIN_CELLS <= len(rows) <= MAX_CELLS:
            continue
        if len(estimates.groups[rows[0]].values) < 2:
            continue
        levels = _levels([estimates.groups[g].values for g in rows.tolist()])
        for j, measure in enumerate(estimates.measures):
            small = (estimates.status[rows, j] != Status.OK.value).any()
            if small and measure.mean is not None and measure.label is None:
                found[:, rows, j] = _of_measure(estimates, measure, rows, levels, spec.level)
    columns = {
        name: pl.Series(values.ravel()).fill_nan(None)
        for name, values in zip(COLUMNS, found, strict=True)
    }
    return estimates.table().with_columns(**columns)


def _levels(values: list[tuple[str, ...]]) -> IntArray:
    """Give each attribute's values numbers, ``[d, k]``."""
    columns = [
        np.unique([str(v) for v in part], return_inverse=True)[1]
        for part in zip(*values, strict=True)
    ]
    return np.array(columns, dtype=np.int64).T


def _of_measure(
    estimates: Estimates, measure: Measure, rows: IntArray, levels: IntArray, level: float
) -> FloatArray:
    """Estimate one metric in the cells of one intersection: estimate, ends and raw ``[4, d]``."""
    mean = means_of(estimates.design, measure, rows)
    counts = estimates.design.rows(rows, measure.mean_columns[1])
    noise = _noise(counts, estimates.design, measure, mean)
    unit = 1.0 if mean.shares else _unit_variance(mean)
    raw = mean.value
    if not unit > 0.0:  # every cluster got the same: nothing says how far a mean is off
        return np.full((4, len(rows)), np.nan)
    found = cell_estimates(raw, noise, levels, shares=mean.shares, unit_variance=unit, level=level)
    low = -np.inf if measure.info.low is None else measure.info.low
    high = np.inf if measure.info.high is None else measure.info.high
    ends = [np.clip(x, low, high) for x in (found.value, found.low, found.high)]
    return np.stack([*ends, raw])


def _noise(counts: csr_array, design: Design, measure: Measure, mean: ClusterMeans) -> FloatArray:
    """Return the covariance of the cells' means, in variances of one score: ``[d, d]``."""
    rho = float(np.mean(mean.correlation)) if mean.shares else 1.0
    rows = np.asarray(counts @ design.copies.astype(np.float64)).ravel()
    column = measure.mean[1] if measure.mean else 0
    plain = unweighted(design)
    sizes = plain.rows(0, column).toarray()[0]
    if plain is not design:  # a sample with weights has a column for each cluster
        sizes = sizes[plain.distinct_of]
    alike = np.where(sizes > 1, rho, 1.0) * design.copies
    together = (counts.multiply(alike[None, :]) @ counts.T).toarray()
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = together / (rows[:, None] * rows[None, :])
        np.fill_diagonal(noise, (mean.pooled_effect() if mean.shares else mean.size) / mean.units)
    return np.asarray(noise)


def _unit_variance(mean: ClusterMeans) -> float:
    """Pool what cells say of the variance of one cluster's mean, by their degrees of freedom."""
    clusters = mean.effective_clusters
    known = np.isfinite(mean.value) & (clusters > 1.0)
    if not known.any():
        return 0.0
    weight = np.maximum(mean.freedom[known], 1.0)
    return float((weight * mean.variance[known] * clusters[known]).sum() / weight.sum())
