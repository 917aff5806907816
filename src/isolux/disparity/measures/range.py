"""The range: the largest value less the smallest, as most papers print it."""

from __future__ import annotations

import numpy.typing as npt

from isolux.disparity.formulas import value_range
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import MeasureInfo, Reference

INFO = MeasureInfo(
    title="range",
    summary="The largest group value less the smallest (max − min).",
    references=(
        Reference(
            key="fairface",
            citation="Kärkkäinen, K., & Joo, J. (2021). FairFace: Face attribute dataset for"
            " balanced race, gender, and age for bias measurement and mitigation. In Proceedings"
            " of the IEEE/CVF Winter Conference on Applications of Computer Vision (WACV)"
            " (pp. 1548–1558).",
            place="table 4",
        ),
    ),
    assumptions=(
        "chance alone moves it away from its value for alike groups: read it beside the test",
    ),
    direction="lower",
    alike=0.0,
    low=0.0,
    high=None,
    unit="metric",
    interval="largest difference",
)


def measure(values: npt.ArrayLike) -> FloatArray:
    """Take the largest difference between any two groups: max − min.

    Parameters
    ----------
    values : array_like [..., g]
        The groups' values; NaN: not judged.

    Returns
    -------
    ndarray [...]
        In the metric's unit, at least 0, lower is more alike. NaN with fewer than two groups.

    Examples
    --------
    >>> measure([0.5, float("nan"), 0.75]).item()
    0.25
    """
    return value_range(values)
