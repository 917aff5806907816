"""Photos without Exif, which a camera writes and a messenger or an editor takes out."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import (
    cast_or_add_null_column,
    list_refusals_by_first_case,
)

INFO = RuleInfo(
    title="Exif is there",
    summary="Refuses photos without Exif metadata of a camera.",
    references=(citations.FHIBE.with_location("Methods, Image collection guidelines"),),
    step="specifications",
    order=3,
    needs=("exif",),
)


def refuse(facts: pl.DataFrame) -> pl.DataFrame:
    """Refuse photos without Exif, or whose Exif names neither camera nor time.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, exif``, and ``make, model, taken`` where any photo has them.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> refuse(pl.DataFrame({"image_id": ["a"], "exif": [False]}))["reason"][0][:47]
    'The photo does not say which camera took it and'
    """
    for name in ("make", "model", "taken"):
        facts = cast_or_add_null_column(facts, name, pl.String)
    names_camera_and_time = (pl.col("make").is_not_null() | pl.col("model").is_not_null()) & pl.col(
        "taken"
    ).is_not_null()
    message = (
        "The photo does not say which camera took it and when (its Exif data are missing). Please"
        " send the original file: messengers and editors take these data out."
    )
    is_readable = pl.col("exif").is_not_null()
    return list_refusals_by_first_case(
        facts, (is_readable & (~pl.col("exif") | ~names_camera_and_time), message)
    )
