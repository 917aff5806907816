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
from isolux_worlds._draw import FloatArray
from isolux_worlds.predictors.simulated import Simulated, people_and_right

__all__ = ["detected", "grounded", "named"]

_BOX = ("box_x", "box_y", "box_w", "box_h")
_ENOUGH = 0.5
_CONCENTRATION = 8.0  # how alike overlaps are: a + b of their Beta
_TRIES = 20


def detected(
    dataset: Dataset, right: pl.DataFrame, model: Simulated, *, label: str = "person"
) -> pl.DataFrame:
    """Draw the boxes of whom a detector finds, and its false alarms."""
    people = people_and_right(dataset, right)
    found = _of_people(people, model, "boxes").select("image_id", *_BOX, "score")
    alarms = _of_nobody(dataset, people, model).with_columns(label=pl.lit(label))
    return _table([found.with_columns(label=pl.lit(label)), alarms], model)


def named(dataset: Dataset, right: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Draw boxes with the classes of the people in them, as open-vocabulary models do."""
    people = people_and_right(dataset, right)
    classes = _classes(people, dataset)
    found = _of_people(people, model, "boxes").explode("classes").drop_nulls("classes")
    alarms = _of_nobody(dataset, people, model)
    drawn = model.stream("false names").integers(0, len(classes), alarms.height)
    parts = [
        found.select("image_id", *_BOX, "score", label="classes"),
        alarms.with_columns(label=classes.gather(drawn)),
    ]
    return _table(parts, model)


def grounded(dataset: Dataset, right: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Answer each class of each image with one box: on the person if right, else in a corner."""
    people = people_and_right(dataset, right)
    _classes(people, dataset)
    found = _of_people(people, model, "boxes").explode("classes").drop_nulls("classes")
    asked = people.explode("classes").drop_nulls("classes")
    missed = asked.join(found, on=["instance_id", "classes"], how="anti", maintain_order="left")
    corner = missed.with_columns(
        box_x=pl.lit(0.0),
        box_y=pl.lit(0.0),
        box_w=pl.lit(1.0),
        box_h=pl.lit(1.0),
        score=pl.lit(0.1),
    )
    columns = ["instance_id", "image_id", *_BOX, "score", "classes"]
    order = people.select("instance_id").with_row_index("_at")
    every = pl.concat([found.select(columns), corner.select(columns)]).join(order, on="instance_id")
    first = every.sort("_at").unique(["image_id", "classes"], keep="first", maintain_order=True)
    return _table([first.select("image_id", *_BOX, "score", label="classes")], model)


def _classes(people: pl.DataFrame, dataset: Dataset) -> pl.Series:
    found = people["classes"].drop_nulls().explode(keep_nulls=False, empty_as_null=False)
    classes = found.drop_nulls().unique().sort()
    if classes.is_empty():
        raise SpecError("nobody has a class to be found by", where=dataset.name)
    return classes


def _of_people(people: pl.DataFrame, model: Simulated, purpose: str) -> pl.DataFrame:
    """Boxes of the people who are found, with all columns of the people and ``score``."""
    if not set(_BOX) <= set(people.columns) or not people["box_w"].is_not_null().any():
        raise SpecError("nobody has a box that could be found", expected=", ".join(_BOX))
    rng = model.stream(purpose)
    # One draw for each person, found or not: who is found leaves the others' boxes as they are.
    overlap = 1.0 - (1.0 - _ENOUGH) * _beta(rng, 2 * model.jitter, people.height)
    side = rng.choice((-1.0, 1.0), people.height)
    score = model.confidence(np.ones(people.height), purpose)
    drawn = people.with_row_index("_row").with_columns(
        overlap=overlap, side=side, score=score, true_x=pl.col("box_x").cast(pl.Float64)
    )
    # Moved by s of its width a box overlaps the true one by (1 − s) / (1 + s).
    share = (1 - pl.col("overlap")) / (1 + pl.col("overlap"))
    moved = drawn.with_columns(
        box_x=pl.col("true_x") + pl.col("side") * share * pl.col("box_w").cast(pl.Float64)
    )
    found = moved.filter(pl.col("right")).drop_nulls(list(_BOX))
    crowded = _near(
        found.select("_row", "image_id", *_BOX), drawn.select("_row", "image_id", *_BOX)
    )
    exact = pl.col("_row").is_in(crowded.implode())
    return found.with_columns(box_x=pl.when(exact).then("true_x").otherwise("box_x")).drop(
        "_row", "overlap", "side", "true_x", "right"
    )


def _near(boxes: pl.DataFrame, truths: pl.DataFrame) -> pl.Series:
    """Rows whose box overlaps the truth of another row by half or more."""
    pairs = boxes.join(truths.drop_nulls(list(_BOX)), on="image_id", suffix="_truth")
    pairs = pairs.filter(pl.col("_row") != pl.col("_row_truth"))
    drawn, true = (
        pairs.select([f"{name}{end}" for name in _BOX]).to_numpy().astype(np.float64)
        for end in ("", "_truth")
    )
    close = pairs_iou_xywh(drawn, true) >= _ENOUGH
    return pairs["_row"].filter(pl.Series(close, dtype=pl.Boolean)).unique()


def _of_nobody(dataset: Dataset, people: pl.DataFrame, model: Simulated) -> pl.DataFrame:
    """Boxes in the pictures that overlap no one by half; those that would are drawn again."""
    rng = model.stream("false alarms")
    images = _sizes(dataset, people)
    number = rng.poisson(model.false_alarms, images.height)
    at = images[np.repeat(np.arange(images.height), number)]
    truths = people.with_row_index("_row").select("_row", "image_id", *_BOX)
    sides = people.select("box_w", "box_h").drop_nulls().to_numpy().astype(np.float64)
    kept = at.clear().select("image_id").with_columns(*(pl.lit(0.0).alias(name) for name in _BOX))
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
        near = _near(tried.select("_row", "image_id", *_BOX), truths)
        clear = ~pl.col("_row").is_in(near.implode())
        kept = pl.concat([kept, tried.filter(clear).select("image_id", *_BOX)])
        at = tried.filter(~clear).select(at.columns)
    order = images.select("image_id").with_row_index("_at")
    kept = kept.join(order, on="image_id", maintain_order="left").sort("_at", maintain_order=True)
    score = model.confidence(np.zeros(kept.height), "false alarms")
    return kept.drop("_at").with_columns(score=score)


def _sizes(dataset: Dataset, people: pl.DataFrame) -> pl.DataFrame:
    """Width and height of each image; where they are not known, how far its boxes reach."""
    reach = people.group_by("image_id", maintain_order=True).agg(
        reach_w=(pl.col("box_x") + pl.col("box_w")).max().fill_null(1.0).cast(pl.Float64),
        reach_h=(pl.col("box_y") + pl.col("box_h")).max().fill_null(1.0).cast(pl.Float64),
    )
    known = dataset.images.select(
        "image_id",
        *(
            (pl.col(n) if n in dataset.images.columns else pl.lit(None)).cast(pl.Float64).alias(n)
            for n in ("width", "height")
        ),
    )
    if known.is_empty():
        known = reach.select(
            "image_id", width=pl.lit(None, pl.Float64), height=pl.lit(None, pl.Float64)
        )
    joined = known.join(reach, on="image_id", how="left", maintain_order="left")
    return joined.select(
        "image_id",
        width=pl.coalesce("width", "reach_w").fill_null(1.0),
        height=pl.coalesce("height", "reach_h").fill_null(1.0),
    )


def _beta(rng: np.random.Generator, mean: float, n: int) -> FloatArray:
    if mean <= 0:
        return np.zeros(n)
    return rng.beta(mean * _CONCENTRATION, (1 - mean) * _CONCENTRATION, n)


def _table(parts: Sequence[pl.DataFrame], model: Simulated) -> pl.DataFrame:
    columns = ["image_id", "label", *_BOX, "score"]
    rows = pl.concat([part.select(columns) for part in parts], how="vertical_relaxed")
    return rows.select(pl.lit(model.name).alias("model"), *columns)
