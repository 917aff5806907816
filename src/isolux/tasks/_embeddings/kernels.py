"""The compiled loops of exact search, imported only by the function that runs them.

``shortlist`` looks at single-precision products and keeps whatever could be among the k nearest;
``inner`` takes those few again in double precision, always in the same order of addition, so that
equal vectors are equal wherever they stand in the database.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float32]
_CHUNK = 128  # products looked at together
_TILE = 128  # rows of a tile: 512 numbers each are a quarter of a megabyte


@njit(nogil=True)
def _sift(heap: _Floats, value: float) -> None:
    """Replace the smallest of a min-heap, which is its first, by a larger value."""
    at, size = 0, len(heap)
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value


@njit(nogil=True)
def _reached(row: _Floats, start: int, stop: int, least: np.float32) -> int:
    """Count what is large enough: a loop without a branch, so the compiler makes it wide."""
    count = 0
    for j in range(start, stop):
        count += row[j] >= least
    return count


@njit(nogil=True)
def _of_row(
    row: _Floats, k: int, slack: np.float32, key: int, keys: _Ints, held: _Ints
) -> tuple[int, float]:
    """Hold whatever was within ``slack`` of the k-th largest when it was passed: how many, kth."""
    heap = np.full(k, np.float32(-np.inf), dtype=np.float32)
    used = 0
    for start in range(0, len(row), _CHUNK):
        stop = min(start + _CHUNK, len(row))
        if _reached(row, start, stop, heap[0] - slack) == 0:
            continue
        for j in range(start, stop):
            if row[j] >= heap[0] - slack and keys[j] != key:
                held[used] = j
                used += 1
                if row[j] > heap[0]:
                    _sift(heap, row[j])
    return used, heap[0]


@njit(nogil=True)
def shortlist(
    products: _Floats, k: int, slack: float, query_key: _Ints, entry_key: _Ints
) -> tuple[_Ints, _Ints]:
    """List, for each row of ``products [b, n]``, the entries within ``slack`` of its k-th largest.

    An entry whose key is the query's is passed over.
    """
    narrow = np.float32(slack)
    passed = np.empty(products.shape[1], np.int64)
    held = np.empty(2 * k * len(products) + 1, np.int64)
    row_of = np.empty_like(held)
    used = 0
    for i in range(len(products)):
        n, kth = _of_row(products[i], k, narrow, query_key[i], entry_key, passed)
        for p in range(n):
            if products[i, passed[p]] >= kth - narrow:
                if used == len(held):
                    held = np.concatenate((held, np.empty_like(held)))
                    row_of = np.concatenate((row_of, np.empty_like(row_of)))
                held[used], row_of[used] = passed[p], i
                used += 1
    return row_of[:used], held[:used]


@njit(nogil=True, fastmath={"reassoc", "contract"})
def _dot(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> float:
    """Inner product in double precision; the compiler adds in what order it likes, always one."""
    total = 0.0
    for c in range(len(left)):
        total += np.float64(left[c]) * np.float64(right[c])
    return total


@njit(nogil=True)
def inner(
    left: npt.NDArray[Any], right: npt.NDArray[Any], i: _Ints, j: _Ints
) -> npt.NDArray[np.float64]:
    """Inner products of rows ``left[i]`` and ``right[j]``, in double precision: ``[len(i)]``."""
    out = np.empty(len(i))
    d = left.shape[1]
    for p in range(len(i)):
        a, b = left[i[p]], right[j[p]]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0  # four sums, so that additions need not wait in line
        for c in range(0, d - 3, 4):
            s0 += np.float64(a[c]) * np.float64(b[c])
            s1 += np.float64(a[c + 1]) * np.float64(b[c + 1])
            s2 += np.float64(a[c + 2]) * np.float64(b[c + 2])
            s3 += np.float64(a[c + 3]) * np.float64(b[c + 3])
        for c in range(d - d % 4, d):
            s0 += np.float64(a[c]) * np.float64(b[c])
        out[p] = (s0 + s1) + (s2 + s3)
    return out


@njit(nogil=True)
def inner_lists(
    vectors: npt.NDArray[Any], starts: _Ints, second: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    """Inner products of row i with the rows ``second[starts[i]:starts[i + 1]]``, which rise."""
    n, d = vectors.shape
    out = np.empty(len(second))
    cursor = starts.copy()
    wide = np.empty(d)
    for stop in range(_TILE, n + _TILE, _TILE):
        for i in range(min(stop, n)):
            at, end = cursor[i], starts[i + 1]
            if at == end or second[at] >= stop:
                continue
            for c in range(d):
                wide[c] = vectors[i, c]
            while at < end and second[at] < stop:
                out[at] = _dot(wide, vectors[second[at]])
                at += 1
            cursor[i] = at
    return out
