"""The groups' mean absolute distance from everyone, or from the reference group."""

from __future__ import annotations

import numpy.typing as npt

from isolux.core.info import MeasureInfo
from isolux.disparity.formulas import mean_absolute_gap
from isolux.disparity.measures._shared import FAIRLEARN, NOISE_ASSUMPTION
from isolux.stats.statistic import FloatArray

INFO = MeasureInfo(
    title="mean absolute gap",
    summary="The mean of the groups' absolute distances from everyone's value, or from"
    " the reference group's.",
    references=(FAIRLEARN,),
    assumptions=(NOISE_ASSUMPTION,),
    direction="lower",
    parity_value=0.0,
    low=0.0,
    high=None,
    unit="metric",
    # It never contains 0, because a mean of absolute distances is never negative.
    interval="percentile",
)


def measure(values: npt.ArrayLike, *, overall: npt.ArrayLike) -> FloatArray:
    """Average the groups' absolute distances from one value.

    Parameters
    ----------
    values : array_like [..., g]
        The groups' values; NaN: not compared.
    overall : array_like [...]
        Everyone's value, or the reference group's.

    Returns
    -------
    ndarray [...]
        In the metric's unit, at least 0, lower is more alike. NaN where no group is compared.

    Examples
    --------
    >>> measure([0.5, 1.0, float("nan")], overall=0.75).item()
    0.25
    """
    return mean_absolute_gap(values, overall)
