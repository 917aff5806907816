"""Two measures of the same people, group by group: how far the one lies from the other.

Each group's relative change from one model to another: how much of the first's value was gained.

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
    square, cross, turned, count = (
        _inner(design, groups, x, y) for x, y in ((s, t), (s, m), (t, n), (n, m))
    )
    weight = first.units * second.units
    if is_drawn:
        weight = np.ones(len(groups))
        for column in (n, m):
            weight = weight * np.asarray(design.rows(groups, column).sum(axis=1)).ravel()
    # As they were summed.
    values = first.value - one.centre, second.value - (one if is_drawn else two).centre
    covariance = covariance_of(values, (square, cross, turned, count), weight, is_weighted=is_drawn)
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


_NO_RATIO = "the first model's value is 0: nothing is a share of it"
_NO_END = "an interval reaches 0: the ratio has none"


def relative_changes(
    estimates: Estimates, spec: Comparing, models: tuple[str, str]
) -> pl.DataFrame:
    """Compare the second model with the first as shares of the first's values."""
    at = {(m.model, m.metric, m.label, m.threshold): j for j, m in enumerate(estimates.measures)}
    judged = estimates.judged()
    frames: list[Rows] = []
    for (model, *rest), a in at.items():
        b = at.get((models[1], *rest))  # type: ignore[arg-type]
        low = estimates.measures[a].info.low
        if model != models[0] or b is None or low is None or low < 0:
            continue
        groups = np.flatnonzero(judged[:, a] & judged[:, b])
        if len(groups):
            frames += _rows_of_ratios(estimates, spec, groups, (a, b))
    table = table_of(frames).with_columns(model_a=pl.lit(models[0]), model_b=pl.lit(models[1]))
    return COMPARISONS.conform(table)


def _rows_of_ratios(
    estimates: Estimates, spec: Comparing, groups: IntArray, pair: tuple[int, int]
) -> list[Rows]:
    a, b = pair
    apart = paired_difference(estimates, groups, a, b)
    one, two = (estimates.ends(groups, j) for j in (b, a))
    along = apart.correlation(normal_quantile(spec.level))
    ends = log_ratio_interval(apart.a, one, apart.b, two, along)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(apart.b > 0, apart.a / apart.b - 1.0, np.nan)
    low, high = np.expm1(ends.low), np.expm1(ends.high)
    edge = (estimates.status[groups][:, [a, b]] == Status.BOUNDARY.value).any(axis=1)
    frames = []
    for attribute, k in by_attribute(estimates, groups):
        why = [_why(value[i], low[i]) for i in k]
        frames.append(
            rows_of(
                estimates,
                a,
                attribute,
                "relative_change",
                groups=(groups[k], groups[k]),
                value=value[k],
                low=low[k],
                high=high[k],
                method="paired, MOVER of logarithms",
                status=[
                    (
                        Status.UNDEFINED
                        if np.isnan(value[i])
                        else Status.BOUNDARY
                        if edge[i] or reason
                        else Status.OK
                    ).value
                    for i, reason in zip(k, why, strict=True)
                ],
                reason=why,
            )
        )
    return frames


def _why(value: float, low: float) -> str | None:
    if np.isnan(value):
        return _NO_RATIO
    return _NO_END if np.isnan(low) else None
