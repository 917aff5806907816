"""Equal opportunity difference: the range of the true positive rate."""

from __future__ import annotations

import numpy.typing as npt

from isolux.disparity.formulas import value_range
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.info import MeasureInfo, Reference

INFO = MeasureInfo(
    title="equal opportunity difference",
    summary="The largest true positive rate of a group less the smallest.",
    references=(
        Reference(
            key="hardt2016",
            citation="Hardt, M., Price, E., & Srebro, N. (2016). Equality of opportunity in"
            " supervised learning. In Advances in Neural Information Processing Systems, 29.",
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
    metrics=("true_positive_rate",),
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
