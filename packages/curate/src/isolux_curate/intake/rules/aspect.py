"""Photos that are long and narrow."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import (
    list_refusals_by_first_case,
    round_up_to_two_decimals,
)

INFO = RuleInfo(
    title="Up to 2:1",
    summary="Refuses photos more than twice as long as wide.",
    references=(citations.FHIBE.with_location("Methods, Image collection guidelines"),),
    step="specifications",
    order=5,
    needs=("width", "height"),
)


def refuse(facts: pl.DataFrame, *, max_ratio: float = 2.0) -> pl.DataFrame:
    """Refuse photos by their longer side over their shorter.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, width, height`` (pixels).
    max_ratio : float
        The longer side over the shorter.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> refuse(pl.DataFrame({"image_id": ["a"], "width": [4000], "height": [1000]}))["reason"][0]
    'The photo is 4.0 times as long as it is wide. Please send photos of up to 2:1.'
    """
    side_ratio = pl.max_horizontal("width", "height") / pl.min_horizontal("width", "height")
    message = pl.format(
        "The photo is {} times as long as it is wide. Please send photos of up to {}:1.",
        round_up_to_two_decimals(side_ratio),
        pl.lit(f"{max_ratio:g}"),
    )
    return list_refusals_by_first_case(facts, (side_ratio > max_ratio, message))
