"""Boxes: their overlap, and the pairs of boxes that overlap enough.

The frame of coordinates is part of every name. ``xywh``: left, top, width, height, in pixels, y
downwards.

Two conventions exist for where a box ends. COCO's: coordinates lie between pixels, a box from 0 to
10 is 10 wide. WIDER FACE's evaluation and scalabel's: coordinates are pixels, and a box from pixel
0 to pixel 10 has 11 of them. ``pixel_inclusive=True`` is the second, always by name. It adds one
pixel: do it in the conversion (scalabel does) or in the overlap (WIDER FACE does), not in both.

A box of zero area overlaps nothing (with ``pixel_inclusive`` it is one pixel thick and may); one of
negative width or height, or with a coordinate that is not a number, never overlaps anything. No
function here repairs a box: ``check_boxes_xywh`` refuses faulty ones and names the row.

References
----------
.. [1] Lin, T.-Y. et al. (2014). Microsoft COCO: Common Objects in Context. ECCV. Evaluation code:
   https://github.com/cocodataset/cocoapi (``bbIou``).
.. [2] Yang, S. et al. (2016). WIDER FACE: A Face Detection Benchmark. CVPR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError, TableError, format_location
from isolux.geometry._pairs import (
    CERTAIN,
    BoolArray,
    Detections,
    FloatArray,
    IntArray,
    OverlapPairs,
    Truths,
    find_in_image_chunks,
    is_class_aware,
    rows_by_image,
)


@dataclass(frozen=True, slots=True)
class BoxColumns:
    """Boxes as four columns of a frame, each ``[n]``, in pixels: no copy into a matrix."""

    x: FloatArray
    y: FloatArray
    width: FloatArray
    height: FloatArray


XYWH_CONVERSIONS: Mapping[str, Callable[..., BoxColumns]] = {
    "xywh": BoxColumns,
    # torchvision and most PyTorch detectors.
    "xyxy": lambda a, b, c, d: BoxColumns(a, b, c - a, d - b),
    # YOLO and DETR.
    "cxcywh": lambda a, b, c, d: BoxColumns(a - c / 2, b - d / 2, c, d),
    "yxhw": lambda a, b, c, d: BoxColumns(b, a, d, c),
    # The TensorFlow Object Detection API.
    "yxyx": lambda a, b, c, d: BoxColumns(b, a, d - b, c - a),
}
"""By name of a format: left, top, width, height from its four columns."""


def box_diagonal_xywh(boxes: FloatArray) -> FloatArray:
    """Length of the diagonal of ``[..., 4]`` boxes in pixels, ``[...]``.

    Examples
    --------
    >>> float(box_diagonal_xywh(np.array([7.0, 7, 3, 4])))
    5.0
    """
    size_px = _check_box_array(boxes)[..., 2:]
    return np.asarray(np.hypot(size_px[..., 0], size_px[..., 1]))


def pairs_iou_xywh(
    detections: FloatArray,
    truths: FloatArray,
    *,
    crowd: BoolArray | None = None,
    pixel_inclusive: bool = False,
) -> FloatArray:
    """Overlap of each box with the one in the same row: ``[p, 4]`` and ``[p, 4]`` give ``[p]``.

    Examples
    --------
    >>> a = np.array([[0.0, 0, 10, 10], [0, 0, 1, 1]])
    >>> pairs_iou_xywh(a, a + [0, 5, 0, 0]).round(3).tolist()
    [0.333, 0.0]
    """
    d, t = _check_box_array(detections), _check_box_array(truths)
    crowds = np.zeros(len(t), np.bool_) if crowd is None else np.asarray(crowd)
    return _box_overlap(d, t, crowds, float(pixel_inclusive))


def box_pairs_xywh(
    detections: Detections,
    truths: Truths,
    detection_boxes: FloatArray | BoxColumns,
    truth_boxes: FloatArray | BoxColumns,
    *,
    lowest_iou: float = 0.5,
    pixel_inclusive: bool = False,
    n_threads: int = 1,
) -> OverlapPairs:
    """Find the pairs of one image (and class, where both have labels) that overlap enough.

    Shapes: ``detection_boxes, truth_boxes`` [n, 4].

    Examples
    --------
    >>> pairs = box_pairs_xywh(
    ...     Detections(np.array([0, 0]), np.array([0.9, 0.8])),
    ...     Truths(np.array([0, 1])),
    ...     np.array([[0.0, 0, 10, 10], [50, 50, 10, 10]]),
    ...     np.array([[0.0, 0, 10, 8], [50, 50, 10, 10]]),
    ... )
    >>> pairs.detection.tolist(), pairs.truth.tolist(), pairs.iou.tolist()
    ([0], [0], [0.8])
    """
    return find_candidate_pairs(
        (detections, truths),
        (box_columns(detection_boxes, len(detections)), box_columns(truth_boxes, len(truths))),
        lowest_iou=lowest_iou,
        extra=float(pixel_inclusive),
        n_threads=n_threads,
    )


def build_pair_finder_xywh(
    detections: Detections,
    truths: Truths,
    truth_boxes: FloatArray | BoxColumns,
    *,
    lowest_iou: float = 0.5,
) -> Callable[[FloatArray | BoxColumns], OverlapPairs]:
    """Return a function that does ``box_pairs_xywh`` for other boxes of the same detections.

    Examples
    --------
    >>> found, people = Detections(np.array([0]), np.array([0.9])), Truths(np.array([0]))
    >>> pairs_of = build_pair_finder_xywh(found, people, np.array([[0.0, 0, 10, 8]]))
    >>> [pairs_of(np.array([[0.0, 0, 10, height]])).iou.tolist() for height in (10, 8)]
    [[0.8], [1.0]]
    """
    find, truth_columns = (
        _build_pair_finder((detections, truths), lowest_iou),
        box_columns(truth_boxes, len(truths)),
    )
    return lambda boxes: find((box_columns(boxes, len(detections)), truth_columns))


def check_boxes_xywh(
    boxes: FloatArray,
    *,
    zero_area: Literal["allow", "refuse"] = "allow",
    file: object | None = None,
) -> None:
    """Refuse boxes ``[n, 4]`` that cannot be boxes, naming the first faulty row (counted from 1).

    Examples
    --------
    >>> check_boxes_xywh(np.array([[0.0, 0, 5, 5], [3, 3, -1, 4]]), file="boxes.json")
    Traceback (most recent call last):
    isolux.core.errors.TableError: a box has a negative width or height
      expected: left, top, width, height in pixels
      found: [3.0, 3.0, -1.0, 4.0], and 1 such row in all
      where: boxes.json, row 2
    """
    boxes = _check_box_array(boxes)
    faults = {
        "a box has a coordinate that is not a finite number": ~np.isfinite(boxes).all(1),
        "a box has a negative width or height": (boxes[:, 2:] < 0).any(1),
        "a box has no area": (boxes[:, 2:] == 0).any(1) & (zero_area == "refuse"),
    }
    for fault, rows in faults.items():
        if rows.any():
            row, count = int(np.argmax(rows)), int(rows.sum())
            raise TableError(
                fault,
                expected="left, top, width, height in pixels",
                found=f"{boxes[row].tolist()}, and {count} such row{'s' * (count > 1)} in all",
                where=format_location(file, row + 1),
            )


def _box_overlap(d: FloatArray, t: FloatArray, crowd: BoolArray, extra_px: float) -> FloatArray:
    """Compute intersection over union, broadcast, in the order of pycocotools' ``bbIou``."""
    low = np.maximum(d[..., :2], t[..., :2])
    common_size = np.minimum(d[..., 2:] + d[..., :2], t[..., 2:] + t[..., :2]) - low + extra_px
    # A product of two negative sides would be positive: has_overlap excludes it.
    has_overlap = (common_size > 0).all(-1) & (d[..., 2:] >= 0).all(-1) & (t[..., 2:] >= 0).all(-1)
    common = common_size[..., 0] * common_size[..., 1]
    area = (d[..., 2] + extra_px) * (d[..., 3] + extra_px)
    truth_area = (t[..., 2] + extra_px) * (t[..., 3] + extra_px)
    # Of a crowd the union is the detection's own area, as in COCO's evaluation.
    union = np.where(crowd, area, area + truth_area - common)
    return np.divide(common, union, out=np.zeros_like(common), where=has_overlap & (union > 0))


def find_candidate_pairs(
    tables: tuple[Detections, Truths],
    boxes: tuple[BoxColumns, BoxColumns],
    *,
    lowest_iou: float,
    extra: float = 0.0,
    areas: tuple[FloatArray, FloatArray] | None = None,
    n_threads: int = 1,
) -> OverlapPairs:
    """Find pairs by box overlap or, with ``areas``, by the upper bound for masks in the boxes."""
    return _build_pair_finder(tables, lowest_iou)(
        boxes, extra=extra, areas=areas, n_threads=n_threads
    )


def _build_pair_finder(
    tables: tuple[Detections, Truths], lowest_iou: float
) -> Callable[..., OverlapPairs]:
    """Group rows by image once, and return a function that finds the pairs of any boxes."""
    from isolux.geometry._match_kernels import find_overlapping_pairs

    if not 0 < lowest_iou <= 1:
        raise SpecError(
            "the lowest overlap is not above 0 and at most 1",
            expected="for example 0.5; at 0 things would match that do not touch",
            found=str(lowest_iou),
        )
    class_aware = is_class_aware(*tables)
    n_images = 1 + max((int(s.image.max()) for s in tables if len(s)), default=-1)
    no_areas = np.empty(0)
    labels = [_labels(tables[0].label), _labels(tables[1].label)]
    grouped = [rows_by_image(s.image, n_images) for s in tables]
    # A lowest overlap of 1 must keep pairs whose overlap is 1 but for rounding.
    crowd, min_overlap = tables[1].is_crowd, min(lowest_iou, CERTAIN)

    def find(
        boxes: tuple[BoxColumns, BoxColumns],
        *,
        extra: float = 0.0,
        areas: tuple[FloatArray, FloatArray] | None = None,
        n_threads: int = 1,
    ) -> OverlapPairs:
        d_table, t_table = (
            (g.starts, g.order, g.in_order, b.x, b.y, b.width, b.height, area, label)
            for g, b, area, label in zip(
                grouped, boxes, areas or (no_areas, no_areas), labels, strict=True
            )
        )
        image, detection, truth, overlap = find_in_image_chunks(
            lambda first, last: find_overlapping_pairs(
                first,
                last,
                d_table,
                t_table,
                crowd,
                min_overlap,
                extra,
                class_aware,
                areas is not None,
            ),
            grouped[0].starts,
            n_threads,
        )
        return OverlapPairs(
            image, detection, truth, overlap, lowest_iou, len(tables[0]), len(tables[1])
        )

    return find


def _labels(label: IntArray | None) -> npt.NDArray[np.int64]:
    return np.empty(0, np.int64) if label is None else label.astype(np.int64, copy=False)


def _check_box_array(boxes: FloatArray) -> FloatArray:
    """Return boxes as a float array ``[..., 4]``; refuse another shape."""
    box_array = np.asarray(boxes, dtype=np.float64)
    if box_array.ndim == 0 or box_array.shape[-1] != 4:
        raise SpecError(
            "boxes do not have four numbers each",
            expected="an array of shape [..., 4]",
            found=f"shape {box_array.shape}",
        )
    return box_array


def box_columns(boxes: FloatArray | BoxColumns, rows: int) -> BoxColumns:
    """Return boxes as four float columns; refuse another number of boxes than ``rows``."""
    if not isinstance(boxes, BoxColumns):
        matrix = _check_box_array(boxes)
        boxes = BoxColumns(matrix[:, 0], matrix[:, 1], matrix[:, 2], matrix[:, 3])
    columns = (boxes.x, boxes.y, boxes.width, boxes.height)
    x, y, width, height = (np.asarray(column, dtype=np.float64) for column in columns)
    if any(column.shape != (rows,) for column in (x, y, width, height)):
        raise SpecError(
            "there are not as many boxes as rows",
            expected=f"{rows} boxes",
            found=f"{[len(column) for column in columns]} values in the four columns",
        )
    return BoxColumns(x, y, width, height)
