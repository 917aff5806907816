"""Whether everyone's value, and everyone else's, is one that groups can be held to."""

from __future__ import annotations

import numpy as np

from isolux.groups.estimates import Estimates
from isolux.stats.design import IntArray

_ALIKE = 1e-9
"""Values that differ by less are the same."""


def is_among(estimates: Estimates, attribute: str, j: int) -> bool:
    """Tell whether everyone's value is a measure for groups: that it lies among theirs."""
    if estimates.measures[j].mean is not None or not estimates.measures[j].info.pooled:
        return estimates.measures[j].info.pooled
    value = estimates.value[estimates.members(attribute), j]
    above = value[np.isfinite(value)] - estimates.value[0, j]
    return bool((above <= _ALIKE).any() and (above >= -_ALIKE).any())


def others_of(estimates: Estimates, rows: IntArray, j: int) -> IntArray:
    """Count the units of everyone else for each group; 0 where a group is everyone."""
    return np.asarray(estimates.n_units[0, j] - estimates.n_units[rows, j])
