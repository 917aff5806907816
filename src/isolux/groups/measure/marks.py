"""Values that rest on fewer units than they count: of the rarer class, or of many that are tied."""

from __future__ import annotations

import numpy as np

from isolux.groups.estimates import Measure
from isolux.groups.measure.columns import Judged
from isolux.groups.statuses import Cells, mark_rarer
from isolux.stats.constants import TIE_WINDOW
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import Status

_TIED = "many of its values are equal near this one, which jumps between them: p may be too small"


def mark_ties(
    judged: Judged, entries: tuple[IntArray, IntArray], cells: Cells, clusters: IntArray
) -> None:
    """Mark medians and percentiles of groups in which many share a value near them.

    Shapes: ``entries`` [m], ``cells`` [g, m], ``clusters`` [g, m].
    """
    group_of, unit_of = entries
    status, reason = cells
    for j, ranked in judged.ranked.items():
        share = ranked.statistic.share
        if share is None:
            continue
        number = np.full(len(judged.unit_ids), np.nan)
        number[ranked.unit_of_row] = ranked.rows[:, 0]
        for g in np.flatnonzero(status[:, j] == Status.OK.value):
            own = number[unit_of[group_of == g]]
            if are_tied(own[~np.isnan(own)], share, int(clusters[g, j])):
                status[g, j], reason[g, j] = Status.BOUNDARY.value, _TIED


def are_tied(own: FloatArray, share: float, clusters: int) -> bool:
    """Tell whether a quantile may come from one of several values of which one is held by many."""
    error = np.sqrt(share * (1.0 - share) / max(clusters, 1))
    ends = np.clip([share - TIE_WINDOW * error, share + TIE_WINDOW * error], 0.0, 1.0)
    first, last = np.quantile(own, ends, method="closest_observation")
    near, held = np.unique(own[(own >= first) & (own <= last)], return_counts=True)
    return bool(len(near) > 1 and held.max() > error * len(own))


def mark_rarer_classes(
    judged: Judged, entries: tuple[IntArray, IntArray], cells: Cells, spec: Statistics
) -> None:
    """Mark where a ranking of two classes rests on too few of either."""
    group_of, unit_of = entries
    status, reason = cells
    for j, ranked in judged.ranked.items():
        column = ranked.statistic.two_classes
        if column is None:
            continue
        class_of = np.full(len(judged.unit_ids), -1, dtype=np.int64)
        class_of[ranked.unit_of_row] = ranked.rows[:, column] > 0
        units = np.zeros((2, len(status)), dtype=np.int64)
        clusters = np.zeros_like(units)
        for g in range(len(status)):
            inside = unit_of[group_of == g]
            for kind in (0, 1):
                own = inside[class_of[inside] == kind]
                units[kind, g] = len(own)
                clusters[kind, g] = len(np.unique(judged.cluster_of[own]))
        mark_rarer(
            (status[:, j], reason[:, j]),
            (units.min(axis=0), clusters.min(axis=0)),
            ("units of one class", spec.min_units, spec.min_clusters),
        )


def mark_rarest_of_sums(
    measures: tuple[Measure, ...],
    measured: tuple[FloatArray, FloatArray],
    cells: Cells,
    spec: Statistics,
) -> None:
    """Mark where a mean over classes rests on too few units of one of them, or on none."""
    (totals, value), (status, reason) = measured, cells
    for j, measure in enumerate(measures):
        columns = measure.columns
        if columns is None or columns.statistic.rarest is None:
            continue
        own = totals[:, columns.start : columns.stop]
        held = np.rint(columns.statistic.rarest(own)).astype(np.int64)
        mark_rarer(
            (status[:, j], reason[:, j]),
            (held, np.full(len(held), spec.min_clusters, dtype=np.int64)),
            ("units of one class", spec.min_units, spec.min_clusters),
            columns.statistic.of_classes & np.isfinite(value[:, j]) & (held == 0),
        )
