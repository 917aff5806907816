"""The compiled loops that list pairs without holding a table of all of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

_Ints = npt.NDArray[np.int64]
_Bits = npt.NDArray[np.uint64]
_Places = npt.NDArray[np.int32]
_Kinds = npt.NDArray[np.int8]


@njit(nogil=True)
def _comparable(bits: _Bits, level: _Ints, width: int, i: int, j: int) -> bool:
    return bool((bits[i] & bits[j]) != np.uint64(0)) and bool(abs(level[i] - level[j]) <= width)


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
def list_pairs(
    identity: _Ints, bits: _Bits, level: _Ints, width: int, room: int
) -> tuple[_Places, _Places, _Kinds]:
    """List all genuine pairs and the impostors whose mixed number is at most ``cut``."""
    n, used = len(identity), 0
    first, second = np.empty(room, np.int32), np.empty(room, np.int32)
    genuine = np.empty(room, np.int8)
    for i in range(n):
        for j in range(i + 1, n):
            same = identity[i] == identity[j]
            if same or _comparable(bits, level, width, i, j):
                first[used], second[used], genuine[used] = i, j, same
                used += 1
    return first, second, genuine
