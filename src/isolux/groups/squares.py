"""Roots of mean squares, by what is known of the mean of squares.

A few far errors make up most of a mean of squares, and a small group without one looks surer than
it is in every replicate. Means of numbers know better: a group's spread is taken to be no smaller
than others' of its attribute let it be. So the interval of a root is the root of theirs, and its
upper end is no lower than how slowly the largest errors thin out lets the mean be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from isolux.groups.estimates import Measure
from isolux.groups.means import means_of
from isolux.stats.design import Design, IntArray
from isolux.stats.far_tails import FarTails, TailIndex, far_tails
from isolux.stats.intervals import Interval
from isolux.stats.leaning import Slopes, number_interval, slopes_of
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray


def is_of_squares(measure: Measure) -> bool:
    """Tell whether a measure is the root of a mean."""
    return measure.columns is not None and measure.columns.statistic.of_squares


def mean_of_squares(measure: Measure) -> Measure:
    """Return the mean that a measure is the root of."""
    assert measure.columns is not None  # noqa: S101 - callers ask ``is_of_squares``
    start = measure.columns.start
    return replace(measure, mean=(start, start + 1))


def tails_of_squares(design: Design, measure: Measure, n_groups: int) -> FarTails:
    """Find the tails of everyone's and every group's squares."""
    sums, counts = mean_of_squares(measure).mean or (0, 0)
    rows = np.arange(n_groups)
    return far_tails(design.rows(rows, sums), design.rows(rows, counts), design.copies)


@dataclass(frozen=True, slots=True)
class Roots:
    """Roots of groups' means of squares, as far as each may lie from what was drawn.

    Parameters
    ----------
    mean : ClusterMeans
        Of the squares.
    slopes : Slopes
    tails : FarTails
    index : TailIndex
    """

    mean: ClusterMeans
    slopes: Slopes
    tails: FarTails
    index: TailIndex

    def at(self, rows: IntArray) -> Roots:
        """Return some of the groups."""
        parts = self.mean, self.slopes, self.tails, self.index
        return Roots(*(part.at(rows) for part in parts))  # type: ignore[arg-type]

    def interval(self, z: FloatArray | float, *, careful: bool = False) -> Interval:
        """Return the intervals that reach z standard errors, and as far up as far errors may lie.

        ``careful``: one end alone is asked, and far errors are looked for as far as for both.
        """
        from scipy.special import ndtr

        ends = number_interval(self.mean, self.slopes, z, fraction=False)
        index = self.index.at_least(ndtr(-np.asarray(z)) / (2.0 if careful else 1.0))
        high = np.fmax(ends.high, self.tails.highest(self.mean.value, index))
        return root_of(Interval(ends.low, high))


def roots(design: Design, measure: Measure, families: IntArray) -> Roots:
    """Lay out the roots of everyone's and every group's mean of squares.

    Shapes: ``families`` [g].
    """
    mean = means_of(design, mean_of_squares(measure), np.arange(len(families)))
    slopes = slopes_of(mean, families)
    assert slopes is not None  # noqa: S101 - squares are no shares
    tails = tails_of_squares(design, measure, len(families))
    return Roots(mean, slopes, tails, tails.index(families))


def root_of(interval: Interval) -> Interval:
    """Take the root of both ends; below 0 there is nothing.

    Examples
    --------
    >>> found = root_of(Interval(np.array([-1.0]), np.array([9.0])))
    >>> found.low.item(), found.high.item()
    (0.0, 3.0)
    """
    low, high = (np.sqrt(np.maximum(end, 0.0)) for end in (interval.low, interval.high))
    return Interval(low, high)
