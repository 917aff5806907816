"""Status and reason of each cell: whether its value and interval may be read as they are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.core.spec import Statistics
from isolux.core.tables import Status
from isolux.groups.estimates import EffectiveSampleSize, Measure
from isolux.groups.interval_methods import MACRO_AVERAGE, choose_interval_method
from isolux.groups.means import Means
from isolux.stats.constants import (
    MIN_CLUSTERS_FOR_INTERVAL,
    MIN_CLUSTERS_FOR_NOMINAL_COVERAGE,
    MIN_EFFECTIVE_CLUSTERS,
)
from isolux.stats.intervals import (
    Interval,
    has_fraction_nominal_coverage,
    is_fraction_without_variation,
)
from isolux.stats.statistic import FloatArray, IntArray

StatusCells = tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]
"""Statuses and reasons: of groups and measures ``[g, m]``, or of groups ``[g]``."""

_ABSOLUTE_TOLERANCE = 1e-9  # 50 equal weights have an effective size of 50, up to rounding
_RELATIVE_TOLERANCE = 1e-12
"""A standard error below this fraction of its value is rounding: all numbers are equal."""
_NO_VARIATION_REASON = "nothing varies in it: the interval may be too narrow"


def assign_statuses(
    measures: tuple[Measure, ...],
    estimates: FloatArray,
    se: FloatArray,
    n_units: IntArray,
    n_clusters: IntArray,
    interval: Interval,
    spec: Statistics,
    means: Means | None = None,
    effective_size: EffectiveSampleSize | None = None,
) -> StatusCells:
    """Assign each cell the most severe status that applies, and its reason."""
    if effective_size is not None:
        return _assign_statuses_by_effective_size(
            measures, estimates, se, (n_units, n_clusters), interval, spec, means, effective_size
        )
    status = np.full(estimates.shape, Status.OK.value, dtype=object)
    reason = np.full(estimates.shape, None, dtype=object)

    def mark(cell_mask: npt.NDArray[np.bool_], new_status: Status, text: str) -> None:
        status[cell_mask] = new_status.value
        reason[cell_mask] = text

    # Later flags replace earlier ones, so they are in order of severity.
    for j, measure in enumerate(measures):
        mean = means[j] if means else None
        is_score_interval = choose_interval_method(measure, mean, spec) in ("score", MACRO_AVERAGE)
        n_effective_clusters = n_clusters[:, j] if mean is None else mean.n_effective_clusters
        # With the score interval, coverage was nominal from 15 effective clusters on, with others
        # from 30 (docs/methods/uncertainty.md).
        min_clusters = (
            MIN_EFFECTIVE_CLUSTERS if is_score_interval else MIN_CLUSTERS_FOR_NOMINAL_COVERAGE
        )
        flagged_cells = np.zeros(estimates.shape, dtype=np.bool_)
        # Replicate intervals are too short near 0 and 1; the score interval is not
        # (docs/methods/uncertainty.md).
        if measure.is_fraction and not is_score_interval:
            flagged_cells[:, j] = ~has_fraction_nominal_coverage(
                estimates[:, j], se[:, j], n_effective_clusters.astype(float)
            )
            mark(
                flagged_cells,
                Status.RARE_OUTCOME,
                "too near 0 or 1 for its size: the interval may be too narrow",
            )
            is_interior = (estimates[:, j] > 0.0) & (estimates[:, j] < 1.0)
            flagged_cells[:, j] = is_interior & is_fraction_without_variation(
                estimates[:, j], se[:, j]
            )
            mark(flagged_cells, Status.NO_VARIATION, _NO_VARIATION_REASON)
        elif not measure.is_fraction:
            flagged_cells[:, j] = se[:, j] <= _RELATIVE_TOLERANCE * np.abs(estimates[:, j])
            mark(flagged_cells, Status.NO_VARIATION, _NO_VARIATION_REASON)
        # By the clusters alone: a flag that depends on the scores passes just the samples whose
        # intervals miss (docs/methods/uncertainty.md).
        flagged_cells[:, j] = n_effective_clusters < min_clusters
        reason_text = (
            f"fewer than {min_clusters} effective clusters: the interval may be too narrow"
        )
        mark(flagged_cells, Status.DOMINANT_CLUSTERS, reason_text)
        mark(flagged_cells & (n_clusters < min_clusters), Status.FEW_CLUSTERS, reason_text)
    lacks_interval = np.isnan(interval.low) & (n_clusters < MIN_CLUSTERS_FOR_INTERVAL)
    mark(
        lacks_interval,
        Status.FEW_CLUSTERS,
        f"fewer than {MIN_CLUSTERS_FOR_INTERVAL} clusters: no interval is honest",
    )
    for j, measure in enumerate(measures):
        flagged_cells = np.zeros(estimates.shape, dtype=np.bool_)
        flagged_cells[:, j] = np.isnan(estimates[:, j])
        mark(flagged_cells, Status.UNDEFINED, measure.info.undefined)
    # Units after clusters: without enough units there is not even a value (decision 10).
    has_few_clusters = n_clusters < spec.min_clusters
    mark(has_few_clusters, Status.INSUFFICIENT_CLUSTERS, f"fewer than {spec.min_clusters} clusters")
    has_few_units = n_units < spec.min_units
    mark(has_few_units, Status.INSUFFICIENT_UNITS, f"fewer than {spec.min_units} units")
    mark(n_units == 0, Status.NOT_SCORED, "nobody in this group was scored on this metric")
    return status, reason


def _assign_statuses_by_effective_size(
    measures: tuple[Measure, ...],
    estimates: FloatArray,
    se: FloatArray,
    counts: tuple[IntArray, IntArray],
    interval: Interval,
    spec: Statistics,
    means: Means | None,
    effective_size: EffectiveSampleSize,
) -> StatusCells:
    """Assign statuses by effective numbers of units and clusters; reasons have the actual ones."""
    n_units, n_clusters = counts
    rounded_sizes = (
        np.floor(effective_size.n_units + _ABSOLUTE_TOLERANCE),
        np.floor(effective_size.n_clusters + _ABSOLUTE_TOLERANCE),
    )
    n_effective_units, n_effective_clusters = (x.astype(np.int64) for x in rounded_sizes)
    # Weighted units count as many equal ones as carry the same information (Kish).
    status, reason = assign_statuses(
        measures, estimates, se, n_effective_units, n_effective_clusters, interval, spec, means
    )
    for flagged_status, counted_name, n_present, n_effective in (
        (Status.INSUFFICIENT_UNITS, "units", n_units, n_effective_units),
        (Status.INSUFFICIENT_CLUSTERS, "clusters", n_clusters, n_effective_clusters),
    ):
        for g, j in np.argwhere((status == flagged_status.value) & (n_effective < n_present)):
            reason[g, j] += (
                f": {n_present[g, j]:,} {counted_name} are worth {n_effective[g, j]:,} "
                "of one weight"
            )
    return status, reason


def flag_rare_class(
    cells: StatusCells,
    counts: tuple[IntArray, IntArray],
    minimum: tuple[str, int, int],
    lacks_class: npt.NDArray[np.bool_] | None = None,
) -> None:
    """Flag the groups of one measure in which a required class is too rare.

    Shapes: ``cells`` [g], ``counts`` [g], ``lacks_class`` [g].
    """
    status, reason = cells
    n_units, n_clusters = counts
    description, min_units, min_clusters = minimum
    is_graver = np.isin(
        status.astype(str), [Status.INSUFFICIENT_UNITS.value, Status.NOT_SCORED.value]
    )
    has_few_clusters = ~is_graver & (n_clusters > 0) & (n_clusters < min_clusters)
    for g in np.flatnonzero(has_few_clusters & (status != Status.INSUFFICIENT_CLUSTERS.value)):
        status[g] = Status.INSUFFICIENT_CLUSTERS.value
        reason[g] = f"fewer than {min_clusters} clusters of {description}: {n_clusters[g]:,}"
    is_scored = n_units > 0 if lacks_class is None else (n_units > 0) | lacks_class
    for g in np.flatnonzero(~is_graver & is_scored & (n_units < min_units)):
        status[g] = Status.INSUFFICIENT_UNITS.value
        reason[g] = f"fewer than {min_units} {description}: {n_units[g]:,}"
