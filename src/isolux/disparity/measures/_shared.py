"""What several measures share: references, an assumption, and the bounds of a smallest ratio."""

from __future__ import annotations

import math

from isolux.core import citations
from isolux.core.info import MeasureInfo, Reference

NOISE_ASSUMPTION = (
    "chance alone moves it away from its value for alike groups: read it beside the test"
)

CALDERS = Reference(
    key="calders2009",
    citation="Calders, T., Kamiran, F., & Pechenizkiy, M. (2009). Building classifiers with"
    " independency constraints. In IEEE International Conference on Data Mining Workshops"
    " (pp. 13–18).",
)
FAIRFACE = citations.FAIRFACE.with_location("table 4")
FAIRLEARN = Reference(
    key="weerts2023",
    citation="Weerts, H., Dudík, M., Edgar, R., Jalali, A., Lutz, R., & Madaio, M. (2023)."
    " Fairlearn: Assessing and improving fairness of AI systems. Journal of Machine"
    " Learning Research, 24(257), 1–8.",
)
HARDT = Reference(
    key="hardt2016",
    citation="Hardt, M., Price, E., & Srebro, N. (2016). Equality of opportunity in"
    " supervised learning. In Advances in Neural Information Processing Systems, 29.",
)


def rate_difference_info(notion: str, rate: str, source: Reference) -> MeasureInfo:
    """Build the info of the range of one rate over groups, named after a notion of fairness."""
    return MeasureInfo(
        title=f"{notion} difference",
        summary=f"The largest {rate} of a group minus the smallest.",
        references=(source, FAIRLEARN),
        assumptions=(NOISE_ASSUMPTION,),
        direction="lower",
        parity_value=0.0,
        low=0.0,
        high=1.0,
        unit="metric",
        interval="largest difference",
        metrics=(rate.replace(" ", "_"),),
    )


def rate_ratio_info(notion: str, rate: str, source: Reference) -> MeasureInfo:
    """Build the info of the smallest ratio of one rate between groups, named likewise."""
    return MeasureInfo(
        title=f"{notion} ratio",
        summary=f"The smallest {rate} of a group divided by the largest.",
        references=(source, FAIRLEARN),
        assumptions=(NOISE_ASSUMPTION,),
        direction="higher",
        parity_value=1.0,
        low=0.0,
        high=1.0,
        unit="",
        interval="largest log ratio",
        nonnegative=True,
        metrics=(rate.replace(" ", "_"),),
    )


def bounds(low: float, high: float) -> tuple[float, float]:
    """Turn the bounds of the largest natural log ratio into those of the smallest ratio."""
    return math.exp(-high), math.exp(-low)
