"""The compiled loops of ``cells``; imported only by the functions that run them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from isolux.io.kernels import njit

_I = types.Array(types.int64, 1, "A", readonly=True)
_U = types.Array(types.uint16, 1, "A", readonly=True)
_B = types.Array(types.boolean, 1, "A", readonly=True)
_S = types.Array(types.int32, 1, "A", readonly=True)
_F = types.Array(types.float64, 1, "A", readonly=True)
_W = types.Array(types.uint64, 1, "A", readonly=True)
_T = types.Array(types.int32, 2, "A", readonly=True)

_BUCKETS = 1 << 16  # of scores: fine enough that few are left to sort in each, and in the cache
_FEW = 64  # up to here, sorting by insertion beats merging

_Ints = npt.NDArray[np.int64]
_Short = npt.NDArray[np.int32]
_Bits = npt.NDArray[np.uint16]
_Bools = npt.NDArray[np.bool_]


@njit(nogil=True)
def _people_of(
    truth_of: npt.NDArray[np.int32], c: int, counted: _Bools, person: _Ints, at: _Bits
) -> int:
    """Fill whom a candidate found and at which overlaps; return how many people that are."""
    n = 0
    for t in range(truth_of.shape[1]):
        found = truth_of[c, t]
        if found < 0 or not counted[found]:
            continue
        k = 0
        while k < n and person[k] != found:
            k += 1
        if k == n:
            person[n], at[n] = found, 0
            n += 1
        at[k] |= 1 << t
    return n


@njit((_I, _T, _B, _B), nogil=True)
def outcomes(
    candidate: _Ints, truth_of: npt.NDArray[np.int32], counted: _Bools, silent: _Bools
) -> tuple[_Ints, _Ints, _Bits]:
    """List detection, person (-1: no one) and overlaps of whatever is right or wrong."""
    n, n_overlaps = len(silent), truth_of.shape[1]
    whole = (1 << n_overlaps) - 1
    wrong = np.full(n, whole, np.uint16)
    person, at = np.empty(n_overlaps, np.int64), np.empty(n_overlaps, np.uint16)
    size = 0
    for c in range(len(candidate)):
        for t in range(n_overlaps):
            if truth_of[c, t] >= 0:
                wrong[candidate[c]] &= whole ^ (1 << t)
        size += _people_of(truth_of, c, counted, person, at)
    for d in range(n):
        if silent[d]:
            wrong[d] = 0
        size += wrong[d] != 0
    detection, who, bits = (
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.uint16),
    )
    row, c = 0, 0
    for d in range(n):
        while c < len(candidate) and candidate[c] <= d:
            for k in range(_people_of(truth_of, c, counted, person, at)):
                detection[row], who[row], bits[row] = candidate[c], person[k], at[k]
                row += 1
            c += 1
        if wrong[d]:
            detection[row], who[row], bits[row] = d, -1, wrong[d]
            row += 1
    return detection, who, bits


@njit((_I, _I, types.int64, types.int64), nogil=True)
def distinct_by_key(key: _Ints, value: _Ints, n_keys: int, n_values: int) -> tuple[_Ints, _Short]:
    """Distinct values by key: those of key k are ``starts[k]`` to ``starts[k + 1]``."""
    at = np.zeros(n_keys + 1, np.int64)
    for k in key:
        at[k + 1] += 1
    at = np.cumsum(at)
    ends = at[1:].copy()
    by_key = np.empty(len(key), np.int32)
    for i in range(len(key)):
        by_key[at[key[i]]] = value[i]
        at[key[i]] += 1
    starts = np.zeros(n_keys + 1, np.int64)
    seen = np.full(n_values, -1, np.int64)  # the last key that a value was seen with
    n, first = 0, 0
    for k in range(n_keys):
        for i in range(first, ends[k]):
            if seen[by_key[i]] != k:
                seen[by_key[i]] = k
                by_key[n] = by_key[i]  # never before what is still to be read
                n += 1
        first, starts[k + 1] = ends[k], n
    return starts, by_key[:n].copy()


@njit((_F,), nogil=True)
def by_falling(score: npt.NDArray[np.float64]) -> _Ints:
    """Order rows by falling score, equal ones as they stand, in about linear time."""
    n = len(score)
    order = np.arange(n)
    highest, lowest = -np.inf, np.inf
    for i in range(n):
        highest, lowest = max(highest, score[i]), min(lowest, score[i])
    width = (highest - lowest) / _BUCKETS
    if not (0.0 < width < np.inf):
        return order if highest == lowest or n < 2 else np.argsort(-score, kind="mergesort")
    at = np.zeros(_BUCKETS + 2, np.int64)
    for i in range(n):
        at[int((highest - score[i]) / width) + 1] += 1
    at = np.cumsum(at)
    for i in range(n):
        bucket = int((highest - score[i]) / width)
        order[at[bucket]] = i
        at[bucket] += 1
    first = 0
    for bucket in range(_BUCKETS + 1):
        last = at[bucket]
        if last - first > _FEW:
            own = order[first:last].copy()
            order[first:last] = own[np.argsort(-score[own], kind="mergesort")]
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
def rows_of_cells(
    order: _Ints,
    packed: npt.NDArray[np.uint64],
    group: _Short,
    starts_of_group: _Ints,
    cell: _Short,
    n_cells: int,
) -> tuple[_Ints, _Bits, _Bits, _Ints]:
    """Deal ranked rows out to the cells of their groups: cluster, right, wrong, where cells begin.

    A row is one number, cluster, overlaps and whether it is right, so that each cell it goes to
    costs one write. Counting goes in the order of the rows, whose groups lie side by side.
    """
    starts = np.zeros(n_cells + 1, np.int64)
    for g in group:
        for j in range(starts_of_group[g], starts_of_group[g + 1]):
            starts[cell[j] + 1] += 1
    starts = np.cumsum(starts)
    to = starts[:-1].copy()
    dealt = np.empty(starts[-1], np.uint64)
    for row in order:
        g, own = group[row], packed[row]
        for j in range(starts_of_group[g], starts_of_group[g + 1]):
            dealt[to[cell[j]]] = own
            to[cell[j]] += 1
    out = np.empty(len(dealt), np.int64)
    right, wrong = np.empty(len(dealt), np.uint16), np.empty(len(dealt), np.uint16)
    for i in range(len(dealt)):
        out[i] = dealt[i] >> np.uint64(17)
        bits = np.uint16((dealt[i] >> np.uint64(1)) & np.uint64(0xFFFF))
        is_right = (dealt[i] & np.uint64(1)) != 0
        right[i] = bits if is_right else np.uint16(0)
        wrong[i] = np.uint16(0) if is_right else bits
    return out, right, wrong, starts
