"""Macro-averages of proportions (balanced accuracy), from the classes' Wilson intervals.

Replicates of a class without an error do not vary, as if its recall were known to be 1. The centre
of a Wilson interval has a positive variance. So the interval of the macro-average is that of a
proportion with the effective number of units implied by the classes' variances at their Wilson
centres; replicates give the ratio by which classes with common clusters change that variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isolux.groups.estimates import Measure
from isolux.groups.means import estimate_complement_means, estimate_group_means
from isolux.stats.cluster_sums import ClusterSums
from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.constants import MACRO_SE_RATIO_LIMITS
from isolux.stats.intervals import Z_95, Interval, score_interval
from isolux.stats.statistic import FloatArray, IntArray

_ZERO_VARIANCE = 1e-14
"""A variance below this is rounding: nothing varies."""


@dataclass(frozen=True, slots=True)
class MacroAverages:
    """Class proportions and macro-averages of g groups.

    Parameters
    ----------
    class_means : list of ClusterMeans
        One for each class, each with g groups.
    value : [g] float
        The macro-average over the classes that occur.
    """

    class_means: list[ClusterMeans]
    value: FloatArray

    def interval(
        self, z: float | FloatArray, covariance_ratio: FloatArray | float = 1.0
    ) -> Interval:
        """Return each macro-average's interval at z: ``[g]`` or ``[k, g]``."""
        variance, centre_mean, unit_share = self._evaluate_at_wilson_centres(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            # unit_share removes the pseudo-units of the centres, so that one class alone has
            # exactly its own interval.
            n = (
                unit_share
                * centre_mean
                * (1.0 - centre_mean)
                / (variance * np.square(covariance_ratio))
            )
        is_known = np.isfinite(n)
        return score_interval(self.value, n, z).set_nan_where_false(is_known)

    def mean(self) -> FloatArray:
        """Return the mean of the proportions of the classes that occur: ``[g]``."""
        values = np.stack([class_mean.value for class_mean in self.class_means])
        occurs = np.isfinite(values)
        total = np.where(occurs, values, 0.0).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(total / occurs.sum(axis=0))

    def standard_error(self) -> FloatArray:
        """Return the standard error with each class at the centre of its 95 % interval: ``[g]``."""
        return np.asarray(np.sqrt(self._evaluate_at_wilson_centres(Z_95)[0]))

    def _evaluate_at_wilson_centres(
        self, z: float | FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return variance, value with classes at their Wilson centres, and the unit share."""
        variance = centre_sum = unit_sum = added_units = n_classes = np.zeros(len(self.value))
        z_squared = np.square(z)
        for class_mean in self.class_means:
            # The value leaves out classes without units in the group, and so does its variance.
            occurs = np.isfinite(class_mean.value)
            with np.errstate(divide="ignore", invalid="ignore"):
                n = class_mean.n_units / class_mean.design_effect(z)
                centre = (class_mean.value * n + z_squared / 2.0) / (n + z_squared)
                # Wilson's centre is the estimate with z² pseudo-units, half of them events.
                class_variance = centre * (1.0 - centre) / (n + z_squared)
            variance = variance + np.where(occurs, class_variance, 0.0)
            centre_sum = centre_sum + np.where(occurs, centre, 0.0)
            unit_sum, added_units = (
                unit_sum + np.where(occurs, n, 0.0),
                added_units + np.where(occurs, z_squared, 0.0),
            )
            n_classes = n_classes + occurs
        with np.errstate(divide="ignore", invalid="ignore"):
            return (
                # The variance of the mean of independent classes: covariance_ratio corrects it for
                # classes with common clusters.
                variance / n_classes**2,
                centre_sum / n_classes,
                unit_sum / (unit_sum + added_units),
            )

    def covariance_ratio(self, standard_error: FloatArray) -> FloatArray:
        """Return the ratio of replicates' to independent classes' standard error: ``[g]``.

        Shapes: ``standard_error`` [g].
        """
        variance, n_classes = np.zeros((2, len(self.value)))
        for class_mean in self.class_means:
            occurs = np.isfinite(class_mean.value)
            variance += np.where(occurs, class_mean.variance, 0.0)
            n_classes += occurs
        with np.errstate(divide="ignore", invalid="ignore"):
            # Classes are independent in the denominator; clusters are shared in the numerator.
            ratio = standard_error / (np.sqrt(variance) / n_classes)
        # Where no class varies the ratio is 0 / 0, and classes count as independent.
        return np.where(
            variance > _ZERO_VARIANCE,
            np.clip(np.nan_to_num(ratio, nan=1.0), *MACRO_SE_RATIO_LIMITS),
            1.0,
        )


def is_macro_average(measure: Measure) -> bool:
    """Check whether a measure is a macro-average of proportions."""
    return measure.columns is not None and measure.columns.statistic.is_macro_average


def estimate_macro_averages(
    cluster_sums: ClusterSums,
    measure: Measure,
    rows: IntArray,
    mean_values: FloatArray,
    *,
    of_complement: bool = False,
) -> MacroAverages:
    """Estimate each class's proportion, for rows of the cluster sums and their values."""
    columns = measure.columns
    assert columns is not None  # noqa: S101 - callers ask of means of classes only
    n_classes = (columns.stop - columns.start) // 2
    hits = range(columns.start, columns.start + n_classes)
    reduce_clusters = estimate_complement_means if of_complement else estimate_group_means
    class_means = [
        reduce_clusters(cluster_sums, replace(measure, mean=(k, k + n_classes)), rows) for k in hits
    ]
    return MacroAverages(class_means, mean_values)


def floor_macro_standard_errors(
    cluster_sums: ClusterSums,
    measures: Sequence[Measure],
    mean_values: FloatArray,
    standard_error: FloatArray,
) -> FloatArray:
    """Raise replicates' standard errors ``[g, m]`` to those from the classes' intervals."""
    raised = standard_error.copy()
    rows = np.arange(len(raised))
    for j, measure in enumerate(measures):
        if is_macro_average(measure):
            # A class without an error has identical replicates, as if its recall were known:
            # intervals then covered 74 % (docs/methods/other_statistics.md).
            macro_averages = estimate_macro_averages(cluster_sums, measure, rows, mean_values[:, j])
            min_error = macro_averages.standard_error() * macro_averages.covariance_ratio(
                standard_error[:, j]
            )
            raised[:, j] = np.fmax(raised[:, j], min_error)
    return raised
