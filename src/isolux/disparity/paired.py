"""Two measures of the same people, group by group: how far the one lies from the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from isolux.disparity.drawn import paired_drawn
from isolux.disparity.replicated import effective_clusters, of_enlarged
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods import families_of
from isolux.groups.interval_methods.noisy import chance_of, is_enlarged
from isolux.groups.interval_methods.root import is_of_squares, roots
from isolux.groups.means import means_of
from isolux.stats.design import IntArray
from isolux.stats.deviates import Difference
from isolux.stats.differences import of_replicates, paired_means
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.intervals import logit_reach, student_reach
from isolux.stats.joint_law import paired_correlation
from isolux.stats.statistic import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def paired_difference(estimates: Estimates, groups: IntArray, a: int, b: int) -> Difference:
    """Compare measure ``b`` with measure ``a`` on the same people, group by group: b less a."""
    one, two = estimates.measures[b], estimates.measures[a]
    if one.mean is None or two.mean is None:
        return _by_replicates(estimates, groups, a, b)
    design = estimates.design
    if isinstance(design, DrawnDesign):
        return paired_drawn(design, (one, two), groups)
    first, second = means_of(design, one, groups), means_of(design, two, groups)
    s, n, t, m = (design.rows(groups, q) for q in (*one.mean, *two.mean))
    copies = design.copies.astype(np.float64)

    def along(x: csr_array, y: csr_array) -> FloatArray:
        return np.asarray(x.multiply(y) @ copies)

    p, q = first.value - one.centre, second.value - two.centre  # as they were summed
    products = along(s, t) - q * along(s, m) - p * along(n, t) + p * q * along(n, m)
    with np.errstate(divide="ignore", invalid="ignore"):
        covariance = products / (first.units * second.units)
    fraction = one.fraction and two.fraction
    return paired_means(first, second, covariance, fraction=fraction)


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
