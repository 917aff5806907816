"""Where a phrase speaks of one person: which images grounding is judged in."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import polars as pl

from isolux.tasks._boxes.table import People
from isolux.vocabulary.errors import SpecError

Images = Literal["one-of-every-class", "one-of-class", "one-person"]
_REASONS: dict[Images, str] = {
    "one-of-every-class": "several people of one class in the image",
    "one-of-class": "several people of the class in the image",
    "one-person": "several people in the image",
}


def leave_out(people: People, images: Images) -> tuple[People, tuple[str, ...]]:
    """Say of each person not judged in such images that they are not, and count the images."""
    if images not in _REASONS:
        raise SpecError(
            "images cannot be that",
            expected=" or ".join(map(repr, get_args(Images))),
            found=repr(images),
        )
    rows = people.rows.with_columns(several=_several(images))
    reason = pl.coalesce(
        "reason", pl.when("several").then(pl.lit(_REASONS[images], dtype=pl.String))
    )
    held = replace(people, rows=rows.with_columns(reason).drop("several"))
    return held, _notes(rows, images)


def _several(images: Images) -> pl.Expr:
    """Whether a row is not judged."""
    if images == "one-person":
        return pl.col("unit_id").n_unique().over("image_id") > 1
    of_class = (pl.len().over("image_id", "class") > 1) & pl.col("class").is_not_null()
    return of_class if images == "one-of-class" else of_class.any().over("image_id")


def _notes(rows: pl.DataFrame, images: Images) -> tuple[str, ...]:
    out = rows.filter("several")
    total = rows["image_id"].n_unique()
    n_images, n_people = out["image_id"].n_unique(), out["unit_id"].n_unique()
    whole = ", for that class" if images == "one-of-class" else ""
    note = (
        f"{n_images:,} of {total:,} images with people are left out{whole} ({_REASONS[images]}), "
        f"and {n_people:,} people with them."
    )
    return (note,)
