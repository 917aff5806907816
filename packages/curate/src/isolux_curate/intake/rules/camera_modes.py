"""Panoramas, and portraits whose background the phone blurred."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import (
    cast_or_add_null_column,
    list_refusals_by_first_case,
)

INFO = RuleInfo(
    title="No panorama, no blurred background",
    summary="Refuses panoramas, and photos whose background blur was computed by the phone.",
    references=(citations.FHIBE.with_location("Methods, Image collection guidelines"),),
    step="specifications",
    order=7,
    needs=("custom_rendered", "panorama"),
    assumptions=(
        "Exif 3.0 defines 0 and 1 alone; 6 (panorama), 7 and 8 (portrait) are what iPhones write.",
        "Fisheye lenses and a wide aperture leave no such mark: they are for people to see.",
    ),
)

_PANORAMA_MODE, _PORTRAIT_MODES = 6, [7, 8]


def refuse(facts: pl.DataFrame) -> pl.DataFrame:
    """Refuse photos by Exif's CustomRendered as phones write it, and by a panorama's own marks.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id``, and ``custom_rendered, panorama`` where known.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> refuse(pl.DataFrame({"image_id": ["a"], "custom_rendered": [6]}))["reason"][0]
    'The photo is a panorama. Please send one that was taken in a single shot.'
    """
    facts = cast_or_add_null_column(
        cast_or_add_null_column(facts, "custom_rendered", pl.Int64), "panorama", pl.String
    )
    return list_refusals_by_first_case(
        facts,
        (
            (pl.col("custom_rendered") == _PANORAMA_MODE) | pl.col("panorama").is_not_null(),
            "The photo is a panorama. Please send one that was taken in a single shot.",
        ),
        (
            pl.col("custom_rendered").is_in(_PORTRAIT_MODES),
            (
                "The background was blurred by the camera's portrait mode. Please take the photo"
                " again without it."
            ),
        ),
    )
