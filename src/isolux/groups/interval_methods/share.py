"""Intervals of shares by the formulas of Wilson and of Clopper and Pearson, for clusters."""

from __future__ import annotations

import numpy as np

from isolux.stats.intervals import Interval, no_spread
from isolux.stats.proportions import clopper_pearson, wilson
from isolux.stats.shares import ClusterMeans
from isolux.stats.statistic import FloatArray


def closed_form(name: str, mean: ClusterMeans, clusters: FloatArray, level: float) -> Interval:
    """Wilson or Clopper–Pearson with the design effect that the clusters show."""
    n, value = mean.units, mean.value
    with np.errstate(divide="ignore", invalid="ignore"):
        # Over n - 1, so that independent rows have a design effect of 1 to the last digit.
        effect = mean.variance * np.maximum(n - 1.0, 1.0) / (value * (1.0 - value))
        largest = n / clusters
    flat = no_spread(value, np.sqrt(mean.variance))
    effect = np.where(flat, largest, np.maximum(np.nan_to_num(effect, nan=1.0), 1.0))
    function = wilson if name == "wilson" else clopper_pearson
    good = n > 0
    ends = function(
        np.where(good, value * n, 0.0), np.where(good, n, 1.0), level,
        design_effect=np.where(good, effect, 1.0),
    )  # fmt: skip
    return Interval(ends.low, ends.high).show(good)
