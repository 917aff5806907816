"""Where too little is known of the largest errors to say how large a mean of squares is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.groups.estimates import Measure
from isolux.groups.squares import is_of_squares, mean_of_squares, tails_of_squares
from isolux.stats.design import Design, IntArray
from isolux.stats.far_tails import FLATTEST
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import Status

_DOUBT = 0.1
"""Probability of an index that no mean can be told of from which on a value is marked."""

Marks = npt.NDArray[np.object_]


def mark_far_errors(
    design: Design,
    measures: tuple[Measure, ...],
    family: IntArray,
    cells: tuple[Marks, Marks],
    spec: Statistics,
) -> None:
    """Mark roots of mean squares whose errors may be too far to tell, or that rest on few of them.

    Shapes: ``family`` [g], ``cells`` [g, m].
    """
    status, reason = cells
    copies = design.copies.astype(np.float64)
    for j, measure in enumerate(measures):
        if not is_of_squares(measure):
            continue
        sums, _ = mean_of_squares(measure).mean or (0, 0)
        squares = design.rows(np.arange(len(status)), sums)
        worth = _worth(squares @ copies, squares.power(2) @ copies)
        tails = tails_of_squares(design, measure, len(status))
        index = tails.index(family).at_least(_DOUBT)
        for g in np.flatnonzero(status[:, j] == Status.OK.value):
            if worth[g] < spec.min_clusters:
                reason[g, j] = f"a few far errors make up most of it: worth {worth[g]:.1f} clusters"
            elif index[g] <= FLATTEST:
                reason[g, j] = "its largest errors thin out too slowly to say how large it can be"
            else:
                continue
            status[g, j] = Status.BOUNDARY.value


def _worth(total: FloatArray, square: FloatArray) -> FloatArray:
    """Return how many equal ones so unequal squares are worth (Kish)."""
    # Without any error there is nothing that a few of them could make up.
    return np.divide(total**2, square, out=np.full_like(total, np.inf), where=square > 0)
