"""Masks as a simulated model draws them: of whom it finds, cut off at the right."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.geometry.masks import masks_from_counts, masks_to_coco
from isolux.geometry.rle import masks_from_edges
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux_worlds.predictors.simulated import ENOUGH, Simulated, people_and_right

__all__ = ["segmented"]

_MASK = ("mask_counts", "mask_height", "mask_width")


def segmented(dataset: Dataset, right: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Draw the masks of whom a model finds."""
    people = people_and_right(dataset, right)
    if not set(_MASK) <= set(people.columns) or not people["mask_counts"].is_not_null().any():
        raise SpecError("nobody has a mask that could be found", expected=", ".join(_MASK))
    rng = model.stream("masks")
    loss = model.losses(rng, people.height)
    score = model.confidence(np.ones(people.height), "masks")
    found = people.with_columns(_loss=loss, score=score).filter("right").drop_nulls(list(_MASK))
    counts = _cut(found)
    return found.select(
        pl.lit(model.name).alias("model"),
        "image_id",
        pl.lit("person").alias("label"),
        "score",
        pl.Series("mask_counts", counts, dtype=pl.String),
        "mask_height",
        "mask_width",
    )


def _cut(found: pl.DataFrame) -> list[str]:
    """Cut each mask at a column; one that would lose half of its pixels or more stays whole."""
    if not found.height:
        return []
    masks = masks_from_counts(
        found["mask_counts"], found["mask_height"].to_numpy(), found["mask_width"].to_numpy()
    )
    keep = 1.0 - found["_loss"].to_numpy()
    column = np.ceil(masks.box_xywh[:, 0] + keep * masks.box_xywh[:, 2]).astype(np.int64)
    last = np.repeat(column * masks.height, np.diff(masks.starts))
    edges = np.minimum(masks.edges, last).astype(np.int32)
    shorter = masks_from_edges(edges, masks.starts, masks.height, masks.width)
    whole = shorter.area_px < ENOUGH * masks.area_px
    of_edge = np.repeat(whole, np.diff(masks.starts))
    edges = np.where(of_edge, masks.edges, edges).astype(np.int32)
    runs = edges.reshape(-1, 2)
    has_pixels = runs[:, 1] > runs[:, 0]
    kept = np.concatenate([[0], np.cumsum(has_pixels)])
    starts = 2 * kept[masks.starts // 2]
    drawn = masks_from_edges(runs[has_pixels].reshape(-1), starts, masks.height, masks.width)
    return [mask["counts"].decode("ascii") for mask in masks_to_coco(drawn)]
