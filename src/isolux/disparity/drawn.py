"""Comparisons of groups in a sample with weights or strata: as ``comparisons``, of weighted sums.

The covariance of two groups' values follows from the residuals of the clusters in which both are,
and within strata from all clusters: one drawn for a group is one less for another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isolux.disparity._group_sums import beside_others, places
from isolux.groups.estimates import Measure
from isolux.groups.means import correlation_of, drawn_means, rows_effect
from isolux.stats.design import IntArray
from isolux.stats.deviates import Difference
from isolux.stats.differences import of_means, paired_means
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.rows import AT_ONCE, less_each
from isolux.stats.sampling import products_of
from isolux.stats.shares import ClusterMeans, joined
from isolux.stats.statistic import FloatArray
from isolux.stats.weighted_means import both_ways, shared_both_ways, weighted_means

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_FULL = 1e-9
"""A share of a cluster's weight below this is rounding: everyone of it is in the group."""
_ROUNDING = 1e-13  # of a difference of sums


@dataclass(frozen=True, slots=True)
class DrawnComparisons:
    """Means of a sample; the first of ``rows [k]`` is all groups.

    ``square``, ``cross`` and ``count`` ``[k, k]`` are sums over clusters of s s', s n' and n n',
    within strata around their means; ``shared`` is the last without strata, ``weight`` the groups'
    own; ``overlap`` tells whether people are in several groups.
    """

    design: DrawnDesign
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
    def of(cls, design: DrawnDesign, measure: Measure, rows: IntArray) -> DrawnComparisons:
        """Reduce the clusters of some rows of a design; the first unites the others."""
        sums, counts = measure.mean_columns
        held, k = design.rows(rows, counts), len(rows)
        every = design.products(rows, (sums, counts))
        weight = np.asarray(held.sum(axis=1)).ravel()
        found = cls(
            design, measure, rows, drawn_means(design, measure, rows), every[:k, :k],
            every[:k, k:], every[k:, k:], _shared(design, measure, rows), weight, overlap=False,
        )  # fmt: skip
        return replace(found, overlap=found.overlaps(rows[1:]))

    def overlaps(self, groups: IntArray) -> bool:
        """Tell whether people are in several of some groups."""
        plain = self.design.unweighted
        held = plain.rows(np.append(self.rows[0], groups), self.measure.mean_columns[1])
        people = np.asarray(held @ plain.copies.astype(np.float64))
        return bool(people[1:].sum() > people[0] + 0.5)

    def pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups."""
        i, k = places(self.rows, first), places(self.rows, second)
        a, b = self.means.at(i), self.means.at(k)
        weight = self.weight[i] * self.weight[k]
        moments = self.square[i, k], self.cross[i, k], self.cross[k, i], self.count[i, k]
        covariance = _covariance(a, b, moments, weight, self.measure.centre)
        if self.overlap:
            found = paired_means(a, b, covariance, fraction=self.measure.fraction)
        else:
            shared = self.shared[i, k] / weight
            found = of_means(a, b, covariance, shared, fraction=self.measure.fraction)
        return replace(found, span=self.measure.span)

    def rests(self, first: IntArray) -> Difference:
        """Compare groups with everyone else."""
        i = places(self.rows, first)
        a, b = self.means.at(i), self._others(first)
        weight = self.weight[i] * (self.weight[0] - self.weight[i])
        moments = beside_others(self.square, self.cross, self.count, i)
        with np.errstate(divide="ignore", invalid="ignore"):
            shared = self.shared[i, 0] - self.shared[i, i]
            shared = np.where(shared > _FULL * self.shared[i, i], shared / weight, 0.0)
        covariance = _covariance(a, b, moments, weight, self.measure.centre)
        found = of_means(a, b, covariance, shared, fraction=self.measure.fraction)
        return replace(found, span=self.measure.span)

    def share_of_others(self, first: IntArray) -> FloatArray:
        """Return how much of everyone's weight is not in each group."""
        return np.asarray(1.0 - self.weight[places(self.rows, first)] / self.weight[0])

    def _others(self, first: IntArray) -> ClusterMeans:
        """Reduce everyone less each group."""
        return others_of(self.design, self.measure, int(self.rows[0]), first)


def others_of(
    design: DrawnDesign, measure: Measure, everyone: int, first: IntArray
) -> ClusterMeans:
    """Reduce a row of the design less each group; of clusters both ways, either and the cells."""
    if design.ways is None:
        return _others(design, measure, everyone, first).moved(measure.centre)
    one, two, cells = (_others(way, measure, everyone, first) for way in design.each_way)
    return both_ways(one, two, cells).moved(measure.centre)


def _others(of: DrawnDesign, measure: Measure, all_groups: int, first: IntArray) -> ClusterMeans:
    """Reduce one way's clusters, some groups at a time."""
    sums, counts = measure.mean_columns
    rho, shares = correlation_of(of, measure)
    whole = [of.rows(all_groups, sums), of.rows(all_groups, counts)]
    whole.append(of.rows_of_squares(all_groups, counts))
    at_once = max(1, AT_ONCE // max(whole[1].nnz, 1))
    parts = []
    for start in range(0, len(first), at_once):
        some = first[start : start + at_once]
        own = of.rows(some, sums), of.rows(some, counts), of.rows_of_squares(some, counts)
        left = [less_each(whole[1], *both) for both in zip(whole, own, strict=True)]
        # Of clusters that are wholly in the group, rounding is left.
        held = left[1].data
        held[held <= np.tile(whole[1].data, len(some)) * _FULL] = 0.0
        effect = rows_effect(of, measure) if shares else None
        varying = None
        if of.calibration is not None:
            varying = _varying(of, measure, all_groups, some)
        one = weighted_means(
            (left[0], left[1], left[2]), of.strata, rho, effect, varying, shares=shares
        )
        parts.append(one)
    return joined(parts)


def _varying(
    of: DrawnDesign, measure: Measure, all_groups: int, some: IntArray
) -> tuple[csr_array, csr_array]:
    """Return sums and counts of everyone less each group, as far as left to chance."""
    from scipy.sparse import csr_array, vstack

    sums, counts = (
        csr_array(vstack([of.varying(all_groups, q)] * len(some)) - of.varying(some, q))
        for q in measure.mean_columns
    )
    return sums, counts


def _shared(design: DrawnDesign, measure: Measure, rows: IntArray) -> FloatArray:
    """Sum products of groups' weights over clusters, without strata; both ways by correlation."""
    own = products_of(design.rows(rows, measure.mean_columns[1]), None)
    if design.ways is None:
        return own
    other = design.ways[0]
    rho = correlation_of(design, measure)[0], correlation_of(other, measure)[0]
    return shared_both_ways(own, products_of(other.rows(rows, measure.mean_columns[1]), None), rho)


def paired_drawn(
    design: DrawnDesign, measures: tuple[Measure, Measure], groups: IntArray
) -> Difference:
    """Compare two means of the same people, the first less the second, group by group.

    Shapes: ``groups`` [h].
    """
    one, two = measures
    assert one.mean is not None and two.mean is not None  # noqa: S101, PT018 - means only
    a, b = drawn_means(design, one, groups), drawn_means(design, two, groups)
    (s, n), (t, m) = one.mean, two.mean
    moments = tuple(design.inner(groups, x, y) for x, y in ((s, t), (s, m), (t, n), (n, m)))
    weight = np.ones(len(groups))
    for _, count in (one.mean, two.mean):
        weight = weight * np.asarray(design.rows(groups, count).sum(axis=1)).ravel()
    fraction = one.fraction and two.fraction
    covariance = _covariance(a, b, moments, weight, one.centre)
    return paired_means(a, b, covariance, fraction=fraction)


def _covariance(
    a: ClusterMeans,
    b: ClusterMeans,
    moments: tuple[FloatArray, ...],
    weight: FloatArray,
    centre: float,
) -> FloatArray:
    """Covariance of two means from sums over clusters of s s', s n', s' n and n n'."""
    a, b = a.moved(-centre), b.moved(-centre)
    square, cross, turned, count = moments
    with np.errstate(divide="ignore", invalid="ignore"):
        found = square - b.value * cross - a.value * turned + a.value * b.value * count
        size = np.abs(square) + np.abs(cross) + np.abs(turned) + np.abs(count)
        # What is left of a difference of equal numbers is rounding, and means no covariance.
        return np.asarray(np.where(np.abs(found) > _ROUNDING * size, found, 0.0) / weight)
