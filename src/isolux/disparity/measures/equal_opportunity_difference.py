"""Equal opportunity difference: the range of the true positive rate."""

from __future__ import annotations

import numpy.typing as npt

from isolux.disparity.formulas import value_range
from isolux.disparity.measures._shared import HARDT, rate_difference_info
from isolux.stats.statistic import FloatArray

INFO = rate_difference_info("equal opportunity", "true positive rate", HARDT)


def measure(values: npt.ArrayLike) -> FloatArray:
    """Take the largest true positive rate less the smallest: ``formulas.value_range``.

    Examples
    --------
    >>> measure([0.5, 0.25]).item()
    0.25
    """
    return value_range(values)
