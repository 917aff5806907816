"""The extreme ratio: the smallest value over the largest, the four-fifths rule's number."""

from __future__ import annotations

import numpy.typing as npt

from isolux.core.info import MeasureInfo, Reference
from isolux.disparity.formulas import ratio_min_max
from isolux.disparity.measures._shared import NOISE_ASSUMPTION, bounds
from isolux.stats.statistic import FloatArray

__all__ = ["INFO", "bounds", "measure"]

INFO = MeasureInfo(
    title="min / max",
    summary="The smallest group value divided by the largest.",
    references=(
        Reference(
            key="eeoc1978",
            citation="Equal Employment Opportunity Commission. (1978). Uniform guidelines on"
            " employee selection procedures. 29 CFR 1607.",
            location="section 4D",
        ),
    ),
    assumptions=(NOISE_ASSUMPTION,),
    direction="higher",
    parity_value=1.0,
    low=0.0,
    high=1.0,
    unit="",
    # On a log scale, a ratio and its inverse are equally far from equality.
    interval="largest log ratio",
    nonnegative=True,
)


def measure(values: npt.ArrayLike) -> FloatArray:
    """Divide the smallest value by the largest: ``formulas.ratio_min_max``.

    Examples
    --------
    >>> measure([0.5, 0.75, 1.0]).item()
    0.5
    """
    return ratio_min_max(values)
