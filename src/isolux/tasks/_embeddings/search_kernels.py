"""Compiled loops of exact nearest-neighbour search, imported only by the function that runs them.

Single-precision products select what could be among the k nearest; ``inner_products`` computes
those few again in double precision, always in the same order of addition, so that equal vectors
have equal products at every position of the database.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

_Ints = npt.NDArray[np.int64]
# Rows of a tile: with 512 numbers each they take a quarter of a megabyte.
_TILE = 128


# Reassociation lets the compiler vectorise the sum. The order is fixed at compile time, so equal
# vectors still have equal products; NaN and infinity keep their meaning.
@njit(nogil=True, fastmath={"reassoc", "contract"})
def _dot(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> float:
    """Inner product in double precision; the compiler chooses one fixed order of addition."""
    total = 0.0
    for c in range(len(first)):
        total += np.float64(first[c]) * np.float64(second[c])
    return total


@njit(nogil=True)
def inner_products(
    first: npt.NDArray[Any], second: npt.NDArray[Any], i: _Ints, j: _Ints
) -> npt.NDArray[np.float64]:
    """Inner products of rows ``left[i]`` and ``right[j]``, in double precision: ``[len(i)]``."""
    out = np.empty(len(i))
    d = first.shape[1]
    for p in range(len(i)):
        a, b = first[i[p]], second[j[p]]
        # Four sums, so that an addition need not wait for the one before it.
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
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
def inner_products_of_lists(
    vectors: npt.NDArray[Any], starts: _Ints, second: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    """Inner products of row i with rows ``second[starts[i]:starts[i + 1]]``, in rising order."""
    n, d = vectors.shape
    out = np.empty(len(second))
    cursor = starts.copy()
    row_vector = np.empty(d)
    # Tile by tile over the second vectors, so that a tile stays in the cache for all rows i.
    for stop in range(_TILE, n + _TILE, _TILE):
        for i in range(min(stop, n)):
            position, end = cursor[i], starts[i + 1]
            # Entries of a list rise, so the next one belongs to a later tile.
            if position == end or second[position] >= stop:
                continue
            for c in range(d):
                # Converted to double once for all entries of the tile.
                row_vector[c] = vectors[i, c]
            while position < end and second[position] < stop:
                out[position] = _dot(row_vector, vectors[second[position]])
                position += 1
            cursor[i] = position
    return out
