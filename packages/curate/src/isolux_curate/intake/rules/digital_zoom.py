"""Photos taken with digital zoom, which invents pixels."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import (
    list_refusals_by_first_case,
    round_up_to_two_decimals,
)

INFO = RuleInfo(
    title="No digital zoom",
    summary="Refuses photos whose Exif says that digital zoom was used.",
    references=(citations.FHIBE.with_location("Methods, Image collection guidelines"),),
    step="specifications",
    order=6,
    needs=("digital_zoom",),
)


def refuse(facts: pl.DataFrame, *, max_zoom: float = 1.0) -> pl.DataFrame:
    """Refuse photos by Exif's DigitalZoomRatio; 0 and nothing mean that none was used.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, digital_zoom``.
    max_zoom : float
        The largest zoom that is let in, as the times that it enlarges.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> refuse(pl.DataFrame({"image_id": ["a"], "digital_zoom": [2.5]}))["reason"][0]
    'The photo was taken with digital zoom (2.5 times). Please come closer, and take it ...'
    """
    message = pl.format(
        "The photo was taken with digital zoom ({} times). Please come closer, and take it without"
        " zoom.",
        round_up_to_two_decimals(pl.col("digital_zoom")),
    )
    return list_refusals_by_first_case(facts, (pl.col("digital_zoom") > max_zoom, message))
