"""Values that chance enlarges (calibration error), with as much chance in one group as in another.

A mean of absolute gaps is never negative: chance alone makes it larger, most where people are few.
So in two groups that a model serves alike, the smaller one's value is larger. How much of a value
is chance's cannot be told well enough to take it out, but it can be added: where a bin's gap is
more sure in one group than in the other, that group's value is the one to be expected if its gap
were as unsure (the mean of a folded normal). What chance adds is then alike in both, and nothing of
the difference is owed to their sizes. It is smaller than the difference without any chance would
be: a test of it holds its level, and an interval of it is no bound of how far apart groups are.

The variance of a gap is its clusters' own sum of squares, so that nothing is asked of how like two
groups' confidences are.
"""

from __future__ import annotations

import numpy as np

from isolux.groups.estimates import Estimates, Measure
from isolux.stats.design import Design, IntArray
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.statistic import FloatArray

__all__ = ["ENLARGED", "is_enlarged", "owed_to_chance", "with_chance_of", "with_most_chance"]

ENLARGED = "chance makes it larger, most in small groups"
"""Why a value is marked whose interval chance may have moved away from what it should hold."""


def is_enlarged(measure: Measure) -> bool:
    """Tell whether chance enlarges the values of a measure, and can be made alike."""
    return measure.columns is not None and measure.columns.statistic.with_chance is not None


def owed_to_chance(design: Design, measure: Measure, rows: IntArray) -> FloatArray:
    """Return how much a group's value would grow if its chance came to it once more: ``[h]``.

    That is about what it has grown by, where its gaps are more than chance; less where not.
    """
    sums, variances = _gaps(design, measure, rows)
    return _value(measure, sums, variances) - _value(measure, sums, np.zeros_like(variances))


def with_chance_of(
    estimates: Estimates, j: int, first: IntArray, second: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return two values of each pair of groups, with as much chance in both: ``[h]`` each."""
    measure = estimates.measures[j]
    one, two = (_gaps(estimates.design, measure, rows) for rows in (first, second))
    return (
        _value(measure, one[0], np.maximum(two[1] - one[1], 0.0)),
        _value(measure, two[0], np.maximum(one[1] - two[1], 0.0)),
    )


def with_most_chance(estimates: Estimates, j: int, rows: IntArray) -> FloatArray:
    """Return groups' values, each with as much chance as the group that has most: ``[h]``."""
    measure = estimates.measures[j]
    sums, variances = _gaps(estimates.design, measure, rows)
    return _value(measure, sums, variances.max(axis=0) - variances)


def _value(measure: Measure, sums: FloatArray, variances: FloatArray) -> FloatArray:
    assert measure.columns is not None  # noqa: S101 - callers ask ``is_enlarged``
    expected = measure.columns.statistic.with_chance
    assert expected is not None  # noqa: S101 - as above
    return expected(sums, variances)


def _gaps(design: Design, measure: Measure, rows: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return sums ``[h, k]``, and the variances ``[h, k - 1]`` of the gaps over the count."""
    assert measure.columns is not None  # noqa: S101 - callers ask
    start, stop = measure.columns.start, measure.columns.stop
    used, where = np.unique(rows, return_inverse=True)
    sums = design.totals()[used, start:stop]
    squares = _squares(design, used, np.arange(start, stop - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        variances = squares / sums[:, -1:] ** 2
    return sums[where], variances[where]


def _squares(design: Design, rows: IntArray, columns: IntArray) -> FloatArray:
    """Sum the squares of what clusters add to some columns: ``[h, k]``."""
    if isinstance(design, DrawnDesign):  # within strata, of a finite population, both ways
        drawn = [design.inner(rows, int(c), int(c)) for c in columns]
        return np.maximum(np.stack(drawn, axis=1), 0.0)
    copies = design.copies.astype(np.float64)
    return np.stack([design.rows(rows, int(c)).power(2) @ copies for c in columns], axis=1)
