"""Photos that passed through an editor or an app with filters."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import (
    cast_or_add_null_column,
    list_refusals_by_first_case,
)

INFO = RuleInfo(
    title="No processing",
    summary="Refuses photos that Exif says were edited, filtered or resized.",
    references=(citations.FHIBE.with_location("Methods, Image collection guidelines"),),
    step="specifications",
    order=8,
    needs=("software", "processing", "custom_rendered", "exif_width"),
    assumptions=("Who edits a photo and takes the traces out of its Exif is not found here.",),
)

EDITORS = (
    "photoshop",
    "lightroom",
    "gimp",
    "snapseed",
    "instagram",
    "vsco",
    "facetune",
    "picsart",
    "affinity",
    "capture one",
    "darktable",
    "rawtherapee",
    "pixelmator",
    "canva",
    "meitu",
    "faceapp",
    "beautycam",
    "b612",
    "luminar",
    "paint.net",
    "acdsee",
    "photoscape",
    "polarr",
    "lightleap",
    "remini",
    "prisma",
    "photodirector",
    "corel",
    "imagemagick",
    "photolab",
)
"""Editors and apps with filters, as they name themselves in Exif's Software."""


def refuse(facts: pl.DataFrame, *, editors: Sequence[str] = EDITORS) -> pl.DataFrame:
    """Refuse photos whose Exif names an editor, or another size than the file has.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id``, and where known ``software, processing, width, height, exif_width,
        exif_height``.
    editors : sequence of str
        Words in Exif's Software that name an editor, in any case.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a", "b"], "software": ["Adobe Photoshop 26", "17.5.1"]})
    >>> refuse(facts)["reason"].to_list()
    ['The photo was processed with Adobe Photoshop 26. Please send it as the camera saved it, ...']
    """
    for name, dtype in {
        "software": pl.String,
        "processing": pl.String,
        "width": pl.Int64,
        "height": pl.Int64,
        "exif_width": pl.Int64,
        "exif_height": pl.Int64,
    }.items():
        facts = cast_or_add_null_column(facts, name, dtype)
    names_editor = (
        pl.col("software").str.to_lowercase().str.contains_any([e.lower() for e in editors])
    )
    tool = pl.when(names_editor).then("software").otherwise("processing")
    ask = "Please send it as the camera saved it, without filters or edits."
    exif_size = pl.concat_list(pl.col("exif_width", "exif_height")).list.sort()
    file_size = pl.concat_list(pl.col("width", "height")).list.sort()
    has_exif_size = pl.col("exif_width").is_not_null() & pl.col("exif_height").is_not_null()
    resized = (
        "The photo was cropped or resized: the camera saved {} × {} pixels, the file has {} × {}. "
    )
    return list_refusals_by_first_case(
        facts,
        (
            names_editor | pl.col("processing").is_not_null(),
            pl.format("The photo was processed with {}. " + ask, tool),
        ),
        (
            has_exif_size & (exif_size != file_size),
            pl.format(resized + ask, "exif_width", "exif_height", "width", "height"),
        ),
    )
