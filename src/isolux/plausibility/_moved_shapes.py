"""Predictions mirrored, moved, with other joints, or in another format in some of the images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from isolux.geometry.boxes import XYWH_CONVERSIONS, box_pairs_xywh
from isolux.geometry.matching import Detections, Truths, match_best_overlap
from isolux.geometry.previews import ShapePreview, ShapeRows
from isolux.plausibility._shape_halves import Halves, is_gain
from isolux.stats.statistic import FloatArray

# A shift is looked for in steps of this share of a box's middle side.
_SHIFT_STEP = 0.25
# Poses are paired with people by the boxes around them, whatever the order of their joints.
_MIN_POSE_IOU = 0.3
# Two names for nearly the same fit: the simpler one is named.
_SIMPLER_GAIN = 0.02
# People whose shapes are in another format: they fit so much better, and well. In a file of one
# format hardly any shape does.
_MIN_PERSON_GAIN, _MIN_PERSON_SIMILARITY = 0.3, 0.5
_MIN_PEOPLE, _MIN_IMAGES, _MIN_SHARE = 5, 3, 0.02


def find_best_transformation_with_similarities(
    preview: ShapePreview,
) -> tuple[str, FloatArray, FloatArray] | None:
    """Find the transformation of predictions that fits people far better, with both similarities.

    Returns words for it and the similarities before and after, ``[m]``, or None.
    """
    halves = Halves.split(preview)
    if not halves.have_enough():
        return None
    before = preview.best_similarity(preview.predicted)
    best: tuple[str, FloatArray] | None = None
    for words, transformed in _list_transformations(preview, halves):
        after = preview.best_similarity(transformed)
        bar = -1.0 if best is None else best[1][halves.chosen_on].mean() + _SIMPLER_GAIN
        if after[halves.chosen_on].mean() > bar:
            best = words, after
    if best is None or not is_gain(before, best[1], halves):
        return None
    return best[0], before, best[1]


def _list_transformations(preview: ShapePreview, halves: Halves) -> Iterator[tuple[str, ShapeRows]]:
    """Yield transformed predictions and words for them, simpler ones first."""
    shapes, size = preview.predicted, preview.size_px[preview.predicted.image]
    flipped = _mirror(shapes, size, axis=1)
    yield "y is counted from the bottom of the image", flipped
    mirrored = _mirror(shapes, size, axis=0)
    yield "they are mirrored, left to right", mirrored
    if shapes.points is not None:
        exchange = _left_right_order(preview.keypoints)
        if exchange is not None:
            yield "left and right joints are exchanged", _reorder(shapes, exchange)
            words = "they are mirrored, and left and right joints exchanged"
            yield words, _reorder(mirrored, exchange)
        yield (
            "the joints are in reverse order",
            _reorder(shapes, np.arange(len(preview.keypoints))[::-1]),
        )
    shift = _find_shift(preview, halves)
    if shift is not None:
        words = _describe_shift(shift)
        shifted = replace(shapes, box_xywh=shapes.box_xywh + np.append(shift, [0.0, 0.0]))
        if shapes.points is not None:
            shifted = replace(shifted, points=shapes.points + np.append(shift, 0.0))
        yield f"they are moved by {words}", shifted
    if shapes.points is not None:
        order = _find_joint_order(preview, halves)
        if order is not None:
            names = preview.keypoints
            examples = ", ".join(
                f"{names[k]} stands where {names[int(order[k])]} should"
                for k in np.flatnonzero(order != np.arange(len(order)))[:3]
            )
            yield f"the joints are in another order ({examples}, …)", _reorder(shapes, order)


def _mirror(shapes: ShapeRows, size_px: FloatArray, *, axis: int) -> ShapeRows:
    """Mirror boxes and points at the middle of their image; unchanged where its size is unknown."""
    side_px = size_px[:, axis]
    is_known = np.isfinite(side_px)
    boxes = shapes.box_xywh.copy()
    boxes[is_known, axis] = (side_px - boxes[:, axis] - boxes[:, axis + 2])[is_known]
    if shapes.points is None:
        return replace(shapes, box_xywh=boxes)
    points = shapes.points.copy()
    points[is_known, :, axis] = (side_px[:, None] - points[:, :, axis])[is_known]
    return replace(shapes, box_xywh=boxes, points=points)


def _reorder(shapes: ShapeRows, order: npt.NDArray[np.int64]) -> ShapeRows:
    """Take predicted joint ``order[k]`` for joint ``k``."""
    return replace(shapes, points=None if shapes.points is None else shapes.points[:, order])


def _left_right_order(names: tuple[str, ...]) -> npt.NDArray[np.int64] | None:
    """Return the order that exchanges left and right joints, by their names."""
    exchanged = [
        name.replace("left", "\0").replace("right", "left").replace("\0", "right") for name in names
    ]
    if exchanged == list(names) or not set(exchanged) <= set(names):
        return None
    return np.array([names.index(name) for name in exchanged])


def _find_shift(preview: ShapePreview, halves: Halves) -> FloatArray | None:
    """Find the most frequent difference in place of people and predictions of one image: x, y."""
    people_boxes = _outline(preview.people)
    predicted_boxes = _outline(preview.predicted)
    of_image: dict[int, list[int]] = {}
    for row, image in enumerate(preview.predicted.image):
        of_image.setdefault(int(image), []).append(row)
    differences = [
        _centres(people_boxes[person]) - _centres(predicted_boxes[of_image[image]])
        for person, image in enumerate(preview.people.image.tolist())
        if halves.chosen_on[person] and image in of_image
    ]
    sides_px = people_boxes[:, 2:][people_boxes[:, 2:] > 0]
    if not differences or not len(sides_px):
        return None
    offsets = np.vstack(differences)
    step = max(_SHIFT_STEP * float(np.median(sides_px)), 1.0)
    bins, counts = np.unique(np.round(offsets / step), axis=0, return_counts=True)
    mode = bins[np.argmax(counts)] * step
    is_near = (np.abs(offsets - mode) <= 1.5 * step).all(axis=1)
    return np.asarray(np.median(offsets[is_near], axis=0))


def _describe_shift(shift_px: FloatArray) -> str:
    directions = (("to the left", "to the right"), ("up", "down"))
    phrases = [
        f"{abs(pixels):,.0f} pixels {words[int(pixels > 0)]}"
        for pixels, words in zip(shift_px, directions, strict=True)
        if abs(pixels) >= 1
    ]
    return " and ".join(phrases)


def _outline(shapes: ShapeRows) -> FloatArray:
    """Return boxes, or the boxes around labelled joints: ``[n, 4]``."""
    if shapes.points is None:
        return shapes.box_xywh
    is_labelled = (shapes.points[:, :, :2] != 0).any(axis=2) & np.isfinite(shapes.points[:, :, 0])
    points = np.where(is_labelled[:, :, None], shapes.points[:, :, :2], np.nan)
    has_points = is_labelled.any(axis=1)
    boxes = np.zeros((len(points), 4))
    lower, upper = (bound(points[has_points], axis=1) for bound in (np.nanmin, np.nanmax))
    boxes[has_points] = np.hstack([lower, upper - lower])
    return boxes


def _centres(boxes: FloatArray) -> FloatArray:
    return np.asarray(boxes[..., :2] + boxes[..., 2:] / 2)


def _find_joint_order(preview: ShapePreview, halves: Halves) -> npt.NDArray[np.int64] | None:
    """Assign predicted joints to annotated ones, one to one, by their distances over all people."""
    from scipy.optimize import linear_sum_assignment

    assert preview.people.points is not None  # noqa: S101 - the caller asks for poses
    assert preview.predicted.points is not None  # noqa: S101
    assert preview.area_px is not None  # noqa: S101
    pairs = box_pairs_xywh(
        Detections(preview.predicted.image, preview.score),
        Truths(preview.people.image),
        _outline(preview.predicted),
        _outline(preview.people),
        lowest_iou=_MIN_POSE_IOU,
    )
    pose = match_best_overlap(pairs).truth_detection
    people = np.flatnonzero((pose >= 0) & halves.chosen_on)
    if not len(people):
        return None
    truth, predicted = preview.people.points[people], preview.predicted.points[pose[people]]
    scale = np.sqrt(preview.area_px[people])[:, None, None]
    n_joints, middle = truth.shape[1], 1
    cost = np.full((n_joints, n_joints), 1e6)
    for k in range(n_joints):  # of joint k to each predicted one
        is_labelled = truth[:, k, 2] > 0
        if is_labelled.any():
            gaps = predicted[is_labelled, :, :2] - truth[is_labelled, k : k + 1, :2]
            distance = np.linalg.norm(gaps / scale[is_labelled], axis=2)
            cost[k] = np.nan_to_num(np.nanmedian(distance, axis=0), nan=1e6)
    order = linear_sum_assignment(cost)[middle]
    return None if (order == np.arange(n_joints)).all() else order


def find_mixed_formats(preview: ShapePreview) -> tuple[str, int, int] | None:
    """Find shapes that fit if read otherwise than all others: words, images with such, of all."""
    predicted = preview.predicted
    images = np.unique(predicted.image)
    before = preview.best_similarity(predicted)
    best_words, n_best = "", 0
    for words, transformed in _list_readings(predicted, preview.size_px[predicted.image]):
        after = preview.best_similarity(transformed)
        is_other = (after >= before + _MIN_PERSON_GAIN) & (after >= _MIN_PERSON_SIMILARITY)
        n = len(np.unique(preview.people.image[is_other]))
        is_many = is_other.sum() >= max(_MIN_PEOPLE, _MIN_SHARE * len(before))
        if is_many and n >= max(_MIN_IMAGES, _MIN_SHARE * len(images)) and n > n_best:
            best_words, n_best = words, n
    return (best_words, n_best, len(images)) if n_best else None


def _list_readings(shapes: ShapeRows, size_px: FloatArray) -> Iterator[tuple[str, ShapeRows]]:
    """Yield shapes read in other formats and at other sizes, with words for each."""
    for name, convert in XYWH_CONVERSIONS.items():
        if name != "xywh" and shapes.points is None:
            box = convert(*shapes.box_xywh.T)
            columns = np.column_stack(
                [box.x, box.y, np.maximum(box.width, 0), np.maximum(box.height, 0)]
            )
            words = f"their four numbers are read as {name}"
            yield words, replace(shapes, box_xywh=columns)
    for words, factor in (
        ("they are multiplied by the size of the image", np.nan_to_num(size_px)),
        ("they are multiplied by 2", np.full_like(size_px, 2.0)),
        ("they are halved", np.full_like(size_px, 0.5)),
    ):
        points = shapes.points
        if points is not None:
            points = np.concatenate([points[:, :, :2] * factor[:, None], points[:, :, 2:]], axis=2)
        yield words, replace(shapes, box_xywh=shapes.box_xywh * np.tile(factor, 2), points=points)
