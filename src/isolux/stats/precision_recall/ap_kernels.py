"""The compiled loops of ``precision_recall``; imported only by the functions that run them.

Precision is only needed at true positives; a false positive enters by its weight alone. So
detections that are false positives at every IoU threshold ("alarms", nine of ten with a real
detector) are summed once for all thresholds, and those after the last true positive are skipped.
Recall points are compared as weights, computed once, in place of a division each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import types

from isolux.io.compile_cache import njit
from isolux.stats.statistic import FloatArray

POINTS, AREA, RECALL = 0, 1, 2
"""Readings: precision at recall points, area under the curve, recall at the end."""

_I = types.Array(types.int64, 1, "A", readonly=True)
_S = types.Array(types.int32, 1, "C", readonly=True)
_U = types.Array(types.uint16, 1, "A", readonly=True)
_B = types.Array(types.boolean, 1, "C", readonly=True)
_F = types.Array(types.float64, 1, "A", readonly=True)
_M = types.Array(types.float64, 2, "C", readonly=True)

_Ints = npt.NDArray[np.int64]
_Short = npt.NDArray[np.int32]
_Bits = npt.NDArray[np.uint16]
_Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RankingEntries:
    """A preprocessed ranking: alarms, rows that count somewhere, and where each row counts.

    ``alarm_starts [M + 1]``: before row i of class k come the alarms up to ``alarm_starts[i + 1]``;
    ``row_starts [K + 1]`` cuts rows by class; ``entry_starts [K * T + 1]`` cuts entries by class
    and IoU threshold, and an entry is a row of its class and whether it is a true positive there.
    """

    alarm_cluster: _Short
    alarm_starts: _Ints
    row_cluster: _Short
    row_starts: _Ints
    entry_row: _Short
    entry_hit: _Bools
    entry_starts: _Ints


@njit(nogil=True)
def _combine_bits(bits: _Ints) -> int:
    mask = 0
    for bit in bits:
        mask |= 1 << bit
    return mask


@njit((_U, _U, _I, _I), nogil=True)
def _find_last_true_positive_by_class(
    true_positive: _Bits, false_positive: _Bits, starts: _Ints, bits: _Ints
) -> tuple[_Ints, _Ints]:
    """Find, for each class, the end of its last true positive, and the number of rows to keep."""
    mask = _combine_bits(bits)
    last = np.empty(len(starts) - 1, np.int64)
    n_rows = np.zeros(len(starts), np.int64)
    for k in range(len(starts) - 1):
        last[k] = starts[k + 1]
        # After the last true positive recall stays and precision falls: no reading changes.
        while last[k] > starts[k] and not true_positive[last[k] - 1] & mask:
            last[k] -= 1
        for i in range(starts[k], last[k]):
            n_rows[k + 1] += (true_positive[i] & mask) != 0 or (
                0 < (false_positive[i] & mask) < mask
            )
    return last, n_rows


@njit((_I, _U, _U, _I, _I, _I, types.int64), nogil=True)
def _split_rows_false_at_every_iou(
    cluster: _Ints,
    true_positive: _Bits,
    false_positive: _Bits,
    starts: _Ints,
    bits: _Ints,
    last: _Ints,
    n_rows: int,
) -> tuple[_Short, _Ints, _Short, _Bits, _Bits]:
    """Split alarms (false positives at every IoU threshold) from all other rows that count."""
    mask = _combine_bits(bits)
    row_cluster = np.empty(n_rows, np.int32)
    row_true_positive, row_false_positive = np.empty(n_rows, np.uint16), np.empty(n_rows, np.uint16)
    alarm_starts = np.zeros(n_rows + 1, np.int64)
    alarm = np.empty(np.sum(last - starts[:-1]), np.int32)
    a, m = 0, 0
    for k in range(len(last)):
        for i in range(starts[k], last[k]):
            r, w = true_positive[i] & mask, false_positive[i] & mask
            if r == 0 and w == mask:
                alarm[a] = cluster[i]
                a += 1
            elif r | w:
                row_cluster[m], row_true_positive[m], row_false_positive[m] = cluster[i], r, w
                m += 1
                alarm_starts[m] = a
    return alarm[:a].copy(), alarm_starts, row_cluster, row_true_positive, row_false_positive


@njit((_U, _U, _I, _I), nogil=True)
def _list_counted_rows_and_hits(
    true_positive: _Bits, false_positive: _Bits, row_starts: _Ints, bits: _Ints
) -> tuple[_Short, _Bools, _Ints]:
    """List, for each class and IoU threshold, the rows that count and whether they are hits."""
    n_bits = len(bits)
    starts = np.zeros((len(row_starts) - 1) * n_bits + 1, np.int64)
    for k in range(len(row_starts) - 1):
        for i in range(row_starts[k], row_starts[k + 1]):
            for t in range(n_bits):
                starts[k * n_bits + t + 1] += (
                    (true_positive[i] | false_positive[i]) >> bits[t]
                ) & 1
    starts = np.cumsum(starts)
    row, hit = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.bool_)
    positions = np.empty(n_bits, np.int64)
    for k in range(len(row_starts) - 1):
        positions[:] = starts[k * n_bits : (k + 1) * n_bits]
        for i in range(row_starts[k], row_starts[k + 1]):
            for t in range(n_bits):
                if ((true_positive[i] | false_positive[i]) >> bits[t]) & 1:
                    row[positions[t]] = i - row_starts[k]
                    hit[positions[t]] = (true_positive[i] >> bits[t]) & 1
                    positions[t] += 1
    return row, hit, starts


def build_ranking_entries(
    cluster: _Ints, true_positive: _Bits, false_positive: _Bits, starts: _Ints, bits: _Ints
) -> RankingEntries:
    """Preprocess a ranking, in linear time."""
    last, n_rows = _find_last_true_positive_by_class(true_positive, false_positive, starts, bits)
    row_starts = np.cumsum(n_rows)
    alarm, alarm_starts, row_cluster, row_true_positive, row_false_positive = (
        _split_rows_false_at_every_iou(
            cluster, true_positive, false_positive, starts, bits, last, row_starts[-1]
        )
    )
    entries = _list_counted_rows_and_hits(row_true_positive, row_false_positive, row_starts, bits)
    return RankingEntries(alarm, alarm_starts, row_cluster, row_starts, *entries)


@njit((_I, _I, types.int64, _M), nogil=True)
def sum_people_weights_by_class(
    person_cluster: _Ints, person_class: _Ints, n_classes: int, replicate_weights: FloatArray
) -> FloatArray:
    """Sum the weights of the people of each class: ``[r, k]``."""
    out = np.zeros((len(replicate_weights), n_classes))
    for r in range(len(replicate_weights)):
        for i in range(len(person_cluster)):
            out[r, person_class[i]] += replicate_weights[r, person_cluster[i]]
    return out


@njit(nogil=True, error_model="numpy")
def _fill_min_weight_at_recall_points(
    people: float, points: FloatArray, weight_at_point: FloatArray
) -> None:
    """Fill the smallest weight that reaches each recall point, exactly as division rounds."""
    for j in range(len(points)):
        if points[j] <= 0.0:
            weight_at_point[j] = 0.0
            continue
        # pycocotools compares recalls, not weights: the rounded product may be some floats from the
        # smallest weight whose quotient reaches the point.
        x = points[j] * people
        while x / people < points[j]:
            x = np.nextafter(x, np.inf)
        previous = np.nextafter(x, 0.0)
        while previous / people >= points[j]:
            x = previous
            previous = np.nextafter(x, 0.0)
        # No weight reaches infinity, so the loops need no check of the index.
        weight_at_point[j] = x
    weight_at_point[len(points)] = np.inf


@njit(nogil=True, error_model="numpy")
def _sum_precision_at_recall_points(
    row: _Short,
    hit: _Bools,
    weight: FloatArray,
    alarm: FloatArray,
    scale: float,
    weight_at_point: FloatArray,
    best: FloatArray,
) -> float:
    """Sum the highest precision at or beyond each recall point; 0 for recalls not reached."""
    true_sum, false_sum, highest = 0.0, 0.0, 0.0
    point = 0
    # Recall 0 is reached before the first detection.
    while weight_at_point[point] <= 0.0:
        best[point] = 0.0
        point += 1
    for e in range(len(row)):
        w = weight[row[e]]
        true_weight = w if hit[e] else 0.0
        true_sum += true_weight
        false_sum += w - true_weight
        if true_sum >= weight_at_point[point]:
            if point > 0:
                best[point - 1] = highest
            highest = 0.0
            while true_sum >= weight_at_point[point]:
                best[point] = 0.0
                point += 1
        scaled = true_sum * scale
        precision = scaled / (scaled + (false_sum + alarm[row[e]]))
        if precision > highest:  # noqa: PLR1730 (a NaN, where nothing weighs anything yet, is not)
            highest = precision
    if point > 0:
        best[point - 1] = highest
    highest, total = 0.0, 0.0
    # COCO's precision at a recall is the highest at it or beyond: from the last point back.
    for j in range(point - 1, -1, -1):
        highest = max(highest, best[j])
        total += highest
    return total


@njit(nogil=True, error_model="numpy")
def _area_under_precision_envelope(
    row: _Short,
    hit: _Bools,
    weight: FloatArray,
    alarm: FloatArray,
    scale: float,
    people: float,
    precision: FloatArray,
) -> float:
    """Area under the highest precision at or beyond each recall."""
    true_sum, false_sum = 0.0, 0.0
    for e in range(len(row)):
        w = weight[row[e]]
        true_weight = w if hit[e] else 0.0
        true_sum += true_weight
        false_sum += w - true_weight
        scaled = true_sum * scale
        precision[e] = scaled / (scaled + (false_sum + alarm[row[e]])) if true_sum > 0.0 else 0.0
    highest, total = 0.0, 0.0
    for e in range(len(row) - 1, -1, -1):
        highest = max(highest, precision[e])
        if hit[e]:
            # PASCAL VOC's area since 2010: every true positive is a step of recall.
            total += weight[row[e]] * highest
    return total / people


@njit(nogil=True)
def _final_recall(row: _Short, hit: _Bools, weight: FloatArray, people: float) -> float:
    true_sum = 0.0
    for e in range(len(row)):
        true_sum += weight[row[e]] if hit[e] else 0.0
    return true_sum / people


@njit(nogil=True)
def _fill_row_and_alarm_weights(
    first_row: int,
    stop_row: int,
    alarm_cluster: _Short,
    alarm_starts: _Ints,
    row_cluster: _Short,
    cluster_weights: FloatArray,
    weight: FloatArray,
    alarm: FloatArray,
) -> None:
    """Fill the weight of each row of a class, and that of all alarms before it."""
    total = 0.0
    for i in range(first_row, stop_row):
        for a in range(alarm_starts[i], alarm_starts[i + 1]):
            total += cluster_weights[alarm_cluster[a]]
        weight[i - first_row], alarm[i - first_row] = cluster_weights[row_cluster[i]], total


@njit(nogil=True)
def _max_segment_length(starts: _Ints) -> int:
    max_length = 0
    for k in range(len(starts) - 1):
        max_length = max(max_length, starts[k + 1] - starts[k])
    return max_length


@njit(
    (_S, _I, _S, _I, _S, _B, _I, _M, _M, _M, _F, types.int64),
    nogil=True,
)  # fmt: skip
def evaluate_precision_recall_curves(
    alarm_cluster: _Short,
    alarm_starts: _Ints,
    row_cluster: _Short,
    row_starts: _Ints,
    entry_row: _Short,
    entry_hit: _Bools,
    entry_starts: _Ints,
    people: FloatArray,
    scale: FloatArray,
    weights: FloatArray,
    points: FloatArray,
    reading: int,
) -> npt.NDArray[np.float64]:
    """Evaluate all curves at each row of ``weights [r, n_clusters]``: ``[r, K, T]``."""
    n_classes = len(row_starts) - 1
    n_bits = (len(entry_starts) - 1) // max(1, n_classes)
    longest = _max_segment_length(row_starts)
    weight, alarm = np.empty(longest), np.empty(longest)
    precision = np.empty(_max_segment_length(entry_starts))
    weight_at_point, best = np.empty(len(points) + 1), np.empty(len(points) + 1)
    out = np.full((len(weights), n_classes, n_bits), np.nan)
    for r in range(len(weights)):
        for k in range(n_classes):
            n, s = people[r, k], scale[r, k]
            # COCO leaves out classes without people, so NaN and not 0.
            if not n > 0.0:
                continue
            _fill_row_and_alarm_weights(
                row_starts[k],
                row_starts[k + 1],
                alarm_cluster,
                alarm_starts,
                row_cluster,
                weights[r],
                weight,
                alarm,
            )
            _fill_min_weight_at_recall_points(n, points, weight_at_point)
            for t in range(k * n_bits, (k + 1) * n_bits):
                row = entry_row[entry_starts[t] : entry_starts[t + 1]]
                hit = entry_hit[entry_starts[t] : entry_starts[t + 1]]
                if reading == POINTS:
                    reading_value = _sum_precision_at_recall_points(
                        row, hit, weight, alarm, s, weight_at_point, best
                    )
                elif reading == AREA:
                    reading_value = _area_under_precision_envelope(
                        row, hit, weight, alarm, s, n, precision
                    )
                else:
                    reading_value = _final_recall(row, hit, weight, n)
                out[r, k, t - k * n_bits] = reading_value
    return out
