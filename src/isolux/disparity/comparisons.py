"""Which two groups are compared how: the ``Difference`` of any two groups of one attribute.

One object for each attribute and metric: the interval of a pair, its p-value and what could have
been detected are all read from it, so they cannot contradict one another.

"Everyone else" is everyone in the attribute's other groups: people whose value is not known are in
no claim. A group's difference to all of them is its difference to everyone else, times the share of
the others, to the last digit; so is its interval. Metrics that are no means have that identity to
first order only: their value is held to everyone's, and the interval to everyone else's
(``replicated``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from isolux.disparity.replicated import ReplicateComparisons, times_the_others
from isolux.groups.estimates import Estimates, Measure
from isolux.groups.interval_methods.root import is_of_squares, mean_of_squares, root_of
from isolux.groups.means import correlation_of, means_of, means_of_others
from isolux.stats.design import Design
from isolux.stats.deviates import Difference, Reach
from isolux.stats.differences import of_means, paired_means
from isolux.stats.drawn_design import DrawnDesign, unweighted
from isolux.stats.intervals import Interval
from isolux.stats.joint_law import products
from isolux.stats.rows import some_rows
from isolux.stats.sampling import products_of
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.weighted_means import shared_both_ways

_FULL = 1e-9
"""A share of a cluster's weight below this is rounding: everyone of it is in the group."""
_ROUNDING = 1e-13  # of a difference of sums
Moments = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Of pairs of groups: sums of s s', s n', n s' and n n'."""


class Comparisons(Protocol):
    """Differences of the groups of one attribute, by rows of the estimates."""

    def pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups."""

    def rests(self, first: IntArray) -> Difference:
        """Compare groups with everyone else."""

    def share_of_others(self, first: IntArray) -> FloatArray:
        """Return what turns a difference to everyone else into one to everyone."""


def compare_groups(estimates: Estimates, attribute: str, j: int) -> Comparisons:
    """Return the comparisons of one attribute's groups on measure ``j``."""
    rows = np.append(0, estimates.members(attribute))
    measure = estimates.measures[j]
    if is_of_squares(measure):
        squares = MeanComparisons.of(estimates.design, mean_of_squares(measure), rows)
        return RootComparisons(estimates, j, squares)
    if measure.mean is None:
        return ReplicateComparisons(estimates, j)
    rows[0] = estimates.domain_of[attribute]
    return MeanComparisons.of(estimates.design, measure, rows)


def compare_attributes(
    estimates: Estimates, attributes: Sequence[str], j: int
) -> list[Comparisons]:
    """Return the comparisons of several attributes of one domain on measure ``j``, a mean."""
    measure, design = estimates.measures[j], estimates.design
    domain = [estimates.domain_of[attribute] for attribute in attributes]
    members = [estimates.members(attribute) for attribute in attributes]
    rows = np.concatenate([domain[:1], *members])
    every = MeanComparisons.of(design, measure, rows)
    either = {every.overlap: every, not every.overlap: replace(every, overlap=not every.overlap)}
    return [either[every.overlaps(own)] for own in members]


@dataclass(frozen=True, slots=True)
class MeanComparisons:
    """Means of people's scores; the first of ``rows [k]`` is all groups.

    ``square``, ``cross`` and ``count`` ``[k, k]`` are sums over clusters of s s', s n' and n n', in
    a sample within strata around their means; ``shared`` is the last without strata, ``weight`` the
    groups' own; ``overlap`` tells whether people are in several groups.
    """

    design: Design
    measure: Measure
    rows: IntArray
    means: ClusterMeans
    square: FloatArray
    cross: FloatArray
    count: FloatArray
    shared: FloatArray
    weight: FloatArray
    overlap: bool

    @classmethod
    def of(cls, design: Design, measure: Measure, rows: IntArray) -> MeanComparisons:
        """Reduce the clusters of some rows of a design; the first unites the others."""
        (sums, counts), k = measure.mean_columns, len(rows)
        means = means_of(design, measure, rows)
        if isinstance(design, DrawnDesign):
            every = design.products(rows, (sums, counts))
            weight = np.asarray(design.rows(rows, counts).sum(axis=1)).ravel()
            shared = _shared(design, measure, rows)
        else:
            at = np.concatenate([rows * design.n_columns + column for column in (sums, counts)])
            every = products(some_rows(design.matrix, at), design.copies)
            weight, shared = means.units, every[k:, k:]
        parts = every[:k, :k], every[:k, k:], every[k:, k:], shared, weight
        found = cls(design, measure, rows, means, *parts, overlap=False)
        return replace(found, overlap=found.overlaps(rows[1:]))

    def overlaps(self, groups: IntArray) -> bool:
        """Tell whether anyone is in several of some groups."""
        plain = unweighted(self.design)
        held = plain.rows(np.append(self.rows[0], groups), self.measure.mean_columns[1])
        people = np.asarray(held @ plain.copies.astype(np.float64))
        return bool(people[1:].sum() > people[0] + 0.5)

    def pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups, each pair by what both of its clusters say."""
        i, k = places(self.rows, first), places(self.rows, second)
        a, b = self.means.at(i), self.means.at(k)
        weight = self.weight[i] * self.weight[k]
        moments = self.square[i, k], self.cross[i, k], self.cross[k, i], self.count[i, k]
        covariance = self._covariance(a, b, moments, weight)
        if self.overlap:  # how many rows are in both, only their residuals tell
            found = paired_means(a, b, covariance, fraction=self.measure.fraction)
        else:
            shared = self.shared[i, k] / weight
            found = of_means(a, b, covariance, shared, fraction=self.measure.fraction)
        return replace(found, span=self.measure.span)

    def rests(self, first: IntArray) -> Difference:
        """Compare groups with everyone else: the sums with everyone (row 0) minus their own."""
        i = places(self.rows, first)
        a = self.means.at(i)
        b = means_of_others(self.design, self.measure, first, int(self.rows[0]))
        square, cross, count, shared = self.square, self.cross, self.count, self.shared
        weight = self.weight[i] * (self.weight[0] - self.weight[i])
        moments = (
            square[i, 0] - square[i, i],
            cross[i, 0] - cross[i, i],
            cross[0, i] - cross[i, i],
            count[i, 0] - count[i, i],
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            left = shared[i, 0] - shared[i, i]
            together = left / weight
            if isinstance(self.design, DrawnDesign):  # of weights, rounding is left
                together = np.where(left > _FULL * shared[i, i], together, 0.0)
        covariance = self._covariance(a, b, moments, weight)
        found = of_means(a, b, covariance, together, fraction=self.measure.fraction)
        return replace(found, span=self.measure.span)

    def share_of_others(self, first: IntArray) -> FloatArray:
        """Return the share of people who are not in each group."""
        return np.asarray(1.0 - self.weight[places(self.rows, first)] / self.weight[0])

    def _covariance(
        self, a: ClusterMeans, b: ClusterMeans, moments: Moments, weight: FloatArray
    ) -> FloatArray:
        centre, is_drawn = self.measure.centre, isinstance(self.design, DrawnDesign)
        p, q = a.moved(-centre).value, b.moved(-centre).value  # as they were summed
        return covariance_of((p, q), moments, weight, is_weighted=is_drawn)


def covariance_of(
    values: tuple[FloatArray, FloatArray],
    moments: Moments,
    weight: FloatArray,
    *,
    is_weighted: bool,
) -> FloatArray:
    """Return the covariance of pairs of means from the sums of their clusters: ``[h]``."""
    (p, q), (square, cross, turned, count) = values, moments
    with np.errstate(divide="ignore", invalid="ignore"):
        found = square - q * cross - p * turned + p * q * count
        if is_weighted:
            size = np.abs(square) + np.abs(cross) + np.abs(turned) + np.abs(count)
            # What is left of a difference of equal numbers is rounding, and means no covariance.
            found = np.where(np.abs(found) > _ROUNDING * size, found, 0.0)
        return np.asarray(found / weight)


def _shared(design: DrawnDesign, measure: Measure, rows: IntArray) -> FloatArray:
    """Sum products of groups' weights over clusters, without strata; both ways by correlation."""
    own = products_of(design.rows(rows, measure.mean_columns[1]), None)
    if design.ways is None:
        return own
    other = design.ways[0]
    rho = correlation_of(design, measure)[0], correlation_of(other, measure)[0]
    return shared_both_ways(own, products_of(other.rows(rows, measure.mean_columns[1]), None), rho)


def places(rows: IntArray, wanted: IntArray) -> IntArray:
    """Return where each wanted row is among the rows."""
    order = np.argsort(rows, kind="stable")
    return np.asarray(order[np.searchsorted(rows, wanted, sorter=order)])


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
