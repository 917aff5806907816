"""Roots of mean squares, by what is known of the mean of squares.

A few far errors make up most of a mean of squares, and a small group without one looks surer than
it is in every replicate. Means of numbers know better: a group's spread is taken to be no smaller
than others' of its attribute let it be. So the interval of a root is the root of theirs, and its
upper end is no lower than how slowly the largest errors thin out lets the mean be.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isolux.groups.estimates import Measure
from isolux.stats.design import Design, IntArray
from isolux.stats.far_tails import FarTails, far_tails
from isolux.stats.intervals import Interval
from isolux.stats.statistic import FloatArray

__all__ = ["far_reach", "is_of_squares", "mean_of_squares", "root_of", "tails_of_squares"]


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


def far_reach(
    ends: Interval, value: FloatArray, tails: FarTails, family: IntArray, doubt: float
) -> Interval:
    """Let the intervals of means of squares reach as far up as their tails let them be.

    Parameters
    ----------
    ends : Interval
        Of means of squares.
    value : [g] float
        The means.
    tails : FarTails
    family : [g] int
        Groups of one number belong to one attribute; everyone's is 0.
    doubt : float
        Probability of a flatter tail.
    """
    far = tails.highest(value, tails.indices(doubt, family))
    return Interval(ends.low, np.fmax(ends.high, far))


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
