"""Comparisons of groups on metrics that are not means (areas, balanced accuracy), by replicates.

A large group shares most of its people with overall. Both have intervals of their own that are
skewed near 0 and 1, and the difference of the two intervals would mostly show how their skewness
differs, not how much the two values may differ. So a group is compared with overall as a mean is:
with its complement, which shares nobody with it, times the complement's share. To first order the
overall value is a mixture of both by the group's share w of the people, so the replicates of the
complement are (overall - w group) / (1 - w) (``groups/measure/complement``). The difference to
overall is then exactly 1 - w times that to the complement, for any w; the skewness of the interval
depends on w a little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from isolux.groups.estimates import ComplementEstimates, Estimates
from isolux.groups.interval_methods import standard_error
from isolux.groups.interval_methods.macro_average import estimate_macro_averages, is_macro_average
from isolux.groups.interval_methods.noise_bias import (
    estimate_noise_bias,
    extend_lower_bound_by_bias,
    has_noise_bias,
    values_at_equal_noise_bias,
)
from isolux.stats.cluster_sums import ClusterSums
from isolux.stats.differences import difference_from_replicates
from isolux.stats.intervals import Interval
from isolux.stats.multiplier_bootstrap import (
    correlate_corresponding_rows,
    replicate_correlation_matrix,
)
from isolux.stats.sampling import sum_by_stratum
from isolux.stats.statistic import FloatArray, IntArray, NoiseBias, PairStatistic
from isolux.stats.survey_sums import (
    SurveyClusterSums,
    survey_strata_or_none,
    unweighted_cluster_sums,
)
from isolux.stats.test_inversion import Difference, ZValues

_CANCELLATION_TOLERANCE = 1e-9
"""Relative to a cluster's units, or to a sum: a smaller difference of equal numbers is rounding."""


def compare_noise_biased_values(
    differences: Difference, bias_a: NoiseBias, bias_b: NoiseBias
) -> Difference:
    """Compare values with noise bias: as they are, and with equal noise bias in both."""
    # Noise bias can only have raised a value: the lower one's interval extends down by it, so
    # that the gap is not understated; ``alternative_values`` adds the comparison with equal bias.
    a = np.where(differences.a <= differences.b, bias_a.bias, 0.0)
    b = np.where(differences.b <= differences.a, bias_b.bias, 0.0)

    def compute_bounds(z: ZValues) -> tuple[Interval, Interval]:
        bounds_a, bounds_b = differences.group_intervals(z)
        return extend_lower_bound_by_bias(bounds_a, a), extend_lower_bound_by_bias(bounds_b, b)

    return replace(
        differences,
        group_intervals=compute_bounds,
        alternative_values=values_at_equal_noise_bias(bias_a, bias_b),
    )


@dataclass(frozen=True, slots=True)
class ReplicateComparisons:
    """Comparisons by standard errors and correlations of replicates."""

    estimates: Estimates
    j: int

    def compare_pairs(self, first: IntArray, second: IntArray) -> Difference:
        """Compare groups with groups."""
        e, j = self.estimates, self.j
        unique_groups, positions = np.unique(np.concatenate([first, second]), return_inverse=True)
        table = replicate_correlation_matrix(e.replicates[unique_groups, j])
        rho = table[positions[: len(first)], positions[len(first) :]]
        # Degrees of freedom are those of the effective clusters (docs/methods/uncertainty.md).
        dof = np.maximum(count_effective_clusters(e) - 1.0, 1.0)
        first_estimate, second_estimate = (
            (e.value[g, j], e.standard_error[g, j], dof[g]) for g in (first, second)
        )
        interval_method = e.measures[j].make_t_interval
        differences = replace(
            difference_from_replicates(first_estimate, second_estimate, rho, interval_method),
            value_range=e.measures[j].value_range,
        )
        if has_noise_bias(e.measures[j]):
            return compare_noise_biased_values(
                differences,
                *(estimate_noise_bias(e.cluster_sums, e.measures[j], g) for g in (first, second)),
            )
        # Replicates of a class without an error do not vary, but its Wilson interval has a width.
        if not is_macro_average(e.measures[j]):
            return differences
        class_intervals = (
            self._macro_average_interval_function(first),
            self._macro_average_interval_function(second),
        )
        return replace(
            differences, group_intervals=lambda z: (class_intervals[0](z), class_intervals[1](z))
        )

    def _macro_average_interval_function(self, rows: IntArray) -> Callable[[ZValues], Interval]:
        """Return a function from z to macro-average intervals; each group is summed once."""
        e, j = self.estimates, self.j
        unique_groups, positions = np.unique(rows, return_inverse=True)
        macro_averages = estimate_macro_averages(
            e.cluster_sums, e.measures[j], unique_groups, e.value[unique_groups, j]
        )
        standard_errors = standard_error(
            e.replicates[unique_groups, j], e.n_clusters[unique_groups, j], e.cluster_sums
        )
        clustering_ratio = macro_averages.covariance_ratio(standard_errors)

        def compute_interval(z: ZValues) -> Interval:
            return macro_averages.interval(z, clustering_ratio).take(positions)

        return compute_interval

    def compare_with_complement(self, first: IntArray) -> Difference:
        """Compare groups with overall: with the complement, times the complement's share."""
        e, j = self.estimates, self.j
        complements = self._find_complements(first)
        share = 1.0 - complements.share
        group_replicates = e.replicates[first, j]
        # The mixture overall = w group + (1 - w) complement, solved for the complement.
        with np.errstate(divide="ignore", invalid="ignore"):
            complement_replicates = (
                complements.overall_replicates - complements.share[:, None] * group_replicates
            ) / share[:, None]
        # Decision 31: a complement's own clusters count, not the many of overall.
        n_clusters, n_effective = _count_complement_clusters(e.cluster_sums, first)
        dof = np.maximum(count_effective_clusters(e)[first] - 1.0, 1.0)
        group_estimate = e.value[first, j], e.standard_error[first, j], dof
        complement_se = standard_error(complement_replicates, n_clusters, e.cluster_sums)
        correlation = correlate_corresponding_rows(group_replicates, complement_replicates)
        complement_value = self._replace_invalid(complements.value)
        if e.measures[j].is_fraction:
            # At exactly 0 or 1 the logit interval is that of Wilson, by clusters.
            # One pair of a million changes a rate of pairs by far less than one person's share.
            is_pair_rate = isinstance(e.measures[j].info.statistic, PairStatistic)
            n_steps = e.n_units[0, j] - e.n_units[first, j] if is_pair_rate else n_effective
            at_end = _is_complement_at_limit(complements.value, complement_se, n_steps)
            complement_value = np.where(
                at_end, np.round(np.clip(complements.value, 0.0, 1.0)), complement_value
            )
            complement_se, correlation = (
                np.where(at_end, 0.0, x) for x in (complement_se, correlation)
            )
        complement_estimate = complement_value, complement_se, np.maximum(n_effective - 1.0, 1.0)
        interval_method = e.measures[j].make_t_interval
        differences = difference_from_replicates(
            group_estimate, complement_estimate, correlation, interval_method
        )
        measured_differences: Difference | None
        if is_macro_average(e.measures[j]) and not isinstance(e.cluster_sums, SurveyClusterSums):
            class_interval = self._macro_average_interval_function(first)
            complement_averages = estimate_macro_averages(
                e.cluster_sums, e.measures[j], first, complement_value, of_complement=True
            )
            # Of a small complement the mixture's standard error is mostly noise, and of one
            # without errors it is 0: neither may narrow the interval.
            clustering_ratio = np.fmax(complement_averages.covariance_ratio(complement_se), 1.0)
            differences = replace(
                differences,
                group_intervals=lambda z: (
                    class_interval(z),
                    complement_averages.interval(z, clustering_ratio),
                ),
            )
            complement_means = replace(complement_averages, value=complement_averages.mean())
            measured_differences = replace(
                differences,
                b=complement_means.value,
                group_intervals=lambda z: (
                    class_interval(z),
                    complement_means.interval(z, clustering_ratio),
                ),
            )
        else:
            measured_differences = self._compare_with_measured_complements(
                complements, group_estimate, group_replicates, (n_clusters, complement_estimate[2])
            )
        overall = np.full(len(first), e.value[0, j])
        comparison = scale_complement_difference_to_overall(
            group_estimate[0], overall, differences, share, measured_differences
        )
        return replace(comparison, value_range=e.measures[j].value_range)

    def complement_to_overall_factor(self, first: IntArray) -> FloatArray:
        """Return 1: ``compare_with_complement`` gives the difference to overall already."""
        return np.ones(len(first))

    def _compare_with_measured_complements(
        self,
        complements: ComplementEstimates,
        group_estimate: tuple[FloatArray, FloatArray, FloatArray],
        group_replicates: FloatArray,
        complement_size: tuple[IntArray, FloatArray],
    ) -> Difference | None:
        """Compare groups with complements that were measured themselves; None if none was."""
        if np.isnan(complements.measured_value).all():
            return None
        n_clusters, dof = complement_size
        complement_se = standard_error(
            complements.measured_replicates, n_clusters, self.estimates.cluster_sums
        )
        correlation = correlate_corresponding_rows(
            group_replicates, complements.measured_replicates
        )
        interval_method = self.estimates.measures[self.j].make_t_interval
        return difference_from_replicates(
            group_estimate,
            (complements.measured_value, complement_se, dof),
            correlation,
            interval_method,
        )

    def _find_complements(self, first: IntArray) -> ComplementEstimates:
        """Return the complements of these groups; of pairs and detections, by the mixture.

        Those have no replicates with a fixed share of the group: their intervals are a little
        wider.
        """
        e, j = self.estimates, self.j
        if j in e.complements:
            stored = e.complements[j]
            arrays = (
                stored.share,
                stored.value,
                stored.overall_replicates,
                stored.measured_value,
                stored.measured_replicates,
            )
            return ComplementEstimates(*(array[first] for array in arrays))
        share = e.n_units[first, j] / e.n_units[0, j]
        with np.errstate(divide="ignore", invalid="ignore"):
            complement_value = (e.value[0, j] - share * e.value[first, j]) / (1.0 - share)
        overall_replicates = np.tile(e.replicates[0, j], (len(first), 1))
        return ComplementEstimates(
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
        if e.measures[j].is_fraction:
            # The mixture (overall - w group) / (1 - w) may leave 0 to 1: no logit there.
            is_invalid |= (complement_value < 0.0) | (complement_value > 1.0)
        return np.where(is_invalid, e.value[0, j], complement_value)


def scale_complement_difference_to_overall(
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
    >>> scaled = scale_complement_difference_to_overall(0.9 * one, 0.8 * one, apart, 0.25 * one)
    >>> found = scaled.interval(2.0)
    >>> found.low.round(3).item(), found.high.round(3).item()
    (0.05, 0.15)
    """

    def compute_bounds(z: ZValues) -> tuple[Interval, Interval]:
        interval, gap = (
            differences.mover_interval(*differences.group_intervals(z), z),
            differences.a - differences.b,
        )
        low, high = a - share * (gap - interval.low), a + share * (interval.high - gap)
        # Decision 31: the interval covers both, because the mixture says too little about few
        # others who hardly err.
        if measured_differences is not None:
            measured_interval = measured_differences.mover_interval(
                *measured_differences.group_intervals(z), z
            )
            low = np.fmin(low, overall + share * measured_interval.low)
            high = np.fmax(high, overall + share * measured_interval.high)
        # The first interval is that of the difference, so overall adds no width.
        return Interval(low, high), Interval(overall, overall)

    error = share * differences.standard_error
    return Difference(
        a, overall, compute_bounds, lambda _: np.zeros_like(a), error, differences.dof
    )


def _is_complement_at_limit(
    complement_value: FloatArray, error: FloatArray, n_steps: FloatArray
) -> npt.NDArray[np.bool_]:
    """Tell which complements are at 0 or 1 without variance, within what the mixture resolves.

    ``n_steps``: the effective clusters, or the pairs, of which one changes the value by a step.
    """
    distance = np.minimum(np.abs(complement_value), np.abs(1.0 - complement_value))
    is_outside = (complement_value < 0.0) | (complement_value > 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        resolution = 1.0 / n_steps
        is_at_limit = (is_outside | (distance < resolution)) & (error < 0.5 * resolution)
    return np.asarray(is_at_limit, dtype=np.bool_)


def count_effective_clusters(estimates: Estimates) -> FloatArray:
    """Return Kish's effective number of clusters by units, of overall and every group: ``[g]``."""
    return _count_effective_clusters_of_rows(
        estimates.cluster_sums, np.arange(len(estimates.groups))
    )


def _count_effective_clusters_of_rows(design: ClusterSums, rows: IntArray) -> FloatArray:
    # Of two kinds of clusters, the one with fewer decides (docs/methods/samples.md).
    if isinstance(design, SurveyClusterSums) and design.other_clusterings is not None:
        first_design = replace(design, other_clusterings=None)
        return np.minimum(
            _count_effective_clusters_of_rows(first_design, rows),
            _count_effective_clusters_of_rows(design.other_clusterings[0], rows),
        )
    # Column 0 counts units.
    cluster_counts = design.group_rows(rows, 0)
    multiplicity = design.multiplicity.astype(np.float64)
    stratum_counts = None
    strata = survey_strata_or_none(design)
    if strata is not None:
        stratum_counts = sum_by_stratum(cluster_counts, strata)
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


def _count_complement_clusters(design: ClusterSums, first: IntArray) -> tuple[IntArray, FloatArray]:
    """Count the clusters of each group's complement: as they are, and Kish's effective number."""
    if isinstance(design, SurveyClusterSums) and design.other_clusterings is not None:
        first_counts = _count_complement_clusters(replace(design, other_clusterings=None), first)
        second_counts = _count_complement_clusters(design.other_clusterings[0], first)
        return np.minimum(first_counts[0], second_counts[0]), np.minimum(
            first_counts[1], second_counts[1]
        )
    multiplicity = design.multiplicity.astype(np.float64)
    overall_row, group_rows = design.group_rows(0, 0), design.group_rows(first, 0)
    overall_counts = np.asarray(overall_row.todense()).ravel()
    unweighted_design = unweighted_cluster_sums(design)
    total = overall_counts @ multiplicity - group_rows @ multiplicity
    # (overall - group)², expanded: the complement's own cluster sums are not stored.
    square = (
        overall_counts**2 @ multiplicity
        - 2.0 * (group_rows @ (overall_counts * multiplicity))
        + group_rows.power(2) @ multiplicity
    )
    strata = survey_strata_or_none(design)
    complement_stratum_counts = None
    if strata is not None:
        overall_stratum_counts = sum_by_stratum(overall_row, strata)
        complement_stratum_counts = overall_stratum_counts - sum_by_stratum(group_rows, strata)
        complement_stratum_counts = np.where(
            complement_stratum_counts > _CANCELLATION_TOLERANCE * overall_stratum_counts,
            complement_stratum_counts,
            0.0,
        )
    # The square is a difference of large sums: rounding may make it negative.
    return _count_clusters_with_complement(unweighted_design, first), _kish_clusters(
        total, np.maximum(square, 0.0), complement_stratum_counts
    )


def _count_clusters_with_complement(design: ClusterSums, first: IntArray) -> IntArray:
    """Count the clusters that have at least one person outside each group: ``[h]``."""
    from scipy.sparse import csr_array

    multiplicity = design.multiplicity.astype(np.float64)
    overall_counts = np.asarray(design.group_rows(0, 0).todense()).ravel()
    group_counts = design.group_rows(first, 0).tocoo()
    is_full = (
        group_counts.data >= overall_counts[group_counts.col] * (1.0 - _CANCELLATION_TOLERANCE)
    ).astype(np.float64)
    n_full_clusters = (
        csr_array((is_full, (group_counts.row, group_counts.col)), shape=group_counts.shape)
        @ multiplicity
    )
    return np.asarray(
        np.rint((overall_counts > 0) @ multiplicity - n_full_clusters), dtype=np.int64
    )
