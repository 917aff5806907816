"""Annotated and predicted poses as arrays, and the assignment of poses to people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux.core.errors import SpecError, TableError, format_location
from isolux.geometry.boxes import box_diagonal_xywh
from isolux.geometry.keypoints import (
    COCO_KEYPOINTS,
    COCO_SIGMAS,
    head_length_xywh,
    keypoint_pairs,
    pairs_oks,
)
from isolux.geometry.matching import OverlapPairs, limit_detections, match, match_best_overlap
from isolux.geometry.previews import ShapePreview
from isolux.stats.statistic import FloatArray
from isolux.tasks._boxes.instance_tables import BOX, AnnotatedInstances, ModelDetections
from isolux.tasks._boxes.matching import ModelMatches
from isolux.tasks._boxes.shape_previews import select_preview_rows

FACE_BOX = tuple(f"face_{column}" for column in BOX)
# pycocotools ignores people without a labelled keypoint: no similarity is defined for them.
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
_UNPREDICTED_PX = 1e9  # position given to an unpredicted keypoint: its similarity is 0


@dataclass(frozen=True, slots=True)
class AnnotatedPoses:
    """Annotated poses ``[m, K, 3]``, keypoint names, and the areas, boxes and sigmas of OKS."""

    points: FloatArray
    names: tuple[str, ...]
    area_px: FloatArray
    box_xywh: FloatArray
    sigmas: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PoseAssignment:
    """The predicted pose that was matched to each person.

    ``points [m, K, 3]`` is NaN, and ``similarity [m]`` is 0, for people who were given none.
    """

    points: FloatArray
    similarity: FloatArray


def read_poses(
    people: AnnotatedInstances, sigmas: Sequence[float] | None, area_of_box: float = 1.0
) -> AnnotatedPoses:
    """Read annotated poses; an unknown area is ``area_of_box`` of the box."""
    rows = people.rows
    names = _read_keypoint_names(rows)
    n_keypoints = len(names)
    # COCO measured the annotators' spread of its own 17 keypoints only; guessed ones would change
    # OKS.
    if sigmas is None and n_keypoints not in (0, len(COCO_SIGMAS)):
        raise SpecError(
            "similarity of poses needs the keypoints' spread, known for COCO's 17 alone",
            expected=f"sigmas, {n_keypoints} numbers",
            found="none",
            where="sigmas",
        )
    sigma_values = tuple(COCO_SIGMAS if sigmas is None else sigmas)
    if n_keypoints and (len(sigma_values) != n_keypoints or not all(s > 0 for s in sigma_values)):
        raise SpecError(
            "sigmas do not fit the keypoints",
            expected=f"{n_keypoints} numbers above 0",
            found=f"{len(sigma_values)} numbers",
            where="sigmas",
        )
    points = _stack_keypoints(rows, n_keypoints, "keypoints of people")
    boxes = _box_matrix(rows, BOX)
    area = boxes[:, 2] * boxes[:, 3] * area_of_box
    if "area" in rows.columns:
        known_area = rows["area"].cast(pl.Float64).to_numpy()
        area = np.where(np.isnan(known_area), area, known_area)
    return AnnotatedPoses(points, names, area, boxes, sigma_values[:n_keypoints])


def find_pose_pairs(
    predictions: ModelDetections,
    people: AnnotatedInstances,
    poses: AnnotatedPoses,
    lowest_oks: float,
) -> OverlapPairs:
    """Find the pairs of a person and a prediction whose similarity is at least ``lowest_oks``."""
    points = _stack_keypoints(predictions.rows, len(poses.names), "predictions")
    return keypoint_pairs(
        predictions.detections,
        people.truths,
        np.nan_to_num(points, nan=_UNPREDICTED_PX),
        poses.points,
        poses.area_px,
        box_xywh=poses.box_xywh,
        sigmas=poses.sigmas,
        lowest_oks=lowest_oks,
    )


def build_pose_previews(
    predictions: object,
    people: AnnotatedInstances,
    person_label: str | Sequence[str] | None,
    poses: AnnotatedPoses,
) -> tuple[ShapePreview, ...]:
    """Build a preview of poses for each model."""
    previews = []
    for rows in select_preview_rows(predictions, people):
        preview = rows.build(people, person_label)
        points = _stack_keypoints(rows.predicted, len(poses.names), "predictions")
        previews.append(
            replace(
                preview,
                people=replace(preview.people, points=poses.points[rows.person_rows]),
                predicted=replace(preview.predicted, points=points),
                area_px=poses.area_px[rows.person_rows],
                sigmas=poses.sigmas,
                keypoints=poses.names,
            )
        )
    return tuple(previews)


def assign_poses(matches: ModelMatches, poses: AnnotatedPoses, lowest_oks: float) -> PoseAssignment:
    """Assign each person the pose that matching gives them at ``lowest_oks``."""
    predictions, people, pairs = matches.predictions, matches.people, matches.pairs
    limit = matches.settings.max_detections
    if limit is not None:
        pairs = limit_detections(pairs, predictions.detections, limit)
    # Pairs were found down to any metric's lowest threshold, which may be lower still.
    pairs = pairs.select(pairs.iou >= lowest_oks)
    if matches.settings.matching == "best-overlap":
        pose_index = match_best_overlap(pairs).truth_detection
    else:
        pose_index = match(
            pairs,
            predictions.detections,
            people.truths,
            max_detections=None,
            # One matching at the lowest similarity: mean OKS counts poor poses too, with their own
            # value.
            thresholds=(lowest_oks,),
        ).truth_detection[:, 0]
    assigned_rows = np.flatnonzero(pose_index >= 0)
    assigned_points = _stack_keypoints(predictions.rows, len(poses.names), "predictions")[
        pose_index[assigned_rows]
    ]
    points = np.full_like(poses.points, np.nan)
    points[assigned_rows] = assigned_points
    similarity = np.zeros(len(points))
    if len(assigned_rows):
        similarity[assigned_rows] = pairs_oks(
            np.nan_to_num(assigned_points, nan=_UNPREDICTED_PX),
            poses.points[assigned_rows],
            poses.area_px[assigned_rows],
            sigmas=poses.sigmas,
        )
    # Without an area OKS is NaN; such people are not scored.
    return PoseAssignment(points, np.nan_to_num(similarity))


def measure_scale(people: AnnotatedInstances, scale: str) -> FloatArray:
    """Measure the length that normalises each person's distances, in pixels; NaN: none."""
    boxes = _box_matrix(people.rows, SCALES[scale][0])
    measure_boxes = head_length_xywh if scale == "head-length" else box_diagonal_xywh
    length_px = measure_boxes(boxes)
    # A box without extent has no scale: every distance would be infinite.
    return np.where(length_px > 0, length_px, np.nan)


def _box_matrix(rows: pl.DataFrame, columns: Sequence[str]) -> FloatArray:
    missing = np.full(rows.height, np.nan)
    values = [
        rows[c].cast(pl.Float64).to_numpy() if c in rows.columns else missing for c in columns
    ]
    return np.column_stack(values)


def _read_keypoint_names(rows: pl.DataFrame) -> tuple[str, ...]:
    if "keypoint_names" in rows.columns:
        name_lists = rows["keypoint_names"].drop_nulls().unique()
        # Position k must mean the same keypoint for everyone.
        if len(name_lists) > 1:
            raise SpecError(
                "people have different keypoints",
                expected="one list of keypoint_names for everyone",
                found=f"{len(name_lists)} lists",
                hint="judge one class at a time: person_class",
            )
        if len(name_lists):
            return tuple(name_lists[0])
    n_keypoints = int(rows["keypoints_v"].list.len().max() or 0)  # type: ignore[arg-type]
    # 17 unnamed keypoints are taken to be COCO's.
    if n_keypoints == len(COCO_KEYPOINTS):
        return COCO_KEYPOINTS
    return tuple(f"keypoint {k + 1}" for k in range(n_keypoints))


def _stack_keypoints(rows: pl.DataFrame, n_keypoints: int, source: str) -> FloatArray:
    """Stack x, y and visibility: ``[n, K, 3]``; 0 without a pose, NaN for missing x or y."""
    points = np.zeros((rows.height, n_keypoints, 3))
    columns = ("keypoints_x", "keypoints_y", "keypoints_v")
    # An empty list or a null is a detection without a pose; it stays at 0, unlabelled.
    has_points = rows.select(
        pl.all_horizontal(pl.col(c).list.len() > 0 for c in columns)
    ).to_series()
    pose_rows = np.flatnonzero(has_points.fill_null(value=False).to_numpy())
    for k, column in enumerate(columns):
        lists = rows[column][pose_rows]
        has_other_length = (lists.list.len() != n_keypoints).arg_true()
        if len(has_other_length):
            raise TableError(
                "a pose has another number of keypoints",
                expected=f"{n_keypoints}, as the people of the dataset",
                found=str(len(lists[int(has_other_length[0])])),
                where=format_location(source, int(pose_rows[int(has_other_length[0])]) + 1, column),
            )
        if len(pose_rows) and n_keypoints:
            flat_values = lists.explode().cast(pl.Float64).to_numpy()
            points[pose_rows, :, k] = flat_values.reshape(-1, n_keypoints)
    return points
