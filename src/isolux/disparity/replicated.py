"""Comparisons of groups on metrics that are no means (areas, balanced accuracy): by replicates.

A group and everyone share most of their people when the group is large. Each has an interval of its
own, both lean to one side near 0 and 1, and what is left of them when one is taken from the other
is mostly how differently they lean, not how far the two values may be apart. So a group is held to
everyone as a mean is: to everyone else, who share no one with it, times the others' share. To first
order everyone's value is a mixture of the two sides by their share w of the people, so the
replicates of everyone else are (everyone - w group) / (1 - w) (``groups/measure/others``). The
difference to everyone is then 1 - w times that to everyone else to the last digit, whatever w is;
which way the interval leans depends on it a little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from isolux.groups.estimates import Estimates, Others
from isolux.groups.interval_methods import standard_error
from isolux.groups.interval_methods.class_mean import class_shares, is_of_classes
from isolux.groups.interval_methods.noisy import chance_alike, chance_of, down_by, is_enlarged
from isolux.stats.design import Design
from isolux.stats.deviates import Difference, Reach
from isolux.stats.differences import of_replicates
from isolux.stats.drawn_design import DrawnDesign, strata_of, unweighted
from isolux.stats.intervals import Interval, logit_reach, student_reach
from isolux.stats.joint_law import correlation_matrix, paired_correlation
from isolux.stats.sampling import stratum_totals
from isolux.stats.statistic import Chance, FloatArray, IntArray

_ROUNDING = 1e-9
"""Of a cluster's units, and of a sum: what is left of equal numbers is nothing."""


def of_enlarged(apart: Difference, one: Chance, two: Chance) -> Difference:
    """Compare values that chance enlarges: as they are, and with as much chance in both."""
    a = np.where(apart.a <= apart.b, one.added, 0.0)
    b = np.where(apart.b <= apart.a, two.added, 0.0)

    def ends(z: Reach) -> tuple[Interval, Interval]:
        of_a, of_b = apart.ends(z)
        return down_by(of_a, a), down_by(of_b, b)

    return replace(apart, ends=ends, also=chance_alike(one, two))


@dataclass(frozen=True, slots=True)
class ReplicateComparisons:
    """Statistics that are not means: standard errors and correlations of replicates."""

    estimates: Estimates
    j: int

    def pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups."""
        e, j = self.estimates, self.j
        used, where = np.unique(np.concatenate([first, second]), return_inverse=True)
        table = correlation_matrix(e.replicates[used, j])
        rho = table[where[: len(first)], where[len(first) :]]
        freedom = np.maximum(effective_clusters(e) - 1.0, 1.0)
        one, two = ((e.value[g, j], e.standard_error[g, j], freedom[g]) for g in (first, second))
        ends = logit_reach if e.measures[j].fraction else student_reach
        apart = replace(of_replicates(one, two, rho, ends), span=e.measures[j].span)
        if is_enlarged(e.measures[j]):
            return of_enlarged(
                apart, *(chance_of(e.design, e.measures[j], g) for g in (first, second))
            )
        if not is_of_classes(e.measures[j]):
            return apart
        own = self._of_classes(first), self._of_classes(second)
        return replace(apart, ends=lambda z: (own[0](z), own[1](z)))

    def _of_classes(self, rows: IntArray) -> Callable[[Reach], Interval]:
        """Give the intervals of groups by their classes' own; each group is reduced once."""
        e, j = self.estimates, self.j
        used, where = np.unique(rows, return_inverse=True)
        held = class_shares(e.design, e.measures[j], used, e.value[used, j])
        raw = standard_error(e.replicates[used, j], e.n_clusters[used, j], e.design)
        together = held.together(raw)

        def ends(z: Reach) -> Interval:
            return held.ends(z, together).take(where)

        return ends

    def rests(self, first: IntArray) -> Difference:
        """Compare groups with everyone: with everyone else, times the share of the others."""
        e, j = self.estimates, self.j
        held = self._others(first)
        share = 1.0 - held.share
        own = e.replicates[first, j]
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = (held.everyone - held.share[:, None] * own) / share[:, None]
        clusters, worth = _clusters_of_others(e.design, first)
        freedom = np.maximum(effective_clusters(e)[first] - 1.0, 1.0)
        one = e.value[first, j], e.standard_error[first, j], freedom
        error = standard_error(drawn, clusters, e.design)
        correlation = paired_correlation(own, drawn)
        value = self._inside(held.value)
        if e.measures[j].fraction:
            at_end = _at_an_end(held.value, error, worth)
            value = np.where(at_end, np.round(np.clip(held.value, 0.0, 1.0)), value)
            error, correlation = (np.where(at_end, 0.0, x) for x in (error, correlation))
        others = value, error, np.maximum(worth - 1.0, 1.0)
        ends = logit_reach if e.measures[j].fraction else student_reach
        apart = of_replicates(one, others, correlation, ends)
        known: Difference | None
        if is_of_classes(e.measures[j]) and not isinstance(e.design, DrawnDesign):
            own = self._of_classes(first)
            left = class_shares(e.design, e.measures[j], first, value, others=True)
            # What a mixture says of few others is noise, and of others without a mistake nothing.
            together = np.fmax(left.together(error), 1.0)
            apart = replace(apart, ends=lambda z: (own(z), left.ends(z, together)))
            theirs = replace(left, value=left.mean())
            known = replace(
                apart, b=theirs.value, ends=lambda z: (own(z), theirs.ends(z, together))
            )
        else:
            known = self._measured(held, one, own, (clusters, others[2]))
        everyone = np.full(len(first), e.value[0, j])
        found = times_the_others(one[0], everyone, apart, share, known)
        return replace(found, span=e.measures[j].span)

    def share_of_others(self, first: IntArray) -> FloatArray:
        """Return 1: ``rests`` is of the difference to everyone already."""
        return np.ones(len(first))

    def _measured(
        self,
        held: Others,
        one: tuple[FloatArray, FloatArray, FloatArray],
        own: FloatArray,
        of_others: tuple[IntArray, FloatArray],
    ) -> Difference | None:
        """Compare groups with everyone else as they were measured; None where nobody was."""
        if np.isnan(held.measured).all():
            return None
        clusters, freedom = of_others
        error = standard_error(held.replicates, clusters, self.estimates.design)
        correlation = paired_correlation(own, held.replicates)
        ends = logit_reach if self.estimates.measures[self.j].fraction else student_reach
        return of_replicates(one, (held.measured, error, freedom), correlation, ends)

    def _others(self, first: IntArray) -> Others:
        """Return everyone else of these groups; of pairs and detections, what can be said of them.

        Those have no replicates in which the share of a group is what it is: their intervals are a
        little wider.
        """
        e, j = self.estimates, self.j
        if j in e.others:
            held = e.others[j]
            arrays = held.share, held.value, held.everyone, held.measured, held.replicates
            return Others(*(one[first] for one in arrays))
        share = e.n_units[first, j] / e.n_units[0, j]
        with np.errstate(divide="ignore", invalid="ignore"):
            value = (e.value[0, j] - share * e.value[first, j]) / (1.0 - share)
        everyone = np.tile(e.replicates[0, j], (len(first), 1))
        return Others(share, value, everyone, value * np.nan, everyone * np.nan)

    def _inside(self, value: FloatArray) -> FloatArray:
        """Return everyone else's value where it can be one, else everyone's."""
        e, j = self.estimates, self.j
        outside = np.isnan(value)
        if e.measures[j].fraction:
            outside |= (value < 0.0) | (value > 1.0)
        return np.where(outside, e.value[0, j], value)


def times_the_others(
    a: FloatArray,
    everyone: FloatArray,
    apart: Difference,
    share: FloatArray,
    known: Difference | None = None,
) -> Difference:
    """Compare groups with everyone, of whom they are part, by how they compare with the others.

    Shapes: ``a, everyone`` [h], ``share`` [h].

    Examples
    --------
    A group of three quarters; the others are served .4 worse, give or take .2.

    >>> one = np.ones(1)
    >>> apart = Difference(0.9 * one, 0.5 * one, lambda z: (Interval(0.9 - 0.1 * z * one,
    ...     0.9 + 0.1 * z * one), Interval(0.5 * one, 0.5 * one)), lambda z: 0 * one, one, one)
    >>> found = times_the_others(0.9 * one, 0.8 * one, apart, 0.25 * one).interval(2.0)
    >>> found.low.round(3).item(), found.high.round(3).item()
    (0.05, 0.15)
    """

    def ends(z: Reach) -> tuple[Interval, Interval]:
        found, gap = apart.of_ends(*apart.ends(z), z), apart.a - apart.b
        low, high = a - share * (gap - found.low), a + share * (found.high - gap)
        if known is not None:
            also = known.of_ends(*known.ends(z), z)
            low = np.fmin(low, everyone + share * also.low)
            high = np.fmax(high, everyone + share * also.high)
        return Interval(low, high), Interval(everyone, everyone)

    error = share * apart.standard_error
    return Difference(a, everyone, ends, lambda _: np.zeros_like(a), error, apart.freedom)


def _at_an_end(value: FloatArray, error: FloatArray, worth: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell which others are at 0 or 1 with nothing to resample, as nearly as a mixture can say."""
    from_end = np.minimum(np.abs(value), np.abs(1.0 - value))
    outside = (value < 0.0) | (value > 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = 1.0 / worth
        found = (outside | (from_end < least)) & (error < 0.5 * least)
    return np.asarray(found, dtype=np.bool_)


def effective_clusters(estimates: Estimates) -> FloatArray:
    """Kish's number of clusters of one size, for everyone and every group, by units: ``[g]``."""
    return _effective(estimates.design, np.arange(len(estimates.groups)))


def _effective(design: Design, rows: IntArray) -> FloatArray:
    if isinstance(design, DrawnDesign) and design.ways is not None:
        alone = replace(design, ways=None)
        return np.minimum(_effective(alone, rows), _effective(design.ways[0], rows))
    held = design.rows(rows, 0)
    copies = design.copies.astype(np.float64)
    in_strata = None
    strata = strata_of(design)
    if strata is not None:
        in_strata = stratum_totals(held, strata)
    return _kish(held @ copies, held.power(2) @ copies, in_strata)


def _kish(total: FloatArray, square: FloatArray, in_strata: FloatArray | None) -> FloatArray:
    found = np.divide(total**2, square, out=np.zeros_like(total), where=square > 0)
    if in_strata is not None:  # each stratum's mean takes one
        found = found - np.maximum((in_strata > 0).sum(axis=1) - 1, 0)
    return np.asarray(found)


def _clusters_of_others(design: Design, first: IntArray) -> tuple[IntArray, FloatArray]:
    """Count everyone's clusters less each group: those that hold others, and Kish's number."""
    if isinstance(design, DrawnDesign) and design.ways is not None:
        one = _clusters_of_others(replace(design, ways=None), first)
        two = _clusters_of_others(design.ways[0], first)
        return np.minimum(one[0], two[0]), np.minimum(one[1], two[1])
    copies = design.copies.astype(np.float64)
    whole, held = design.rows(0, 0), design.rows(first, 0)
    every = np.asarray(whole.todense()).ravel()
    full = unweighted(design)
    total = every @ copies - held @ copies
    square = every**2 @ copies - 2.0 * (held @ (every * copies)) + held.power(2) @ copies
    strata = strata_of(design)
    in_strata = None
    if strata is not None:
        of_all = stratum_totals(whole, strata)
        in_strata = of_all - stratum_totals(held, strata)
        in_strata = np.where(in_strata > _ROUNDING * of_all, in_strata, 0.0)
    return _with_others(full, first), _kish(total, np.maximum(square, 0.0), in_strata)


def _with_others(design: Design, first: IntArray) -> IntArray:
    """Count the clusters in which someone is not in each group."""
    from scipy.sparse import csr_array

    copies = design.copies.astype(np.float64)
    every = np.asarray(design.rows(0, 0).todense()).ravel()
    held = design.rows(first, 0).tocoo()
    inside = (held.data >= every[held.col] * (1.0 - _ROUNDING)).astype(np.float64)
    whole = csr_array((inside, (held.row, held.col)), shape=held.shape) @ copies
    return np.asarray(np.rint((every > 0) @ copies - whole), dtype=np.int64)
