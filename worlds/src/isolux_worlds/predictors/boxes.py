"""Boxes as a simulated detector draws them: of the people it finds, and false alarms.

A box of a person who is found is the true one moved sideways so that the two overlap by an injected
IoU of .5 or more; where it would then overlap another person by as much, it is the true one itself.
False alarms overlap no one by .5. So a person who is found is found under any matching rule of the
house, and who is not, is not: recall at .5 in any group is the share of ``right`` there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.geometry.boxes import pairs_iou_xywh
from isolux.geometry.masks import masks_from_counts, masks_to_coco
from isolux.geometry.rle import masks_from_edges
from isolux_worlds._joins import left_join_in_order
from isolux_worlds.predictors.simulated import BOX, MIN_MATCH_IOU, SimulatedModel, join_is_right

__all__ = [
    "simulate_class_boxes",
    "simulate_detections",
    "simulate_grounding",
    "simulate_poses",
    "simulate_segmentation",
]

_TRIES = 20


def simulate_detections(
    dataset: Dataset, right: pl.DataFrame, model: SimulatedModel
) -> pl.DataFrame:
    """Simulate the boxes of detected people, and false positives.

    Where the dataset numbers its categories, a box has the class of its person.
    """
    people = join_is_right(dataset, right)
    if len(dataset.categories) > 1:
        return simulate_class_boxes(dataset, right, model)
    tables = (
        _draw_boxes_of_detected_people(people, model),
        _draw_false_positive_boxes(dataset, people, model),
    )
    return _build_box_predictions(
        [table.with_columns(label=pl.lit("person")) for table in tables], model
    )


def simulate_class_boxes(
    dataset: Dataset, right: pl.DataFrame, model: SimulatedModel
) -> pl.DataFrame:
    """Draw boxes with the classes of the people in them, as open-vocabulary models do."""
    people = join_is_right(dataset, right)
    classes = _list_first_class_of_people(people, dataset)
    boxes = _explode_people_by_class(_draw_boxes_of_detected_people(people, model))
    alarms = _draw_false_positive_boxes(dataset, people, model)
    names = model.stream("false names").integers(0, len(classes), alarms.height)
    return _build_box_predictions([boxes, alarms.with_columns(label=classes.gather(names))], model)


def simulate_grounding(
    dataset: Dataset, right: pl.DataFrame, model: SimulatedModel
) -> pl.DataFrame:
    """Answer each class of each image with one box: on the person if right, else in a corner."""
    people = join_is_right(dataset, right)
    _list_first_class_of_people(people, dataset)
    people = people.with_row_index("_at")
    boxes, queries = (
        _explode_people_by_class(_draw_boxes_of_detected_people(people, model)),
        _explode_people_by_class(people),
    )
    missed = queries.join(boxes, on=["instance_id", "label"], how="anti", maintain_order="left")
    corner = dict(zip((*BOX, "score"), map(pl.lit, (0.0, 0.0, 1.0, 1.0, 0.1)), strict=True))
    columns = ["_at", "image_id", *BOX, "score", "label"]
    answers = pl.concat([boxes.select(columns), missed.with_columns(**corner).select(columns)])
    first = answers.sort("_at").unique(["image_id", "label"], keep="first", maintain_order=True)
    return _build_box_predictions([first], model)


def _explode_people_by_class(people: pl.DataFrame) -> pl.DataFrame:
    """Give each person a row for each of their classes, as ``label``."""
    return people.explode("classes").drop_nulls("classes").rename({"classes": "label"})


def _list_first_class_of_people(people: pl.DataFrame, dataset: Dataset) -> pl.Series:
    class_names = people["classes"].drop_nulls().explode(keep_nulls=False, empty_as_null=False)
    classes = class_names.drop_nulls().unique().sort()
    if classes.is_empty():
        raise SpecError("nobody has a class to be found by", where=dataset.name)
    return classes


def _draw_boxes_of_detected_people(people: pl.DataFrame, model: SimulatedModel) -> pl.DataFrame:
    """Boxes of detected people, with all columns of the people and ``score``."""
    if not set(BOX) <= set(people.columns) or not people["box_w"].is_not_null().any():
        raise SpecError("nobody has a box that could be found", expected=", ".join(BOX))
    rng = model.stream("boxes")
    # One draw for each person, found or not: who is found leaves the others' boxes as they are.
    overlap = 1.0 - model.draw_iou_losses(rng, people.height)
    direction = rng.choice((-1.0, 1.0), people.height)
    score = model.draw_confidence(np.ones(people.height), "boxes")
    # Moved by s of its width a box overlaps the true one by (1 − s) / (1 + s).
    shift = pl.Series(direction * ((1 - overlap) / (1 + overlap)))
    x, width = pl.col("box_x").cast(pl.Float64), pl.col("box_w").cast(pl.Float64)
    truths = people.with_row_index("_row").with_columns(score=score, true_x=x)
    shifted = truths.with_columns(box_x=x + shift * width)
    boxes = shifted.filter("right").drop_nulls(list(BOX))
    is_crowded = pl.col("_row").is_in(_find_overlapping_rows(boxes, truths).implode())
    return boxes.with_columns(box_x=pl.when(is_crowded).then("true_x").otherwise("box_x"))


def _find_overlapping_rows(boxes: pl.DataFrame, truths: pl.DataFrame) -> pl.Series:
    """Rows whose box has an IoU of at least 0.5 with the true box of another row."""
    columns = ["_row", "image_id", *BOX]
    other_truths = truths.select(columns).drop_nulls()
    pairs = boxes.select(columns).join(other_truths, on="image_id", suffix="_truth")
    pairs = pairs.filter(pl.col("_row") != pl.col("_row_truth"))
    boxes_xywh, truths_xywh = (
        pairs.select([f"{name}{end}" for name in BOX]).to_numpy().astype(np.float64)
        for end in ("", "_truth")
    )
    close = pairs_iou_xywh(boxes_xywh, truths_xywh) >= MIN_MATCH_IOU
    return pairs["_row"].filter(pl.Series(close, dtype=pl.Boolean)).unique()


def _draw_false_positive_boxes(
    dataset: Dataset, people: pl.DataFrame, model: SimulatedModel
) -> pl.DataFrame:
    """Draw false positives: boxes with an IoU below 0.5 with everyone; others are drawn again."""
    rng = model.stream("false alarms")
    images = _find_image_sizes(dataset, people)
    number = rng.poisson(model.false_alarms, images.height)
    pending = images[np.repeat(np.arange(images.height), number)]
    truths = people.with_row_index("_row")
    box_sizes = people.select("box_w", "box_h").drop_nulls().to_numpy().astype(np.float64)
    boxes = (
        pending.clear().select("image_id").with_columns(*(pl.lit(0.0).alias(name) for name in BOX))
    )
    for _ in range(_TRIES):
        if not pending.height:
            break
        size = box_sizes[rng.integers(0, len(box_sizes), pending.height)]
        limit = pending.select("width", "height").to_numpy().astype(np.float64)
        size = np.minimum(size, limit)
        corner = rng.random((pending.height, 2)) * (limit - size)
        candidates = pending.with_columns(
            box_x=corner[:, 0], box_y=corner[:, 1], box_w=size[:, 0], box_h=size[:, 1]
        ).with_row_index("_row", offset=people.height)
        near = _find_overlapping_rows(candidates, truths)
        clear = ~pl.col("_row").is_in(near.implode())
        boxes = pl.concat([boxes, candidates.filter(clear).select("image_id", *BOX)])
        pending = candidates.filter(~clear).select(pending.columns)
    order = images.select("image_id").with_row_index("_place")
    boxes = boxes.join(order, on="image_id", maintain_order="left").sort(
        "_place", maintain_order=True
    )
    return boxes.with_columns(score=model.draw_confidence(np.zeros(boxes.height), "false alarms"))


def _find_image_sizes(dataset: Dataset, people: pl.DataFrame) -> pl.DataFrame:
    """Width and height of each image; where they are not known, how far its boxes reach."""
    reach = people.group_by("image_id", maintain_order=True).agg(
        reach_w=(pl.col("box_x") + pl.col("box_w")).max().fill_null(1.0).cast(pl.Float64),
        reach_h=(pl.col("box_y") + pl.col("box_h")).max().fill_null(1.0).cast(pl.Float64),
    )
    images = reach if dataset.images.is_empty() else left_join_in_order(dataset.images, reach)
    unknown = [pl.lit(None).alias(n) for n in ("width", "height") if n not in images.columns]
    return images.with_columns(unknown).select(
        "image_id",
        width=pl.coalesce(pl.col("width").cast(pl.Float64), "reach_w").fill_null(1.0),
        height=pl.coalesce(pl.col("height").cast(pl.Float64), "reach_h").fill_null(1.0),
    )


def _build_box_predictions(tables: Sequence[pl.DataFrame], model: SimulatedModel) -> pl.DataFrame:
    columns = ["image_id", "label", *BOX, "score"]
    rows = pl.concat([table.select(columns) for table in tables], how="vertical_relaxed")
    return rows.select(pl.lit(model.name).alias("model"), *columns)


_MASK = ("mask_counts", "mask_height", "mask_width")


def simulate_segmentation(
    dataset: Dataset, right: pl.DataFrame, model: SimulatedModel
) -> pl.DataFrame:
    """Simulate the masks of detected people."""
    people = join_is_right(dataset, right)
    if not set(_MASK) <= set(people.columns) or not people["mask_counts"].is_not_null().any():
        raise SpecError("nobody has a mask that could be found", expected=", ".join(_MASK))
    rng = model.stream("masks")
    loss = model.draw_iou_losses(rng, people.height)
    score = model.draw_confidence(np.ones(people.height), "masks")
    segmented_people = (
        people.with_columns(_loss=loss, score=score).filter("right").drop_nulls(list(_MASK))
    )
    counts = _cut_masks_at_column(segmented_people)
    cut = pl.Series("mask_counts", counts, dtype=pl.String)
    names = ("model", "image_id", "label", "score", *_MASK)
    return segmented_people.with_columns(
        cut, model=pl.lit(model.name), label=pl.lit("person")
    ).select(names)


def _cut_masks_at_column(people: pl.DataFrame) -> list[str]:
    """Cut each mask at a column; one that would lose half of its pixels or more stays whole."""
    if not people.height:
        return []
    height, width = people["mask_height"].to_numpy(), people["mask_width"].to_numpy()
    masks = masks_from_counts(people["mask_counts"], height, width)
    keep = 1.0 - people["_loss"].to_numpy()
    column = np.ceil(masks.box_xywh[:, 0] + keep * masks.box_xywh[:, 2]).astype(np.int64)
    last = np.repeat(column * masks.height, np.diff(masks.starts))
    edges = np.minimum(masks.edges, last).astype(np.int32)
    shorter = masks_from_edges(edges, masks.starts, masks.height, masks.width)
    is_uncut = shorter.area_px < MIN_MATCH_IOU * masks.area_px
    of_edge = np.repeat(is_uncut, np.diff(masks.starts))
    edges = np.where(of_edge, masks.edges, edges).astype(np.int32)
    runs = edges.reshape(-1, 2)
    has_pixels = runs[:, 1] > runs[:, 0]
    n_kept_runs = np.concatenate([[0], np.cumsum(has_pixels)])
    starts = 2 * n_kept_runs[masks.starts // 2]
    cut_masks = masks_from_edges(runs[has_pixels].reshape(-1), starts, masks.height, masks.width)
    return [mask["counts"].decode("ascii") for mask in masks_to_coco(cut_masks)]


_POINTS = ("keypoints_x", "keypoints_y", "keypoints_v")
_PER_JITTER = 0.01


def simulate_poses(dataset: Dataset, right: pl.DataFrame, model: SimulatedModel) -> pl.DataFrame:
    """Simulate the poses of detected people."""
    people = join_is_right(dataset, right)
    if not set(_POINTS) <= set(people.columns) or not people[_POINTS[0]].list.len().sum():
        raise SpecError("nobody has keypoints that could be found", expected=", ".join(_POINTS))
    score = model.draw_confidence(np.ones(people.height), "keypoints")
    rng = model.stream("keypoints")
    box_size = pl.lit(1.0)
    if set(BOX) <= set(people.columns):
        box_size = (pl.col("box_w") * pl.col("box_h")).sqrt().fill_null(1.0)
    scored_people = people.with_columns(score=score, _side=box_size).with_row_index("_row")
    labelled = scored_people.filter(pl.col("keypoints_x").list.len() > 0)
    long = labelled.select("_row", "_side", "right", *_POINTS).explode(list(_POINTS))
    spread = _PER_JITTER * model.jitter * long["_side"].to_numpy().astype(np.float64)
    jittered = long.with_columns(
        pl.col("keypoints_x").fill_null(0.0) + spread * rng.standard_normal(long.height),
        pl.col("keypoints_y").fill_null(0.0) + spread * rng.standard_normal(long.height),
        keypoints_v=pl.when(pl.col("keypoints_v").fill_null(0) > 0).then(2.0).otherwise(0.0),
    )
    poses = jittered.filter("right").group_by("_row", maintain_order=True).agg(*_POINTS)
    predictions = labelled.drop(_POINTS).join(poses, on="_row", maintain_order="left")
    boxes = [name for name in BOX if name in predictions.columns]
    names = ("model", "image_id", "label", *boxes, "score", *_POINTS)
    return predictions.with_columns(model=pl.lit(model.name), label=pl.lit("person")).select(names)
