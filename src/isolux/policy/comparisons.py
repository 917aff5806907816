"""What a rule asks of a finished audit, as slacks: how far a value is on the right side of a limit.

Every rule becomes cells of one kind. A cell has a slack and bounds of it at any reach: it passes
where the lower bound is not below 0, and fails where the upper bound is below 0. "No two groups
differ by more than 5 points" is a slack for each pair of groups and each direction, which is two
one-sided tests (Schuirmann 1987) for every pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from isolux.core.tables import CAUTION_STATUSES, Status
from isolux.disparity.comparisons import build_comparisons
from isolux.disparity.replicate_comparisons import count_effective_clusters
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods import index_group_attributes
from isolux.groups.interval_methods.noise_bias import (
    estimate_noise_bias,
    extend_lower_bound_by_bias,
    has_noise_bias,
)
from isolux.groups.interval_methods.root_mean_square import estimate_rms, is_root_mean_square
from isolux.groups.interval_methods.skewness_adjusted import build_interval_function
from isolux.groups.means import estimate_group_means
from isolux.stats.cluster_sums import IntArray
from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.constants import MIN_EFFECTIVE_CLUSTERS
from isolux.stats.differences import difference_from_replicates, independent_mean_difference
from isolux.stats.intervals import Interval
from isolux.stats.statistic import FloatArray
from isolux.stats.test_inversion import Difference, ZValues

SlackBounds = Callable[[float], Interval]


@dataclass(frozen=True, slots=True)
class ComparisonSide:
    """The groups on one side of some comparisons: rows of estimates, and the measure's index."""

    estimates: Estimates
    j: int
    rows: IntArray

    @property
    def names(self) -> list[str]:
        """The groups' names."""
        return [self.estimates.groups[g].name for g in self.rows]

    @property
    def values(self) -> FloatArray:
        """The groups' values."""
        return np.asarray(self.estimates.value[self.rows, self.j])

    @property
    def units(self) -> FloatArray:
        """Number of units of each group."""
        return np.asarray(self.estimates.n_units[self.rows, self.j], dtype=np.float64)

    @property
    def clusters(self) -> FloatArray:
        """Number of clusters of each group."""
        return np.asarray(self.estimates.n_clusters[self.rows, self.j], dtype=np.float64)

    def cluster_means(self) -> ClusterMeans | None:
        """Reduce the groups' clusters; None where the measure is no mean."""
        measure = self.estimates.measures[self.j]
        return (
            estimate_group_means(self.estimates.cluster_sums, measure, self.rows)
            if measure.mean
            else None
        )

    def intervals(self) -> Callable[[float], Interval]:
        """Return a function from z to the groups' intervals, by the audit's default methods."""
        estimates, measure, means = (
            self.estimates,
            self.estimates.measures[self.j],
            self.cluster_means(),
        )
        if is_root_mean_square(measure):
            rms_estimates = estimate_rms(
                estimates.cluster_sums, measure, index_group_attributes(estimates.groups)
            ).take(self.rows)
            return lambda z: rms_estimates.interval(z, conservative=True)
        if means is not None:
            if means.is_proportion:
                return means.score_interval
            all_means = estimate_group_means(
                estimates.cluster_sums, measure, np.arange(len(estimates.groups))
            )
            all_intervals = build_interval_function(
                all_means, index_group_attributes(estimates.groups), measure
            )
            return lambda z: _select_interval_rows(all_intervals(z), self.rows)
        dof = np.maximum(count_effective_clusters(estimates)[self.rows] - 1.0, 1.0)
        values, standard_error = self.values, estimates.standard_error[self.rows, self.j]
        make_interval = measure.make_t_interval
        if has_noise_bias(measure):
            noise_bias = estimate_noise_bias(estimates.cluster_sums, measure, self.rows).bias
            return lambda z: extend_lower_bound_by_bias(
                make_interval(values, standard_error, dof, z), noise_bias
            )
        return lambda z: make_interval(values, standard_error, dof, z)

    def one_sample_intervals(self) -> Callable[[float], Interval]:
        """Return intervals for comparing a value with a limit; proportions: Clopper-Pearson too."""
        means = self.cluster_means()
        if means is None or not means.is_proportion:
            return self.intervals()

        def score_or_exact_interval(z: float) -> Interval:
            from scipy.special import ndtr

            from isolux.stats.proportions import clopper_pearson_interval

            wilson = means.score_interval(z)
            has_units = np.isfinite(means.value) & (means.n_units > 0)
            n = np.where(has_units, means.n_units / means.design_effect(z), 1.0)
            successes = np.where(has_units, means.value, 0.0) * n
            exact_interval = clopper_pearson_interval(successes, n, 2.0 * float(ndtr(z)) - 1.0)
            # The farther end of the two: Wilson's is the wider one now and then.
            return Interval(
                np.where(has_units, np.minimum(exact_interval.low, wilson.low), np.nan),
                np.where(has_units, np.maximum(exact_interval.high, wilson.high), np.nan),
            )

        return score_or_exact_interval


def _select_interval_rows(interval: Interval, rows: IntArray) -> Interval:
    return Interval(interval.low[rows], interval.high[rows])


@dataclass(frozen=True, slots=True)
class UnevaluatedComparison:
    """What a rule names and the run cannot evaluate: the rule fails, or more people are needed.

    Parameters
    ----------
    subject : str
        The metric, attribute or group, by its name.
    reason : str
        A clause that follows a colon.
    n_missing_units, n_missing_clusters : int
        How many more a group needs to be judged at all; both 0: no number of people would do.
    has_unknown_requirement : bool
        Whether more people would do, and nobody can tell how many.
    """

    subject: str
    reason: str
    n_missing_units: int = 0
    n_missing_clusters: int = 0
    has_unknown_requirement: bool = False

    @property
    def is_failure(self) -> bool:
        """Whether the rule fails by it; else more people could answer it."""
        return not (self.n_missing_units or self.n_missing_clusters or self.has_unknown_requirement)


@dataclass(frozen=True, slots=True)
class RuleComparisons:
    """Comparisons of one rule and one measure.

    Parameters
    ----------
    slack : [h] float
        Above 0 on the right side of the limit, in the metric's unit (of ratios on the log scale).
    bounds : callable
        Bounds of the slack that reach z standard errors.
    first, second : ComparisonSide
        Whose value it is, and whom it is held to; second None: a limit.
    sign, offset : float
        The estimate is ``sign × slack + offset``.
    is_log_ratio : bool
        Whether estimate and slack are logarithms of ratios.
    shared_reference : str
        Whom everyone in ``second`` is: "everyone else", "the baseline"; empty: groups of their own.
    """

    slack: FloatArray
    bounds: SlackBounds
    first: ComparisonSide
    second: ComparisonSide | None
    sign: float
    offset: float
    is_log_ratio: bool = False
    shared_reference: str = ""

    def to_estimates(self, slack: FloatArray) -> FloatArray:
        """Convert slacks to estimates: values, differences or ratios."""
        estimates = self.sign * slack + self.offset
        return np.exp(estimates) if self.is_log_ratio else np.asarray(estimates)

    def reference_names(self) -> list[str | None]:
        """Names of what each comparison's value is compared with; None: a limit."""
        if self.second is None or self.shared_reference:
            return [self.shared_reference or None] * len(self.slack)
        return list(self.second.names)


def compare_values_with_limit(
    subject: ComparisonSide, limit: float, sign: float
) -> RuleComparisons:
    """Compare values with a limit: they must lie above it (sign 1) or below it (sign −1)."""
    make_interval = subject.one_sample_intervals()

    def bounds(z: float) -> Interval:
        interval = make_interval(z)
        low, high = (interval.low, interval.high) if sign > 0 else (interval.high, interval.low)
        return Interval(sign * (low - limit), sign * (high - limit))

    return RuleComparisons(sign * (subject.values - limit), bounds, subject, None, sign, limit)


def compare_differences_with_margin(
    first: ComparisonSide,
    second: ComparisonSide,
    difference: Difference,
    margin: float,
    better_sign: float,
    shared_reference: str = "",
) -> RuleComparisons:
    """Compare differences with a margin: ``sign × (first − second)`` must lie above −margin."""

    def bounds(z: float) -> Interval:
        interval = difference.interval(z, conservative=True)
        low, high = (
            (interval.low, interval.high) if better_sign > 0 else (-interval.high, -interval.low)
        )
        return Interval(margin + low, margin + high)

    slack = margin + better_sign * (difference.a - difference.b)
    return RuleComparisons(
        slack,
        bounds,
        first,
        second,
        better_sign,
        -better_sign * margin,
        shared_reference=shared_reference,
    )


def compare_ratios_with_limit(
    first: ComparisonSide, second: ComparisonSide, difference: Difference, min_ratio: float
) -> RuleComparisons:
    """Compare ratios with a limit on the log scale, with conservative bounds as of differences."""
    log_limit = float(np.log(min_ratio))

    def bounds(z: float) -> Interval:
        interval = difference.interval(z, log=True, conservative=True)
        return Interval(interval.low - log_limit, interval.high - log_limit)

    with np.errstate(divide="ignore", invalid="ignore"):
        slack = np.log(difference.a / difference.b) - log_limit
    return RuleComparisons(slack, bounds, first, second, 1.0, log_limit, is_log_ratio=True)


def split_groups_by_min_counts(
    estimates: Estimates, measure_index: int, rows: IntArray, min_counts: tuple[int, int]
) -> tuple[IntArray, list[UnevaluatedComparison]]:
    """Split groups into those large enough to decide about and the others, with reasons.

    Shapes: ``estimates, j, rows`` [g]; returns [k].
    """
    decidable, unevaluated = [], []
    n_effective = _n_effective_clusters_by_group(estimates, measure_index)
    for g in rows:
        status, reason = (
            str(estimates.status[g, measure_index]),
            str(estimates.reason[g, measure_index] or ""),
        )
        name = estimates.groups[g].name
        units, clusters = _count_missing_units_and_clusters(
            estimates, (int(g), measure_index), min_counts
        )
        if status == Status.OK.value:
            decidable.append(g)
        elif status in CAUTION_STATUSES:
            n_missing = int(np.ceil(max(MIN_EFFECTIVE_CLUSTERS - n_effective[g], 0.0)))
            unevaluated.append(
                UnevaluatedComparison(
                    name,
                    reason.partition(":")[0],
                    n_missing_clusters=n_missing,
                    has_unknown_requirement=not n_missing,
                )
            )
        elif status in (Status.INSUFFICIENT_UNITS.value, Status.INSUFFICIENT_CLUSTERS.value):
            # A rarer class may be what is too few: then one more is all that can be told.
            lacks_any = units or clusters
            unevaluated.append(
                UnevaluatedComparison(name, reason, units if lacks_any else 1, clusters)
            )
        else:
            unevaluated.append(
                UnevaluatedComparison(name, f"{status}: {reason}" if reason else status)
            )
    return np.array(decidable, dtype=np.int64), unevaluated


def _count_missing_units_and_clusters(
    estimates: Estimates, index: tuple[int, int], min_counts: tuple[int, int]
) -> tuple[int, int]:
    """Count the units and clusters that a group lacks; weighted ones by effective size."""
    counts = int(estimates.n_units[index]), int(estimates.n_clusters[index])
    effective_sizes = estimates.n_effective
    if effective_sizes is None:
        return max(min_counts[0] - counts[0], 0), max(min_counts[1] - counts[1], 0)
    missing = []
    for n, n_effective, required in zip(
        counts,
        (effective_sizes.n_units[index], effective_sizes.n_clusters[index]),
        min_counts,
        strict=True,
    ):
        # More of such weights: as many times as many as they are worth too little.
        factor = required / n_effective if n_effective > 0 else max(required / max(n, 1), 1.0)
        missing.append(_round_up_two_digits(max(factor - 1.0, 0.0) * max(n, 1) - 1e-6))
    # Where each unit is a cluster of its own, people are all that is asked for.
    return missing[0], 0 if counts[0] == counts[1] else missing[1]


def _round_up_two_digits(number: float) -> int:
    """Round up to two digits: more is not known of weights that are yet to be drawn.

    Examples
    --------
    >>> _round_up_two_digits(29_350.2), _round_up_two_digits(7.0), _round_up_two_digits(-1e-6)
    (30000, 7, 0)
    """
    rounded_up = int(np.ceil(number))
    step = int(10 ** max(len(str(rounded_up)) - 2, 0))
    return -(-rounded_up // step) * step


def _n_effective_clusters_by_group(estimates: Estimates, measure_index: int) -> FloatArray:
    """Return the effective number of equal clusters of each group on a measure: ``[g]``."""
    if estimates.measures[measure_index].mean is None:
        return count_effective_clusters(estimates)
    all_groups = np.arange(len(estimates.groups))
    return estimate_group_means(
        estimates.cluster_sums, estimates.measures[measure_index], all_groups
    ).n_effective_clusters


def group_pair_differences_less_noise_bias(
    estimates: Estimates, attribute: str, measure_index: int, groups_a: IntArray, groups_b: IntArray
) -> Difference:
    """Compare groups; where a measure has noise bias, lower each group's interval by it.

    Shapes: ``first, second`` [h].
    """
    differences = build_comparisons(estimates, attribute, measure_index).compare_pairs(
        groups_a, groups_b
    )
    measure = estimates.measures[measure_index]
    if not has_noise_bias(measure):
        return differences
    first_bias, second_bias = (
        estimate_noise_bias(estimates.cluster_sums, measure, rows).bias
        for rows in (groups_a, groups_b)
    )

    def corrected_bounds(z: ZValues) -> tuple[Interval, Interval]:
        a, b = differences.group_intervals(z)
        return extend_lower_bound_by_bias(a, first_bias), extend_lower_bound_by_bias(b, second_bias)

    return replace(differences, group_intervals=corrected_bounds)


def independent_sample_difference(side_a: ComparisonSide, side_b: ComparisonSide) -> Difference:
    """Compare values of two independent samples."""
    zeros = np.zeros(len(side_a.rows))
    measures = [
        comparison_side.estimates.measures[comparison_side.j]
        for comparison_side in (side_a, side_b)
    ]
    if all(m.mean is not None for m in measures):
        a, b = (
            estimate_group_means(s.estimates.cluster_sums, s.estimates.measures[s.j], s.rows)
            for s in (side_a, side_b)
        )
        if a.is_proportion == b.is_proportion:
            return independent_mean_difference(a, b, zeros, zeros)
    make_interval = measures[0].make_t_interval
    estimates = [
        (s.values, s.estimates.standard_error[s.rows, s.j], np.maximum(s.clusters - 1.0, 1.0))
        for s in (side_a, side_b)
    ]
    return difference_from_replicates(estimates[0], estimates[1], zeros, make_interval)
