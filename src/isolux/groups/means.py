"""Means of clustered scores, of everyone and every group: what their clusters add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolux.groups.drawn import drawn_means
from isolux.groups.estimates import Measure
from isolux.stats.design import Design, IntArray
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.rows import less_each
from isolux.stats.shares import ClusterMeans, are_shares, cluster_means, pooled_correlation

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
    assert measure.mean is not None  # noqa: S101 - callers ask of means only
    if isinstance(design, DrawnDesign):
        return drawn_means(design, measure, rows)
    sums, counts = measure.mean
    held = design.rows(rows, sums), design.rows(rows, counts)
    return _reduced(design, measure, held)


def means_of_others(design: Design, measure: Measure, rows: IntArray) -> ClusterMeans:
    """Reduce the clusters of everyone who is not in each of some rows of a plain design."""
    assert measure.mean is not None  # noqa: S101 - callers ask of means only
    counts = design.rows(0, measure.mean[1])
    left = [less_each(counts, design.rows(0, q), design.rows(rows, q)) for q in measure.mean]
    return _reduced(design, measure, (left[0], left[1]))


def _reduced(design: Design, measure: Measure, held: tuple[csr_array, csr_array]) -> ClusterMeans:
    sums, counts = measure.mean or (0, 0)
    everyone = design.rows(0, sums), design.rows(0, counts)
    rho = float(pooled_correlation(*everyone, design.copies)[0])
    shares = measure.fraction and are_shares(*everyone)
    found = cluster_means(*held, design.copies, rho, shares=shares)
    return found.moved(measure.centre)
