"""Masks of people and of predictions, from columns to pairs that overlap enough."""

from __future__ import annotations

import json

import numpy as np
import polars as pl

from isolux.containers import Dataset
from isolux.errors import TableError, place
from isolux.geometry.masks import (
    Masks,
    mask_pairs,
    masks_from_coco,
    masks_from_counts,
    masks_to_coco,
)
from isolux.geometry.matching import Pairs
from isolux.tables import IMAGES
from isolux.tasks._boxes import Found, People
from isolux.tasks._boxes_matching import Settings
from isolux.tasks._boxes_scoring import PairsOf

__all__ = ["mask_pairs_in"]

_EMPTY = {"mask_counts": "1", "mask_height": 1, "mask_width": 1}
"""A picture of one pixel with nothing in it: overlaps nothing."""


def mask_pairs_in(dataset: Dataset, settings: Settings) -> PairsOf:
    """Pair masks that overlap enough for any metric."""

    def pairs_of(found: Found, people: People) -> Pairs:
        return mask_pairs(
            found.detections,
            people.truths,
            _read(found.rows, "predictions"),
            _read(_without_polygons(people.rows, dataset), dataset.name),
            lowest_iou=settings.lowest_iou,
        )

    return pairs_of


def _read(rows: pl.DataFrame, where: str) -> Masks:
    return masks_from_counts(
        rows["mask_counts"],
        rows["mask_height"].to_numpy(),
        rows["mask_width"].to_numpy(),
        file=where,
    )


def _without_polygons(rows: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
    """Give everybody run lengths: polygons are filled, and who has no mask gets an empty one."""
    held = rows.select("mask_counts", "mask_height", "mask_width", "mask_polygons", "image_id")
    held = held.with_columns(
        pl.col("mask_counts", "mask_polygons").cast(pl.String),
        pl.col("mask_height", "mask_width").cast(pl.Int64),
    ).with_row_index("row")
    outlined = held.filter(pl.col("mask_counts").is_null() & pl.col("mask_polygons").is_not_null())
    if outlined.height:
        held = held.update(_filled(outlined, dataset), on="row")
    return held.with_columns(pl.col(name).fill_null(value) for name, value in _EMPTY.items())


def _filled(outlined: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
    sizes = outlined.select("image_id").join(
        IMAGES.conform(dataset.images).select("image_id", "height", "width"),
        on="image_id",
        how="left",
        maintain_order="left",
    )
    unknown = sizes["height"].is_null() | sizes["width"].is_null()
    if unknown.any():
        row = int(unknown.arg_max() or 0)
        raise TableError(
            "a mask is given as polygons, but how large its image is, is not known",
            expected="width and height in the table images",
            found=repr(sizes["image_id"][row]),
            where=place(dataset.name, None, "images.height"),
        )
    height, width = (sizes[name].to_numpy().astype(np.int64) for name in ("height", "width"))
    polygons = [json.loads(text) for text in outlined["mask_polygons"]]
    written = masks_to_coco(masks_from_coco(polygons, height, width, file=dataset.name))
    counts = [c.decode() if isinstance(c := w["counts"], bytes) else c for w in written]
    return outlined.select("row").with_columns(
        mask_counts=pl.Series(counts, dtype=pl.String),
        mask_height=pl.Series(height),
        mask_width=pl.Series(width),
    )
