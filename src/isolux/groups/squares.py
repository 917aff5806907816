"""Roots of mean squares, by what is known of the mean of squares.

A few far errors make up most of a mean of squares, and a small group without one looks surer than
it is in every replicate. Means of numbers know better: a group's spread is taken to be no smaller
than others' of its attribute let it be. So the interval of a root is the root of theirs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isolux.groups.estimates import Measure
from isolux.stats.intervals import Interval

__all__ = ["is_of_squares", "mean_of_squares", "root_of"]


def is_of_squares(measure: Measure) -> bool:
    """Tell whether a measure is the root of a mean."""
    return measure.columns is not None and measure.columns.statistic.of_squares


def mean_of_squares(measure: Measure) -> Measure:
    """Return the mean that a measure is the root of."""
    assert measure.columns is not None  # noqa: S101 - callers ask ``is_of_squares``
    start = measure.columns.start
    return replace(measure, mean=(start, start + 1))


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
