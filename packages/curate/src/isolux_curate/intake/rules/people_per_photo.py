"""Photos that show too many people who take part."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import list_refusals_by_first_case

INFO = RuleInfo(
    title="One or two subjects",
    summary="Refuses photos with more than two subjects.",
    references=(citations.FHIBE.with_location("Methods, Image collection guidelines"),),
    step="specifications",
    order=10,
    needs=("subject_id",),
)


def refuse(facts: pl.DataFrame, *, max_people: int = 2) -> pl.DataFrame:
    """Refuse photos by how many subjects the sheet names in them.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, subject_id``, one row a subject in a photo.
    max_people : int
        The most people in one photo.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a"] * 3, "subject_id": ["s1", "s2", "s3"]})
    >>> refuse(facts)["reason"][0]
    'The photo shows 3 people who take part. Please send photos of 1 to 2 people who all ...'
    """
    n_subjects = pl.col("subject_id").n_unique().over("image_id")
    message = pl.format(
        "The photo shows {} people who take part. Please send photos of 1 to {} people who all"
        " agreed to it.",
        n_subjects,
        pl.lit(max_people),
    )
    return list_refusals_by_first_case(facts, (n_subjects > max_people, message))
