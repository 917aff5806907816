"""Demographic parity difference: the range of the selection rate."""

from __future__ import annotations

import numpy.typing as npt

from isolux.disparity.formulas import value_range
from isolux.disparity.measures._shared import BY_CHANCE, CALDERS, FAIRLEARN
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import MeasureInfo

__all__ = ["INFO", "measure"]

INFO = MeasureInfo(
    title="demographic parity difference",
    summary="The largest selection rate of a group less the smallest.",
    references=(CALDERS, FAIRLEARN),
    assumptions=(BY_CHANCE,),
    direction="lower", alike=0.0, low=0.0, high=1.0, unit="metric",
    interval="largest difference", metrics=("selection_rate",),
)  # fmt: skip


def measure(values: npt.ArrayLike) -> FloatArray:
    """Take the largest selection rate less the smallest: ``formulas.value_range``.

    Examples
    --------
    >>> measure([0.5, 0.25]).item()
    0.25
    """
    return value_range(values)
