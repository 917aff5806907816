"""Masks of several parts in one: a person's clothing, their hair, as layouts have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from isolux.geometry.masks import masks_from_counts, masks_to_coco, union_of_parts

__all__ = ["CLOTHING", "HAIR", "united_parts"]

CLOTHING = ("upper_clothing", "lower_clothing", "full_body_clothing")
HAIR = ("head_hair",)


def united_parts(people: pl.DataFrame, parts: Sequence[str]) -> pl.DataFrame:
    """Unite the masks of these parts of each person."""
    rows = people.with_row_index("row").drop("counts", strict=False)
    seen = (
        rows.select("row", "height", "width", "part_masks")
        .explode("part_masks")
        .unnest("part_masks")
        .filter(pl.col("part").is_in(list(parts)))
    )
    if seen.is_empty():
        return rows.head(0).drop("row").with_columns(counts=pl.lit(None, dtype=pl.String))
    found = seen["row"].unique(maintain_order=True)
    place = seen["row"].rle_id()
    masks = masks_from_counts(seen["counts"], seen["height"].to_numpy(), seen["width"].to_numpy())
    whole = union_of_parts(masks, place.to_numpy().astype(np.int64), len(found))
    counts = [mask["counts"].decode("ascii") for mask in masks_to_coco(whole)]
    united = pl.DataFrame({"row": found, "counts": counts})
    return rows.join(united, on="row", maintain_order="left").drop("row")
