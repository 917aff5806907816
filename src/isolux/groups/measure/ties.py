"""Where units share the value that a quantile is about: its interval is then no law's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.groups.measure.columns import Judged
from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.tables import Status

_WINDOW = 3.0
"""Standard errors of a rank, either way, that a quantile may come from."""
_TIED = "many of its values are equal near this one, which jumps between them: p may be too small"

Marks = npt.NDArray[np.object_]


def mark_ties(
    judged: Judged,
    entries: tuple[IntArray, IntArray],
    cells: tuple[Marks, Marks],
    clusters: IntArray,
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
    """Tell whether a quantile may come from one of several values of which one is held by many.

    Examples
    --------
    >>> are_tied(np.repeat([0.0, 1.0], [48, 52]), 0.5, 100)
    True
    >>> are_tied(np.repeat([0.0, 1.0], [5, 95]), 0.5, 100), are_tied(np.arange(100.0), 0.5, 100)
    (False, False)
    """
    error = np.sqrt(share * (1.0 - share) / max(clusters, 1))
    ends = np.clip([share - _WINDOW * error, share + _WINDOW * error], 0.0, 1.0)
    first, last = np.quantile(own, ends, method="closest_observation")
    near, held = np.unique(own[(own >= first) & (own <= last)], return_counts=True)
    return bool(len(near) > 1 and held.max() > error * len(own))
