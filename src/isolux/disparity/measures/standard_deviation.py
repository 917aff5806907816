"""The standard deviation over groups, each group counting once."""

from __future__ import annotations

import numpy.typing as npt

from isolux.core.info import MeasureInfo
from isolux.disparity.formulas import standard_deviation
from isolux.disparity.measures._shared import FAIRFACE, NOISE_ASSUMPTION
from isolux.stats.statistic import FloatArray

INFO = MeasureInfo(
    title="SD",
    summary="The standard deviation of the groups' values, noise included.",
    references=(FAIRFACE,),
    assumptions=(NOISE_ASSUMPTION,),
    direction="lower",
    parity_value=0.0,
    low=0.0,
    high=None,
    unit="metric",
    # It never contains 0, so the noise-corrected SD comes first in every report.
    interval="percentile",
)


def measure(values: npt.ArrayLike, *, ddof: int = 1) -> FloatArray:
    """Take the standard deviation of the groups' values: ``formulas.standard_deviation``.

    Parameters
    ----------
    values : array-like, [groups, ...]
        The groups' values.
    ddof : int
        What is taken off the number of groups in the divisor: 1, or 0.

    Examples
    --------
    >>> measure([0.25, 0.5, 0.75]).item()
    0.25
    """
    return standard_deviation(values, ddof)
