"""Demographic parity ratio: the smallest selection rate over the largest."""

from __future__ import annotations

import math

import numpy.typing as npt

from isolux.disparity.formulas import ratio_min_max
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import MeasureInfo, Reference

INFO = MeasureInfo(
    title="demographic parity ratio",
    summary="The smallest selection rate of a group divided by the largest.",
    references=(
        Reference(
            key="calders2009",
            citation="Calders, T., Kamiran, F., & Pechenizkiy, M. (2009). Building classifiers with"
            " independency constraints. In IEEE International Conference on Data Mining Workshops"
            " (pp. 13–18).",
        ),
        Reference(
            key="weerts2023",
            citation="Weerts, H., Dudík, M., Edgar, R., Jalali, A., Lutz, R., & Madaio, M. (2023)."
            " Fairlearn: Assessing and improving fairness of AI systems. Journal of Machine"
            " Learning Research, 24(257), 1–8.",
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
    metrics=("selection_rate",),
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
    >>> measure([0.5, 0.25]).item()
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
