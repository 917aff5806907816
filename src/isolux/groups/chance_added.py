"""What chance may have added to values that are never below 0 (calibration error).

A mean of absolute gaps is larger by chance alone, most where people are few. How much of a value is
chance's depends on the gaps themselves: all of it where they are 0, and nothing where they are
several standard errors wide. So it is not taken out of the value. A group's own interval reaches
down by as much as chance may well have added.

Two groups are compared by their values as they are, and as they would be with as much chance in
both. The first is wrong where one group is smaller, the second where chance has enlarged neither;
an interval that reaches as far as both say takes no difference of sizes for a finding.
"""

from __future__ import annotations

import numpy as np

from isolux.groups.estimates import Measure
from isolux.stats.design import Design, IntArray
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.intervals import Interval
from isolux.stats.statistic import Chance, FloatArray

ENLARGED = "chance makes the values larger, most in small groups, and how much cannot be told"


def is_enlarged(measure: Measure) -> bool:
    """Tell whether chance enlarges the values of a measure."""
    return measure.columns is not None and measure.columns.statistic.chance is not None


def chance_of(design: Design, measure: Measure, rows: IntArray) -> Chance:
    """Tell what chance may have added to groups' values ``[h]``."""
    assert measure.columns is not None  # noqa: S101 - callers ask ``is_enlarged``
    start, stop = measure.columns.start, measure.columns.stop
    found = measure.columns.statistic.chance
    assert found is not None  # noqa: S101 - as above
    used, where = np.unique(rows, return_inverse=True)  # groups are in many pairs
    squares = np.stack([_squares(design, used, column) for column in range(start, stop)], axis=1)
    return found(design.totals()[rows, start:stop], squares[where])


def chance_alike(one: Chance, two: Chance) -> tuple[FloatArray, FloatArray]:
    """Return two values of each pair of groups, with as much chance in both: ``[h]`` each."""
    return (
        one.with_noise(np.maximum(two.noise - one.noise, 0.0)),
        two.with_noise(np.maximum(one.noise - two.noise, 0.0)),
    )


def down_by(interval: Interval, added: FloatArray) -> Interval:
    """Let intervals reach down by what chance may have added, to 0 at most.

    Examples
    --------
    >>> found = down_by(Interval(np.array([0.05, 0.2]), np.array([0.1, 0.3])), np.array([0.1, 0.1]))
    >>> found.low.round(3).tolist(), found.high.tolist()
    ([0.0, 0.1], [0.1, 0.3])
    """
    return Interval(np.maximum(interval.low - added, 0.0), interval.high)


def _squares(design: Design, rows: IntArray, column: int) -> FloatArray:
    """Sum the squares of what clusters add to a column: ``[h]``."""
    if isinstance(design, DrawnDesign):  # within strata, of a finite population, both ways
        return np.maximum(design.inner(rows, column, column), 0.0)
    return np.asarray(design.rows(rows, column).power(2) @ design.copies.astype(np.float64))
