"""Paired comparison of two measures on the same people, group by group.

Also each group's relative change from one model to another.

Fairness Indicators (Goyal et al. 2022, Figure 5) draws the relative improvement of each group over
a baseline model. It is the value of b over that of a, minus 1; its interval is that of the log of
the ratio (MOVER), with the correlation of both models on the same clusters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from isolux.core.errors import SpecError
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import COMPARISONS, Status
from isolux.disparity.comparisons import estimate_mean_pair_covariance
from isolux.disparity.replicate_comparisons import (
    compare_noise_biased_values,
    count_effective_clusters,
)
from isolux.disparity.rows import (
    DisparityRows,
    RowStatus,
    build_disparity_rows,
    first_flag_by_position,
    iterate_groups_by_attribute,
    list_cautions,
    stack_rows,
)
from isolux.groups.estimates import Estimates, Measure
from isolux.groups.interval_methods import index_group_attributes
from isolux.groups.interval_methods.noise_bias import estimate_noise_bias, has_noise_bias
from isolux.groups.interval_methods.root_mean_square import estimate_rms, is_root_mean_square
from isolux.groups.means import estimate_group_means
from isolux.stats.cluster_sums import ClusterSums
from isolux.stats.differences import difference_from_replicates, paired_mean_difference
from isolux.stats.intervals import (
    mover_log_ratio_interval,
    two_sided_normal_quantile,
)
from isolux.stats.multiplier_bootstrap import correlate_corresponding_rows
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.survey_sums import SurveyClusterSums
from isolux.stats.test_inversion import Difference

_ROUNDING = 1e-12
"""Sums of a cluster that differ by less are equal."""


def compare_paired_measures(estimates: Estimates, groups: IntArray, a: int, b: int) -> Difference:
    """Compare measure ``b`` with measure ``a`` on the same people, group by group: b minus a."""
    measure_b, measure_a = estimates.measures[b], estimates.measures[a]
    if measure_b.mean is None or measure_a.mean is None:
        return _compare_paired_replicates(estimates, groups, a, b)
    return compare_paired_means(estimates.cluster_sums, (measure_b, measure_a), groups)


def compare_paired_means(
    design: ClusterSums, measures: tuple[Measure, Measure], groups: IntArray
) -> Difference:
    """Compare two means of the same people in each of some groups."""
    first_measure, second_measure = measures
    first, second = (
        estimate_group_means(design, measure, groups) for measure in (first_measure, second_measure)
    )
    (s, n), (t, m) = first_measure.sum_and_count_columns, second_measure.sum_and_count_columns
    is_survey_sample = isinstance(design, SurveyClusterSums)
    square, cross, reverse_cross, count = (
        _sum_products(design, groups, x, y) for x, y in ((s, t), (s, m), (t, n), (n, m))
    )
    weight = first.n_units * second.n_units
    # Products of cluster sums are divided by the summed weights; n_units is Kish's number here.
    if is_survey_sample:
        weight = np.ones(len(groups))
        for column in (n, m):
            weight = weight * np.asarray(design.group_rows(groups, column).sum(axis=1)).ravel()
    # Sums are of differences from the centre, so the means must be, too.
    values = (
        first.value - first_measure.centre,
        second.value - (first_measure if is_survey_sample else second_measure).centre,
    )
    covariance = estimate_mean_pair_covariance(
        values, (square, cross, reverse_cross, count), weight, is_weighted=is_survey_sample
    )
    return paired_mean_difference(
        first,
        second,
        covariance,
        is_fraction=first_measure.is_fraction and second_measure.is_fraction,
        n_changed=_count_changed_clusters(design, groups, s, t),
        is_survey_sample=is_survey_sample,
    )


def _count_changed_clusters(
    design: ClusterSums, groups: IntArray, first_column: int, second_column: int
) -> FloatArray:
    """Count the clusters of each group in which two sums differ."""
    change = design.group_rows(groups, first_column) - design.group_rows(groups, second_column)
    is_changed = abs(change) > _ROUNDING
    return np.asarray(is_changed @ design.multiplicity.astype(np.float64))


def _sum_products(
    design: ClusterSums, groups: IntArray, first_column: int, second_column: int
) -> FloatArray:
    """Sum the products of two columns over the clusters of each group."""
    if isinstance(design, SurveyClusterSums):
        return design.column_products(groups, first_column, second_column)
    products = design.group_rows(groups, first_column).multiply(
        design.group_rows(groups, second_column)
    )
    return np.asarray(products @ design.multiplicity.astype(np.float64))


def _refuse_other_bins(first: Measure, second: Measure) -> None:
    """Refuse two values whose noise is compared bin by bin, over other numbers of bins."""
    bins = [m.columns.stop - m.columns.start if m.columns else 0 for m in (first, second)]
    if bins[0] != bins[1]:
        raise SpecError(
            f"{first.info.title} of the two models is over different bins",
            expected="two audits with the same settings of the task",
            found=f"{first.model} and {second.model} with other numbers of bins",
            hint="audit both with the same number of bins (--option calibration_bins=15)",
        )


def _compare_paired_replicates(
    estimates: Estimates, groups: IntArray, a: int, b: int
) -> Difference:
    """Compare statistics that are not means; replicates resample the same people for both."""
    rho = correlate_corresponding_rows(
        estimates.replicates[groups, b], estimates.replicates[groups, a]
    )
    dof = np.maximum(count_effective_clusters(estimates)[groups] - 1.0, 1.0)
    estimate_b, estimate_a = (
        (estimates.value[groups, j], estimates.standard_error[groups, j], dof) for j in (b, a)
    )
    design, measures = estimates.cluster_sums, [estimates.measures[j] for j in (b, a)]
    interval_method = measures[0].make_t_interval
    differences = difference_from_replicates(estimate_b, estimate_a, rho, interval_method)
    if has_noise_bias(measures[0]):
        _refuse_other_bins(*measures)
        return compare_noise_biased_values(
            differences, *(estimate_noise_bias(design, measure, groups) for measure in measures)
        )
    if not is_root_mean_square(measures[0]):
        return differences
    # A group without outliers has too small a standard error in every replicate: the interval of
    # the mean square accounts for heavy tails.
    families = index_group_attributes(estimates.groups)
    rms_estimates = [estimate_rms(design, measure, families).take(groups) for measure in measures]
    return replace(
        differences,
        group_intervals=lambda z: (rms_estimates[0].interval(z), rms_estimates[1].interval(z)),
    )


_UNDEFINED_RATIO = RowStatus(
    Status.UNDEFINED.value, "the first model's value is 0: nothing is a share of it"
)
_UNBOUNDED_RATIO = RowStatus(Status.NO_RATIO.value, "an interval reaches 0: the ratio has none")


def compute_relative_changes(
    estimates: Estimates, spec: ComparisonSettings, models: tuple[str, str]
) -> pl.DataFrame:
    """Return the changes from the first to the second model, relative to the first's values."""
    measure_index = {
        (m.model, m.metric, m.label, m.threshold): j for j, m in enumerate(estimates.measures)
    }
    is_comparable = estimates.is_comparable()
    frames: list[DisparityRows] = []
    for (model, *identity), a in measure_index.items():
        b = measure_index.get((models[1], *identity))  # type: ignore[arg-type]
        # Relative to a negative value, a change has no meaning.
        low = estimates.measures[a].info.low
        if model != models[0] or b is None or low is None or low < 0:
            continue
        groups = np.flatnonzero(is_comparable[:, a] & is_comparable[:, b])
        if len(groups):
            frames += _build_relative_rows(estimates, spec, groups, (a, b))
    table = stack_rows(frames).with_columns(model_a=pl.lit(models[0]), model_b=pl.lit(models[1]))
    return COMPARISONS.conform(table)


def _build_relative_rows(
    estimates: Estimates, spec: ComparisonSettings, groups: IntArray, pair: tuple[int, int]
) -> list[DisparityRows]:
    a, b = pair
    differences = compare_paired_measures(estimates, groups, a, b)
    interval_b, interval_a = (estimates.group_interval(groups, j) for j in (b, a))
    correlation = differences.correlation(two_sided_normal_quantile(spec.level))
    # The relative change b / a - 1 from the interval of log(b / a), by MOVER.
    log_interval = mover_log_ratio_interval(
        differences.a, interval_b, differences.b, interval_a, correlation
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        relative_change = np.where(differences.b > 0, differences.a / differences.b - 1.0, np.nan)
    low, high = np.expm1(log_interval.low), np.expm1(log_interval.high)
    cautions = first_flag_by_position(list_cautions(estimates, a), list_cautions(estimates, b))[
        groups
    ]
    frames = []
    for attribute, k in iterate_groups_by_attribute(estimates, groups):
        frames.append(
            build_disparity_rows(
                estimates,
                a,
                attribute,
                "relative_change",
                groups=(groups[k], groups[k]),
                value=relative_change[k],
                low=low[k],
                high=high[k],
                method="paired, MOVER of logarithms",
                flags=[
                    _flag_missing_relative_change(relative_change[i], low[i]) or cautions[i]
                    for i in k
                ],
            )
        )
    return frames


def _flag_missing_relative_change(relative_change: float, low: float) -> RowStatus | None:
    if np.isnan(relative_change):
        return _UNDEFINED_RATIO
    return _UNBOUNDED_RATIO if np.isnan(low) else None
