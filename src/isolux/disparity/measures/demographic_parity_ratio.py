"""Demographic parity ratio: the smallest selection rate over the largest."""

from __future__ import annotations

import numpy.typing as npt

from isolux.disparity.formulas import ratio_min_max
from isolux.disparity.measures._shared import BY_CHANCE, CALDERS, FAIRLEARN, ends
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import MeasureInfo

__all__ = ["INFO", "ends", "measure"]

INFO = MeasureInfo(
    title="demographic parity ratio",
    summary="The smallest selection rate of a group divided by the largest.",
    references=(CALDERS, FAIRLEARN),
    assumptions=(BY_CHANCE,),
    direction="higher", alike=1.0, low=0.0, high=1.0, unit="",
    interval="largest log ratio", nonnegative=True, metrics=("selection_rate",),
)  # fmt: skip


def measure(values: npt.ArrayLike) -> FloatArray:
    """Divide the smallest selection rate by the largest: ``formulas.ratio_min_max``.

    Examples
    --------
    >>> measure([0.5, 0.25]).item()
    0.5
    """
    return ratio_min_max(values)
