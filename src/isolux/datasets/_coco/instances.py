"""COCO's annotations as the table instances: boxes, masks, crowds, keypoints with their names."""

from __future__ import annotations

import polars as pl

from isolux.datasets._coco.json import CocoTables
from isolux.datasets._columns import BOX
from isolux.datasets._points import points_of

__all__ = ["coco_instances"]


def coco_instances(annotations: pl.DataFrame, tables: CocoTables, where: str) -> pl.DataFrame:
    """Give the columns of instances for these rows of ``tables.annotations``."""
    masks = [name for name in annotations.columns if name.startswith("mask_")]
    frame = annotations.select(
        pl.col("id").alias("instance_id"),
        "image_id",
        pl.concat_list("category").alias("classes"),
        *BOX,
        "area",
        "is_crowd",
        (pl.col("ignore") | pl.col("is_crowd")).alias("ignore"),
        *masks,
    )
    names = annotations.select("category_id").join(
        tables.categories.select(category_id="id", names="keypoints"),
        on="category_id",
        how="left",
        maintain_order="left",
    )["names"]
    return frame.hstack(points_of(annotations["keypoints"], names, where, "annotations.keypoints"))
