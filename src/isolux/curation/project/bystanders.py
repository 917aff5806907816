"""People in photos who are not named: a photo with more people than subjects waits for a decision.

Who is drawn in a photo of one subject is that subject only where nobody else is drawn. Someone says
which boxes show bystanders (``isolux curate decide --unit instance --rule bystander``); these boxes
are filled in where the photo is published.
"""

from __future__ import annotations

import polars as pl

from isolux.curation.consent import Ledger

__all__ = [
    "ANNOTATION", "BYSTANDER", "COUNTED", "DRAWN_AGAIN", "assign_subjects", "list_crowded_photos",
]  # fmt: skip

ANNOTATION = "annotation"
DRAWN_AGAIN, BYSTANDER, COUNTED = "drawn again", "bystander", "more counted than named"


def assign_subjects(people: pl.DataFrame, out: pl.DataFrame) -> pl.DataFrame:
    """Give a drawn person the photo's subject where one is named and one drawn; else none."""
    with_counts = people.join(_counts(people, out), on="image_id", maintain_order="left")
    is_subject = (pl.col("named") == 1) & (pl.col("drawn") == 1) & ~_is_dropped(out)
    named_id = pl.when(pl.col("origin") == "submitted").then("subject_id")
    subject_id = named_id.when(is_subject).then("subject")
    return with_counts.with_columns(subject_id=subject_id).select(people.columns)


def list_crowded_photos(ledger: Ledger, people: pl.DataFrame, out: pl.DataFrame) -> pl.DataFrame:
    """List photos with more people drawn than named, where the ledger says who agreed."""
    counts = _counts(people, out).filter(pl.col("named") > 0, pl.col("drawn") > pl.col("named"))
    words = "{} people are drawn in this photo and {} named: someone must say who is a bystander."
    rows = counts.sort("image_id").select(
        "image_id", step=pl.lit(ANNOTATION), rule=pl.lit(BYSTANDER),
        reason=pl.format(words, "drawn", "named"),
    )  # fmt: skip
    return rows if ledger.has_grants("subject") else rows.clear()


def _counts(people: pl.DataFrame, out: pl.DataFrame) -> pl.DataFrame:
    """Count by photo who is named (the first is ``subject``), and who is drawn and no bystander."""
    is_submitted = pl.col("origin") == "submitted"
    subject = pl.col("subject_id").filter(is_submitted).drop_nulls()
    is_person = ~is_submitted & ~_is_dropped(out)
    return people.group_by("image_id").agg(
        named=subject.n_unique(), subject=subject.min(), drawn=is_person.sum()
    )


def _is_dropped(out: pl.DataFrame) -> pl.Expr:
    """Tell of boxes whether they were drawn again, or someone said that they show a bystander."""
    dropped = out.filter(pl.col("rule").is_in([DRAWN_AGAIN, BYSTANDER]), unit_kind="instance")
    return pl.col("instance_id").is_in(dropped["unit_id"].implode())
