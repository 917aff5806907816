"""Keypoints: object keypoint similarity (OKS), normalised distances, correct keypoints (PCK).

OKS is to poses what intersection over union is to boxes: 1 where every labelled keypoint is exact,
falling with the distance relative to the person's size and to the annotators' precision for that
keypoint. Only keypoints labelled in the truth count (visibility above 0).

References
----------
.. [1] Ruggero Ronchi, M. and Perona, P. (2017). Benchmarking and Error Diagnosis in Multi-Instance
   Pose Estimation. ICCV; https://cocodataset.org/#keypoints-eval (OKS and the 17 sigmas).
.. [2] Yang, Y. and Ramanan, D. (2013). Articulated Human Detection with Flexible Mixtures of
   Parts. IEEE TPAMI 35(12) (PCK).
.. [3] Andriluka, M. et al. (2014). 2D Human Pose Estimation: New Benchmark and State of the Art
   Analysis. CVPR (PCKh: half the head's length, here .6 of the head box's diagonal).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError
from isolux.geometry._pairs import (
    CERTAIN,
    Detections,
    FloatArray,
    IntArray,
    OverlapPairs,
    Truths,
    is_class_aware,
    rows_by_image,
)
from isolux.geometry.boxes import box_diagonal_xywh

COCO_KEYPOINTS: tuple[str, ...] = (
    *("nose", "left eye", "right eye", "left ear", "right ear"),
    *("left shoulder", "right shoulder", "left elbow", "right elbow"),
    *("left wrist", "right wrist", "left hip", "right hip"),
    *("left knee", "right knee", "left ankle", "right ankle"),
)
"""COCO's 17 keypoints, in order."""

# Divided by 10 as in pycocotools, so that the floats are equal.
COCO_SIGMAS: tuple[float, ...] = tuple(
    (
        np.array(
            [
                *(0.26, 0.25, 0.25, 0.35, 0.35, 0.79, 0.79, 0.72, 0.72),
                *(0.62, 0.62, 1.07, 1.07, 0.87, 0.87, 0.89, 0.89),
            ]
        )
        / 10.0
    ).tolist()
)
"""Annotators' precision of each: standard deviation over the square root of the person's area."""

_BATCH_PAIRS = 200_000  # pairs: with 17 keypoints some 30 MB an array


def pairs_oks(
    detected: FloatArray,
    truth: FloatArray,
    area_px: FloatArray,
    *,
    sigmas: FloatArray | tuple[float, ...] = COCO_SIGMAS,
    box_xywh: FloatArray | None = None,
) -> FloatArray:
    """Object keypoint similarity of aligned pairs: ``[p]``, 0 to 1, higher is better.

    Shapes: ``detected`` [p, K, 2 or more], ``truth`` [p, K, 3], ``area_px`` [p], ``sigmas`` [K],
    ``box_xywh`` [p, 4].

    Examples
    --------
    One keypoint, sigma .1, area 100 px, 2 px away: exp(-4 / (2 × 100 × (2 × .1)²)) = exp(-.5).

    >>> oks = pairs_oks(
    ...     np.array([[[2.0, 0.0]]]), np.array([[[0.0, 0, 2]]]), np.array([100.0]), sigmas=(0.1,)
    ... )
    >>> oks.round(4).tolist()
    [0.6065]
    """
    # COCO's computeOks: exp(-d² / (2 · area · (2 σ)²)) of each labelled keypoint, then their mean.
    variance_factor = (np.asarray(sigmas, dtype=np.float64) * 2) ** 2
    detected, truth = (
        _check_points(detected, len(variance_factor), 2),
        _check_points(truth, len(variance_factor), 3),
    )
    is_labelled = truth[..., 2] > 0
    offset = detected[..., :2] - truth[..., :2]
    # Of people without a labelled keypoint COCO takes the distance outside their extended box.
    is_unlabelled = np.asarray(is_labelled.sum(axis=1) == 0)
    if box_xywh is not None and is_unlabelled.any():
        offset[is_unlabelled] = _offset_outside_doubled_box(
            detected[is_unlabelled, :, :2], np.asarray(box_xywh)[is_unlabelled]
        )
        is_labelled = is_labelled | is_unlabelled[:, None]
    # pycocotools adds spacing(1), so that an area of 0 does not divide by 0.
    size = np.asarray(area_px, dtype=np.float64)[:, None] + np.spacing(1)
    exponent = (offset[..., 0] ** 2 + offset[..., 1] ** 2) / variance_factor / size / 2
    n_labelled = is_labelled.sum(axis=1)
    similarity_sum = np.where(is_labelled, np.exp(-np.where(is_labelled, exponent, 0.0)), 0.0).sum(
        axis=1
    )
    return _divide_or_nan(similarity_sum, n_labelled)


def keypoint_pairs(
    detections: Detections,
    truths: Truths,
    detected: FloatArray,
    truth: FloatArray,
    area_px: FloatArray,
    *,
    box_xywh: FloatArray | None = None,
    sigmas: FloatArray | tuple[float, ...] = COCO_SIGMAS,
    lowest_oks: float = 0.5,
) -> OverlapPairs:
    """Find the pairs of poses of one image (and class) that are similar enough.

    Shapes: ``detected`` [n, K, 2 or more], ``truth`` [m, K, 3], ``area_px`` [m], ``box_xywh`` [m,
    4].

    Examples
    --------
    >>> pose = np.array([[[5.0, 5.0, 2.0]]])
    >>> pairs = keypoint_pairs(
    ...     Detections(np.array([0]), np.array([0.9])),
    ...     Truths(np.array([0])),
    ...     *(pose, pose, np.array([100.0])),
    ...     sigmas=(0.1,),
    ... )
    >>> pairs.iou.tolist()
    [1.0]
    """
    if not 0 < lowest_oks <= 1:
        raise SpecError("the lowest similarity is not above 0 and at most 1", found=str(lowest_oks))
    _check_rows(detections, truths, detected, truth)
    d, t = _pair_all_rows(detections, truths)
    similarity = np.empty(len(d))
    for first in range(0, len(d), _BATCH_PAIRS):
        chunk = slice(first, first + _BATCH_PAIRS)
        rows = t[chunk]
        similarity[chunk] = pairs_oks(
            *(detected[d[chunk]], truth[rows], area_px[rows]),
            sigmas=sigmas,
            box_xywh=None if box_xywh is None else box_xywh[rows],
        )
    is_kept = similarity >= min(lowest_oks, CERTAIN)  # false for NaN
    d, t = d[is_kept], t[is_kept]
    image = np.asarray(detections.image, dtype=np.int64)[d]
    return OverlapPairs(image, d, t, similarity[is_kept], lowest_oks, len(detections), len(truths))


def normalised_distance(
    detected: FloatArray, truth: FloatArray, scale_px: FloatArray
) -> FloatArray:
    """Distance of each keypoint from its annotation over the person's scale: ``[n, K]``.

    Shapes: ``detected`` [n, K, 2 or more], ``truth`` [n, K, 3], ``scale_px`` [n]; returns [n, K].

    Examples
    --------
    >>> normalised_distance(
    ...     np.array([[[3.0, 4.0], [0, 0]]]), np.array([[[0.0, 0, 2], [9, 9, 0]]]), np.array([10.0])
    ... ).tolist()
    [[0.5, nan]]
    """
    truth = _check_points(truth, np.shape(truth)[1], 3)
    detected = _check_points(detected, truth.shape[1], 2)
    offset = detected[..., :2] - truth[..., :2]
    distance = np.sqrt(offset[..., 0] ** 2 + offset[..., 1] ** 2)
    # A keypoint that was not predicted is infinitely far: it is incorrect, not unscored.
    distance = np.where(np.isnan(detected[..., :2]).any(axis=-1), np.inf, distance)
    scale = np.asarray(scale_px, dtype=np.float64)[:, None]
    # In COCO, visibility 0 is a keypoint without a label.
    is_scored = (truth[..., 2] > 0) & (scale > 0)
    return _divide_or_nan(distance, np.where(is_scored, scale, 0.0))


def correct_keypoints(distance: FloatArray, fraction: float) -> FloatArray:
    """1 where a normalised distance is at most ``fraction``, 0 where not, NaN where not scored.

    Examples
    --------
    >>> correct_keypoints(np.array([[0.5, 0.6, np.nan]]), 0.5).tolist()
    [[1.0, 0.0, nan]]
    """
    if not fraction > 0:
        raise SpecError("the fraction of the scale is not above 0", found=str(fraction))
    return np.where(np.isnan(distance), np.nan, (distance <= fraction).astype(np.float64))


def pck(distance: FloatArray, fraction: float) -> FloatArray:
    """Share of a person's labelled keypoints within ``fraction`` of their scale: ``[n]``.

    Examples
    --------
    >>> pck(np.array([[0.5, 0.6, np.nan], [np.nan, np.nan, np.nan]]), 0.5).tolist()
    [0.5, nan]
    """
    is_correct = correct_keypoints(distance, fraction)
    n_scored = (~np.isnan(is_correct)).sum(axis=1)
    return _divide_or_nan(np.nansum(is_correct, axis=1), n_scored)


def head_length_xywh(head_boxes: FloatArray) -> FloatArray:
    """Head length as MPII's PCKh takes it: .6 of the diagonal of ``[n, 4]`` head boxes, in pixels.

    Examples
    --------
    >>> head_length_xywh(np.array([[0.0, 0, 30, 40]])).tolist()
    [30.0]
    """
    return 0.6 * box_diagonal_xywh(head_boxes)  # SC_BIAS in MPII's evaluation code


def _pair_all_rows(detections: Detections, truths: Truths) -> tuple[IntArray, IntArray]:
    """Pair every detection with every person of its image and class, sorted as pairs are."""
    n_images = 1 + max((int(s.image.max()) for s in (detections, truths) if len(s)), default=-1)
    by_d, by_t = (rows_by_image(s.image, n_images) for s in (detections, truths))
    order_d = np.arange(len(detections)) if by_d.in_order else by_d.order
    order_t = np.arange(len(truths)) if by_t.in_order else by_t.order
    image = np.asarray(detections.image)[order_d]
    n_partners = np.diff(by_t.starts)[image]
    d = np.repeat(order_d, n_partners)
    pair_starts = np.append(0, np.cumsum(n_partners))[:-1]
    position_in_image = np.arange(len(d)) - np.repeat(pair_starts, n_partners)
    t = order_t[np.repeat(by_t.starts[image], n_partners) + position_in_image]
    if (
        is_class_aware(detections, truths)
        and detections.label is not None
        and truths.label is not None
    ):
        has_same_label = detections.label[d] == truths.label[t]
        d, t = d[has_same_label], t[has_same_label]
    return d, t


def _offset_outside_doubled_box(points: FloatArray, box: FloatArray) -> FloatArray:
    """Distance of points outside a box extended by its own width and height on every side."""
    # computeOks: from x - width to x + 2 width, and likewise for the height.
    low = box[:, None, :2] - box[:, None, 2:]
    high = box[:, None, :2] + box[:, None, 2:] * 2
    return np.asarray(np.maximum(0, low - points) + np.maximum(0, points - high))


def _divide_or_nan(numerator: FloatArray, denominator: npt.NDArray[Any]) -> FloatArray:
    """Divide; NaN where the denominator is 0."""
    quotient = np.full(np.shape(numerator), np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator > 0)
    return quotient


def _check_points(points: FloatArray, keypoints: int, columns: int) -> FloatArray:
    point_array = np.asarray(points, dtype=np.float64)
    if point_array.ndim != 3 or point_array.shape[1] != keypoints or point_array.shape[2] < columns:
        raise SpecError(
            "keypoints are of the wrong shape",
            expected=f"[rows, {keypoints} keypoints, {columns} numbers or more]",
            found=f"shape {list(point_array.shape)}",
        )
    return point_array


def _check_rows(
    detections: Detections, truths: Truths, detected: FloatArray, truth: FloatArray
) -> None:
    if len(detected) != len(detections) or len(truth) != len(truths):
        raise SpecError(
            "there are not as many poses as rows",
            expected=f"{len(detections)} detected and {len(truths)} annotated",
            found=f"{len(detected)} and {len(truth)}",
        )


def boxes_around(points: FloatArray) -> FloatArray:
    """Find the boxes around labelled keypoints.

    Shapes: ``points`` [n, k, 3]; returns [n, 4].

    Examples
    --------
    >>> boxes_around(np.array([[[2.0, 3, 2], [7.0, 5, 1], [90.0, 90, 0]]])).tolist()
    [[2.0, 3.0, 5.0, 2.0]]
    """
    is_labelled = points[..., 2:] > 0
    # Infinity, so that a point without a label is never the outermost one.
    low = np.where(is_labelled, points[..., :2], np.inf).min(axis=1)
    high = np.where(is_labelled, points[..., :2], -np.inf).max(axis=1)
    is_empty = ~is_labelled.any(axis=(1, 2))
    low[is_empty], high[is_empty] = 0.0, 0.0
    return np.concatenate([low, high - low], axis=1)
