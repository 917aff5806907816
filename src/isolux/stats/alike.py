"""The least variance of a group's mean of numbers, in a difference to another group's.

Scores that are seldom far off (an overlap of 0 among many near 1) leave a small group without one
of them by chance, and its own variance then says that nothing can happen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from isolux.stats.shares import ClusterMeans

_KNOWN = 15.0
"""Squares of a normal law at which a group's own variance counts as much as both groups'."""


def at_least_alike(
    own: ClusterMeans, other: ClusterMeans, flat: npt.NDArray[np.bool_]
) -> ClusterMeans:
    """Widen the variance of a group whose numbers vary less than both groups' do together.

    Shapes: ``flat`` [h].

    Examples
    --------
    Seventy people without a miss beside five hundred of whom some were missed:

    >>> one = np.ones(1)
    >>> small = ClusterMeans(0.94 * one, 70 * one, 2e-5 * one, 69 * one, one, one, 0.0,
    ...     shares=False, peaked=3 * one)
    >>> large = ClusterMeans(0.9 * one, 500 * one, 7e-5 * one, 499 * one, one, one, 0.0,
    ...     shares=False, peaked=25 * one)
    >>> wide = at_least_alike(small, large, np.array([False]))
    >>> wide.variance.round(6).item()
    0.000387
    """
    weighted = own.row_effect is not None or other.row_effect is not None
    if weighted or own.peaked is None or other.peaked is None:
        return own
    counted = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for n, m in ((own.units, other.units), (own.freedom + 1.0, other.freedom + 1.0)):
            counted.append((own.variance * n * n + other.variance * m * m) / (n + m) / n)
        squares = 2.0 * own.freedom / (np.fmax(own.peaked, other.peaked) - 1.0)
        known = squares**2 / (squares**2 + _KNOWN**2)
        mixed = known * own.variance + (1.0 - known) * np.minimum(*counted)
    wide = np.where(flat | ~np.isfinite(mixed), own.variance, np.maximum(own.variance, mixed))
    return replace(own, variance=wide)
