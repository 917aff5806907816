"""Where what units add to a value lies too far on one side for its interval."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.groups.chance_added import chance_of, is_enlarged
from isolux.groups.estimates import Measure
from isolux.stats.design import Design, IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.tables import Status

_MOST = 0.25
"""Skewness of a value beyond which its interval is too short on one side: that of a share of .85
of 60 people."""
_WHY = "too many of one value for its size: the interval may be too narrow"

Marks = npt.NDArray[np.object_]


def error_with_chance(
    design: Design, measure: Measure, clusters: IntArray, se: FloatArray
) -> FloatArray:
    """Return standard errors of values that chance enlarges, no smaller than chance lets them be.

    Sixty pictures of one value are no proof that there is no other: a group of one value alone has
    the standard error of one cluster more, of another value, 1 / 61.
    """
    chance = chance_of(design, measure, np.arange(len(se)))
    se = se * chance.times
    if chance.skew is None:
        return se
    return np.where(np.isnan(chance.skew), np.maximum(se, 1.0 / (clusters + 1.0)), se)


def mark_skewed(
    design: Design, measures: tuple[Measure, ...], cells: tuple[Marks, Marks], clusters: IntArray
) -> None:
    """Mark values that chance enlarges, whose skewness is known and large for their clusters.

    Shapes: ``cells`` [g, m], ``clusters`` [g, m].
    """
    status, reason = cells
    rows = np.arange(len(status))
    for j, measure in enumerate(measures):
        skew = chance_of(design, measure, rows).skew if is_enlarged(measure) else None
        if skew is None:
            continue
        leans = ~(np.abs(skew) <= _MOST * np.sqrt(clusters[:, j]))
        for g in np.flatnonzero(leans & (status[:, j] == Status.OK.value)):
            status[g, j], reason[g, j] = Status.BOUNDARY.value, _WHY
