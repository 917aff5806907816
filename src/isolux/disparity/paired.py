"""Two measures of the same people, group by group: how far the one lies from the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isolux.disparity.comparisons import covariance_of
from isolux.disparity.replicated import effective_clusters, of_enlarged
from isolux.groups.estimates import Estimates, Measure
from isolux.groups.interval_methods import families_of
from isolux.groups.interval_methods.noisy import chance_of, is_enlarged
from isolux.groups.interval_methods.root import is_of_squares, roots
from isolux.groups.means import means_of
from isolux.stats.design import Design, IntArray
from isolux.stats.deviates import Difference
from isolux.stats.differences import of_replicates, paired_means
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.intervals import logit_reach, student_reach
from isolux.stats.joint_law import paired_correlation
from isolux.stats.statistic import FloatArray


def paired_difference(estimates: Estimates, groups: IntArray, a: int, b: int) -> Difference:
    """Compare measure ``b`` with measure ``a`` on the same people, group by group: b less a."""
    one, two = estimates.measures[b], estimates.measures[a]
    if one.mean is None or two.mean is None:
        return _by_replicates(estimates, groups, a, b)
    return compare_measures(estimates.design, (one, two), groups)


def compare_measures(
    design: Design, measures: tuple[Measure, Measure], groups: IntArray
) -> Difference:
    """Compare two means of the same people in each of some groups."""
    one, two = measures
    first, second = (means_of(design, measure, groups) for measure in (one, two))
    (s, n), (t, m) = one.mean_columns, two.mean_columns
    is_drawn = isinstance(design, DrawnDesign)
    moments = tuple(_inner(design, groups, x, y) for x, y in ((s, t), (s, m), (t, n), (n, m)))
    weight = first.units * second.units
    if is_drawn:
        weight = np.ones(len(groups))
        for count in (n, m):
            weight = weight * np.asarray(design.rows(groups, count).sum(axis=1)).ravel()
    # As they were summed.
    values = first.value - one.centre, second.value - (one if is_drawn else two).centre
    covariance = covariance_of(values, moments, weight, is_weighted=is_drawn)
    fraction = one.fraction and two.fraction
    return paired_means(first, second, covariance, fraction=fraction)


def _inner(design: Design, groups: IntArray, one: int, two: int) -> FloatArray:
    """Sum the products of two columns over the clusters of each group."""
    if isinstance(design, DrawnDesign):
        return design.inner(groups, one, two)
    both = design.rows(groups, one).multiply(design.rows(groups, two))
    return np.asarray(both @ design.copies.astype(np.float64))


def _by_replicates(estimates: Estimates, groups: IntArray, a: int, b: int) -> Difference:
    """Compare statistics that are not means; replicates resample the same people for both."""
    rho = paired_correlation(estimates.replicates[groups, b], estimates.replicates[groups, a])
    freedom = np.maximum(effective_clusters(estimates)[groups] - 1.0, 1.0)
    one, two = (
        (estimates.value[groups, j], estimates.standard_error[groups, j], freedom) for j in (b, a)
    )
    design, measures = estimates.design, [estimates.measures[j] for j in (b, a)]
    ends = logit_reach if measures[0].fraction else student_reach
    apart = of_replicates(one, two, rho, ends)
    if is_enlarged(measures[0]):
        return of_enlarged(apart, *(chance_of(design, measure, groups) for measure in measures))
    if not is_of_squares(measures[0]):
        return apart
    # A group without a far error looks surer than it is, in every replicate.
    families = families_of(estimates.groups)
    own = [roots(design, measure, families).at(groups) for measure in measures]
    return replace(apart, ends=lambda z: (own[0].interval(z), own[1].interval(z)))
