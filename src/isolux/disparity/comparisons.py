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

from isolux.disparity._group_sums import beside_others, places
from isolux.disparity.drawn import DrawnComparisons
from isolux.disparity.replicated import ReplicateComparisons
from isolux.disparity.roots import RootComparisons
from isolux.groups.estimates import Estimates, Measure
from isolux.groups.interval_methods.root import is_of_squares, mean_of_squares
from isolux.groups.means import means_of
from isolux.stats.design import Design, IntArray
from isolux.stats.deviates import Difference
from isolux.stats.differences import of_means, paired_means
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.joint_law import products
from isolux.stats.rows import AT_ONCE, less_each, some_rows
from isolux.stats.shares import ClusterMeans, cluster_means, joined
from isolux.stats.statistic import FloatArray


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
        squares = _of_means(estimates.design, mean_of_squares(measure), rows)
        return RootComparisons(estimates, j, squares)
    if measure.mean is None:
        return ReplicateComparisons(estimates, j)
    rows[0] = estimates.domain_of[attribute]
    return _of_means(estimates.design, measure, rows)


def compare_attributes(
    estimates: Estimates, attributes: Sequence[str], j: int
) -> list[Comparisons]:
    """Return the comparisons of several attributes of one domain on measure ``j``, a mean."""
    measure, design = estimates.measures[j], estimates.design
    domain = [estimates.domain_of[attribute] for attribute in attributes]
    members = [estimates.members(attribute) for attribute in attributes]
    rows = np.concatenate([domain[:1], *members])
    every = _of_means(design, measure, rows)
    either = {every.overlap: every, not every.overlap: replace(every, overlap=not every.overlap)}
    return [either[every.overlaps(own)] for own in members]


def _of_means(
    design: Design, measure: Measure, rows: IntArray
) -> MeanComparisons | DrawnComparisons:
    if isinstance(design, DrawnDesign):
        return DrawnComparisons.of(design, measure, rows)
    return MeanComparisons.of(design, measure, rows)


@dataclass(frozen=True, slots=True)
class MeanComparisons:
    """Means: everything comes from what clusters add; the first of ``rows [k]`` is all groups.

    ``square``, ``cross`` and ``count`` ``[k, k]`` are sums over clusters of s s', s n' and n n';
    ``overlap`` tells whether rows are in several groups.
    """

    design: Design
    measure: Measure
    rows: IntArray
    means: ClusterMeans
    square: FloatArray
    cross: FloatArray
    count: FloatArray
    overlap: bool

    @classmethod
    def of(cls, design: Design, measure: Measure, rows: IntArray) -> MeanComparisons:
        """Reduce the clusters of some rows of a design; the first unites the others."""
        at = np.concatenate([rows * design.n_columns + column for column in measure.mean_columns])
        stacked = some_rows(design.matrix, at)
        every, k = products(stacked, design.copies), len(rows)
        parts = every[:k, :k], every[:k, k:], every[k:, k:]
        found = cls(design, measure, rows, means_of(design, measure, rows), *parts, overlap=False)
        return replace(found, overlap=found.overlaps(rows[1:]))

    def overlaps(self, groups: IntArray) -> bool:
        """Tell whether rows are in several of some groups."""
        units = self.means.units
        return bool(units[places(self.rows, groups)].sum() > units[0] + 0.5)

    def pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups."""
        i, k = places(self.rows, first), places(self.rows, second)
        a, b = self.means.at(i), self.means.at(k)
        moments = self.square[i, k], self.cross[i, k], self.cross[k, i], self.count[i, k]
        covariance = self._covariance(a, b, *moments)
        if self.overlap:  # how many rows are in both, only their residuals tell
            found = paired_means(a, b, covariance, fraction=self.measure.fraction)
        else:
            shared = moments[3] / (a.units * b.units)
            found = of_means(a, b, covariance, shared, fraction=self.measure.fraction)
        return replace(found, span=self.measure.span)

    def rests(self, first: IntArray) -> Difference:
        """Compare groups with everyone else."""
        i = places(self.rows, first)
        a, b = self.means.at(i), self._others(first)
        moments = beside_others(self.square, self.cross, self.count, i)
        with np.errstate(divide="ignore", invalid="ignore"):
            shared = moments[3] / (a.units * b.units)
        covariance = self._covariance(a, b, *moments)
        found = of_means(a, b, covariance, shared, fraction=self.measure.fraction)
        return replace(found, span=self.measure.span)

    def share_of_others(self, first: IntArray) -> FloatArray:
        """Return how much of everyone is not in each group."""
        units = self.means.units
        return np.asarray(1.0 - units[places(self.rows, first)] / units[0])

    def _others(self, first: IntArray) -> ClusterMeans:
        """Reduce everyone less each group, some groups at a time."""
        held = [self.design.rows(int(self.rows[0]), column) for column in self.measure.mean_columns]
        at_once = max(1, AT_ONCE // max(held[1].nnz, 1))
        parts = []
        for start in range(0, len(first), at_once):
            some = first[start : start + at_once]
            sums, counts = (
                less_each(held[1], whole, self.design.rows(some, column))
                for whole, column in zip(held, self.measure.mean_columns, strict=True)
            )
            for matrix in (sums, counts):
                matrix.eliminate_zeros()
            rho, shares = self.means.correlation, self.means.shares
            parts.append(cluster_means(sums, counts, self.design.copies, rho, shares=shares))
        return joined(parts).moved(self.measure.centre)

    def _covariance(self, a: ClusterMeans, b: ClusterMeans, *moments: FloatArray) -> FloatArray:
        """Covariance of two means; sums are of values about the centre."""
        centre = self.measure.centre
        return _covariance(a.moved(-centre), b.moved(-centre), *moments)


def _covariance(
    a: ClusterMeans,
    b: ClusterMeans,
    square: FloatArray,
    cross: FloatArray,
    turned: FloatArray,
    count: FloatArray,
) -> FloatArray:
    """Covariance of two means from sums over clusters of s s', s n', n s' and n n'."""
    with np.errstate(divide="ignore", invalid="ignore"):
        products = square - b.value * cross - a.value * turned + a.value * b.value * count
        return np.asarray(products / (a.units * b.units))
