"""Comparisons of roots of mean squares: those of the mean squares, on the roots' scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isolux.disparity.replicated import times_the_others
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods.root import root_of
from isolux.stats.design import IntArray
from isolux.stats.deviates import Difference, Reach
from isolux.stats.intervals import Interval
from isolux.stats.statistic import FloatArray

if TYPE_CHECKING:
    from isolux.disparity.comparisons import Comparisons


@dataclass(frozen=True, slots=True)
class RootComparisons:
    """Roots of means: ``squares`` compares the means, its first row being everyone."""

    estimates: Estimates
    j: int
    squares: Comparisons

    def pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups."""
        return _of_roots(self.squares.pairs(first, second))

    def rests(self, first: IntArray) -> Difference:
        """Compare groups with everyone: with everyone else, times the share of the others."""
        apart = _of_roots(self.squares.rests(first))
        everyone = np.full(len(first), self.estimates.value[0, self.j])
        share = self.squares.share_of_others(first)
        return times_the_others(self.estimates.value[first, self.j], everyone, apart, share)

    def share_of_others(self, first: IntArray) -> FloatArray:
        """Return 1: ``rests`` is of the difference to everyone already."""
        return np.ones(len(first))


def _of_roots(squares: Difference) -> Difference:
    """Take the roots of two means and of their intervals' ends."""
    a, b = np.sqrt(squares.a), np.sqrt(squares.b)

    def ends(z: Reach) -> tuple[Interval, Interval]:
        one, two = squares.ends(z)
        return root_of(one), root_of(two)

    with np.errstate(divide="ignore", invalid="ignore"):
        # Without any error in either group there is nothing to be unsure of.
        error = np.where(a + b > 0.0, squares.standard_error / (a + b), 0.0)
    return replace(squares, a=a, b=b, ends=ends, standard_error=error, groups=None, gaps=None)
