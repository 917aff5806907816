"""Photos with too few pixels."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import list_refusals_by_first_case

INFO = RuleInfo(
    title="At least 8 megapixels",
    summary="Refuses photos with fewer than 8 megapixels.",
    references=(citations.FHIBE.with_location("Methods, Image collection guidelines"),),
    step="specifications",
    order=4,
    needs=("megapixels",),
    assumptions=(
        "FHIBE asks it of the camera; here the photo itself is measured, so a crop fails.",
    ),
)


def refuse(facts: pl.DataFrame, *, min_megapixels: float = 8.0) -> pl.DataFrame:
    """Refuse photos by their number of pixels, to one decimal as makers count.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, megapixels`` (millions of pixels, as stored).
    min_megapixels : float
        The fewest megapixels that are let in. A camera sold as 8 megapixels may save
        3,264 × 2,448 = 7.99.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> refuse(pl.DataFrame({"image_id": ["a", "b"], "megapixels": [7.99, 5.04]})).rows()
    [('b', 'The photo has 5.0 megapixels. Please send the original of at least 8 megapixels, ...')]
    >>> refuse(pl.DataFrame({"image_id": ["a"], "megapixels": [0.02]}))["reason"][0][:38]
    'The photo has less than 0.1 megapixels'
    """
    rounded = pl.col("megapixels").round(1)
    message = pl.format(
        "The photo has {} megapixels. Please send the original of at least {} megapixels, not a"
        " smaller copy.",
        pl.when(rounded > 0).then(rounded.cast(pl.String)).otherwise(pl.lit("less than 0.1")),
        pl.lit(f"{min_megapixels:g}"),
    )
    return list_refusals_by_first_case(facts, (rounded < min_megapixels, message))
