"""The compiled loops of pairing and matching; imported only by the functions that run them.

Signatures are written out and accept read-only and strided arrays, so that columns of a frame go
in as they are and one compiled version serves all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from isolux.io.compile_cache import njit

_F = types.Array(types.float64, 1, "A", readonly=True)
_I = types.Array(types.int64, 1, "A", readonly=True)
_B = types.Array(types.boolean, 1, "A", readonly=True)
# One side of the pairs: rows by image (starts, order, in order already), x, y, width, height, area,
# class.
_BOX_TABLE_TYPE = types.Tuple((_I, _I, types.boolean, _F, _F, _F, _F, _F, _I))  # type: ignore[no-untyped-call, unused-ignore]
_MAX_INSERTION_SORT = 24  # up to here, sorting by insertion beats a call of argsort

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_Bools = npt.NDArray[np.bool_]
_BoxTable = tuple[_Ints, _Ints, bool, _Floats, _Floats, _Floats, _Floats, _Floats, _Ints]


@njit((_I, _I), nogil=True)
def counting_sort(key: _Ints, starts: _Ints) -> _Ints:
    """Sort rows by rising key, stably; key k's rows begin at ``starts[k]``."""
    next_position = starts.copy()
    order = np.empty(len(key), np.int64)
    for row in range(len(key)):
        order[next_position[key[row]]] = row
        next_position[key[row]] += 1
    return order


@njit(nogil=True)
def _grow_if_full(values: npt.NDArray[Any], n_used: int) -> npt.NDArray[Any]:
    """Return the array, or if it is full a copy with twice its length."""
    if n_used < len(values):
        return values
    longer = np.empty(2 * n_used, values.dtype)
    longer[:n_used] = values
    return longer


@njit(nogil=True)
def sorted_row(order: _Ints, in_order: bool, position: int) -> int:
    """Return the row at a position of the sorted order."""
    return position if in_order else order[position]


@njit(nogil=True)
def _pair_overlap(  # noqa: PLR0917 (numbers stay in registers)
    d_left: float,
    top: float,
    width: float,
    height: float,
    area: float,
    t_left: float,
    t_top: float,
    t_width: float,
    t_height: float,
    t_area: float,
    crowd: bool,
    min_iou: float,
    extra_px: float,
    is_bound: bool,
) -> float:
    """Return the overlap of two boxes, or its bound for masks in them; -1 below ``min_iou``."""
    t_right, t_bottom = t_width + t_left, t_height + t_top
    w = min(width + d_left, t_right) - max(d_left, t_left) + extra_px
    h = min(height + top, t_bottom) - max(top, t_top) + extra_px
    common_area = max(w, 0.0) * max(h, 0.0)
    # Two masks within these boxes share at most the smaller one.
    if is_bound:
        common_area = min(common_area, area, t_area)
    # COCO's overlap with a crowd is the share of the detection inside it.
    union = area if crowd else area + t_area - common_area
    # One comparison that nearly always fails is predicted by the processor; four that fail half the
    # time are not. Its tolerance covers rounding; the exact comparison is the last.
    if not common_area >= min_iou * (1.0 - 1e-9) * union:
        return -1.0
    if not (w > 0.0 and h > 0.0 and t_width >= 0.0 and t_height >= 0.0 and union > 0.0):
        return -1.0
    if not (t_right >= t_left and t_bottom >= t_top):  # a NaN, which min() may let through
        return -1.0
    overlap = common_area / union
    return overlap if overlap >= min_iou else -1.0


@njit(
    (
        types.int64,
        types.int64,
        _BOX_TABLE_TYPE,
        _BOX_TABLE_TYPE,
        _B,
        types.float64,
        types.float64,
        *(types.boolean,) * 2,
    ),
    nogil=True,
)
def find_overlapping_pairs(
    first_image: int,
    last_image: int,
    detections: _BoxTable,
    truths: _BoxTable,
    t_crowd: _Bools,
    min_iou: float,
    extra_px: float,
    is_class_aware: bool,
    is_bound: bool,
) -> tuple[_Ints, _Ints, _Ints, _Floats]:
    """Find the pairs of a range of images whose overlap is at least ``min_iou``."""
    d_starts, d_order, d_in_order, d_x, d_y, d_w, d_h, d_area, d_label = detections
    t_starts, t_order, t_in_order, t_x, t_y, t_w, t_h, t_area, t_label = truths
    # The number of pairs is not known before, so the arrays double when they are full.
    image, detection = np.empty(1024, np.int64), np.empty(1024, np.int64)
    truth, overlap = np.empty(1024, np.int64), np.empty(1024, np.float64)
    n = 0
    for i in range(first_image, last_image):
        if t_starts[i] == t_starts[i + 1]:
            continue
        for d_position in range(d_starts[i], d_starts[i + 1]):
            d = sorted_row(d_order, d_in_order, d_position)
            x, y, w, h = d_x[d], d_y[d], d_w[d], d_h[d]
            # Not ``w < 0``: a NaN must be skipped, too.
            if not (w >= 0.0 and h >= 0.0):
                continue
            area = d_area[d] if is_bound else (w + extra_px) * (h + extra_px)
            for t_position in range(t_starts[i], t_starts[i + 1]):
                t = sorted_row(t_order, t_in_order, t_position)
                person_area = t_area[t] if is_bound else (t_w[t] + extra_px) * (t_h[t] + extra_px)
                pair_iou = _pair_overlap(
                    x,
                    y,
                    w,
                    h,
                    area,
                    t_x[t],
                    t_y[t],
                    t_w[t],
                    t_h[t],
                    person_area,
                    t_crowd[t],
                    min_iou,
                    extra_px,
                    is_bound,
                )
                if pair_iou < 0.0 or (is_class_aware and d_label[d] != t_label[t]):
                    continue
                image, detection = _grow_if_full(image, n), _grow_if_full(detection, n)
                truth, overlap = _grow_if_full(truth, n), _grow_if_full(overlap, n)
                image[n], detection[n], truth[n], overlap[n] = i, d, t, pair_iou
                n += 1
    # Copies of the used parts, so that the rest of the memory is freed.
    return image[:n].copy(), detection[:n].copy(), truth[:n].copy(), overlap[:n].copy()


@njit(nogil=True)
def sort_by_falling_score(score: _Floats, first: int, last: int, order: _Ints) -> None:
    """Fill ``order`` with the positions ``first`` to ``last`` by falling score, stably."""
    n = last - first
    if n > _MAX_INSERTION_SORT:
        # pycocotools sorts by merge sort: equal scores keep their order.
        order[:n] = np.argsort(-score[first:last], kind="mergesort") + first
        return
    for k in range(n):
        position = k
        while position > 0 and score[order[position - 1]] < score[first + k]:
            order[position] = order[position - 1]
            position -= 1
        order[position] = first + k


@njit(nogil=True)
def _find_best_person(
    candidate: int,
    t: int,
    threshold: float,
    want_ignored: bool,
    starts: _Ints,
    truth: _Ints,
    iou: _Floats,
    ignore: _Bools,
    crowd: _Bools,
    detection_of: npt.NDArray[np.int32],
) -> int:
    """Find the unmatched person overlapping a candidate most; of ties the last, as COCO does."""
    best_iou, best_person = threshold, -1
    for p in range(starts[candidate], starts[candidate + 1]):
        person = truth[p]
        if ignore[person] != want_ignored or iou[p] < best_iou:
            continue
        # Only a crowd may be matched more than once (evaluateImg).
        if detection_of[person, t] >= 0 and not crowd[person]:
            continue
        best_iou, best_person = iou[p], person
    return best_person


@njit(
    (
        *(_I, _I, _I, _F, _F, _I, _B, _B, _F),
        *(types.int32[:, ::1], types.int32[:, ::1]),
    ),
    nogil=True,
)
def match_greedily(
    image_starts: _Ints,
    starts: _Ints,
    truth: _Ints,
    iou: _Floats,
    score: _Floats,
    detection: _Ints,
    ignore: _Bools,
    crowd: _Bools,
    thresholds: _Floats,
    truth_of: npt.NDArray[np.int32],
    detection_of: npt.NDArray[np.int32],
) -> None:
    """COCO's greedy matching; fills ``truth_of [c, T]`` and ``detection_of [m, T]``, both from -1.

    Candidate c (a detection with at least one pair) has the pairs ``starts[c]`` to
    ``starts[c + 1]``; image i has the candidates ``image_starts[i]`` to ``image_starts[i + 1]``.
    """
    order = np.empty(0, np.int64)
    for i in range(len(image_starts) - 1):
        first, last = image_starts[i], image_starts[i + 1]
        if len(order) < last - first:
            order = np.empty(2 * (last - first), np.int64)
        sort_by_falling_score(score, first, last, order)
        for k in range(last - first):
            c = order[k]
            max_iou, person_kinds = (
                0.0,
                0,
            )  # bit 1: has a pair with a counted person; bit 2: with an ignored one
            for p in range(starts[c], starts[c + 1]):
                max_iou = max(max_iou, iou[p])
                person_kinds |= 2 if ignore[truth[p]] else 1
            # COCO matches anew at each threshold, with different people still unmatched.
            for t in range(len(thresholds)):
                person = -1
                # COCO: an ignored person is matched only if no counted one can be (evaluateImg).
                for want_ignored in (False, True):
                    required_kind = 2 if want_ignored else 1
                    if person < 0 and max_iou >= thresholds[t] and person_kinds & required_kind:
                        person = _find_best_person(
                            c,
                            t,
                            thresholds[t],
                            want_ignored,
                            starts,
                            truth,
                            iou,
                            ignore,
                            crowd,
                            detection_of,
                        )
                if person >= 0:
                    truth_of[c, t] = person
                    detection_of[person, t] = detection[c]
