"""The compiled loops of ``itemsets``; imported only by the functions that run them.

An item is a column of bits, one per row; the rows with several items are the AND of their columns,
and their number is a population count. Itemsets are searched depth first, and only items that are
frequent with a prefix are candidates for the prefix's extensions (Zaki's Eclat, on bits
in place of lists of row numbers).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from isolux.io.compile_cache import njit

_Words = npt.NDArray[np.uint64]
_Ints = npt.NDArray[np.int64]
_Short = npt.NDArray[np.int32]
_njit_without_refcounts = njit(nogil=True, _nrt=False)
"""Compile without counting references, which makes small functions several times faster."""


def _emit_popcount(_context: Any, _word: Any) -> Any:
    """Count the set bits of a word: one instruction, which numba does not expose."""

    def build_ctpop(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build_ctpop


_count_bits: Any = intrinsic(_emit_popcount)


@_njit_without_refcounts
def pack_columns_into_bits(rows: npt.NDArray[np.bool_], bits: _Words) -> None:
    """Write ``rows [n, p]`` as ``bits [p, words]``; ``bits`` comes in as zeros."""
    n, p = rows.shape
    for word in range((n + 63) // 64):
        first = word * 64
        for i in range(first, min(first + 64, n)):
            shift = np.uint64(i - first)
            for j in range(p):
                bits[j, word] |= np.uint64(rows[i, j]) << shift


@_njit_without_refcounts
def _count_common_bits(a: _Words, b: _Words) -> int:
    total = np.uint64(0)
    for w in range(len(a)):
        total += _count_bits(a[w] & b[w])
    return int(total)


@_njit_without_refcounts
def _append_itemset_if_space(
    n_found: int, depth: int, path: _Short, last_item: int, n: int, members: _Short, count: _Ints
) -> None:
    """Write one itemset if there is space; more are only counted."""
    if n_found < len(count):
        for d in range(depth):
            members[n_found, d] = path[d]
        members[n_found, depth] = last_item
        count[n_found] = n


@_njit_without_refcounts
def enumerate_frequent_itemsets(
    bits: _Words,
    min_count: int,
    prefix: _Words,
    candidates: _Short,
    n_candidates: _Ints,
    next_candidate: _Ints,
    path: _Short,
    members: _Short,
    count: _Ints,
) -> int:
    """List every itemset in at least ``min_count`` rows; return how many there are."""
    max_length, p = candidates.shape
    n_found = 0
    # The empty set is in every row; padding bits of the last word are 0 in all columns.
    prefix[0, :] = ~np.uint64(0)
    n_candidates[0] = 0
    for j in range(p):
        n = _count_common_bits(bits[j], bits[j])
        if n >= min_count:
            candidates[0, n_candidates[0]] = j
            n_candidates[0] += 1
            _append_itemset_if_space(n_found, 0, path, j, n, members, count)
            n_found += 1
    depth = 0
    next_candidate[0] = 0
    while depth >= 0:
        if depth + 1 >= max_length or next_candidate[depth] >= n_candidates[depth]:
            depth -= 1
            continue
        candidate_index = next_candidate[depth]
        next_candidate[depth] += 1
        new_item = candidates[depth, candidate_index]
        path[depth] = new_item
        new_prefix = prefix[depth + 1]
        for w in range(bits.shape[1]):
            new_prefix[w] = prefix[depth, w] & bits[new_item, w]
        n_candidates[depth + 1] = 0
        # Only later items, so that each set occurs once; support cannot grow with more items, so
        # items that are infrequent here stay excluded (Agrawal and Srikant 1994).
        for k in range(candidate_index + 1, n_candidates[depth]):
            j = candidates[depth, k]
            n = _count_common_bits(new_prefix, bits[j])
            if n >= min_count:
                candidates[depth + 1, n_candidates[depth + 1]] = j
                n_candidates[depth + 1] += 1
                _append_itemset_if_space(n_found, depth + 1, path, j, n, members, count)
                n_found += 1
        if n_candidates[depth + 1]:
            depth += 1
            next_candidate[depth] = 0
    return n_found


@_njit_without_refcounts
def count_rows_with_itemsets(
    bits: _Words, last_word_mask: np.uint64, members: _Short, count: _Ints
) -> None:
    """Count the rows with all items of each set; the mask selects the rows of the last word."""
    words = bits.shape[1]
    for s in range(len(count)):
        total = np.uint64(0)
        for w in range(words):
            # An empty set selects all bits, so the padding of the last word must be masked.
            word = ~np.uint64(0) if w < words - 1 else last_word_mask
            for d in range(members.shape[1]):
                if members[s, d] < 0:
                    break
                word &= bits[members[s, d], w]
            total += _count_bits(word)
        count[s] = total
