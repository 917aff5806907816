"""Equal opportunity difference: the range of the true positive rate."""

from __future__ import annotations

import numpy.typing as npt

from isolux.disparity.formulas import value_range
from isolux.disparity.measures._shared import BY_CHANCE, FAIRLEARN, HARDT
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import MeasureInfo

__all__ = ["INFO", "measure"]

INFO = MeasureInfo(
    title="equal opportunity difference",
    summary="The largest true positive rate of a group less the smallest.",
    references=(HARDT, FAIRLEARN),
    assumptions=(BY_CHANCE,),
    direction="lower", alike=0.0, low=0.0, high=1.0, unit="metric",
    interval="largest difference", metrics=("true_positive_rate",),
)  # fmt: skip


def measure(values: npt.ArrayLike) -> FloatArray:
    """Take the largest true positive rate less the smallest: ``formulas.value_range``.

    Examples
    --------
    >>> measure([0.5, 0.25]).item()
    0.25
    """
    return value_range(values)
