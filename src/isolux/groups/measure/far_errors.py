"""Where a few far errors make up most of a mean of squares: its interval may miss the truth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.groups.estimates import Measure
from isolux.groups.squares import is_of_squares, mean_of_squares
from isolux.stats.design import Design
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import Status

__all__ = ["mark_far_errors"]

_HEAVY = 15.0
"""Clusters for each that their squares are worth: 3 of normal errors, 6 of exponential ones."""

Marks = npt.NDArray[np.object_]


def mark_far_errors(
    design: Design,
    measures: tuple[Measure, ...],
    cells: tuple[Marks, Marks],
    spec: Statistics,
) -> None:
    """Mark roots of mean squares that rest on a few far errors.

    Parameters
    ----------
    design : Design
    measures : tuple of Measure
    cells : ([g, m] str, [g, m] str)
        Status and reason, changed in place where a group was well.
    spec : Statistics
        Its least number of clusters is also the least that the squares must be worth.
    """
    status, reason = cells
    rows = np.arange(len(status))
    copies = design.copies.astype(np.float64)
    for j, measure in enumerate(measures):
        if not is_of_squares(measure):
            continue
        sums, counts = mean_of_squares(measure).mean or (0, 0)
        squares = design.rows(rows, sums)
        worth = _worth(squares @ copies, squares.power(2) @ copies)
        held = (design.rows(rows, counts) > 0).astype(np.float64) @ copies
        few = worth < np.maximum(spec.min_clusters, held / _HEAVY)
        # Where everyone has far errors, a group without one may owe that to chance.
        for g in np.flatnonzero((status[:, j] == Status.OK.value) & (few | few[0])):
            status[g, j] = Status.BOUNDARY.value
            of, at = ("it", g) if few[g] else ("everyone's", 0)
            reason[g, j] = f"a few far errors make up most of {of}: worth {worth[at]:.1f} clusters"


def _worth(total: FloatArray, square: FloatArray) -> FloatArray:
    """Return how many equal ones so unequal squares are worth (Kish)."""
    # Without any error there is nothing that a few of them could make up.
    return np.divide(total**2, square, out=np.full_like(total, np.inf), where=square > 0)
