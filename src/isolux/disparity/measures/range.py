"""The range: the largest value less the smallest, as most papers print it."""

from __future__ import annotations

import numpy.typing as npt

from isolux.core.info import MeasureInfo
from isolux.disparity.formulas import value_range
from isolux.disparity.measures._shared import FAIRFACE, NOISE_ASSUMPTION
from isolux.stats.statistic import FloatArray

INFO = MeasureInfo(
    title="range",
    summary="The largest group value minus the smallest (max − min).",
    references=(FAIRFACE,),
    assumptions=(NOISE_ASSUMPTION,),
    direction="lower",
    parity_value=0.0,
    low=0.0,
    high=None,
    unit="metric",
    # It contains 0 where no pair differs significantly; a percentile interval never does.
    interval="largest difference",
)


def measure(values: npt.ArrayLike) -> FloatArray:
    """Take the largest value less the smallest: ``formulas.value_range``.

    Examples
    --------
    >>> measure([0.5, float("nan"), 0.75]).item()
    0.25
    """
    return value_range(values)
