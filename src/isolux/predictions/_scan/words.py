"""Text eight bytes at a time, compiled: digits are counted and read without looking at each.

What stands in the lowest byte of a word is the first of the text, as on every machine that numba
knows but IBM's large ones: ``WHOLE`` is false there, and readers go byte by byte.

References
----------
.. [1] Lemire, D. (2021). Number parsing at a gigabyte per second. Software: Practice and
   Experience, 51(8), 1700–1727. https://doi.org/10.1002/spe.2984 (section 7: eight digits at once).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

from isolux.io.kernels import njit

__all__ = ["WHOLE", "WORD", "byte_of", "digits_of", "value_of", "word_at"]

WORD = 8
WHOLE = sys.byteorder == "little"
_intrinsic: Any = intrinsic
_int: Any = np.int64
_ZEROS = uint64(0x3030303030303030)  # "00000000"
_ABOVE_NINE = uint64(0x7676767676767676)
_HIGH_BITS = uint64(0x8080808080808080)


def _word_at(_typing: Any, data: Any, at: Any) -> Any:  # noqa: ARG001 - numba reads its name
    """Load the eight bytes from ``at``, all of which must lie within the data."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, given[0])
        place = builder.gep(array.data, [given[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), generate


word_at = _intrinsic(_word_at)


def _below(_typing: Any, word: Any) -> Any:  # noqa: ARG001
    """Count the zero bits below the lowest that is set; 64 where none is."""

    def generate(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return builder.cttz(given[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


_zeros_below = _intrinsic(_below)


@njit(forceinline=True, _nrt=False)
def digits_of(word: np.uint64) -> int:
    """Count the digits that a word begins with."""
    x = word ^ _ZEROS  # a digit becomes its value
    other = ((x + _ABOVE_NINE) | x) & _HIGH_BITS  # carries reach later bytes alone
    count: int = _int(_zeros_below(other) >> uint64(3))
    return count


@njit(forceinline=True, _nrt=False)
def byte_of(word: np.uint64, k: int) -> np.uint64:
    """Give byte k of a word, counted from 0."""
    return (word >> uint64(8 * k)) & uint64(0xFF)


@njit(forceinline=True, _nrt=False)
def value_of(word: np.uint64, digits: int) -> np.uint64:
    """Read the first digits of a word, one to eight of them, as a whole number."""
    x = (word ^ _ZEROS) << uint64(64 - 8 * digits)  # zeros come before
    x = x * uint64(10) + (x >> uint64(8))
    pairs = uint64(0x000000FF000000FF)
    one = uint64(0x000F424000000064)  # 100 + (1000000 << 32)
    other = uint64(0x0000271000000001)  # 1 + (10000 << 32)
    return ((x & pairs) * one + ((x >> uint64(16)) & pairs) * other) >> uint64(32)
