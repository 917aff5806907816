"""The groups' mean absolute distance from everyone, or from the reference group."""

from __future__ import annotations

import numpy.typing as npt

from isolux.disparity.formulas import mean_absolute_gap
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import MeasureInfo, Reference

INFO = MeasureInfo(
    title="mean absolute gap",
    summary="The mean of the groups' absolute distances from everyone's value, or from"
    " the reference group's.",
    references=(
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
    direction="lower",
    alike=0.0,
    low=0.0,
    high=None,
    unit="metric",
    interval="percentile",
)


def measure(values: npt.ArrayLike, *, overall: npt.ArrayLike) -> FloatArray:
    """Average the groups' absolute distances from one value.

    Parameters
    ----------
    values : array_like [..., g]
        The groups' values; NaN: not judged.
    overall : array_like [...]
        Everyone's value, or the reference group's.

    Returns
    -------
    ndarray [...]
        In the metric's unit, at least 0, lower is more alike. NaN where no group is judged.

    Examples
    --------
    >>> measure([0.5, 1.0, float("nan")], overall=0.75).item()
    0.25
    """
    return mean_absolute_gap(values, overall)
