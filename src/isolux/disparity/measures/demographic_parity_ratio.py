"""Demographic parity ratio: the smallest selection rate over the largest."""

from __future__ import annotations

import numpy.typing as npt

from isolux.disparity.formulas import ratio_min_max
from isolux.disparity.measures._shared import CALDERS, bounds, rate_ratio_info
from isolux.stats.statistic import FloatArray

__all__ = ["INFO", "bounds", "measure"]

INFO = rate_ratio_info("demographic parity", "selection rate", CALDERS)


def measure(values: npt.ArrayLike) -> FloatArray:
    """Divide the smallest selection rate by the largest: ``formulas.ratio_min_max``.

    Examples
    --------
    >>> measure([0.5, 0.25]).item()
    0.5
    """
    return ratio_min_max(values)
