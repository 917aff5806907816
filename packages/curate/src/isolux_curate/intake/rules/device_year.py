"""Photos of devices that were released before a year."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import list_refusals_by_first_case

INFO = RuleInfo(
    title="A device of 2011 or later",
    summary="Refuses photos of devices that were released before 2011, or that nobody could date.",
    references=(citations.FHIBE.with_location("Methods, Image collection guidelines"),),
    step="specifications",
    order=9,
    needs=("device_year",),
    assumptions=(
        "Exif names a device, not its year, which comes from a column of the sheet or --devices.",
    ),
)


def refuse(facts: pl.DataFrame, *, earliest: int = 2011) -> pl.DataFrame:
    """Refuse photos by the year in which the device was released.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, device_year`` (null: not known).
    earliest : int
        The first year that is taken.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> refuse(pl.DataFrame({"image_id": ["a"], "device_year": [2009]}))["reason"][0]
    'The photo was taken with a device of 2009. Please send photos of devices released ...'
    """
    year = pl.col("device_year")
    ask = f"Please send photos of devices released in {earliest} or later."
    return list_refusals_by_first_case(
        facts,
        (year.is_null(), f"We could not tell which device took the photo. {ask}"),
        (year < earliest, pl.format("The photo was taken with a device of {}. " + ask, year)),
    )
