"""The compiled loops that list pairs without a table of all possible pairs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

_Ints = npt.NDArray[np.int64]
_Bits = npt.NDArray[np.uint64]
_Indices = npt.NDArray[np.int32]
_GenuineFlags = npt.NDArray[np.int8]


@njit(nogil=True)
def _is_comparable(bits: _Bits, level: _Ints, width: int, i: int, j: int) -> bool:
    return bool((bits[i] & bits[j]) != np.uint64(0)) and bool(abs(level[i] - level[j]) <= width)


@njit(nogil=True)
def count_pairs(identity: _Ints, bits: _Bits, level: _Ints, width: int) -> tuple[int, int]:
    """Count the genuine pairs, and the impostors that share a bit and lie within ``width``."""
    genuine, impostors = np.int64(0), np.int64(0)
    for i in range(len(identity)):
        later_identity, later_bits, later_level = identity[i + 1 :], bits[i + 1 :], level[i + 1 :]
        for j in range(len(later_identity)):  # no branch, so that the compiler vectorises the loop
            is_genuine = np.int64(later_identity[j] == identity[i])
            shares_bit = np.int64((later_bits[j] & bits[i]) != np.uint64(0))
            is_near = np.int64(abs(later_level[j] - level[i]) <= width)
            genuine += is_genuine
            impostors += shares_bit & is_near & (1 - is_genuine)
    return int(genuine), int(impostors)


@njit(nogil=True)
def list_pairs(
    identity: _Ints, bits: _Bits, level: _Ints, width: int, capacity: int
) -> tuple[_Indices, _Indices, _GenuineFlags]:
    """List all genuine pairs, and the impostors that share a bit and lie within ``width``."""
    n, n_pairs = len(identity), 0
    first, second = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    genuine = np.empty(capacity, np.int8)
    for i in range(n):
        # Each pair once, in rising order, which the reader of lists relies on.
        for j in range(i + 1, n):
            is_genuine = identity[i] == identity[j]
            # The rule for hard pairs restricts impostors only: FHIBE compares all genuine pairs.
            if is_genuine or _is_comparable(bits, level, width, i, j):
                first[n_pairs], second[n_pairs], genuine[n_pairs] = i, j, is_genuine
                n_pairs += 1
    return first, second, genuine
