"""The compiled loops that list pairs without holding a table of all of them.

Whether a pair is drawn depends on a number mixed from the seed and its two places, not on what was
drawn before, so a sample is the same however the list is cut.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

_Ints = npt.NDArray[np.int64]
_Bits = npt.NDArray[np.uint64]
_Places = npt.NDArray[np.int32]
_Kinds = npt.NDArray[np.int8]


@njit(nogil=True)
def _mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(x ^ (x >> np.uint64(31)))


@njit(nogil=True)
def _comparable(bits: _Bits, level: _Ints, width: int, i: int, j: int) -> bool:
    return bool((bits[i] & bits[j]) != np.uint64(0)) and bool(abs(level[i] - level[j]) <= width)


@njit(nogil=True)
def _start(seed: int) -> np.uint64:
    return np.uint64(_mix(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15)))


@njit(nogil=True)
def _number(start: np.uint64, i: int, j: int, n: int) -> np.uint64:
    """Give a pair its number; no two pairs have the same, as every step can be undone."""
    return np.uint64(_mix(start ^ _mix(np.uint64(i) * np.uint64(n) + np.uint64(j))))


@njit(nogil=True)
def count_pairs(identity: _Ints, bits: _Bits, level: _Ints, width: int) -> tuple[int, int]:
    """Count the genuine pairs, and the impostors that share a bit and lie within ``width``."""
    genuine, impostors = np.int64(0), np.int64(0)
    for i in range(len(identity)):
        who, bit, at = identity[i + 1 :], bits[i + 1 :], level[i + 1 :]
        for j in range(len(who)):  # no branch, so the compiler makes it wide
            same = np.int64(who[j] == identity[i])
            shared = np.int64((bit[j] & bits[i]) != np.uint64(0))
            near = np.int64(abs(at[j] - level[i]) <= width)
            genuine += same
            impostors += shared & near & (1 - same)
    return int(genuine), int(impostors)


@njit(nogil=True)
def impostor_numbers(
    identity: _Ints, bits: _Bits, level: _Ints, width: int, seed: int, limit: float
) -> _Bits:
    """List the mixed numbers of those impostor pairs that lie below ``limit`` times 2⁶⁴."""
    n = len(identity)
    start, scale, used = _start(seed), 2.0**-64, 0
    found = np.empty(1024, np.uint64)
    for i in range(n):
        for j in range(i + 1, n):
            if identity[i] == identity[j] or not _comparable(bits, level, width, i, j):
                continue
            number = _number(start, i, j, n)
            if np.float64(number) * scale >= limit:
                continue
            if used == len(found):
                found = np.concatenate((found, np.empty_like(found)))
            found[used] = number
            used += 1
    return found[:used]


@njit(nogil=True)
def list_pairs(
    identity: _Ints, bits: _Bits, level: _Ints, width: int, seed: int, cut: np.uint64, room: int
) -> tuple[_Places, _Places, _Kinds]:
    """List all genuine pairs and the impostors whose mixed number is at most ``cut``."""
    n = len(identity)
    first, second = np.empty(room, np.int32), np.empty(room, np.int32)
    genuine = np.empty(room, np.int8)
    start, used = _start(seed), 0
    every = cut == np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(n):
        for j in range(i + 1, n):
            same = identity[i] == identity[j]
            if not same:
                if not _comparable(bits, level, width, i, j):
                    continue
                if not every and _number(start, i, j, n) > cut:
                    continue
            first[used], second[used], genuine[used] = i, j, same
            used += 1
    return first, second, genuine
