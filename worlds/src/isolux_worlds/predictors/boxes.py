"""Boxes as a simulated detector draws them: of the people it finds, and false alarms.

A box of a person who is found is the true one moved sideways so that the two overlap by a planted
IoU of .5 or more; where it would then overlap another person by as much, it is the true one itself.
False alarms overlap no one by .5. So a person who is found is found under any matching rule of the
house, and who is not, is not: recall at .5 in any group is the share of ``right`` there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from isolux.geometry.boxes import pairs_iou_xywh
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux_worlds._tables import left_join
from isolux_worlds.predictors.simulated import BOX, ENOUGH, Simulated, people_and_right

__all__ = ["detected", "grounded", "named"]

_TRIES = 20


def detected(dataset: Dataset, right: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Draw the boxes of whom a detector finds, and its false alarms."""
    people = people_and_right(dataset, right)
    parts = _of_people(people, model), _of_nobody(dataset, people, model)
    return _table([part.with_columns(label=pl.lit("person")) for part in parts], model)


def named(dataset: Dataset, right: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Draw boxes with the classes of the people in them, as open-vocabulary models do."""
    people = people_and_right(dataset, right)
    classes = _classes(people, dataset)
    found = _by_class(_of_people(people, model))
    alarms = _of_nobody(dataset, people, model)
    names = model.stream("false names").integers(0, len(classes), alarms.height)
    return _table([found, alarms.with_columns(label=classes.gather(names))], model)


def grounded(dataset: Dataset, right: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Answer each class of each image with one box: on the person if right, else in a corner."""
    people = people_and_right(dataset, right)
    _classes(people, dataset)
    people = people.with_row_index("_at")
    found, asked = _by_class(_of_people(people, model)), _by_class(people)
    missed = asked.join(found, on=["instance_id", "label"], how="anti", maintain_order="left")
    corner = dict(zip((*BOX, "score"), map(pl.lit, (0.0, 0.0, 1.0, 1.0, 0.1)), strict=True))
    columns = ["_at", "image_id", *BOX, "score", "label"]
    every = pl.concat([found.select(columns), missed.with_columns(**corner).select(columns)])
    first = every.sort("_at").unique(["image_id", "label"], keep="first", maintain_order=True)
    return _table([first], model)


def _by_class(people: pl.DataFrame) -> pl.DataFrame:
    """Give each person a row for each of their classes, as ``label``."""
    return people.explode("classes").drop_nulls("classes").rename({"classes": "label"})


def _classes(people: pl.DataFrame, dataset: Dataset) -> pl.Series:
    found = people["classes"].drop_nulls().explode(keep_nulls=False, empty_as_null=False)
    classes = found.drop_nulls().unique().sort()
    if classes.is_empty():
        raise SpecError("nobody has a class to be found by", where=dataset.name)
    return classes


def _of_people(people: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Boxes of the people who are found, with all columns of the people and ``score``."""
    if not set(BOX) <= set(people.columns) or not people["box_w"].is_not_null().any():
        raise SpecError("nobody has a box that could be found", expected=", ".join(BOX))
    rng = model.stream("boxes")
    # One draw for each person, found or not: who is found leaves the others' boxes as they are.
    overlap = 1.0 - model.losses(rng, people.height)
    side = rng.choice((-1.0, 1.0), people.height)
    score = model.confidence(np.ones(people.height), "boxes")
    # Moved by s of its width a box overlaps the true one by (1 − s) / (1 + s).
    shift = pl.Series(side * ((1 - overlap) / (1 + overlap)))
    x, width = pl.col("box_x").cast(pl.Float64), pl.col("box_w").cast(pl.Float64)
    truths = people.with_row_index("_row").with_columns(score=score, true_x=x)
    moved = truths.with_columns(box_x=x + shift * width)
    found = moved.filter("right").drop_nulls(list(BOX))
    is_crowded = pl.col("_row").is_in(_near(found, truths).implode())
    return found.with_columns(box_x=pl.when(is_crowded).then("true_x").otherwise("box_x"))


def _near(boxes: pl.DataFrame, truths: pl.DataFrame) -> pl.Series:
    """Rows whose box overlaps the truth of another row by half or more."""
    columns = ["_row", "image_id", *BOX]
    others = truths.select(columns).drop_nulls()
    pairs = boxes.select(columns).join(others, on="image_id", suffix="_truth")
    pairs = pairs.filter(pl.col("_row") != pl.col("_row_truth"))
    drawn, true = (
        pairs.select([f"{name}{end}" for name in BOX]).to_numpy().astype(np.float64)
        for end in ("", "_truth")
    )
    close = pairs_iou_xywh(drawn, true) >= ENOUGH
    return pairs["_row"].filter(pl.Series(close, dtype=pl.Boolean)).unique()


def _of_nobody(dataset: Dataset, people: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Boxes in the pictures that overlap no one by half; those that would are drawn again."""
    rng = model.stream("false alarms")
    images = _sizes(dataset, people)
    number = rng.poisson(model.false_alarms, images.height)
    at = images[np.repeat(np.arange(images.height), number)]
    truths = people.with_row_index("_row")
    sides = people.select("box_w", "box_h").drop_nulls().to_numpy().astype(np.float64)
    kept = at.clear().select("image_id").with_columns(*(pl.lit(0.0).alias(name) for name in BOX))
    for _ in range(_TRIES):
        if not at.height:
            break
        size = sides[rng.integers(0, len(sides), at.height)]
        limit = at.select("width", "height").to_numpy().astype(np.float64)
        size = np.minimum(size, limit)
        corner = rng.random((at.height, 2)) * (limit - size)
        tried = at.with_columns(
            box_x=corner[:, 0], box_y=corner[:, 1], box_w=size[:, 0], box_h=size[:, 1]
        ).with_row_index("_row", offset=people.height)
        near = _near(tried, truths)
        clear = ~pl.col("_row").is_in(near.implode())
        kept = pl.concat([kept, tried.filter(clear).select("image_id", *BOX)])
        at = tried.filter(~clear).select(at.columns)
    order = images.select("image_id").with_row_index("_place")
    kept = kept.join(order, on="image_id", maintain_order="left").sort(
        "_place", maintain_order=True
    )
    return kept.with_columns(score=model.confidence(np.zeros(kept.height), "false alarms"))


def _sizes(dataset: Dataset, people: pl.DataFrame) -> pl.DataFrame:
    """Width and height of each image; where they are not known, how far its boxes reach."""
    reach = people.group_by("image_id", maintain_order=True).agg(
        reach_w=(pl.col("box_x") + pl.col("box_w")).max().fill_null(1.0).cast(pl.Float64),
        reach_h=(pl.col("box_y") + pl.col("box_h")).max().fill_null(1.0).cast(pl.Float64),
    )
    images = reach if dataset.images.is_empty() else left_join(dataset.images, reach)
    unknown = [pl.lit(None).alias(n) for n in ("width", "height") if n not in images.columns]
    return images.with_columns(unknown).select(
        "image_id",
        width=pl.coalesce(pl.col("width").cast(pl.Float64), "reach_w").fill_null(1.0),
        height=pl.coalesce(pl.col("height").cast(pl.Float64), "reach_h").fill_null(1.0),
    )


def _table(parts: Sequence[pl.DataFrame], model: Simulated) -> pl.DataFrame:
    columns = ["image_id", "label", *BOX, "score"]
    rows = pl.concat([part.select(columns) for part in parts], how="vertical_relaxed")
    return rows.select(pl.lit(model.name).alias("model"), *columns)
