"""Photos in another format than cameras save."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import list_refusals_by_first_case

INFO = RuleInfo(
    title="JPEG or TIFF",
    summary="Refuses photos in formats other than JPEG and TIFF.",
    references=(citations.FHIBE.with_location("Methods, Image collection guidelines"),),
    step="specifications",
    order=2,
    needs=("format",),
)


def refuse(facts: pl.DataFrame, *, allowed: Sequence[str] = ("JPEG", "TIFF")) -> pl.DataFrame:
    """Refuse photos by what the file's content is, whatever its name says.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, format``.
    allowed : sequence of str
        Formats; FHIBE takes a device's own default format too, which is to be added here.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> refuse(pl.DataFrame({"image_id": ["a"], "format": ["PNG"]}))["reason"][0]
    'The photo is a PNG. Please send the file that the camera saved: JPEG or TIFF.'
    """
    message = pl.format(
        "The photo is a {}. Please send the file that the camera saved: {}.",
        "format",
        pl.lit(" or ".join(allowed)),
    )
    return list_refusals_by_first_case(facts, (~pl.col("format").is_in(list(allowed)), message))
