"""The compiled loops of ``detection_cells``; imported only by the functions that run them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from isolux.io.compile_cache import njit

_I = types.Array(types.int64, 1, "A", readonly=True)
_S = types.Array(types.int32, 1, "A", readonly=True)
_F = types.Array(types.float64, 1, "A", readonly=True)
_W = types.Array(types.uint64, 1, "A", readonly=True)

_BUCKETS = 1 << 16  # of scores: few scores in each, and all fit in the cache
_MAX_INSERTION_SORT = 64  # rows up to which insertion sort is faster than merge sort

_Ints = npt.NDArray[np.int64]
_Short = npt.NDArray[np.int32]
_Bits = npt.NDArray[np.uint16]


@njit((_I, _I, types.int64, types.int64), nogil=True)
def group_distinct_values_by_key(
    key: _Ints, values: _Ints, n_keys: int, n_values: int
) -> tuple[_Ints, _Short]:
    """List distinct values by key: those of key k are ``starts[k]`` to ``starts[k + 1]``."""
    positions = np.zeros(n_keys + 1, np.int64)
    for k in key:
        positions[k + 1] += 1
    positions = np.cumsum(positions)
    key_ends = positions[1:].copy()
    by_key = np.empty(len(key), np.int32)
    for i in range(len(key)):
        by_key[positions[key[i]]] = values[i]
        positions[key[i]] += 1
    starts = np.zeros(n_keys + 1, np.int64)
    last_key = np.full(n_values, -1, np.int64)  # last key of each value
    n, first = 0, 0
    for k in range(n_keys):
        for i in range(first, key_ends[k]):
            if last_key[by_key[i]] != k:
                last_key[by_key[i]] = k
                by_key[n] = by_key[i]  # never before what is still to be read
                n += 1
        first, starts[k + 1] = key_ends[k], n
    return starts, by_key[:n].copy()


@njit((_F,), nogil=True)
def stable_argsort_descending(score: npt.NDArray[np.float64]) -> _Ints:
    """Sort rows by descending score, stably, in about linear time (bucket sort)."""
    n = len(score)
    order = np.arange(n)
    highest, lowest = -np.inf, np.inf
    for i in range(n):
        highest, lowest = max(highest, score[i]), min(lowest, score[i])
    width = (highest - lowest) / _BUCKETS
    # Equal scores, or a range that overflows, have no usable bucket width.
    if not (0.0 < width < np.inf):
        return order if highest == lowest or n < 2 else np.argsort(-score, kind="mergesort")
    # One bucket more than _BUCKETS: the lowest score divides to _BUCKETS itself.
    positions = np.zeros(_BUCKETS + 2, np.int64)
    for i in range(n):
        positions[int((highest - score[i]) / width) + 1] += 1
    positions = np.cumsum(positions)
    for i in range(n):
        bucket = int((highest - score[i]) / width)
        order[positions[bucket]] = i
        positions[bucket] += 1
    first = 0
    for bucket in range(_BUCKETS + 1):
        last = positions[bucket]
        if last - first > _MAX_INSERTION_SORT:
            bucket_rows = order[first:last].copy()
            # Merge sort, as in pycocotools: equal scores must keep COCO's order.
            order[first:last] = bucket_rows[np.argsort(-score[bucket_rows], kind="mergesort")]
        else:
            for i in range(first + 1, last):
                row, j = order[i], i
                while j > first and score[order[j - 1]] < score[row]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = row
        first = last
    return order


@njit((_I, _W, _S, _I, _S, types.int64), nogil=True)
def distribute_detections_to_cells(
    order: _Ints,
    packed: npt.NDArray[np.uint64],
    group: _Short,
    starts_of_group: _Ints,
    cell: _Short,
    n_cells: int,
) -> tuple[_Ints, _Bits, _Bits, _Ints]:
    """Distribute ranked rows to the cells of their groups: cluster, true, false, cell starts.

    A row is packed in one number (cluster, IoU bits, true positive), so that each cell costs one
    write. Counting is in the order of rows, whose groups are contiguous.
    """
    starts = np.zeros(n_cells + 1, np.int64)
    for g in group:
        for j in range(starts_of_group[g], starts_of_group[g + 1]):
            starts[cell[j] + 1] += 1
    starts = np.cumsum(starts)
    write_positions = starts[:-1].copy()
    distributed = np.empty(starts[-1], np.uint64)
    for row in order:
        g, packed_row = group[row], packed[row]
        for j in range(starts_of_group[g], starts_of_group[g + 1]):
            distributed[write_positions[cell[j]]] = packed_row
            write_positions[cell[j]] += 1
    cluster = np.empty(len(distributed), np.int64)
    true_positive, false_positive = (
        np.empty(len(distributed), np.uint16),
        np.empty(len(distributed), np.uint16),
    )
    for i in range(len(distributed)):
        cluster[i] = distributed[i] >> np.uint64(17)
        bits = np.uint16((distributed[i] >> np.uint64(1)) & np.uint64(0xFFFF))
        is_right = (distributed[i] & np.uint64(1)) != 0
        true_positive[i] = bits if is_right else np.uint16(0)
        false_positive[i] = np.uint16(0) if is_right else bits
    return cluster, true_positive, false_positive, starts
