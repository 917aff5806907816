"""The k nearest vectors by cosine similarity, exactly, in bounded memory.

A block of queries meets the whole database in one matrix product of single precision. What lies
within its rounding error of the k-th place is compared again in double precision, so the answer is
that of double precision, and equal similarities are taken in the order of the database.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["nearest"]

_BYTES = 64 << 20
"""Products held at once."""
_ROUNDING = 2.0**-24  # unit roundoff of single precision

IntArray = npt.NDArray[np.int64]


def nearest(
    queries: npt.NDArray[Any],
    database: npt.NDArray[Any],
    k: int,
    *,
    query_key: IntArray,
    entry_key: IntArray,
    block_bytes: int = _BYTES,
) -> IntArray:
    """Find the k entries of largest inner product with each query, the largest first.

    Shapes: ``queries`` [q, d], ``database`` [n, d], ``query_key`` [q], ``entry_key`` [n]; returns
    [q, k].

    Examples
    --------
    Entries 0 and 2 are the query itself and its equal; 0 has the query's key.

    >>> east, north = [1.0, 0.0], [0.0, 1.0]
    >>> nearest(np.array([east]), np.array([east, north, east]), 2,
    ...         query_key=np.array([7]), entry_key=np.array([7, 8, 9]))
    array([[2, 1]])
    """
    found = np.full((len(queries), k), -1, dtype=np.int64)
    if not len(database) or not len(queries):
        return found
    from isolux.tasks._embeddings.kernels import inner, shortlist

    low = np.ascontiguousarray(database, dtype=np.float32)
    # |error| of one product of unit vectors: d u for the sum (Higham 2002, section 3.1), a few u
    # more for vectors that were rounded to single precision, and for the slack itself; twice that
    # parts two products.
    slack = 2.0 * (database.shape[1] + 8) * _ROUNDING
    size = max(1, block_bytes // (4 * len(database)))
    # One table for all blocks: a fresh one would be paid for page by page.
    room = np.empty((min(size, len(queries)), len(database)), dtype=np.float32)
    for start in range(0, len(queries), size):
        block = np.ascontiguousarray(queries[start : start + size])
        products = room[: len(block)]
        np.matmul(block.astype(np.float32, copy=False), low.T, out=products)
        key = query_key[start : start + size]
        row, entry = shortlist(products, min(k, len(database)), slack, key, entry_key)
        exact = inner(block, database, row, entry)
        order = np.lexsort((entry, -exact, row))
        row, entry = row[order], entry[order]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        first = place < k
        found[start + row[first], place[first]] = entry[first]
    return found
