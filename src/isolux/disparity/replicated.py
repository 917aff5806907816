"""Comparisons of groups on metrics that are not means (areas, balanced accuracy), by replicates.

A large group shares most of its people with overall. Both have intervals of their own that are
skewed near 0 and 1, and the difference of the two intervals would mostly show how their skewness
differs, not how much the two values may differ. So a group is compared with overall as a mean is:
with its complement, which shares nobody with it, times the complement's share. To first order the
overall value is a mixture of both by the group's share w of the people, so the replicates of the
complement are (overall - w group) / (1 - w) (``groups/measure/others``). The difference to overall
is then exactly 1 - w times that to the complement, for any w; the skewness of the interval depends
on w a little.
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
"""Relative to a cluster's units, or to a sum: a smaller difference of equal numbers is rounding."""


def of_enlarged(differences: Difference, bias_a: Chance, bias_b: Chance) -> Difference:
    """Compare values with noise bias: as they are, and with equal noise bias in both."""
    # Noise bias can only have raised a value: the lower one's interval extends down by it, so
    # that the gap is not understated; ``also`` adds the comparison with equal bias.
    a = np.where(differences.a <= differences.b, bias_a.added, 0.0)
    b = np.where(differences.b <= differences.a, bias_b.added, 0.0)

    def compute_bounds(z: Reach) -> tuple[Interval, Interval]:
        bounds_a, bounds_b = differences.ends(z)
        return down_by(bounds_a, a), down_by(bounds_b, b)

    return replace(differences, ends=compute_bounds, also=chance_alike(bias_a, bias_b))


@dataclass(frozen=True, slots=True)
class ReplicateComparisons:
    """Comparisons by standard errors and correlations of replicates."""

    estimates: Estimates
    j: int

    def pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups."""
        e, j = self.estimates, self.j
        unique_groups, positions = np.unique(np.concatenate([first, second]), return_inverse=True)
        table = correlation_matrix(e.replicates[unique_groups, j])
        rho = table[positions[: len(first)], positions[len(first) :]]
        dof = np.maximum(effective_clusters(e) - 1.0, 1.0)
        first_estimate, second_estimate = (
            (e.value[g, j], e.standard_error[g, j], dof[g]) for g in (first, second)
        )
        interval_method = logit_reach if e.measures[j].fraction else student_reach
        differences = replace(
            of_replicates(first_estimate, second_estimate, rho, interval_method),
            span=e.measures[j].span,
        )
        if is_enlarged(e.measures[j]):
            return of_enlarged(
                differences, *(chance_of(e.design, e.measures[j], g) for g in (first, second))
            )
        if not is_of_classes(e.measures[j]):
            return differences
        class_intervals = (
            self._compute_class_intervals(first),
            self._compute_class_intervals(second),
        )
        return replace(differences, ends=lambda z: (class_intervals[0](z), class_intervals[1](z)))

    def _compute_class_intervals(self, rows: IntArray) -> Callable[[Reach], Interval]:
        """Return a function from z to macro-average intervals; each group is summed once."""
        e, j = self.estimates, self.j
        unique_groups, positions = np.unique(rows, return_inverse=True)
        macro_averages = class_shares(
            e.design, e.measures[j], unique_groups, e.value[unique_groups, j]
        )
        standard_errors = standard_error(
            e.replicates[unique_groups, j], e.n_clusters[unique_groups, j], e.design
        )
        clustering_ratio = macro_averages.together(standard_errors)

        def compute_interval(z: Reach) -> Interval:
            return macro_averages.ends(z, clustering_ratio).take(positions)

        return compute_interval

    def rests(self, first: IntArray) -> Difference:
        """Compare groups with overall: with the complement, times the complement's share."""
        e, j = self.estimates, self.j
        complements = self._find_complements(first)
        share = 1.0 - complements.share
        group_replicates = e.replicates[first, j]
        # The mixture overall = w group + (1 - w) complement, solved for the complement.
        with np.errstate(divide="ignore", invalid="ignore"):
            complement_replicates = (
                complements.everyone - complements.share[:, None] * group_replicates
            ) / share[:, None]
        n_clusters, n_effective = _count_complement_clusters(e.design, first)
        dof = np.maximum(effective_clusters(e)[first] - 1.0, 1.0)
        group_estimate = e.value[first, j], e.standard_error[first, j], dof
        complement_se = standard_error(complement_replicates, n_clusters, e.design)
        correlation = paired_correlation(group_replicates, complement_replicates)
        complement_value = self._replace_invalid(complements.value)
        if e.measures[j].fraction:
            at_end = _is_at_limit(complements.value, complement_se, n_effective)
            complement_value = np.where(
                at_end, np.round(np.clip(complements.value, 0.0, 1.0)), complement_value
            )
            complement_se, correlation = (
                np.where(at_end, 0.0, x) for x in (complement_se, correlation)
            )
        complement_estimate = complement_value, complement_se, np.maximum(n_effective - 1.0, 1.0)
        interval_method = logit_reach if e.measures[j].fraction else student_reach
        differences = of_replicates(
            group_estimate, complement_estimate, correlation, interval_method
        )
        measured_differences: Difference | None
        if is_of_classes(e.measures[j]) and not isinstance(e.design, DrawnDesign):
            class_interval = self._compute_class_intervals(first)
            complement_averages = class_shares(
                e.design, e.measures[j], first, complement_value, others=True
            )
            # Of a small complement the mixture's standard error is mostly noise, and of one
            # without errors it is 0: neither may narrow the interval.
            clustering_ratio = np.fmax(complement_averages.together(complement_se), 1.0)
            differences = replace(
                differences,
                ends=lambda z: (class_interval(z), complement_averages.ends(z, clustering_ratio)),
            )
            complement_means = replace(complement_averages, value=complement_averages.mean())
            measured_differences = replace(
                differences,
                b=complement_means.value,
                ends=lambda z: (class_interval(z), complement_means.ends(z, clustering_ratio)),
            )
        else:
            measured_differences = self._compare_measured(
                complements, group_estimate, group_replicates, (n_clusters, complement_estimate[2])
            )
        overall = np.full(len(first), e.value[0, j])
        comparison = times_the_others(
            group_estimate[0], overall, differences, share, measured_differences
        )
        return replace(comparison, span=e.measures[j].span)

    def share_of_others(self, first: IntArray) -> FloatArray:
        """Return 1: ``compare_with_complement`` gives the difference to overall already."""
        return np.ones(len(first))

    def _compare_measured(
        self,
        complements: Others,
        group_estimate: tuple[FloatArray, FloatArray, FloatArray],
        group_replicates: FloatArray,
        complement_size: tuple[IntArray, FloatArray],
    ) -> Difference | None:
        """Compare groups with complements that were measured themselves; None if none was."""
        if np.isnan(complements.measured).all():
            return None
        n_clusters, dof = complement_size
        complement_se = standard_error(complements.replicates, n_clusters, self.estimates.design)
        correlation = paired_correlation(group_replicates, complements.replicates)
        interval_method = logit_reach if self.estimates.measures[self.j].fraction else student_reach
        return of_replicates(
            group_estimate, (complements.measured, complement_se, dof), correlation, interval_method
        )

    def _find_complements(self, first: IntArray) -> Others:
        """Return the complements of these groups; of pairs and detections, by the mixture.

        Those have no replicates with the group's share held fixed: their intervals are a little
        wider.
        """
        e, j = self.estimates, self.j
        if j in e.others:
            stored = e.others[j]
            arrays = stored.share, stored.value, stored.everyone, stored.measured, stored.replicates
            return Others(*(array[first] for array in arrays))
        share = e.n_units[first, j] / e.n_units[0, j]
        with np.errstate(divide="ignore", invalid="ignore"):
            complement_value = (e.value[0, j] - share * e.value[first, j]) / (1.0 - share)
        overall_replicates = np.tile(e.replicates[0, j], (len(first), 1))
        return Others(
            share,
            complement_value,
            overall_replicates,
            complement_value * np.nan,
            overall_replicates * np.nan,
        )

    def _replace_invalid(self, complement_value: FloatArray) -> FloatArray:
        """Replace complement values that are no possible value with the overall one."""
        e, j = self.estimates, self.j
        is_invalid = np.isnan(complement_value)
        if e.measures[j].fraction:
            is_invalid |= (complement_value < 0.0) | (complement_value > 1.0)
        return np.where(is_invalid, e.value[0, j], complement_value)


def times_the_others(
    a: FloatArray,
    overall: FloatArray,
    differences: Difference,
    share: FloatArray,
    measured_differences: Difference | None = None,
) -> Difference:
    """Compare groups with overall, which includes them, from their difference to the complement.

    Shapes: ``a, overall`` [h], ``share`` [h] of the complement.

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

    def compute_bounds(z: Reach) -> tuple[Interval, Interval]:
        interval, gap = differences.of_ends(*differences.ends(z), z), differences.a - differences.b
        low, high = a - share * (gap - interval.low), a + share * (interval.high - gap)
        if measured_differences is not None:
            measured_interval = measured_differences.of_ends(*measured_differences.ends(z), z)
            low = np.fmin(low, overall + share * measured_interval.low)
            high = np.fmax(high, overall + share * measured_interval.high)
        return Interval(low, high), Interval(overall, overall)

    error = share * differences.standard_error
    return Difference(
        a, overall, compute_bounds, lambda _: np.zeros_like(a), error, differences.freedom
    )


def _is_at_limit(
    complement_value: FloatArray, error: FloatArray, n_effective: FloatArray
) -> npt.NDArray[np.bool_]:
    """Tell which complements are at 0 or 1 without variance, within what the mixture resolves.

    One over the effective sample size is the step by which one cluster changes the value.
    """
    distance = np.minimum(np.abs(complement_value), np.abs(1.0 - complement_value))
    is_outside = (complement_value < 0.0) | (complement_value > 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        resolution = 1.0 / n_effective
        is_at_limit = (is_outside | (distance < resolution)) & (error < 0.5 * resolution)
    return np.asarray(is_at_limit, dtype=np.bool_)


def effective_clusters(estimates: Estimates) -> FloatArray:
    """Return Kish's effective number of clusters by units, of overall and every group: ``[g]``."""
    return _count_effective(estimates.design, np.arange(len(estimates.groups)))


def _count_effective(design: Design, rows: IntArray) -> FloatArray:
    if isinstance(design, DrawnDesign) and design.ways is not None:
        first_design = replace(design, ways=None)
        return np.minimum(
            _count_effective(first_design, rows), _count_effective(design.ways[0], rows)
        )
    cluster_counts = design.rows(rows, 0)
    multiplicity = design.copies.astype(np.float64)
    stratum_counts = None
    strata = strata_of(design)
    if strata is not None:
        stratum_counts = stratum_totals(cluster_counts, strata)
    return _kish_clusters(
        cluster_counts @ multiplicity, cluster_counts.power(2) @ multiplicity, stratum_counts
    )


def _kish_clusters(
    total: FloatArray, square: FloatArray, stratum_counts: FloatArray | None
) -> FloatArray:
    # Kish: (sum of cluster sizes)² over the sum of their squares.
    n_effective = np.divide(total**2, square, out=np.zeros_like(total), where=square > 0)
    if stratum_counts is not None:  # the mean of each stratum takes one degree of freedom
        n_effective = n_effective - np.maximum((stratum_counts > 0).sum(axis=1) - 1, 0)
    return np.asarray(n_effective)


def _count_complement_clusters(design: Design, first: IntArray) -> tuple[IntArray, FloatArray]:
    """Count the clusters of each group's complement: as they are, and Kish's effective number."""
    if isinstance(design, DrawnDesign) and design.ways is not None:
        first_counts = _count_complement_clusters(replace(design, ways=None), first)
        second_counts = _count_complement_clusters(design.ways[0], first)
        return np.minimum(first_counts[0], second_counts[0]), np.minimum(
            first_counts[1], second_counts[1]
        )
    multiplicity = design.copies.astype(np.float64)
    overall_row, group_rows = design.rows(0, 0), design.rows(first, 0)
    overall_counts = np.asarray(overall_row.todense()).ravel()
    unweighted_design = unweighted(design)
    total = overall_counts @ multiplicity - group_rows @ multiplicity
    square = (
        overall_counts**2 @ multiplicity
        - 2.0 * (group_rows @ (overall_counts * multiplicity))
        + group_rows.power(2) @ multiplicity
    )
    strata = strata_of(design)
    complement_stratum_counts = None
    if strata is not None:
        overall_stratum_counts = stratum_totals(overall_row, strata)
        complement_stratum_counts = overall_stratum_counts - stratum_totals(group_rows, strata)
        complement_stratum_counts = np.where(
            complement_stratum_counts > _ROUNDING * overall_stratum_counts,
            complement_stratum_counts,
            0.0,
        )
    return _count_clusters_with_complement(unweighted_design, first), _kish_clusters(
        total, np.maximum(square, 0.0), complement_stratum_counts
    )


def _count_clusters_with_complement(design: Design, first: IntArray) -> IntArray:
    """Count the clusters that have at least one person outside each group: ``[h]``."""
    from scipy.sparse import csr_array

    multiplicity = design.copies.astype(np.float64)
    overall_counts = np.asarray(design.rows(0, 0).todense()).ravel()
    group_counts = design.rows(first, 0).tocoo()
    is_full = (group_counts.data >= overall_counts[group_counts.col] * (1.0 - _ROUNDING)).astype(
        np.float64
    )
    n_full_clusters = (
        csr_array((is_full, (group_counts.row, group_counts.col)), shape=group_counts.shape)
        @ multiplicity
    )
    return np.asarray(
        np.rint((overall_counts > 0) @ multiplicity - n_full_clusters), dtype=np.int64
    )
