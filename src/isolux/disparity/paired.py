"""Paired comparison of two measures on the same people, group by group.

Also each group's relative change from one model to another.

Fairness Indicators (Goyal et al. 2022, Figure 5) draws the relative improvement of each group over
a baseline model. It is value of b over value of a, less 1; its interval is that of the logarithm of
the ratio (MOVER), with the correlation of both models on the same clusters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from isolux.disparity.comparisons import covariance_of
from isolux.disparity.replicated import effective_clusters, of_enlarged
from isolux.disparity.rows import Rows, by_attribute, rows_of, table_of
from isolux.groups.estimates import Estimates, Measure
from isolux.groups.interval_methods import families_of
from isolux.groups.interval_methods.noisy import chance_of, is_enlarged
from isolux.groups.interval_methods.root import is_of_squares, roots
from isolux.groups.means import means_of
from isolux.stats.design import Design
from isolux.stats.deviates import Difference
from isolux.stats.differences import of_replicates, paired_means
from isolux.stats.drawn_design import DrawnDesign
from isolux.stats.intervals import log_ratio_interval, logit_reach, normal_quantile, student_reach
from isolux.stats.joint_law import paired_correlation
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import COMPARISONS, Status


def paired_difference(estimates: Estimates, groups: IntArray, a: int, b: int) -> Difference:
    """Compare measure ``b`` with measure ``a`` on the same people, group by group: b less a."""
    measure_b, measure_a = estimates.measures[b], estimates.measures[a]
    if measure_b.mean is None or measure_a.mean is None:
        return _compare_replicates(estimates, groups, a, b)
    return compare_measures(estimates.design, (measure_b, measure_a), groups)


def compare_measures(
    design: Design, measures: tuple[Measure, Measure], groups: IntArray
) -> Difference:
    """Compare two means of the same people in each of some groups."""
    first_measure, second_measure = measures
    first, second = (
        means_of(design, measure, groups) for measure in (first_measure, second_measure)
    )
    (s, n), (t, m) = first_measure.mean_columns, second_measure.mean_columns
    is_survey_sample = isinstance(design, DrawnDesign)
    square, cross, reverse_cross, count = (
        _sum_products(design, groups, x, y) for x, y in ((s, t), (s, m), (t, n), (n, m))
    )
    weight = first.units * second.units
    if is_survey_sample:
        weight = np.ones(len(groups))
        for column in (n, m):
            weight = weight * np.asarray(design.rows(groups, column).sum(axis=1)).ravel()
    # As they were summed.
    values = (
        first.value - first_measure.centre,
        second.value - (first_measure if is_survey_sample else second_measure).centre,
    )
    covariance = covariance_of(
        values, (square, cross, reverse_cross, count), weight, is_weighted=is_survey_sample
    )
    fraction = first_measure.fraction and second_measure.fraction
    return paired_means(first, second, covariance, fraction=fraction)


def _sum_products(
    design: Design, groups: IntArray, first_column: int, second_column: int
) -> FloatArray:
    """Sum the products of two columns over the clusters of each group."""
    if isinstance(design, DrawnDesign):
        return design.inner(groups, first_column, second_column)
    products = design.rows(groups, first_column).multiply(design.rows(groups, second_column))
    return np.asarray(products @ design.copies.astype(np.float64))


def _compare_replicates(estimates: Estimates, groups: IntArray, a: int, b: int) -> Difference:
    """Compare statistics that are not means; replicates resample the same people for both."""
    rho = paired_correlation(estimates.replicates[groups, b], estimates.replicates[groups, a])
    dof = np.maximum(effective_clusters(estimates)[groups] - 1.0, 1.0)
    estimate_b, estimate_a = (
        (estimates.value[groups, j], estimates.standard_error[groups, j], dof) for j in (b, a)
    )
    design, measures = estimates.design, [estimates.measures[j] for j in (b, a)]
    interval_method = logit_reach if measures[0].fraction else student_reach
    differences = of_replicates(estimate_b, estimate_a, rho, interval_method)
    if is_enlarged(measures[0]):
        return of_enlarged(
            differences, *(chance_of(design, measure, groups) for measure in measures)
        )
    if not is_of_squares(measures[0]):
        return differences
    # A group without outliers has too small a standard error in every replicate: the interval of
    # the mean square accounts for heavy tails.
    families = families_of(estimates.groups)
    rms_estimates = [roots(design, measure, families).at(groups) for measure in measures]
    return replace(
        differences, ends=lambda z: (rms_estimates[0].interval(z), rms_estimates[1].interval(z))
    )


_NO_RATIO = "the first model's value is 0: nothing is a share of it"
_NO_BOUND = "an interval reaches 0: the ratio has none"


def relative_changes(
    estimates: Estimates, spec: Comparing, models: tuple[str, str]
) -> pl.DataFrame:
    """Return the changes from the first to the second model, relative to the first's values."""
    measure_index = {
        (m.model, m.metric, m.label, m.threshold): j for j, m in enumerate(estimates.measures)
    }
    is_comparable = estimates.judged()
    frames: list[Rows] = []
    for (model, *identity), a in measure_index.items():
        b = measure_index.get((models[1], *identity))  # type: ignore[arg-type]
        low = estimates.measures[a].info.low
        if model != models[0] or b is None or low is None or low < 0:
            continue
        groups = np.flatnonzero(is_comparable[:, a] & is_comparable[:, b])
        if len(groups):
            frames += _build_relative_rows(estimates, spec, groups, (a, b))
    table = table_of(frames).with_columns(model_a=pl.lit(models[0]), model_b=pl.lit(models[1]))
    return COMPARISONS.conform(table)


def _build_relative_rows(
    estimates: Estimates, spec: Comparing, groups: IntArray, pair: tuple[int, int]
) -> list[Rows]:
    a, b = pair
    differences = paired_difference(estimates, groups, a, b)
    interval_b, interval_a = (estimates.ends(groups, j) for j in (b, a))
    correlation = differences.correlation(normal_quantile(spec.level))
    # The relative change b / a - 1 from the interval of log(b / a), by MOVER.
    log_interval = log_ratio_interval(
        differences.a, interval_b, differences.b, interval_a, correlation
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        relative_change = np.where(differences.b > 0, differences.a / differences.b - 1.0, np.nan)
    low, high = np.expm1(log_interval.low), np.expm1(log_interval.high)
    is_boundary = (estimates.status[groups][:, [a, b]] == Status.BOUNDARY.value).any(axis=1)
    frames = []
    for attribute, k in by_attribute(estimates, groups):
        reasons = [_explain_missing(relative_change[i], low[i]) for i in k]
        frames.append(
            rows_of(
                estimates,
                a,
                attribute,
                "relative_change",
                groups=(groups[k], groups[k]),
                value=relative_change[k],
                low=low[k],
                high=high[k],
                method="paired, MOVER of logarithms",
                status=[
                    (
                        Status.UNDEFINED
                        if np.isnan(relative_change[i])
                        else Status.BOUNDARY
                        if is_boundary[i] or reason
                        else Status.OK
                    ).value
                    for i, reason in zip(k, reasons, strict=True)
                ],
                reason=reasons,
            )
        )
    return frames


def _explain_missing(relative_change: float, low: float) -> str | None:
    if np.isnan(relative_change):
        return _NO_RATIO
    return _NO_BOUND if np.isnan(low) else None
