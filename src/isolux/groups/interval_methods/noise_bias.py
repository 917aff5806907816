"""Noise bias of values that cannot be negative (calibration error), and their skewness.

A mean of absolute gaps is biased upwards by sampling noise, most in small groups. The bias depends
on the unknown gaps: all of the value where they are 0, nothing where they are several standard
errors wide. So the value is not corrected, but a group's interval is extended downwards by an upper
estimate of the bias.

Two groups are compared by their values, and by the values expected with equal noise in both. The
first is biased if one group is smaller, the second if neither has a bias; an interval that covers
both does not report a difference of sizes as a finding.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.core.tables import Status
from isolux.groups.estimates import Measure
from isolux.stats.cluster_sums import ClusterSums
from isolux.stats.constants import MAX_SKEWNESS
from isolux.stats.intervals import Interval
from isolux.stats.statistic import FloatArray, IntArray, NoiseBias
from isolux.stats.survey_sums import SurveyClusterSums

NOISE_BIAS_REASON = (
    "chance makes the values larger, most in small groups, and how much cannot be told"
)


def has_noise_bias(measure: Measure) -> bool:
    """Check whether the values of a measure have a noise bias."""
    return measure.columns is not None and measure.columns.statistic.estimate_noise_bias is not None


def estimate_noise_bias(cluster_sums: ClusterSums, measure: Measure, rows: IntArray) -> NoiseBias:
    """Estimate the noise bias of groups' values ``[h]``."""
    assert measure.columns is not None  # noqa: S101 - callers check ``has_noise_bias``
    start, stop = measure.columns.start, measure.columns.stop
    estimate = measure.columns.statistic.estimate_noise_bias
    assert estimate is not None  # noqa: S101 - as above
    distinct_rows, inverse = np.unique(rows, return_inverse=True)  # groups are in many pairs
    squared_sums = np.stack(
        [
            _sum_squared_contributions(cluster_sums, distinct_rows, column)
            for column in range(start, stop)
        ],
        axis=1,
    )
    return estimate(cluster_sums.totals()[rows, start:stop], squared_sums[inverse])


def values_at_equal_noise_bias(
    bias_a: NoiseBias, bias_b: NoiseBias
) -> tuple[FloatArray, FloatArray]:
    """Return both values of each pair of groups as expected with equal noise: ``[h]`` each."""
    # Noise is added to the less noisy value, never removed from the other: no estimate of a mean of
    # absolute gaps is right on average (docs/methods/other_statistics.md).
    return (
        bias_a.expected_value(np.maximum(bias_b.noise_variance - bias_a.noise_variance, 0.0)),
        bias_b.expected_value(np.maximum(bias_a.noise_variance - bias_b.noise_variance, 0.0)),
    )


def extend_lower_bound_by_bias(interval: Interval, bias: FloatArray) -> Interval:
    """Extend intervals downwards by the noise bias, at most to 0.

    Examples
    --------
    >>> found = extend_lower_bound_by_bias(
    ...     Interval(np.array([0.05, 0.2]), np.array([0.1, 0.3])),
    ...     np.array([0.1, 0.1]),
    ... )
    >>> found.low.round(3).tolist(), found.high.tolist()
    ([0.0, 0.1], [0.1, 0.3])
    """
    return Interval(np.maximum(interval.low - bias, 0.0), interval.high)


def _sum_squared_contributions(
    cluster_sums: ClusterSums, rows: IntArray, column: int
) -> FloatArray:
    """Sum squared cluster contributions to a column: ``[h]``."""
    if isinstance(
        cluster_sums, SurveyClusterSums
    ):  # within strata, of a finite population, both ways
        # With two-way clustering, first + second - cells may be negative by chance.
        return np.maximum(cluster_sums.column_products(rows, column, column), 0.0)
    return np.asarray(
        cluster_sums.group_rows(rows, column).power(2)
        @ cluster_sums.multiplicity.astype(np.float64)
    )


_SKEWED_REASON = "too many of one value for its size: the interval may be too narrow"

CellTexts = npt.NDArray[np.object_]


def correct_noise_biased_se(
    cluster_sums: ClusterSums, measure: Measure, n_clusters: IntArray, se: FloatArray
) -> FloatArray:
    """Adjust standard errors of values with a noise bias.

    Sixty images of one value do not show that there is no other: a group with one value only gets
    the standard error of one more cluster with another value, 1 / 61.
    """
    noise_bias = estimate_noise_bias(cluster_sums, measure, np.arange(len(se)))
    # At least the variance of a calibrated model: with few errors the observed one is too small by
    # chance (stats/calibration.py).
    se = se * noise_bias.se_factor
    if noise_bias.unit_skewness is None:
        return se
    return np.where(
        np.isnan(noise_bias.unit_skewness), np.maximum(se, 1.0 / (n_clusters + 1.0)), se
    )


def flag_skewed_noise_biased(
    cluster_sums: ClusterSums,
    measures: tuple[Measure, ...],
    cells: tuple[CellTexts, CellTexts],
    n_clusters: IntArray,
) -> None:
    """Flag values with a noise bias whose skewness is too large for their number of clusters.

    Shapes: ``cells`` [g, m], ``n_clusters`` [g, m].
    """
    status, reason = cells
    rows = np.arange(len(status))
    for j, measure in enumerate(measures):
        skewness = (
            estimate_noise_bias(cluster_sums, measure, rows).unit_skewness
            if has_noise_bias(measure)
            else None
        )
        if skewness is None:
            continue
        # The mean of n clusters has the skewness of one over sqrt(n). NaN, where all are equal,
        # makes the comparison false, so it is flagged.
        is_skewed = ~(np.abs(skewness) <= MAX_SKEWNESS * np.sqrt(n_clusters[:, j]))
        for g in np.flatnonzero(is_skewed & (status[:, j] == Status.OK.value)):
            status[g, j], reason[g, j] = Status.SKEWED_VALUES.value, _SKEWED_REASON
