"""Equal opportunity ratio: the smallest true positive rate over the largest."""

from __future__ import annotations

import numpy.typing as npt

from isolux.disparity.formulas import ratio_min_max
from isolux.disparity.measures._shared import BY_CHANCE, FAIRLEARN, HARDT, ends
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import MeasureInfo

__all__ = ["INFO", "ends", "measure"]

INFO = MeasureInfo(
    title="equal opportunity ratio",
    summary="The smallest true positive rate of a group divided by the largest.",
    references=(HARDT, FAIRLEARN),
    assumptions=(BY_CHANCE,),
    direction="higher", alike=1.0, low=0.0, high=1.0, unit="",
    interval="largest log ratio", nonnegative=True, metrics=("true_positive_rate",),
)  # fmt: skip


def measure(values: npt.ArrayLike) -> FloatArray:
    """Divide the smallest true positive rate by the largest: ``formulas.ratio_min_max``.

    Examples
    --------
    >>> measure([0.5, 0.25]).item()
    0.5
    """
    return ratio_min_max(values)
