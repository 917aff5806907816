"""The standard deviation over groups, each group counting once."""

from __future__ import annotations

import numpy.typing as npt

from isolux.disparity.formulas import standard_deviation
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import MeasureInfo, Reference

INFO = MeasureInfo(
    title="SD",
    summary="The standard deviation of the groups' values, noise included.",
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
    interval="percentile",
)


def measure(values: npt.ArrayLike, *, ddof: int = 1) -> FloatArray:
    """Take the standard deviation of the groups' values.

    Parameters
    ----------
    values : array_like [..., g]
        The groups' values; NaN: not judged.
    ddof : {0, 1}
        1 (g − 1 in the denominator) is what FairFace's and ICON2's tables obey.

    Returns
    -------
    ndarray [...]
        In the metric's unit, at least 0, lower is more alike. NaN with fewer than two groups.

    Examples
    --------
    >>> measure([0.25, 0.5, 0.75]).item()
    0.25
    """
    return standard_deviation(values, ddof)
