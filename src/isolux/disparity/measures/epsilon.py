"""FairFace's ε: the logarithm of the extreme ratio."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy.typing as npt

from isolux.core.info import MeasureInfo
from isolux.disparity.formulas import epsilon
from isolux.disparity.measures._shared import FAIRFACE, NOISE_ASSUMPTION
from isolux.stats.statistic import FloatArray

INFO = MeasureInfo(
    title="ε",
    summary="The logarithm of the largest group value over the smallest, to the base that"
    " the audit names.",
    references=(replace(FAIRFACE, location="equation 3, table 4"),),
    assumptions=(NOISE_ASSUMPTION,),
    direction="lower",
    parity_value=0.0,
    low=0.0,
    high=None,
    unit="",
    interval="largest log ratio",
    nonnegative=True,
)


def measure(values: npt.ArrayLike, *, log_base: float = 10.0) -> FloatArray:
    """Take the largest log ratio over all ordered pairs: log(max / min).

    Parameters
    ----------
    values : array_like [..., g]
        The groups' values, above 0; NaN: not compared.
    log_base : float
        Base of the logarithm, above 1; equation 3 prints none, table 4 is base 10.

    Returns
    -------
    ndarray [...]
        At least 0, lower is more alike. NaN with fewer than two groups, and where one is at 0.

    Examples
    --------
    >>> measure([0.1, 0.5, 1.0]).round(12).item()
    1.0
    """
    return epsilon(values, log_base)


def bounds(low: float, high: float, *, log_base: float = 10.0) -> tuple[float, float]:
    """Turn the bounds of the largest natural log ratio into those of ε."""
    base = math.log(log_base)
    return low / base, high / base
