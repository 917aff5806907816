"""Masks as run lengths: reading COCO's, measuring, uniting parts, overlap without bitmaps.

COCO writes a mask as the lengths of alternating runs of background and foreground, column by
column. Here each mask is a sorted list of its runs of foreground, so that areas, boxes and
overlaps cost time proportional to the outline. Overlap is calculated only for masks whose boxes and
areas allow it, which excludes most pairs. Values equal pycocotools', except that a run of length 0
inside a mask changes neither its box nor its area here.

References
----------
.. [1] Lin, T.-Y. et al. (2014). Microsoft COCO: Common Objects in Context. ECCV. Run lengths:
   https://github.com/cocodataset/cocoapi (``maskApi.c``).
"""

from __future__ import annotations

import numpy as np

from isolux.core.errors import TableError, format_location
from isolux.geometry._pairs import (
    CERTAIN,
    BoolArray,
    Detections,
    FloatArray,
    IntArray,
    OverlapPairs,
    Truths,
)
from isolux.geometry.boxes import box_columns, find_candidate_pairs
from isolux.geometry.rle import (
    Masks,
    masks_from_coco,
    masks_from_counts,
    masks_from_edges,
    masks_to_coco,
)

__all__ = [
    "Masks",
    "mask_pairs",
    "masks_from_coco",
    "masks_from_counts",
    "masks_to_coco",
    "pairs_common_px",
    "pairs_iou_masks",
    "union_of_parts",
]


def union_of_parts(masks: Masks, person_index: IntArray, n_people: int) -> Masks:
    """Unite part masks (skin, hair, clothes) into the masks of whole people.

    Shapes: ``person_index`` [n].

    Examples
    --------
    >>> parts = masks_from_counts([[0, 2, 10], [1, 3, 8]], np.array([4, 4]), np.array([3, 3]))
    >>> union_of_parts(parts, np.array([0, 0]), 1).area_px.tolist()
    [4]
    """
    height, width = np.zeros(n_people, np.int64), np.zeros(n_people, np.int64)
    height[person_index], width[person_index] = masks.height, masks.width
    has_other_size = (height[person_index] != masks.height) | (width[person_index] != masks.width)
    if has_other_size.any():
        row = int(np.argmax(has_other_size))
        expected = f"{height[person_index[row]]} × {width[person_index[row]]} (height × width)"
        actual = f"{masks.height[row]} × {masks.width[row]}"
        raise TableError(
            "two parts of one person are in images of different sizes",
            expected=expected,
            found=actual,
            where=format_location(None, row + 1, "mask"),
        )
    if not (height > 0).all():
        row = int(np.argmin(height > 0))
        raise TableError("a person has no part mask", where=format_location(None, row + 1, "mask"))
    # Every person gets a range of positions of their own: one sorted list serves all of them.
    # One position more than pixels, so that runs of two people never touch.
    positions_per_person = int((height * width).max(initial=0)) + 1
    run_person = np.repeat(np.asarray(person_index, np.int64), np.diff(masks.starts) // 2)
    run_starts = masks.edges[0::2] + run_person * positions_per_person
    run_ends = masks.edges[1::2] + run_person * positions_per_person
    order = np.argsort(run_starts, kind="stable")
    run_starts, run_ends, run_person = (
        run_starts[order],
        # A long run may end after a later one: the largest end so far decides.
        np.maximum.accumulate(run_ends[order]),
        run_person[order],
    )
    # The union of intervals: a run begins where its start exceeds the largest end so far.
    is_first = np.append(len(run_starts) > 0, run_starts[1:] > run_ends[:-1])[: len(run_starts)]
    is_last = np.append(is_first[1:], True)[: len(run_starts)]
    union_person = run_person[is_first]
    edges = (
        np.column_stack([run_starts[is_first], run_ends[is_last]])
        - (union_person * positions_per_person)[:, None]
    )
    starts = np.append(0, np.cumsum(2 * np.bincount(union_person, minlength=n_people)))
    return masks_from_edges(edges.ravel().astype(np.int32), starts, height, width)


def pairs_common_px(a: Masks, a_row: IntArray, b: Masks, b_row: IntArray) -> IntArray:
    """Pixels that mask ``a_row[p]`` of ``a`` and mask ``b_row[p]`` of ``b`` share: ``[p]``.

    Examples
    --------
    >>> two = masks_from_counts([[0, 4, 8], [2, 4, 6]], np.array([4, 4]), np.array([3, 3]))
    >>> pairs_common_px(two, np.array([0]), two, np.array([1])).tolist()
    [2]
    """
    from isolux.geometry._mask_kernels import intersections_px

    has_other_size = (a.height[a_row] != b.height[b_row]) | (a.width[a_row] != b.width[b_row])
    if has_other_size.any():
        p = int(np.argmax(has_other_size))
        i, j = int(a_row[p]), int(b_row[p])
        raise TableError(
            "two masks of one image have different sizes",
            expected=f"{b.height[j]} × {b.width[j]} (height × width), as row {j + 1} of the second",
            found=f"{a.height[i]} × {a.width[i]}",
            where=format_location("the first masks", i + 1, "mask"),
        )
    rows_a, rows_b = np.asarray(a_row, dtype=np.int64), np.asarray(b_row, dtype=np.int64)
    common = np.zeros(len(rows_a), np.int64)
    intersections_px(a.edges, a.starts, rows_a, b.edges, b.starts, rows_b, common)
    return common


def pairs_iou_masks(
    detections: Masks,
    detection_row: IntArray,
    truths: Masks,
    truth_row: IntArray,
    *,
    crowd: BoolArray | None = None,
) -> FloatArray:
    """Overlap of given pairs of masks, ``[p]``, 0 to 1: intersection over union.

    Examples
    --------
    >>> two = masks_from_counts([[0, 4, 8], [2, 4, 6]], np.array([4, 4]), np.array([3, 3]))
    >>> pairs_iou_masks(two, np.array([0]), two, np.array([1])).round(3).tolist()
    [0.333]
    """
    common = pairs_common_px(detections, detection_row, truths, truth_row)
    area = detections.area_px[detection_row]
    union = area + truths.area_px[truth_row] - common
    # COCO's overlap with a crowd is the share of the detection inside it.
    if crowd is not None:
        union = np.where(crowd, area, union)
    iou = np.zeros(len(common))
    np.divide(common, union, out=iou, where=common > 0)
    return iou


def mask_pairs(
    detections: Detections,
    truths: Truths,
    detection_masks: Masks,
    truth_masks: Masks,
    *,
    lowest_iou: float = 0.5,
    n_threads: int = 1,
) -> OverlapPairs:
    """Find the pairs of masks of one image (and class) that overlap enough.

    Examples
    --------
    >>> masks = masks_from_counts([[0, 4, 8], [0, 5, 7]], np.array([4, 4]), np.array([3, 3]))
    >>> found, people = Detections(np.array([0, 0]), np.ones(2)), Truths(np.array([0, 0]))
    >>> mask_pairs(found, people, masks, masks, lowest_iou=0.9).truth.tolist()
    [0, 1]
    """
    # Boxes and areas bound the overlap of masks from above, which rules out most pairs cheaply.
    candidate_pairs = find_candidate_pairs(
        (detections, truths),
        (
            box_columns(detection_masks.box_xywh, len(detections)),
            box_columns(truth_masks.box_xywh, len(truths)),
        ),
        lowest_iou=lowest_iou,
        areas=(
            detection_masks.area_px.astype(np.float64),
            truth_masks.area_px.astype(np.float64),
        ),
        n_threads=n_threads,
    )
    iou = pairs_iou_masks(
        *(detection_masks, candidate_pairs.detection, truth_masks, candidate_pairs.truth),
        crowd=truths.is_crowd[candidate_pairs.truth],
    )
    # As for boxes: an overlap of 1 may be rounded down.
    is_kept = iou >= min(lowest_iou, CERTAIN)
    kept_pairs = candidate_pairs.select(is_kept)
    return OverlapPairs(
        *(kept_pairs.image, kept_pairs.detection, kept_pairs.truth, iou[is_kept]),
        *(lowest_iou, len(detections), len(truths)),
    )
