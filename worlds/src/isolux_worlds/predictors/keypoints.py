"""Poses as a simulated model gives them: near the true ones for whom it finds."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux_worlds.predictors.simulated import BOX, Simulated, people_and_right

__all__ = ["posed"]

_POINTS = ("keypoints_x", "keypoints_y", "keypoints_v")
_PER_JITTER = 0.01


def posed(dataset: Dataset, right: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Give a pose to whom a model finds."""
    people = people_and_right(dataset, right)
    if not set(_POINTS) <= set(people.columns) or not people[_POINTS[0]].list.len().sum():
        raise SpecError("nobody has keypoints that could be found", expected=", ".join(_POINTS))
    score = model.confidence(np.ones(people.height), "keypoints")
    rng = model.stream("keypoints")
    side = pl.lit(1.0)
    if set(BOX) <= set(people.columns):
        side = (pl.col("box_w") * pl.col("box_h")).sqrt().fill_null(1.0)
    every = people.with_columns(score=score, _side=side).with_row_index("_row")
    labelled = every.filter(pl.col("keypoints_x").list.len() > 0)
    long = labelled.select("_row", "_side", "right", *_POINTS).explode(list(_POINTS))
    spread = _PER_JITTER * model.jitter * long["_side"].to_numpy().astype(np.float64)
    moved = long.with_columns(
        pl.col("keypoints_x").fill_null(0.0) + spread * rng.standard_normal(long.height),
        pl.col("keypoints_y").fill_null(0.0) + spread * rng.standard_normal(long.height),
        keypoints_v=pl.when(pl.col("keypoints_v").fill_null(0) > 0).then(2.0).otherwise(0.0),
    )
    poses = moved.filter("right").group_by("_row", maintain_order=True).agg(*_POINTS)
    kept = labelled.drop(_POINTS).join(poses, on="_row", maintain_order="left")
    boxes = [name for name in BOX if name in kept.columns]
    return kept.select(
        pl.lit(model.name).alias("model"),
        "image_id",
        pl.lit("person").alias("label"),
        *boxes,
        "score",
        *_POINTS,
    )
