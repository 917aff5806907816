"""Poses of people and of predictions: from lists to arrays, and who was given which pose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.geometry.boxes import box_diagonal_xywh
from isolux.geometry.keypoints import (
    COCO_KEYPOINTS,
    COCO_SIGMAS,
    head_length_xywh,
    keypoint_pairs,
    pairs_oks,
)
from isolux.geometry.matching import Pairs, limit_detections, match, match_best_overlap
from isolux.stats.statistic import FloatArray
from isolux.tasks._boxes.matching import Asked
from isolux.tasks._boxes.table import BOX, Found, People
from isolux.vocabulary.errors import SpecError, TableError, place

FACE_BOX = tuple(f"face_{side}" for side in BOX)
NO_POINTS = {
    "no labelled keypoint": pl.col("keypoints_x").is_null()
    | pl.col("keypoints_y").is_null()
    | (pl.col("keypoints_v").cast(pl.List(pl.Int64)).list.max().fill_null(0) <= 0)
}
SCALES = {
    "face-diagonal": (FACE_BOX, "no face box"),
    "head-length": (FACE_BOX, "no face box"),
    "box-diagonal": (BOX, "no box"),
}
"""What a distance is divided by: the columns it needs, and why there is none."""
_FAR = 1e9  # px: where a keypoint that was not predicted is taken to be


@dataclass(frozen=True, slots=True)
class Poses:
    """Annotated poses ``[m, K, 3]``, the keypoints' names, and what similarity goes by."""

    points: FloatArray
    names: tuple[str, ...]
    area_px: FloatArray
    box_xywh: FloatArray
    sigmas: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Assigned:
    """The pose that each person was given.

    ``points [m, K, 3]`` is NaN, and ``similarity [m]`` is 0, for people who were given none.
    """

    points: FloatArray
    similarity: FloatArray


def poses_of(people: People, sigmas: Sequence[float] | None, area_of_box: float = 1.0) -> Poses:
    """Read the poses of people. An area not given is that share of the box."""
    rows = people.rows
    names = _names(rows)
    size = len(names)
    if sigmas is None and size not in (0, len(COCO_SIGMAS)):
        raise SpecError(
            "similarity of poses needs the keypoints' spread, known for COCO's 17 alone",
            expected=f"sigmas, {size} numbers",
            found="none",
            where="sigmas",
        )
    spread = tuple(COCO_SIGMAS if sigmas is None else sigmas)
    if size and (len(spread) != size or not all(s > 0 for s in spread)):
        raise SpecError(
            "sigmas do not fit the keypoints",
            expected=f"{size} numbers above 0",
            found=f"{len(spread)} numbers",
            where="sigmas",
        )
    points = _points(rows, size, "keypoints of people")
    boxes = _boxes(rows, BOX)
    area = boxes[:, 2] * boxes[:, 3] * area_of_box
    if "area" in rows.columns:
        given = rows["area"].cast(pl.Float64).to_numpy()
        area = np.where(np.isnan(given), area, given)
    return Poses(points, names, area, boxes, spread[:size])


def pose_pairs(found: Found, people: People, poses: Poses, lowest_oks: float) -> Pairs:
    """Find the pairs of a person and a prediction whose similarity is at least ``lowest_oks``."""
    drawn = _points(found.rows, len(poses.names), "predictions")
    return keypoint_pairs(
        found.detections,
        people.truths,
        np.nan_to_num(drawn, nan=_FAR),
        poses.points,
        poses.area_px,
        box_xywh=poses.box_xywh,
        sigmas=poses.sigmas,
        lowest_oks=lowest_oks,
    )


def assign(asked: Asked, poses: Poses, lowest_oks: float) -> Assigned:
    """Give each person the pose that the matching gives them from ``lowest_oks`` on."""
    found, people, pairs = asked.found, asked.people, asked.pairs
    limit = asked.settings.max_detections
    if limit is not None:
        pairs = limit_detections(pairs, found.detections, limit)
    pairs = pairs.where(pairs.iou >= lowest_oks)
    if asked.settings.matching == "best-overlap":
        chosen = match_best_overlap(pairs).truth_detection
    else:
        chosen = match(
            pairs, found.detections, people.truths, max_detections=None, thresholds=(lowest_oks,)
        ).truth_detection[:, 0]
    given = np.flatnonzero(chosen >= 0)
    drawn = _points(found.rows, len(poses.names), "predictions")[chosen[given]]
    points = np.full_like(poses.points, np.nan)
    points[given] = drawn
    similarity = np.zeros(len(points))
    if len(given):
        similarity[given] = pairs_oks(
            np.nan_to_num(drawn, nan=_FAR),
            poses.points[given],
            poses.area_px[given],
            sigmas=poses.sigmas,
        )
    return Assigned(points, np.nan_to_num(similarity))


def scale_of(people: People, scale: str) -> FloatArray:
    """Return what each person's distances are divided by, in pixels; NaN where there is none."""
    boxes = _boxes(people.rows, SCALES[scale][0])
    measure = head_length_xywh if scale == "head-length" else box_diagonal_xywh
    found = measure(boxes)
    return np.where(found > 0, found, np.nan)


def _boxes(rows: pl.DataFrame, columns: Sequence[str]) -> FloatArray:
    none = np.full(rows.height, np.nan)
    sides = [rows[c].cast(pl.Float64).to_numpy() if c in rows.columns else none for c in columns]
    return np.column_stack(sides)


def _names(rows: pl.DataFrame) -> tuple[str, ...]:
    if "keypoint_names" in rows.columns:
        kinds = rows["keypoint_names"].drop_nulls().unique()
        if len(kinds) > 1:
            raise SpecError(
                "people have different keypoints",
                expected="one list of keypoint_names for everyone",
                found=f"{len(kinds)} lists",
                hint="judge one class at a time: person_class",
            )
        if len(kinds):
            return tuple(kinds[0])
    size = int(rows["keypoints_v"].list.len().max() or 0)  # type: ignore[arg-type]
    if size == len(COCO_KEYPOINTS):
        return COCO_KEYPOINTS
    return tuple(f"keypoint {k + 1}" for k in range(size))


def _points(rows: pl.DataFrame, size: int, where: str) -> FloatArray:
    """Stack x, y and visibility: ``[n, size, 3]``; 0 for who has none, NaN for a missing x or y."""
    points = np.zeros((rows.height, size, 3))
    columns = ("keypoints_x", "keypoints_y", "keypoints_v")
    held = rows.select(pl.all_horizontal(pl.col(c).list.len() > 0 for c in columns)).to_series()
    at = np.flatnonzero(held.fill_null(value=False).to_numpy())
    for k, column in enumerate(columns):
        lists = rows[column][at]
        wrong = (lists.list.len() != size).arg_true()
        if len(wrong):
            raise TableError(
                "a pose has another number of keypoints",
                expected=f"{size}, as the people of the dataset",
                found=str(len(lists[int(wrong[0])])),
                where=place(where, int(at[int(wrong[0])]) + 1, column),
            )
        if len(at) and size:
            flat = lists.explode().cast(pl.Float64).to_numpy()
            points[at, :, k] = flat.reshape(-1, size)
    return points
