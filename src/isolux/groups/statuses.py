"""Each cell's status and reason: how far its value may be trusted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.groups.estimates import Measure, Worth
from isolux.groups.interval_methods import OF_CLASSES, choose_method
from isolux.groups.means import Means
from isolux.stats.constants import KEPT_CLUSTERS, KEPT_EFFECTIVE, NO_INTERVAL_BELOW
from isolux.stats.intervals import Interval, keeps_promise, no_spread
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import Status

Cells = tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]]
"""Statuses and reasons: of groups and measures ``[g, m]``, or of groups ``[g]``."""

_ROUNDING = 1e-9  # fifty units of one weight are worth fifty, whatever the last digit says
_RELATIVE = 1e-12
"""A standard error below this share of its value is what is left of equal numbers."""
_EVEN = "nothing varies in it: the interval may be too narrow"


def statuses(
    measures: tuple[Measure, ...],
    value: FloatArray,
    se: FloatArray,
    n_units: IntArray,
    n_clusters: IntArray,
    interval: Interval,
    spec: Statistics,
    means: Means | None = None,
    worth: Worth | None = None,
) -> Cells:
    """Give each cell one status, the gravest that applies, and the sentence behind it."""
    if worth is not None:
        return _of_worth(measures, value, se, (n_units, n_clusters), interval, spec, means, worth)
    status = np.full(value.shape, Status.OK.value, dtype=object)
    reason = np.full(value.shape, None, dtype=object)

    def mark(where: npt.NDArray[np.bool_], word: Status, why: str) -> None:
        status[where] = word.value
        reason[where] = why

    for j, measure in enumerate(measures):
        mean = means[j] if means else None
        by_score = choose_method(measure, mean, spec) in ("score", OF_CLASSES)
        held = n_clusters[:, j] if mean is None else mean.effective_clusters
        least = KEPT_EFFECTIVE if by_score else KEPT_CLUSTERS
        own = np.zeros(value.shape, dtype=np.bool_)
        if measure.fraction and not by_score:
            own[:, j] = ~keeps_promise(value[:, j], se[:, j], held.astype(float))
            mark(
                own, Status.BOUNDARY, "too near 0 or 1 for its size: the interval may be too narrow"
            )
            inside = (value[:, j] > 0.0) & (value[:, j] < 1.0)
            own[:, j] = inside & no_spread(value[:, j], se[:, j])
            mark(own, Status.BOUNDARY, _EVEN)
        elif not measure.fraction:
            own[:, j] = se[:, j] <= _RELATIVE * np.abs(value[:, j])
            mark(own, Status.BOUNDARY, _EVEN)
        own[:, j] = held < least
        mark(
            own,
            Status.BOUNDARY,
            f"fewer than {least} effective clusters: the interval may be too narrow",
        )
    bare = np.isnan(interval.low) & (n_clusters < NO_INTERVAL_BELOW)
    mark(bare, Status.BOUNDARY, f"fewer than {NO_INTERVAL_BELOW} clusters: no interval is honest")
    for j, measure in enumerate(measures):
        own = np.zeros(value.shape, dtype=np.bool_)
        own[:, j] = np.isnan(value[:, j])
        mark(own, Status.UNDEFINED, measure.info.undefined)
    small = n_clusters < spec.min_clusters
    mark(small, Status.INSUFFICIENT_CLUSTERS, f"fewer than {spec.min_clusters} clusters")
    thin = n_units < spec.min_units
    mark(thin, Status.INSUFFICIENT_UNITS, f"fewer than {spec.min_units} units")
    mark(n_units == 0, Status.NOT_SCORED, "nobody in this group was scored on this metric")
    return status, reason


def _of_worth(
    measures: tuple[Measure, ...],
    value: FloatArray,
    se: FloatArray,
    held: tuple[IntArray, IntArray],
    interval: Interval,
    spec: Statistics,
    means: Means | None,
    worth: Worth,
) -> Cells:
    """Give statuses by what units and clusters are worth; reasons say how many there are."""
    n_units, n_clusters = held
    few = np.floor(worth.units + _ROUNDING), np.floor(worth.clusters + _ROUNDING)
    units, clusters = (x.astype(np.int64) for x in few)
    status, reason = statuses(measures, value, se, units, clusters, interval, spec, means)
    for word, kind, there, own in (
        (Status.INSUFFICIENT_UNITS, "units", n_units, units),
        (Status.INSUFFICIENT_CLUSTERS, "clusters", n_clusters, clusters),
    ):
        for g, j in np.argwhere((status == word.value) & (own < there)):
            reason[g, j] += f": {there[g, j]:,} {kind} are worth {own[g, j]:,} of one weight"
    return status, reason


def mark_rarer(
    cells: Cells,
    held: tuple[IntArray, IntArray],
    least: tuple[str, int, int],
    without: npt.NDArray[np.bool_] | None = None,
) -> None:
    """Mark the groups of one measure in which a class that it needs is too rare.

    Shapes: ``cells`` [g], ``held`` [g], ``without`` [g].
    """
    status, reason = cells
    units, clusters = held
    what, min_units, min_clusters = least
    graver = np.isin(status.astype(str), [Status.INSUFFICIENT_UNITS.value, Status.NOT_SCORED.value])
    few = ~graver & (clusters > 0) & (clusters < min_clusters)
    for g in np.flatnonzero(few & (status != Status.INSUFFICIENT_CLUSTERS.value)):
        status[g] = Status.INSUFFICIENT_CLUSTERS.value
        reason[g] = f"fewer than {min_clusters} clusters of {what}: {clusters[g]:,}"
    held_by = units > 0 if without is None else (units > 0) | without
    for g in np.flatnonzero(~graver & held_by & (units < min_units)):
        status[g] = Status.INSUFFICIENT_UNITS.value
        reason[g] = f"fewer than {min_units} {what}: {units[g]:,}"
