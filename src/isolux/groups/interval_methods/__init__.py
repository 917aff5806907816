"""Intervals of groups' estimates: the choice of a method for a measure, and all methods.

Five types of measures have intervals of their own: proportions, other means (``number``), root mean
squares (``root``), macro-averages of proportions (``class_mean``), and values with a noise bias
(``noisy``, whose interval is extended downwards). All others have replicate intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.core.spec import Statistics
from isolux.groups.estimates import Estimates, Group, Measure
from isolux.groups.interval_methods.macro_average import estimate_macro_averages, is_macro_average
from isolux.groups.interval_methods.noise_bias import (
    estimate_noise_bias,
    extend_lower_bound_by_bias,
    has_noise_bias,
)
from isolux.groups.interval_methods.root_mean_square import estimate_rms, is_root_mean_square
from isolux.groups.interval_methods.skewness_adjusted import (
    build_interval_function,
    clip_to_metric_range,
)
from isolux.groups.means import Means, estimate_all_means
from isolux.io.threads import ignore_runtime_warnings
from isolux.stats.cluster_sums import ClusterSums
from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.constants import MIN_CLUSTERS_FOR_INTERVAL
from isolux.stats.intervals import (
    Interval,
    bca_interval,
    fisher_z_t_interval,
    is_fraction_without_variation,
    logit_or_wilson_interval_at_level,
    percentile_interval,
    t_interval_at_level,
    two_sided_normal_quantile,
)
from isolux.stats.proportions import clopper_pearson_interval, wilson_interval
from isolux.stats.resampling.sums import bca_acceleration_by_jackknife
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.survey_sums import SurveyClusterSums


def wilson_or_clopper_pearson_interval(
    name: str, mean: ClusterMeans, n_clusters: FloatArray, level: float
) -> Interval:
    """Wilson or Clopper–Pearson interval with the estimated design effect."""
    n_units, proportion = mean.n_units, mean.value
    with np.errstate(divide="ignore", invalid="ignore"):
        # n - 1: for independent rows CR2 is p (1 - p) / (n - 1), and the effect exactly 1.
        design_effects = (
            mean.variance * np.maximum(n_units - 1.0, 1.0) / (proportion * (1.0 - proportion))
        )
        largest_effect = n_units / n_clusters
    # Without variation the correlation is unknown: each cluster counts as one observation.
    is_degenerate = is_fraction_without_variation(proportion, np.sqrt(mean.variance))
    design_effects = np.where(
        is_degenerate, largest_effect, np.maximum(np.nan_to_num(design_effects, nan=1.0), 1.0)
    )
    build_interval = wilson_interval if name == "wilson" else clopper_pearson_interval
    has_units = n_units > 0
    bounds = build_interval(
        np.where(has_units, proportion * n_units, 0.0),
        np.where(has_units, n_units, 1.0),
        level,
        design_effect=np.where(has_units, design_effects, 1.0),
    )
    return Interval(bounds.low, bounds.high).set_nan_where_false(has_units)


SKEWNESS_ADJUSTED = "skewness-adjusted t"
"""Name of the skewness-adjusted t interval."""

ROOT_MEAN_SQUARE = "square root of the mean-square interval"
"""Name of the root of the interval of a mean square."""
FISHER_Z = "Fisher's z, t"
"""Name of the t interval of a correlation on Fisher's scale."""
MACRO_AVERAGE = "macro-average of Wilson intervals"
"""Name of the interval of a macro-average from its classes' Wilson intervals."""


def standard_error(
    replicates: FloatArray, n_clusters: IntArray, cluster_sums: ClusterSums | None = None
) -> FloatArray:
    """Estimate standard errors from replicates, with the factor sqrt(C / (C − 1)).

    Resampling C clusters has the variance of the sample with denominator C, not C − 1.
    """
    with ignore_runtime_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        # Without a finite replicate the result is NaN.
        deviation = np.nanstd(replicates, axis=-1, ddof=1)
        # Rao and Wu's weights have the factor C / (C - 1) already (stats/sampling.py).
        if isinstance(cluster_sums, SurveyClusterSums):
            return np.asarray(deviation)
        return np.asarray(
            deviation * np.sqrt(n_clusters / np.where(n_clusters > 1, n_clusters - 1.0, np.nan))
        )


@dataclass(frozen=True, slots=True)
class _MeasureColumn:
    """Estimates of one measure in all groups ``[g]``: the input of an interval method."""

    cluster_sums: ClusterSums
    measure: Measure
    mean: ClusterMeans | None
    value: FloatArray
    replicates: FloatArray
    se: FloatArray
    n_clusters: IntArray
    attribute_numbers: IntArray
    spec: Statistics

    @property
    def z(self) -> float:
        return two_sided_normal_quantile(self.spec.level)

    @property
    def rows(self) -> IntArray:
        return np.arange(len(self.value))

    @property
    def cluster_mean(self) -> ClusterMeans:
        assert self.mean is not None  # noqa: S101 - choose_interval_method gives these to means only
        return self.mean

    @property
    def n_effective_clusters(self) -> FloatArray:
        """Effective number of clusters: degrees of freedom + 1 of a mean, else their number."""
        # The methods take a number of clusters and subtract 1 for the degrees of freedom.
        return self.n_clusters.astype(float) if self.mean is None else self.mean.dof + 1.0


def _macro_average_interval(column: _MeasureColumn) -> Interval:
    macro_averages = estimate_macro_averages(
        column.cluster_sums, column.measure, column.rows, column.value
    )
    error = standard_error(column.replicates, column.n_clusters, column.cluster_sums)
    return macro_averages.interval(column.z, macro_averages.covariance_ratio(error))


def _bca_interval(column: _MeasureColumn) -> Interval:
    assert column.measure.columns is not None  # noqa: S101 - choose_interval_method gives bca to sums only
    acceleration = bca_acceleration_by_jackknife(
        column.cluster_sums, column.measure.columns, column.rows
    )
    return bca_interval(column.value, column.replicates, acceleration, column.spec.level)


def _closed_form_interval(column: _MeasureColumn) -> Interval:
    name = column.spec.interval
    return wilson_or_clopper_pearson_interval(
        name, column.cluster_mean, column.n_clusters.astype(float), column.spec.level
    )


def _t_interval(column: _MeasureColumn) -> Interval:
    # Student's t knows no range: a correlation above 1 must not be printed.
    return clip_to_metric_range(
        t_interval_at_level(
            column.value, column.se, column.n_effective_clusters, column.spec.level
        ),
        column.measure,
    )


def _skewness_adjusted_interval(column: _MeasureColumn) -> Interval:
    build_interval = build_interval_function(
        column.cluster_mean, column.attribute_numbers, column.measure
    )
    return build_interval(column.z)


def _rms_interval(column: _MeasureColumn) -> Interval:
    return estimate_rms(column.cluster_sums, column.measure, column.attribute_numbers).interval(
        column.z
    )


_METHODS: dict[str, Callable[[_MeasureColumn], Interval]] = {
    "score": lambda column: column.cluster_mean.score_interval(column.z),
    SKEWNESS_ADJUSTED: _skewness_adjusted_interval,
    ROOT_MEAN_SQUARE: _rms_interval,
    MACRO_AVERAGE: _macro_average_interval,
    "logit-t": lambda column: logit_or_wilson_interval_at_level(
        column.value, column.se, column.n_effective_clusters, column.spec.level
    ),
    "t": _t_interval,
    FISHER_Z: lambda column: fisher_z_t_interval(
        column.value, column.se, column.n_effective_clusters - 1.0, column.z
    ),
    "bca": _bca_interval,
    "percentile": lambda column: percentile_interval(column.replicates, column.spec.level),
    "wilson": _closed_form_interval,
    "clopper-pearson": _closed_form_interval,
}


def recompute_intervals(estimates: Estimates, spec: Statistics) -> Interval:
    """Recompute the intervals of estimates at another level or by another method."""
    interval, _ = compute_intervals_and_methods(
        estimates.cluster_sums,
        estimates.measures,
        estimates.value,
        estimates.replicates,
        estimates.standard_error,
        estimates.n_clusters,
        spec,
        attribute_of_group=index_group_attributes(estimates.groups),
    )
    return interval


def compute_intervals_and_methods(
    cluster_sums: ClusterSums,
    measures: tuple[Measure, ...],
    estimates: FloatArray,
    replicates: FloatArray,
    se: FloatArray,
    n_clusters: IntArray,
    spec: Statistics,
    means: Means | None = None,
    attribute_of_group: IntArray | None = None,
) -> tuple[Interval, npt.NDArray[np.str_]]:
    """Compute each cell's interval ``[g, m]``, and the name of its method."""
    means = estimate_all_means(cluster_sums, measures, len(estimates)) if means is None else means
    attribute_numbers = (
        # Without attributes each group is its own family: no slope and no tail is pooled.
        np.arange(len(estimates)) if attribute_of_group is None else attribute_of_group
    )
    low, high = np.full(estimates.shape, np.nan), np.full(estimates.shape, np.nan)
    method = np.full(estimates.shape, "", dtype="<U40")
    for j, measure in enumerate(measures):
        column_values = (
            estimates[:, j],
            replicates[:, j],
            se[:, j],
            n_clusters[:, j],
            attribute_numbers,
            spec,
        )
        name = choose_interval_method(measure, means[j], spec)
        interval = _METHODS[name](_MeasureColumn(cluster_sums, measure, means[j], *column_values))
        # Extended, not moved: how much of the value is bias is not known.
        if has_noise_bias(measure):
            interval = extend_lower_bound_by_bias(
                interval, estimate_noise_bias(cluster_sums, measure, np.arange(len(estimates))).bias
            )
        # Decision 8: below 10 clusters no method had nominal coverage, whatever the setting.
        is_shown = (n_clusters[:, j] >= MIN_CLUSTERS_FOR_INTERVAL) & np.isfinite(estimates[:, j])
        low[:, j], high[:, j] = np.where(is_shown, (interval.low, interval.high), np.nan)
        has_edge = name == "logit-t" or (name == SKEWNESS_ADJUSTED and measure.is_fraction)
        # In these cells the logit interval is Wilson's (stats/intervals.py), so its name is, too.
        is_at_edge = has_edge & is_fraction_without_variation(estimates[:, j], se[:, j])
        method[:, j] = np.where(is_at_edge, "wilson, one per cluster", name)
    return Interval(low, high), method


def index_group_attributes(groups: Sequence[Group]) -> IntArray:
    """Return the number of each group's attribute, 0 for overall: ``[g]``."""
    number_by_attribute = {
        name: k for k, name in enumerate(dict.fromkeys(group.attribute for group in groups))
    }
    return np.array([number_by_attribute[group.attribute] for group in groups], dtype=np.int64)


def choose_interval_method(measure: Measure, mean: ClusterMeans | None, spec: Statistics) -> str:
    """Choose the interval method of a measure under the settings."""
    if spec.interval == "score":
        if mean is not None:
            return "score" if mean.is_proportion else SKEWNESS_ADJUSTED
        if is_macro_average(measure) or is_root_mean_square(measure):
            return MACRO_AVERAGE if is_macro_average(measure) else ROOT_MEAN_SQUARE
    if spec.interval == "bca":
        # The acceleration needs the jackknife over clusters, which exists for sums only.
        return "bca" if measure.columns is not None else "percentile"
    if spec.interval == "percentile":
        return "percentile"
    # A logit needs values between 0 and 1.
    if not measure.is_fraction:
        return FISHER_Z if measure.is_correlation else "t"
    is_closed = spec.interval in ("wilson", "clopper-pearson") and measure.mean is not None
    return spec.interval if is_closed else "logit-t"
