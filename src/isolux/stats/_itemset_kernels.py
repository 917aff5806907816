"""The compiled loops of ``itemsets``; imported only by the functions that run them.

An item is a column of bits, one a row; the rows that hold several items are the AND of their
columns, and how many they are is a population count. Itemsets are walked depth first, and only
items that were frequent with a prefix are tried with the prefix's extensions (Zaki's Eclat, on bits
in place of lists of row numbers).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from isolux.io.kernels import njit

_Words = npt.NDArray[np.uint64]
_Ints = npt.NDArray[np.int64]
_Short = npt.NDArray[np.int32]
_allocating_nothing = njit(nogil=True, _nrt=False)
"""Compile without counting references, which makes small functions several times faster."""


def _population(_context: Any, _word: Any) -> Any:
    """Count the bits of a word that are set: one instruction, which numba has no name for."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


_ones: Any = intrinsic(_population)


@_allocating_nothing
def pack_bits(rows: npt.NDArray[np.bool_], bits: _Words) -> None:
    """Write ``rows [n, p]`` as ``bits [p, words]``; ``bits`` comes in as zeros."""
    n, p = rows.shape
    for word in range((n + 63) // 64):
        first = word * 64
        for i in range(first, min(first + 64, n)):
            shift = np.uint64(i - first)
            for j in range(p):
                bits[j, word] |= np.uint64(rows[i, j]) << shift


@_allocating_nothing
def _count_both(a: _Words, b: _Words) -> int:
    total = np.uint64(0)
    for w in range(len(a)):
        total += _ones(a[w] & b[w])
    return int(total)


@_allocating_nothing
def _emit(
    found: int, depth: int, path: _Short, item: int, n: int, members: _Short, count: _Ints
) -> None:
    """Write one itemset if there is room; more are only counted."""
    if found < len(count):
        for d in range(depth):
            members[found, d] = path[d]
        members[found, depth] = item
        count[found] = n


@_allocating_nothing
def walk_itemsets(
    bits: _Words,
    least: int,
    prefix: _Words,
    tried: _Short,
    n_tried: _Ints,
    at: _Ints,
    path: _Short,
    members: _Short,
    count: _Ints,
) -> int:
    """List every itemset that ``least`` rows hold; return how many there are."""
    longest, p = tried.shape
    found = 0
    prefix[0, :] = ~np.uint64(0)
    n_tried[0] = 0
    for j in range(p):
        n = _count_both(bits[j], bits[j])
        if n >= least:
            tried[0, n_tried[0]] = j
            n_tried[0] += 1
            _emit(found, 0, path, j, n, members, count)
            found += 1
    depth = 0
    at[0] = 0
    while depth >= 0:
        if depth + 1 >= longest or at[depth] >= n_tried[depth]:
            depth -= 1
            continue
        own = at[depth]
        at[depth] += 1
        item = tried[depth, own]
        path[depth] = item
        below = prefix[depth + 1]
        for w in range(bits.shape[1]):
            below[w] = prefix[depth, w] & bits[item, w]
        n_tried[depth + 1] = 0
        for k in range(own + 1, n_tried[depth]):
            j = tried[depth, k]
            n = _count_both(below, bits[j])
            if n >= least:
                tried[depth + 1, n_tried[depth + 1]] = j
                n_tried[depth + 1] += 1
                _emit(found, depth + 1, path, j, n, members, count)
                found += 1
        if n_tried[depth + 1]:
            depth += 1
            at[depth] = 0
    return found


@_allocating_nothing
def count_sets(bits: _Words, last: np.uint64, members: _Short, count: _Ints) -> None:
    """Count the rows that hold all items of each set; ``last`` masks the rows of the last word."""
    words = bits.shape[1]
    for s in range(len(count)):
        total = np.uint64(0)
        for w in range(words):
            word = ~np.uint64(0) if w < words - 1 else last
            for d in range(members.shape[1]):
                if members[s, d] < 0:
                    break
                word &= bits[members[s, d], w]
            total += _ones(word)
        count[s] = total
