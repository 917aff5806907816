"""The extreme ratio: the smallest value over the largest, the four-fifths rule's number."""

from __future__ import annotations

import math

import numpy.typing as npt

from isolux.disparity.formulas import ratio_min_max
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import MeasureInfo, Reference

INFO = MeasureInfo(
    title="min / max",
    summary="The smallest group value divided by the largest.",
    references=(
        Reference(
            key="eeoc1978",
            citation="Equal Employment Opportunity Commission. (1978). Uniform guidelines on"
            " employee selection procedures. 29 CFR 1607.",
            place="section 4D",
        ),
    ),
    assumptions=(
        "chance alone moves it away from its value for alike groups: read it beside the test",
    ),
    direction="higher",
    alike=1.0,
    low=0.0,
    high=1.0,
    unit="",
    interval="largest log ratio",
    nonnegative=True,
)


def measure(values: npt.ArrayLike) -> FloatArray:
    """Divide the smallest value by the largest.

    Parameters
    ----------
    values : array_like [..., g]
        The groups' values, at least 0; NaN: not judged.

    Returns
    -------
    ndarray [...]
        0 to 1, no unit, higher is more alike. NaN with fewer than two groups or where all are 0.

    Examples
    --------
    >>> measure([0.5, 0.75, 1.0]).item()
    0.5
    """
    return ratio_min_max(values)


def ends(low: float, high: float) -> tuple[float, float]:
    """Turn the bounds of the largest log ratio into those of the smallest ratio.

    Examples
    --------
    >>> ends(0.0, math.inf)
    (0.0, 1.0)
    """
    return math.exp(-high), math.exp(-low)
