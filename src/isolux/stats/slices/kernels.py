"""The compiled loops of ``slices``; imported only by the functions that run them.

A value of an attribute is a column of bits, one a row; a slice is the AND of up to three. Slices
are walked level by level, and one is looked into only if its parts allow it a score that would
enter the list of the worst: no more rows, no more error in total and no larger single error than
the least of its parts has.
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
_Floats = npt.NDArray[np.float64]

_SIZE, _ERROR, _LARGEST, _CLUSTERS = 0, 1, 2, 3  # of what is known of a slice
_ROUNDING = 1e-9  # a bound that misses the bar by this much is it: the slice is looked at
_NOTHING = 1e-12  # a score below this is everyone's own, but for rounding


def _lowest(_context: Any, _word: Any) -> Any:
    """Find the place of the lowest bit that is set: one instruction, nameless in numba."""

    def build(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, 1))

    return types.uint64(types.uint64), build


_trailing: Any = intrinsic(_lowest)


@njit(nogil=True)
def _describe(prefix: _Words, own: _Words, error: _Floats, cluster: _Ints, told: _Floats) -> None:
    """Write size, sum of errors, largest error and number of clusters of the AND of two columns."""
    size, total, largest, clusters, last = 0, 0.0, 0.0, 0, -1
    for w in range(len(own)):
        word = prefix[w] & own[w]
        while word != np.uint64(0):
            i = w * 64 + np.int64(_trailing(word))
            word &= word - np.uint64(1)
            size += 1
            total += error[i]
            largest = max(largest, error[i])
            if cluster[i] != last:
                clusters += 1
                last = cluster[i]
    told[_SIZE], told[_ERROR], told[_LARGEST], told[_CLUSTERS] = size, total, largest, clusters


@njit(nogil=True)
def _score(size: float, error: float, whole: _Floats) -> float:
    """Score a slice; ``whole``: rows, sum of all errors, alpha, least size, least clusters."""
    n, total, alpha = whole[0], whole[1], whole[2]
    return float(alpha * (n * error / (size * total) - 1.0) - (1.0 - alpha) * (n / size - 1.0))


@njit(nogil=True)
def _bound(size: float, error: float, largest: float, whole: _Floats) -> float:
    """Bound the score of any slice within one of this size, sum and largest error."""
    least = whole[3]
    if size < least or largest <= 0.0:
        return -np.inf
    turn = min(max(error / largest, least), size)
    best = _score(size, min(error, size * largest), whole)
    best = max(best, _score(least, min(error, least * largest), whole))
    return max(best, _score(turn, min(error, turn * largest), whole))


@njit(nogil=True)
def _insert(
    a: int,
    b: int,
    c: int,
    told: _Floats,
    members: _Short,
    found: _Floats,
    whole: _Floats,
    counts: _Ints,
) -> None:
    """Put a slice into the list, behind those that score as high; the last one may fall out."""
    score, n = _score(told[_SIZE], told[_ERROR], whole), counts[0]
    if score <= _NOTHING or (n == len(members) and score <= found[n - 1, 0]):
        return
    at = min(n, len(members) - 1)
    while at > 0 and found[at - 1, 0] < score:
        for q in range(4):
            found[at, q] = found[at - 1, q]
        for d in range(3):
            members[at, d] = members[at - 1, d]
        at -= 1
    found[at, 0], found[at, 1] = score, told[_SIZE]
    found[at, 2], found[at, 3] = told[_ERROR], told[_CLUSTERS]
    members[at, 0], members[at, 1], members[at, 2] = a, b, c
    counts[0] = min(n + 1, len(members))


@njit(nogil=True)
def _worth(
    size: float, error: float, largest: float, found: _Floats, whole: _Floats, counts: _Ints
) -> bool:
    """Tell whether anything within such a slice could enter the list."""
    bar = found[counts[0] - 1, 0] if counts[0] == len(found) else 0.0
    return _bound(size, error, largest, whole) > bar - _ROUNDING * max(1.0, bar)


@njit(nogil=True)
def _stands(told: _Floats, smallest_part: float, whole: _Floats) -> bool:
    """Tell whether a slice is large enough, and not just one of its parts again."""
    large = told[_SIZE] >= whole[3] and told[_CLUSTERS] >= whole[4]
    return bool(large and told[_SIZE] < smallest_part)


@njit(nogil=True)
def _thirds(
    a: int,
    b: int,
    both: _Words,
    bits: _Words,
    attribute: _Ints,
    error: _Floats,
    cluster: _Ints,
    pairs: _Floats,
    members: _Short,
    found: _Floats,
    whole: _Floats,
    counts: _Ints,
) -> None:
    """Try every third value with the pair (a, b)."""
    told = np.empty(4)
    for c in range(b + 1, len(bits)):
        if attribute[c] == attribute[a] or attribute[c] == attribute[b]:
            continue
        size = min(pairs[a, b, _SIZE], pairs[a, c, _SIZE], pairs[b, c, _SIZE])
        if size <= 0:  # a pair of these is no slice
            continue
        total = min(pairs[a, b, _ERROR], pairs[a, c, _ERROR], pairs[b, c, _ERROR])
        largest = min(pairs[a, b, _LARGEST], pairs[a, c, _LARGEST], pairs[b, c, _LARGEST])
        if not _worth(size, total, largest, found, whole, counts):
            continue
        _describe(both, bits[c], error, cluster, told)
        counts[1] += 1
        if _stands(told, size, whole):
            _insert(a, b, c, told, members, found, whole, counts)


@njit(nogil=True)
def _singles(
    bits: _Words,
    error: _Floats,
    cluster: _Ints,
    members: _Short,
    found: _Floats,
    whole: _Floats,
    counts: _Ints,
) -> _Floats:
    """Look into every value alone; return what is known of each: ``[p, 4]``, 0 where too small."""
    every = np.full(bits.shape[1], ~np.uint64(0))
    one, told = np.zeros((len(bits), 4)), np.empty(4)
    for a in range(len(bits)):
        _describe(every, bits[a], error, cluster, told)
        counts[1] += 1
        if _stands(told, len(error) + 1.0, whole):
            one[a] = told
            _insert(a, -1, -1, told, members, found, whole, counts)
    return one


@njit(nogil=True)
def _doubles(
    bits: _Words,
    attribute: _Ints,
    error: _Floats,
    cluster: _Ints,
    one: _Floats,
    members: _Short,
    found: _Floats,
    whole: _Floats,
    counts: _Ints,
) -> _Floats:
    """Look into pairs; return what is known of each: ``[p, p, 4]``, 0 where it is no slice."""
    p, told = len(bits), np.empty(4)
    pairs = np.zeros((p, p, 4))
    for a in range(p):
        for b in range(a + 1, p):
            size = min(one[a, _SIZE], one[b, _SIZE])
            if attribute[a] == attribute[b] or size <= 0:
                continue
            total, largest = min(one[a, 1], one[b, 1]), min(one[a, 2], one[b, 2])
            if not _worth(size, total, largest, found, whole, counts):
                continue
            _describe(bits[a], bits[b], error, cluster, told)
            counts[1] += 1
            if _stands(told, size, whole):
                pairs[a, b] = told
                _insert(a, b, -1, told, members, found, whole, counts)
    return pairs


@njit(nogil=True)
def walk_slices(
    bits: _Words,
    attribute: _Ints,
    error: _Floats,
    cluster: _Ints,
    length: int,
    members: _Short,
    found: _Floats,
    whole: _Floats,
    counts: _Ints,
) -> None:
    """Find the slices of the highest score."""
    one = _singles(bits, error, cluster, members, found, whole, counts)
    if length < 2:
        return
    pairs = _doubles(bits, attribute, error, cluster, one, members, found, whole, counts)
    if length < 3:
        return
    both = np.empty(bits.shape[1], np.uint64)
    for a in range(len(bits)):
        for b in range(a + 1, len(bits)):
            kept = pairs[a, b]
            if kept[_SIZE] <= 0 or not _worth(kept[0], kept[1], kept[2], found, whole, counts):
                continue
            for w in range(len(both)):
                both[w] = bits[a, w] & bits[b, w]
            _thirds(
                a, b, both, bits, attribute, error, cluster, pairs, members, found, whole, counts
            )
