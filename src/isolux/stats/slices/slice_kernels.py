"""The compiled loops of ``slices``; imported only by the functions that run them.

A value of an attribute is a column of bits, one for each row; a slice is the AND of up to three.
Slices are searched level by level, and evaluated only if the bound of their score is high enough
for the list: a slice has at most the size, the summed error and the largest error of each part.
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
_Floats = npt.NDArray[np.float64]

_SIZE, _ERROR, _LARGEST, _CLUSTERS = 0, 1, 2, 3  # indices of a slice's summary
_RELATIVE_TOLERANCE = 1e-9  # tolerance of the bound, against rounding
_MIN_SCORE = 1e-12  # a score below this is 0 up to rounding


def _emit_lowest_set_bit(_context: Any, _word: Any) -> Any:
    """Find the index of the lowest set bit: one instruction, which numba does not expose."""

    def build_cttz(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, 1))

    return types.uint64(types.uint64), build_cttz


_trailing: Any = intrinsic(_emit_lowest_set_bit)


@njit(nogil=True)
def _summarise_bit_intersection(
    prefix: _Words, column: _Words, error: _Floats, cluster: _Ints, summary: _Floats
) -> None:
    """Write size, sum of errors, largest error and number of clusters of the AND of two columns."""
    size, total, largest, clusters, last = 0, 0.0, 0.0, 0, -1
    for w in range(len(column)):
        word = prefix[w] & column[w]
        while word != np.uint64(0):
            i = w * 64 + np.int64(_trailing(word))
            # This clears the lowest bit that is set.
            word &= word - np.uint64(1)
            size += 1
            total += error[i]
            largest = max(largest, error[i])
            if cluster[i] != last:
                clusters += 1
                last = cluster[i]
    summary[_SIZE], summary[_ERROR], summary[_LARGEST], summary[_CLUSTERS] = (
        size,
        total,
        largest,
        clusters,
    )


@njit(nogil=True)
def _score_slice(size: float, error: float, search_terms: _Floats) -> float:
    """Score a slice. Search terms: rows, sum of all errors, alpha, minimal size and clusters."""
    n, total, alpha = search_terms[0], search_terms[1], search_terms[2]
    return float(alpha * (n * error / (size * total) - 1.0) - (1.0 - alpha) * (n / size - 1.0))


@njit(nogil=True)
def _bound_subslice_score(
    size: float, error: float, largest: float, search_terms: _Floats
) -> float:
    """Bound the score of any slice within one of this size, sum and largest error."""
    min_size = search_terms[3]
    # Without errors no slice has a score above 0.
    if size < min_size or largest <= 0.0:
        return -np.inf
    # The bound is monotone on both sides of the size at which error = size × largest, so its
    # maximum is at an end or there.
    turning_size = min(max(error / largest, min_size), size)
    best = _score_slice(size, min(error, size * largest), search_terms)
    best = max(best, _score_slice(min_size, min(error, min_size * largest), search_terms))
    return max(best, _score_slice(turning_size, min(error, turning_size * largest), search_terms))


@njit(nogil=True)
def _insert_into_ranked_slices(
    a: int,
    b: int,
    c: int,
    summary: _Floats,
    members: _Short,
    ranked_slices: _Floats,
    search_terms: _Floats,
    counts: _Ints,
) -> None:
    """Insert a slice into the ranked list, after equal scores; the last one may be dropped."""
    score, n = _score_slice(summary[_SIZE], summary[_ERROR], search_terms), counts[0]
    if score <= _MIN_SCORE or (n == len(members) and score <= ranked_slices[n - 1, 0]):
        return
    position = min(n, len(members) - 1)
    while position > 0 and ranked_slices[position - 1, 0] < score:
        for q in range(4):
            ranked_slices[position, q] = ranked_slices[position - 1, q]
        for d in range(3):
            members[position, d] = members[position - 1, d]
        position -= 1
    ranked_slices[position, 0], ranked_slices[position, 1] = score, summary[_SIZE]
    ranked_slices[position, 2], ranked_slices[position, 3] = summary[_ERROR], summary[_CLUSTERS]
    members[position, 0], members[position, 1], members[position, 2] = a, b, c
    counts[0] = min(n + 1, len(members))


@njit(nogil=True)
def _can_subslice_be_ranked(
    size: float,
    error: float,
    largest: float,
    ranked_slices: _Floats,
    search_terms: _Floats,
    counts: _Ints,
) -> bool:
    """Check whether a slice within these bounds could enter the list."""
    lowest_score = ranked_slices[counts[0] - 1, 0] if counts[0] == len(ranked_slices) else 0.0
    return _bound_subslice_score(
        size, error, largest, search_terms
    ) > lowest_score - _RELATIVE_TOLERANCE * max(1.0, lowest_score)


@njit(nogil=True)
def _is_valid_slice(summary: _Floats, smallest_part: float, search_terms: _Floats) -> bool:
    """Check that a slice is large enough, and smaller than each of its parts."""
    large = summary[_SIZE] >= search_terms[3] and summary[_CLUSTERS] >= search_terms[4]
    return bool(large and summary[_SIZE] < smallest_part)


@njit(nogil=True)
def _evaluate_triples_of_pair(
    a: int,
    b: int,
    pair_bits: _Words,
    bits: _Words,
    attribute: _Ints,
    error: _Floats,
    cluster: _Ints,
    pairs: _Floats,
    members: _Short,
    ranked_slices: _Floats,
    search_terms: _Floats,
    counts: _Ints,
) -> None:
    """Evaluate every third value with the pair (a, b)."""
    summary = np.empty(4)
    for c in range(b + 1, len(bits)):
        if attribute[c] == attribute[a] or attribute[c] == attribute[b]:
            continue
        size = min(pairs[a, b, _SIZE], pairs[a, c, _SIZE], pairs[b, c, _SIZE])
        if size <= 0:  # one of the pairs is not a valid slice
            continue
        total = min(pairs[a, b, _ERROR], pairs[a, c, _ERROR], pairs[b, c, _ERROR])
        largest = min(pairs[a, b, _LARGEST], pairs[a, c, _LARGEST], pairs[b, c, _LARGEST])
        if not _can_subslice_be_ranked(size, total, largest, ranked_slices, search_terms, counts):
            continue
        _summarise_bit_intersection(pair_bits, bits[c], error, cluster, summary)
        counts[1] += 1
        if _is_valid_slice(summary, size, search_terms):
            _insert_into_ranked_slices(
                a, b, c, summary, members, ranked_slices, search_terms, counts
            )


@njit(nogil=True)
def _evaluate_single_value_slices(
    bits: _Words,
    error: _Floats,
    cluster: _Ints,
    members: _Short,
    ranked_slices: _Floats,
    search_terms: _Floats,
    counts: _Ints,
) -> _Floats:
    """Evaluate single values; return their summaries ``[p, 4]``, 0 where too small."""
    all_rows = np.full(bits.shape[1], ~np.uint64(0))
    single_summaries, summary = np.zeros((len(bits), 4)), np.empty(4)
    for a in range(len(bits)):
        _summarise_bit_intersection(all_rows, bits[a], error, cluster, summary)
        counts[1] += 1
        if _is_valid_slice(summary, len(error) + 1.0, search_terms):
            single_summaries[a] = summary
            _insert_into_ranked_slices(
                a, -1, -1, summary, members, ranked_slices, search_terms, counts
            )
    return single_summaries


@njit(nogil=True)
def _evaluate_pair_slices(
    bits: _Words,
    attribute: _Ints,
    error: _Floats,
    cluster: _Ints,
    single_summaries: _Floats,
    members: _Short,
    ranked_slices: _Floats,
    search_terms: _Floats,
    counts: _Ints,
) -> _Floats:
    """Evaluate pairs; return their summaries ``[p, p, 4]``, 0 where a pair is not a slice."""
    p, summary = len(bits), np.empty(4)
    pairs = np.zeros((p, p, 4))
    for a in range(p):
        for b in range(a + 1, p):
            size = min(single_summaries[a, _SIZE], single_summaries[b, _SIZE])
            if attribute[a] == attribute[b] or size <= 0:
                continue
            total, largest = (
                min(single_summaries[a, 1], single_summaries[b, 1]),
                min(single_summaries[a, 2], single_summaries[b, 2]),
            )
            if not _can_subslice_be_ranked(
                size, total, largest, ranked_slices, search_terms, counts
            ):
                continue
            _summarise_bit_intersection(bits[a], bits[b], error, cluster, summary)
            counts[1] += 1
            if _is_valid_slice(summary, size, search_terms):
                pairs[a, b] = summary
                _insert_into_ranked_slices(
                    a, b, -1, summary, members, ranked_slices, search_terms, counts
                )
    return pairs


@njit(nogil=True)
def find_top_slices(
    bits: _Words,
    attribute: _Ints,
    error: _Floats,
    cluster: _Ints,
    max_length: int,
    members: _Short,
    ranked_slices: _Floats,
    search_terms: _Floats,
    counts: _Ints,
) -> None:
    """Find the slices with the highest score (SliceLine), level by level."""
    single_summaries = _evaluate_single_value_slices(
        bits, error, cluster, members, ranked_slices, search_terms, counts
    )
    if max_length < 2:
        return
    pairs = _evaluate_pair_slices(
        bits,
        attribute,
        error,
        cluster,
        single_summaries,
        members,
        ranked_slices,
        search_terms,
        counts,
    )
    if max_length < 3:
        return
    pair_bits = np.empty(bits.shape[1], np.uint64)
    for a in range(len(bits)):
        for b in range(a + 1, len(bits)):
            pair_summary = pairs[a, b]
            if pair_summary[_SIZE] <= 0 or not _can_subslice_be_ranked(
                pair_summary[0],
                pair_summary[1],
                pair_summary[2],
                ranked_slices,
                search_terms,
                counts,
            ):
                continue
            for w in range(len(pair_bits)):
                pair_bits[w] = bits[a, w] & bits[b, w]
            _evaluate_triples_of_pair(
                a,
                b,
                pair_bits,
                bits,
                attribute,
                error,
                cluster,
                pairs,
                members,
                ranked_slices,
                search_terms,
                counts,
            )
