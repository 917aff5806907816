"""The compiled loops that list pairs without holding a table of all of them.

Whether a pair is drawn depends on a number mixed from the seed and its two places, not on what was
drawn before, so a sample is the same however the list is cut.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["count_impostors", "genuine_pairs", "impostor_pairs"]

_Ints = npt.NDArray[np.int64]
_Bits = npt.NDArray[np.uint64]


@njit(cache=True, nogil=True)
def _mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(x ^ (x >> np.uint64(31)))


@njit(cache=True, nogil=True)
def _comparable(bits: _Bits, level: _Ints, width: int, i: int, j: int) -> bool:
    return bool((bits[i] & bits[j]) != np.uint64(0)) and bool(abs(level[i] - level[j]) <= width)


@njit(cache=True, nogil=True)
def genuine_pairs(identity: _Ints) -> tuple[_Ints, _Ints]:
    """List all pairs of one identity, the smaller place first: two arrays ``[m]``."""
    order = np.argsort(identity, kind="mergesort")
    total = 0
    for step in range(2):
        if step == 1:
            first, second = np.empty(total, np.int64), np.empty(total, np.int64)
            total = 0
        else:
            first, second = np.empty(0, np.int64), np.empty(0, np.int64)
        for p in range(len(order)):
            q = p + 1
            while q < len(order) and identity[order[q]] == identity[order[p]]:
                if step == 1:
                    first[total], second[total] = order[p], order[q]
                total += 1
                q += 1
    return first, second


@njit(cache=True, nogil=True)
def count_impostors(identity: _Ints, bits: _Bits, level: _Ints, width: int) -> int:
    """Count the pairs of two identities that share a bit and lie within ``width`` levels."""
    total = 0
    for i in range(len(identity)):
        for j in range(i + 1, len(identity)):
            total += identity[i] != identity[j] and _comparable(bits, level, width, i, j)
    return total


@njit(cache=True, nogil=True)
def impostor_pairs(
    identity: _Ints, bits: _Bits, level: _Ints, width: int, seed: int, limit: float
) -> tuple[_Ints, _Ints, _Bits]:
    """List those pairs whose mixed number lies below ``limit`` times 2⁶⁴, and that number."""
    n = len(identity)
    room = 1024
    first, second = np.empty(room, np.int64), np.empty(room, np.int64)
    number = np.empty(room, np.uint64)
    start = _mix(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15))
    scale = 2.0**-64
    used = 0
    for i in range(n):
        for j in range(i + 1, n):
            if identity[i] == identity[j] or not _comparable(bits, level, width, i, j):
                continue
            mixed = _mix(start ^ _mix(np.uint64(i) * np.uint64(n) + np.uint64(j)))
            if np.float64(mixed) * scale >= limit:
                continue
            if used == room:
                room *= 2
                first = np.concatenate((first, np.empty_like(first)))
                second = np.concatenate((second, np.empty_like(second)))
                number = np.concatenate((number, np.empty_like(number)))
            first[used], second[used], number[used] = i, j, mixed
            used += 1
    return first[:used], second[:used], number[:used]
