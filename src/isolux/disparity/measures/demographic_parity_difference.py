"""Demographic parity difference: the range of the selection rate."""

from __future__ import annotations

import numpy.typing as npt

from isolux.disparity.formulas import value_range
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import MeasureInfo, Reference

INFO = MeasureInfo(
    title="demographic parity difference",
    summary="The largest selection rate of a group less the smallest.",
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
    direction="lower",
    alike=0.0,
    low=0.0,
    high=1.0,
    unit="metric",
    interval="largest difference",
    metrics=("selection_rate",),
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
    >>> measure([0.5, 0.25]).item()
    0.25
    """
    return value_range(values)
