"""Comparisons of the groups of one attribute: the ``Difference`` of any two of them.

One object for each attribute and metric: the interval of a pair, its p-value and its minimum
detectable difference are all computed from it, so they cannot contradict one another.

The complement of a group is everyone in the attribute's other groups: people of unknown value are
in no claim. A group's difference to all of them equals its difference to the complement times the
complement's share, exactly; so does its interval. Metrics that are not means have that identity to
first order only: their value is compared with overall, and their interval comes from the
complement's (``replicate_comparisons``).
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

_FULL_CLUSTER_TOLERANCE = 1e-9
"""A share of a cluster's weight below this is rounding: the whole cluster is in the group."""
_ROUNDING = 1e-13  # of a difference of sums
Moments = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Of pairs of groups: sums of s s', s n', n s' and n n'."""


class Comparisons(Protocol):
    """Differences of the groups of one attribute, by rows of the estimates."""

    def pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups."""

    def rests(self, first: IntArray) -> Difference:
        """Compare groups with their complements."""

    def share_of_others(self, first: IntArray) -> FloatArray:
        """Return the factor from a difference to the complement to one to overall: ``[h]``."""


def compare_groups(estimates: Estimates, attribute: str, j: int) -> Comparisons:
    """Return the comparisons of one attribute's groups on measure ``j``."""
    rows = np.append(0, estimates.members(attribute))
    measure = estimates.measures[j]
    if is_of_squares(measure):
        mean_squares = MeanComparisons.of(estimates.design, mean_of_squares(measure), rows)
        return RootComparisons(estimates, j, mean_squares)
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
    joint = MeanComparisons.of(design, measure, rows)
    by_overlap = {
        joint.overlap: joint,
        not joint.overlap: replace(joint, overlap=not joint.overlap),
    }
    return [by_overlap[joint.overlaps(groups)] for groups in members]


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
        """Sum the clusters of rows of a design; the first row is all groups together."""
        (sums, counts), k = measure.mean_columns, len(rows)
        means = means_of(design, measure, rows)
        if isinstance(design, DrawnDesign):
            cluster_products = design.products(rows, (sums, counts))
            weight = np.asarray(design.rows(rows, counts).sum(axis=1)).ravel()
            shared = _sum_shared_weights(design, measure, rows)
        else:
            row_index = np.concatenate(
                [rows * design.n_columns + column for column in (sums, counts)]
            )
            cluster_products = products(some_rows(design.matrix, row_index), design.copies)
            weight, shared = means.units, cluster_products[k:, k:]
        moments = (
            cluster_products[:k, :k],
            cluster_products[:k, k:],
            cluster_products[k:, k:],
            shared,
            weight,
        )
        comparisons = cls(design, measure, rows, means, *moments, overlap=False)
        return replace(comparisons, overlap=comparisons.overlaps(rows[1:]))

    def overlaps(self, groups: IntArray) -> bool:
        """Tell whether anyone is in more than one of these groups."""
        unweighted_design = unweighted(self.design)
        cluster_counts = unweighted_design.rows(
            np.append(self.rows[0], groups), self.measure.mean_columns[1]
        )
        n_people = np.asarray(cluster_counts @ unweighted_design.copies.astype(np.float64))
        # Counts are whole numbers: half a person is more than rounding.
        return bool(n_people[1:].sum() > n_people[0] + 0.5)

    def pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups, each pair with the variance of its own clusters."""
        i, k = places(self.rows, first), places(self.rows, second)
        a, b = self.means.at(i), self.means.at(k)
        weight = self.weight[i] * self.weight[k]
        moments = self.square[i, k], self.cross[i, k], self.cross[k, i], self.count[i, k]
        covariance = self._estimate_covariance(a, b, moments, weight)
        if self.overlap:  # which rows are in both is unknown: the residuals give the covariance
            differences = paired_means(a, b, covariance, fraction=self.measure.fraction)
        else:
            shared = self.shared[i, k] / weight
            differences = of_means(a, b, covariance, shared, fraction=self.measure.fraction)
        return replace(differences, span=self.measure.span)

    def rests(self, first: IntArray) -> Difference:
        """Compare groups with their complements: the sums with all (row 0) minus their own."""
        i = places(self.rows, first)
        a = self.means.at(i)
        b = means_of_others(self.design, self.measure, first, int(self.rows[0]))
        square, cross, count, shared = self.square, self.cross, self.count, self.shared
        weight = self.weight[i] * (self.weight[0] - self.weight[i])
        # Sums with the complement are sums with all groups minus sums with the group itself.
        moments = (
            square[i, 0] - square[i, i],
            cross[i, 0] - cross[i, i],
            cross[0, i] - cross[i, i],
            count[i, 0] - count[i, i],
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            shared_remainder = shared[i, 0] - shared[i, i]
            shared_proportion = shared_remainder / weight
            if isinstance(self.design, DrawnDesign):  # a difference of weights leaves rounding
                shared_proportion = np.where(
                    shared_remainder > _FULL_CLUSTER_TOLERANCE * shared[i, i],
                    shared_proportion,
                    0.0,
                )
        covariance = self._estimate_covariance(a, b, moments, weight)
        differences = of_means(a, b, covariance, shared_proportion, fraction=self.measure.fraction)
        return replace(differences, span=self.measure.span)

    def share_of_others(self, first: IntArray) -> FloatArray:
        """Return the share of people who are not in each group: ``[h]``."""
        return np.asarray(1.0 - self.weight[places(self.rows, first)] / self.weight[0])

    def _estimate_covariance(
        self, a: ClusterMeans, b: ClusterMeans, moments: Moments, weight: FloatArray
    ) -> FloatArray:
        centre, is_survey_sample = self.measure.centre, isinstance(self.design, DrawnDesign)
        p, q = a.moved(-centre).value, b.moved(-centre).value  # as they were summed
        return covariance_of((p, q), moments, weight, is_weighted=is_survey_sample)


def covariance_of(
    values: tuple[FloatArray, FloatArray],
    moments: Moments,
    weight: FloatArray,
    *,
    is_weighted: bool,
) -> FloatArray:
    """Return the covariance of pairs of means from the sums of their clusters: ``[h]``."""
    # Sum over clusters of (s - p n)(s' - q n'), expanded, over the product of the weights.
    (p, q), (square, cross, reverse_cross, count) = values, moments
    with np.errstate(divide="ignore", invalid="ignore"):
        covariance_sum = square - q * cross - p * reverse_cross + p * q * count
        if is_weighted:
            magnitude = np.abs(square) + np.abs(cross) + np.abs(reverse_cross) + np.abs(count)
            # A difference of equal numbers leaves only rounding: the covariance is 0.
            covariance_sum = np.where(
                np.abs(covariance_sum) > _ROUNDING * magnitude, covariance_sum, 0.0
            )
        return np.asarray(covariance_sum / weight)


def _sum_shared_weights(design: DrawnDesign, measure: Measure, rows: IntArray) -> FloatArray:
    """Sum products of group weights over clusters ``[k, k]``, ignoring strata.

    With two-way clustering the two sums are combined by their intracluster correlations.
    """
    group_products = products_of(design.rows(rows, measure.mean_columns[1]), None)
    if design.ways is None:
        return group_products
    second_design = design.ways[0]
    rho = correlation_of(design, measure)[0], correlation_of(second_design, measure)[0]
    return shared_both_ways(
        group_products, products_of(second_design.rows(rows, measure.mean_columns[1]), None), rho
    )


def places(rows: IntArray, targets: IntArray) -> IntArray:
    """Return the position of each target among the rows."""
    order = np.argsort(rows, kind="stable")
    return np.asarray(order[np.searchsorted(rows, targets, sorter=order)])


@dataclass(frozen=True, slots=True)
class RootComparisons:
    """Comparisons of root mean squares; ``mean_squares`` compares mean squares, overall first."""

    estimates: Estimates
    j: int
    squares: Comparisons

    def pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups."""
        return _take_roots(self.squares.pairs(first, second))

    def rests(self, first: IntArray) -> Difference:
        """Compare groups with overall: with the complement, times the complement's share."""
        differences = _take_roots(self.squares.rests(first))
        overall = np.full(len(first), self.estimates.value[0, self.j])
        share = self.squares.share_of_others(first)
        return times_the_others(self.estimates.value[first, self.j], overall, differences, share)

    def share_of_others(self, first: IntArray) -> FloatArray:
        """Return 1: ``compare_with_complement`` gives the difference to overall already."""
        return np.ones(len(first))


def _take_roots(mean_squares: Difference) -> Difference:
    """Take the square roots of two means and of their interval bounds."""
    a, b = np.sqrt(mean_squares.a), np.sqrt(mean_squares.b)

    def compute_bounds(z: Reach) -> tuple[Interval, Interval]:
        bounds_a, bounds_b = mean_squares.ends(z)
        return root_of(bounds_a), root_of(bounds_b)

    with np.errstate(divide="ignore", invalid="ignore"):
        # Delta method: se(√m) = se(m) / (2 √m). If both values are 0 there is no sampling error.
        standard_error = np.where(a + b > 0.0, mean_squares.standard_error / (a + b), 0.0)
    return replace(
        mean_squares,
        a=a,
        b=b,
        ends=compute_bounds,
        standard_error=standard_error,
        groups=None,
        gaps=None,
    )
