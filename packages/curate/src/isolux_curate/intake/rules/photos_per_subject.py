"""Subjects who sent more photos than are taken."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import list_refusals_by_first_case

INFO = RuleInfo(
    title="At most ten photos a subject",
    summary="Refuses photos of a subject beyond the tenth.",
    references=(citations.FHIBE.with_location("Methods, Image collection guidelines"),),
    step="series",
    order=3,
    needs=("subject_id",),
    is_joint=True,
)


def refuse(facts: pl.DataFrame, *, max_photos: int = 10) -> pl.DataFrame:
    """Refuse what a subject sent beyond the limit, later photos first.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, subject_id``, in the order in which photos came in.
    max_photos : int
        Photos of one subject, alone or with another.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": list("abc"), "subject_id": ["s1", "s1", "s1"]})
    >>> refuse(facts, max_photos=2)["image_id"].to_list()
    ['c']
    """
    photo_number = pl.int_range(pl.len()).over("subject_id")
    message = (
        f"You sent more than {max_photos} photos. The first {max_photos} that could be taken were"
        " taken."
    )
    photo_rows = facts.unique(["image_id", "subject_id"], keep="first", maintain_order=True)
    return list_refusals_by_first_case(
        photo_rows, ((photo_number >= max_photos) & pl.col("subject_id").is_not_null(), message)
    )
