"""Largest difference and smallest ratio of one level's groups, and who has no part in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from isolux.api.metric_frame.measures import MetricByGroup
from isolux.stats.cluster_sums import IntArray
from isolux.stats.intervals import percentile_interval
from isolux.stats.statistic import FloatArray

Method = Literal["between_groups", "to_overall"]


def name_exclusions(
    metric: MetricByGroup, groups: IntArray, group_names: Sequence[str], min_groups: int
) -> str | None:
    """Name the groups that are left out of an extreme, with reasons, or return None."""
    names_by_reason: dict[str, list[str]] = {}
    for g in groups:
        if (exclusion := metric.exclusions[g]) is not None:
            names_by_reason.setdefault(exclusion, []).append(group_names[g])
    left_out = "; ".join(
        f"{', '.join(names)} left out ({reason})" for reason, names in names_by_reason.items()
    )
    n_left = int(metric.is_comparable[groups].sum())
    counts = "no group has" if min_groups == 1 else "fewer than two groups have"
    shortage = f"{counts} a value to compare" if n_left < min_groups else ""
    return ": ".join(filter(None, [shortage, left_out])) or None


def compute_extreme(
    metric: MetricByGroup, groups: IntArray, level: int, comparison: str, method: Method
) -> tuple[float, float, float]:
    """Compute the groups' largest difference or smallest ratio, with its interval."""
    group_values = metric.estimates[groups]
    low, high = metric.simultaneous_interval.low[groups], metric.simultaneous_interval.high[groups]
    if len(groups) < 2:
        return np.nan, np.nan, np.nan
    if method == "between_groups":
        if comparison == "difference":
            min_difference = (
                np.fmax(_nan_max(low) - _nan_min(high), 0.0) if np.isfinite(low).any() else np.nan
            )
            max_difference = _nan_max(high) - _nan_min(low)
            return (
                float(np.nanmax(group_values) - np.nanmin(group_values)),
                min_difference,
                max_difference,
            )
        max_value, min_value = np.nanmax(group_values), np.nanmin(group_values)
        return (
            _safe_ratio(min_value, max_value),
            _safe_ratio(_nan_min(low), _nan_max(high)),
            min(_safe_ratio(_nan_min(high), _nan_max(low)), 1.0),
        )
    overall_value = float(metric.overall[level])
    if comparison == "difference":
        gaps = np.abs(group_values - overall_value)
        to_overall = metric.to_overall
        a, b = to_overall.low[groups], to_overall.high[groups]
        nearer_bound = np.minimum(np.abs(a), np.abs(b))
        min_distances = np.where(a * b > 0, nearer_bound, np.where(np.isnan(a), np.nan, 0.0))
        outer_bound = np.maximum(np.abs(a), np.abs(b))
        return _nan_max(gaps), _nan_max(min_distances), _nan_max(outer_bound)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = group_values / overall_value
        folded_ratios = np.fmin(ratios, 1.0 / ratios)
    tails = percentile_interval(metric.ratio_replicates(groups, level), 1.0 - 2.0 * metric.tail)
    return _nan_min(folded_ratios), float(tails.low), float(tails.high)


def _nan_max(values: FloatArray) -> float:
    """Return the largest value, NaN left out; NaN if there is none."""
    return float(np.fmax.reduce(values))


def _nan_min(values: FloatArray) -> float:
    return float(np.fmin.reduce(values))


def _safe_ratio(a: float, b: float) -> float:
    return float(a / b) if b else float("nan")
