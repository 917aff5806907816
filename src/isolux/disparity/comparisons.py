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

from isolux.disparity.replicate_comparisons import (
    ReplicateComparisons,
    scale_complement_difference_to_overall,
)
from isolux.groups.estimates import Estimates, Measure
from isolux.groups.interval_methods.root_mean_square import (
    is_root_mean_square,
    square_root_interval,
    to_mean_square_measure,
)
from isolux.groups.means import (
    estimate_complement_means,
    estimate_group_means,
    intracluster_correlation_and_is_binary,
)
from isolux.stats.cluster_sums import ClusterSums
from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.differences import independent_mean_difference, paired_mean_difference
from isolux.stats.intervals import Interval
from isolux.stats.multiplier_bootstrap import sum_row_cross_products
from isolux.stats.sampling import stratified_cross_products
from isolux.stats.sparse_rows import take_matrix_rows
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.survey_sums import SurveyClusterSums, unweighted_cluster_sums
from isolux.stats.test_inversion import Difference, ZValues
from isolux.stats.weighted_means import combine_two_way_cluster_overlap

_FULL_CLUSTER_TOLERANCE = 1e-9
"""A share of a cluster's weight below this is rounding: the whole cluster is in the group."""
_CANCELLATION_TOLERANCE = 1e-13  # of a difference of sums
Moments = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Of pairs of groups: sums of s s', s n', n s' and n n'."""


class Comparisons(Protocol):
    """Differences of the groups of one attribute, by rows of the estimates."""

    def compare_pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups."""

    def compare_with_complement(self, first: IntArray) -> Difference:
        """Compare groups with their complements."""

    def complement_to_overall_factor(self, first: IntArray) -> FloatArray:
        """Return the factor from a difference to the complement to one to overall: ``[h]``."""


def build_comparisons(estimates: Estimates, attribute: str, j: int) -> Comparisons:
    """Return the comparisons of one attribute's groups on measure ``j``."""
    rows = np.append(0, estimates.attribute_rows(attribute))
    measure = estimates.measures[j]
    if is_root_mean_square(measure):
        mean_squares = MeanComparisons.from_design(
            estimates.cluster_sums, to_mean_square_measure(measure), rows
        )
        return RmsComparisons(estimates, j, mean_squares)
    if measure.mean is None:
        return ReplicateComparisons(estimates, j)
    # The complement of a group is everyone else of known value, so the total is theirs.
    rows[0] = estimates.domain_rows[attribute]
    return MeanComparisons.from_design(estimates.cluster_sums, measure, rows)


def build_comparisons_of_attributes(
    estimates: Estimates, attributes: Sequence[str], j: int
) -> list[Comparisons]:
    """Return the comparisons of several attributes of one domain on measure ``j``, a mean."""
    measure, design = estimates.measures[j], estimates.cluster_sums
    domain = [estimates.domain_rows[attribute] for attribute in attributes]
    members = [estimates.attribute_rows(attribute) for attribute in attributes]
    rows = np.concatenate([domain[:1], *members])
    joint = MeanComparisons.from_design(design, measure, rows)
    # Whether people are in several groups decides the covariance, and differs between attributes.
    by_overlap = {
        joint.has_overlap: joint,
        not joint.has_overlap: replace(joint, has_overlap=not joint.has_overlap),
    }
    return [by_overlap[joint.has_overlapping_groups(groups)] for groups in members]


@dataclass(frozen=True, slots=True)
class MeanComparisons:
    """Means of people's scores; the first of ``rows [k]`` is all groups.

    ``square``, ``cross`` and ``count`` ``[k, k]`` are sums over clusters of s s', s n' and n n', in
    a sample within strata around their means; ``shared`` is the last without strata, ``weight`` the
    groups' own; ``has_overlap`` tells whether people are in several groups.
    """

    design: ClusterSums
    measure: Measure
    rows: IntArray
    means: ClusterMeans
    square: FloatArray
    cross: FloatArray
    count: FloatArray
    shared: FloatArray
    weight: FloatArray
    has_overlap: bool

    @classmethod
    def from_design(cls, design: ClusterSums, measure: Measure, rows: IntArray) -> MeanComparisons:
        """Sum the clusters of rows of a design; the first row is all groups together."""
        (sums, counts), k = measure.sum_and_count_columns, len(rows)
        means = estimate_group_means(design, measure, rows)
        if isinstance(design, SurveyClusterSums):
            cluster_products = design.cross_products(rows, (sums, counts))
            # Products of weighted sums are divided by sums of weights, not by Kish's number.
            weight = np.asarray(design.group_rows(rows, counts).sum(axis=1)).ravel()
            shared = _sum_shared_weights(design, measure, rows)
        else:
            row_index = np.concatenate(
                [rows * design.n_columns + column for column in (sums, counts)]
            )
            cluster_products = sum_row_cross_products(
                take_matrix_rows(design.matrix, row_index), design.multiplicity
            )
            weight, shared = means.n_units, cluster_products[k:, k:]
        moments = (
            cluster_products[:k, :k],
            cluster_products[:k, k:],
            cluster_products[k:, k:],
            shared,
            weight,
        )
        comparisons = cls(design, measure, rows, means, *moments, has_overlap=False)
        return replace(comparisons, has_overlap=comparisons.has_overlapping_groups(rows[1:]))

    def has_overlapping_groups(self, groups: IntArray) -> bool:
        """Tell whether anyone is in more than one of these groups."""
        unweighted_design = unweighted_cluster_sums(self.design)
        cluster_counts = unweighted_design.group_rows(
            np.append(self.rows[0], groups), self.measure.sum_and_count_columns[1]
        )
        n_people = np.asarray(cluster_counts @ unweighted_design.multiplicity.astype(np.float64))
        # Counts are whole numbers: half a person is more than rounding.
        return bool(n_people[1:].sum() > n_people[0] + 0.5)

    def compare_pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups, each pair with the variance of its own clusters."""
        i, k = find_positions(self.rows, first), find_positions(self.rows, second)
        a, b = self.means.take(i), self.means.take(k)
        weight = self.weight[i] * self.weight[k]
        moments = self.square[i, k], self.cross[i, k], self.cross[k, i], self.count[i, k]
        covariance = self._estimate_covariance(a, b, moments, weight)
        if self.has_overlap:  # which rows are in both is unknown: the residuals give the covariance
            differences = paired_mean_difference(
                a, b, covariance, is_fraction=self.measure.is_fraction
            )
        else:
            shared = self.shared[i, k] / weight
            differences = independent_mean_difference(
                a, b, covariance, shared, is_fraction=self.measure.is_fraction
            )
        return replace(differences, value_range=self.measure.value_range)

    def compare_with_complement(self, first: IntArray) -> Difference:
        """Compare groups with their complements: the sums with all (row 0) minus their own."""
        i = find_positions(self.rows, first)
        a = self.means.take(i)
        b = estimate_complement_means(self.design, self.measure, first, int(self.rows[0]))
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
            if isinstance(
                self.design, SurveyClusterSums
            ):  # a difference of weights leaves rounding
                shared_proportion = np.where(
                    shared_remainder > _FULL_CLUSTER_TOLERANCE * shared[i, i],
                    shared_proportion,
                    0.0,
                )
        covariance = self._estimate_covariance(a, b, moments, weight)
        differences = independent_mean_difference(
            a, b, covariance, shared_proportion, is_fraction=self.measure.is_fraction
        )
        return replace(differences, value_range=self.measure.value_range)

    def complement_to_overall_factor(self, first: IntArray) -> FloatArray:
        """Return the share of people who are not in each group: ``[h]``."""
        return np.asarray(1.0 - self.weight[find_positions(self.rows, first)] / self.weight[0])

    def _estimate_covariance(
        self, a: ClusterMeans, b: ClusterMeans, moments: Moments, weight: FloatArray
    ) -> FloatArray:
        centre, is_survey_sample = self.measure.centre, isinstance(self.design, SurveyClusterSums)
        p, q = a.shift(-centre).value, b.shift(-centre).value  # as they were summed
        return estimate_mean_pair_covariance((p, q), moments, weight, is_weighted=is_survey_sample)


def estimate_mean_pair_covariance(
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
                np.abs(covariance_sum) > _CANCELLATION_TOLERANCE * magnitude, covariance_sum, 0.0
            )
        return np.asarray(covariance_sum / weight)


def _sum_shared_weights(design: SurveyClusterSums, measure: Measure, rows: IntArray) -> FloatArray:
    """Sum products of group weights over clusters ``[k, k]``, ignoring strata.

    With two-way clustering the two sums are combined by their intracluster correlations.
    """
    group_products = stratified_cross_products(
        design.group_rows(rows, measure.sum_and_count_columns[1]), None
    )
    if design.other_clusterings is None:
        return group_products
    second_design = design.other_clusterings[0]
    rho = (
        intracluster_correlation_and_is_binary(design, measure)[0],
        intracluster_correlation_and_is_binary(second_design, measure)[0],
    )
    return combine_two_way_cluster_overlap(
        group_products,
        stratified_cross_products(
            second_design.group_rows(rows, measure.sum_and_count_columns[1]), None
        ),
        rho,
    )


def find_positions(rows: IntArray, targets: IntArray) -> IntArray:
    """Return the position of each target among the rows."""
    # The first row is the domain's, so the rows are not in ascending order.
    order = np.argsort(rows, kind="stable")
    return np.asarray(order[np.searchsorted(rows, targets, sorter=order)])


@dataclass(frozen=True, slots=True)
class RmsComparisons:
    """Comparisons of root mean squares; ``mean_squares`` compares mean squares, overall first."""

    estimates: Estimates
    j: int
    mean_squares: Comparisons

    def compare_pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups."""
        return _square_root_differences(self.mean_squares.compare_pairs(first, second))

    def compare_with_complement(self, first: IntArray) -> Difference:
        """Compare groups with overall: with the complement, times the complement's share."""
        # A root is not linear in mean squares: the identity with the complement is of first order
        # only, so the values that are printed are those of the group and of overall.
        differences = _square_root_differences(self.mean_squares.compare_with_complement(first))
        overall = np.full(len(first), self.estimates.value[0, self.j])
        share = self.mean_squares.complement_to_overall_factor(first)
        return scale_complement_difference_to_overall(
            self.estimates.value[first, self.j], overall, differences, share
        )

    def complement_to_overall_factor(self, first: IntArray) -> FloatArray:
        """Return 1: ``compare_with_complement`` gives the difference to overall already."""
        return np.ones(len(first))


def _square_root_differences(mean_squares: Difference) -> Difference:
    """Take the square roots of two means and of their interval bounds."""
    a, b = np.sqrt(mean_squares.a), np.sqrt(mean_squares.b)

    def compute_bounds(z: ZValues) -> tuple[Interval, Interval]:
        bounds_a, bounds_b = mean_squares.group_intervals(z)
        return square_root_interval(bounds_a), square_root_interval(bounds_b)

    with np.errstate(divide="ignore", invalid="ignore"):
        # √m - √n = (m - n) / (√m + √n), so the standard error is divided by the sum of the roots.
        # If both values are 0 there is no sampling error.
        standard_error = np.where(a + b > 0.0, mean_squares.standard_error / (a + b), 0.0)
    return replace(
        mean_squares,
        a=a,
        b=b,
        group_intervals=compute_bounds,
        standard_error=standard_error,
        group_means=None,
        proportion_differences=None,
    )
