"""Differences as a rule asks of them: of groups, and of a group in two samples.

A claim of sameness must hold whatever chance has added to either value.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isolux.disparity.comparisons import compare_groups
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods.noisy import chance_of, down_by, is_enlarged
from isolux.groups.means import means_of
from isolux.policy.cells import Side
from isolux.stats.design import IntArray
from isolux.stats.deviates import Difference, Reach
from isolux.stats.differences import of_means, of_replicates
from isolux.stats.intervals import Interval, logit_reach, student_reach


def pairs_of(
    estimates: Estimates, attribute: str, j: int, first: IntArray, second: IntArray
) -> Difference:
    """Compare groups; of what chance enlarges, either group's interval reaches down by its part.

    Shapes: ``first, second`` [h].
    """
    apart = compare_groups(estimates, attribute, j).pairs(first, second)
    measure = estimates.measures[j]
    if not is_enlarged(measure):
        return apart
    one, two = (chance_of(estimates.design, measure, rows).added for rows in (first, second))

    def ends(z: Reach) -> tuple[Interval, Interval]:
        a, b = apart.ends(z)
        return down_by(a, one), down_by(b, two)

    return replace(apart, ends=ends)


def independent(one: Side, two: Side) -> Difference:
    """Compare values of people who have nothing in common."""
    none = np.zeros(len(one.rows))
    measures = [side.estimates.measures[side.j] for side in (one, two)]
    if all(m.mean is not None for m in measures):
        a, b = (means_of(s.estimates.design, s.estimates.measures[s.j], s.rows) for s in (one, two))
        if a.shares == b.shares:
            return of_means(a, b, none, none)
    ends = logit_reach if measures[0].fraction else student_reach
    parts = [
        (s.value, s.estimates.standard_error[s.rows, s.j], np.maximum(s.clusters - 1.0, 1.0))
        for s in (one, two)
    ]
    return of_replicates(parts[0], parts[1], none, ends)
