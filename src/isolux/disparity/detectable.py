"""Minimum detectable difference of a comparison: the smallest that is significant with power 0.8.

A difference d is assumed between the pair's pooled value and that value minus d (plus d where lower
is better). It is significant where it exceeds the half-width of its interval at the family's
critical value. The minimum detectable d equals that half-width, at the assumed values, plus 0.84
(the normal quantile of the power) standard errors at those values (Bloom 1995). Near 0 and 1 this
differs from what a standard error at the observed values gives.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.constants import POWER
from isolux.stats.intervals import score_interval, t_from_z
from isolux.stats.power_analysis import minimum_detectable_difference
from isolux.stats.proportion_difference import ProportionDifferences
from isolux.stats.root_finding import find_roots
from isolux.stats.statistic import FloatArray
from isolux.stats.test_inversion import Difference


def find_detectable_difference(
    differences: Difference,
    critical: float,
    *,
    worse_is_lower: bool,
    power: float = POWER,
    max_difference: float = np.inf,
    paired: bool = False,
) -> FloatArray:
    """Find the minimum detectable difference of each pair, NaN where there is none: ``[h]``."""
    if not np.isfinite(critical):
        return np.full(len(differences.a), np.nan)
    if differences.group_means is None or not differences.group_means[0].is_proportion:
        dof = differences.dof
        detectable = minimum_detectable_difference(
            differences.standard_error, t_from_z(critical, dof), power
        )
        return np.where(detectable <= max_difference, detectable, np.nan)
    a, b = differences.group_means
    pooled = (a.value * a.n_units + b.value * b.n_units) / (a.n_units + b.n_units)
    if not worse_is_lower:  # the same problem for the proportion of the other outcome
        pooled = 1.0 - pooled
    # The precision of a variance is limited by the clusters in which the rarer outcome occurs.
    n_event_clusters = np.maximum(a.n_clusters_with_event + b.n_clusters_with_event, 2.0)
    required = (
        _required_difference_by_inversion(
            differences.proportion_differences, n_event_clusters, critical, power
        )
        if differences.proportion_differences
        else _required_difference_by_mover(differences, critical, power, paired=paired)
    )

    def excess(assumed_difference: FloatArray) -> FloatArray:
        return assumed_difference - required(pooled - assumed_difference, pooled)

    detectable = find_roots(excess, np.zeros_like(pooled), pooled)
    # Not significant even with a proportion of 0 in the lower group: nothing is detectable.
    is_undetectable = detectable >= pooled * (1.0 - 1e-6)
    return np.where(is_undetectable | np.isnan(pooled), np.nan, detectable)


_RequiredDifference = Callable[[FloatArray, FloatArray], FloatArray]
"""The difference that two proportions, the lower first, need to be significant with the power."""


def _required_difference_by_inversion(
    proportion_gaps: ProportionDifferences,
    n_event_clusters: FloatArray,
    critical: float,
    power: float,
) -> _RequiredDifference:
    """Use the pair's own variance, which its test and interval share."""
    from scipy.special import ndtri

    z, dof = float(ndtri(power)), proportion_gaps.dof

    def required_difference(lower: FloatArray, upper: FloatArray) -> FloatArray:
        assumed = proportion_gaps.with_proportions(lower, upper)
        variance, min_variance = assumed.variances(lower - upper)  # at the shares themselves
        half_width = assumed.half_width(critical)
        # A variance estimated from few clusters varies: its relative variance is 2 / dof, so the
        # half-width has variance half_width² / (2 dof) by the delta method.
        half_width_variance = np.where(
            np.isinf(dof), 0.0, half_width**2 / (2.0 * np.minimum(dof, n_event_clusters))
        )
        return np.asarray(
            half_width + z * np.sqrt(np.maximum(variance, min_variance) + half_width_variance)
        )

    return required_difference


def _required_difference_by_mover(
    differences: Difference, critical: float, power: float, *, paired: bool
) -> _RequiredDifference:
    """Use MOVER, for people who are in several groups or are scored by two models."""
    assert differences.group_means is not None  # noqa: S101 - shares are means
    a, b = differences.group_means
    from scipy.special import ndtri

    rho = differences.correlation(critical)
    effects = [g.design_effect(critical) for g in (a, b)]
    measured_effects = [
        g.estimated_design_effect(critical) / g.t_inflation(critical) for g in (a, b)
    ]
    correlation_error = _correlation_se(a, b, rho)
    joint_effect = np.sqrt(measured_effects[0] * measured_effects[1])
    z = float(ndtri(power))

    def required_difference(lower: FloatArray, upper: FloatArray) -> FloatArray:
        upper_half_width, lower_half_width = _score_half_widths(
            (a, b), (lower, upper), effects, critical
        )
        pair_rho = _cap_correlation(rho, lower, upper, joint_effect) if paired else rho
        half_width = _mover_half_width(upper_half_width, lower_half_width, pair_rho)
        standard_error = _difference_se((a, b), (lower, upper), measured_effects, pair_rho)
        return np.asarray(
            half_width
            + z
            * np.hypot(
                standard_error, correlation_error * upper_half_width * lower_half_width / half_width
            )
        )

    return required_difference


def _cap_correlation(
    rho: FloatArray, lower: FloatArray, upper: FloatArray, effect: FloatArray
) -> FloatArray:
    """Reduce the correlation of two models' proportions to that possible at the assumed values."""
    upper_variance, lower_variance = upper * (1.0 - upper), lower * (1.0 - lower)
    with np.errstate(divide="ignore", invalid="ignore"):
        cluster_factor = np.nan_to_num(upper_variance / lower_variance, nan=1.0, posinf=1.0) ** 0.25
        odds_ratio = lower * (1.0 - upper) / (upper * (1.0 - lower))
        # The largest correlation (phi) that two 0/1 variables with these proportions can have.
        row_factor = np.sqrt(np.clip(np.nan_to_num(odds_ratio, nan=1.0), 0.0, 1.0))
    # The larger the design effect, the less the correlation comes from single rows.
    row_weight = 1.0 / np.maximum(effect, 1.0)
    return np.asarray(
        rho * row_factor**row_weight * np.minimum(cluster_factor, 1.0) ** (1.0 - row_weight)
    )


def _correlation_se(a: ClusterMeans, b: ClusterMeans, rho: FloatArray) -> FloatArray:
    """Return the standard error (1 − ρ²) / √C of a correlation, 0 where no cluster is shared."""
    n_event_clusters = np.maximum((a.n_clusters_with_event + b.n_clusters_with_event) / 2.0, 1.0)
    return np.asarray(np.where(rho != 0.0, (1.0 - rho**2) / np.sqrt(n_event_clusters), 0.0))


def _score_half_widths(
    groups: tuple[ClusterMeans, ClusterMeans],
    values: tuple[FloatArray, FloatArray],
    effects: list[FloatArray],
    z: float,
) -> tuple[FloatArray, FloatArray]:
    """Return half-widths: of the lower group's interval upwards, of the upper one's downwards."""
    (group_a, group_b), (lower, upper) = groups, values
    upper_half_width = score_interval(lower, group_a.n_units / effects[0], z).high - lower
    lower_half_width = upper - score_interval(upper, group_b.n_units / effects[1], z).low
    return upper_half_width, lower_half_width


def _mover_half_width(
    upper_half_width: FloatArray, lower_half_width: FloatArray, rho: FloatArray
) -> FloatArray:
    """Return MOVER's half-width of (upper − lower), downwards."""
    return np.sqrt(
        np.maximum(
            upper_half_width * upper_half_width
            + lower_half_width * lower_half_width
            - 2.0 * rho * upper_half_width * lower_half_width,
            1e-300,
        )
    )


def _difference_se(
    groups: tuple[ClusterMeans, ClusterMeans],
    values: tuple[FloatArray, FloatArray],
    effects: list[FloatArray],
    rho: FloatArray,
) -> FloatArray:
    variance_a, variance_b = (
        v * (1 - v) * e / g.n_units for g, v, e in zip(groups, values, effects, strict=True)
    )
    return np.sqrt(
        np.maximum(variance_a + variance_b - 2.0 * rho * np.sqrt(variance_a * variance_b), 0.0)
    )
