"""Decimal numbers in text to the nearest float, compiled: what ``float(text)`` gives, far quicker.

Up to 19 digits are gathered in a whole number w, the value is w · 10^q. Where both fit a float
exactly, one multiplication or division rounds right (Clinger); otherwise w is multiplied by a
128-bit approximation of 5^q, which decides the rounding in all but a few cases (Eisel and Lemire).
Those few, and numbers with more digits, are given up on, for a slower reader to take.

References
----------
.. [1] Clinger, W. D. (1990). How to read floating point numbers accurately. PLDI.
.. [2] Lemire, D. (2021). Number parsing at a gigabyte per second. Software: Practice and
   Experience, 51(8), 1700–1727. https://doi.org/10.1002/spe.2984
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import uint64

from isolux.io.kernels import njit
from isolux.predictions._scan.words import WHOLE, WORD, byte_of, digits_of, value_of, word_at

__all__ = [
    "GIVEN_UP",
    "NO_NUMBER",
    "READ",
    "compiled",
    "inlined",
    "read_digits",
    "read_number",
    "read_whole",
    "short",
    "short_whole",
]

READ, GIVEN_UP, NO_NUMBER = 0, 1, 2
_int: Any = np.int64  # numba's int() leaves an unsigned number unsigned
_LARGEST = 60  # |q| up to which 5^q is kept: wider than any box or score needs

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])
# Counting references to arrays, which no kernel here makes or frees, takes three quarters of the
# time; numba leaves it out on this option of its own compilers.
_UNCOUNTED: dict[str, Any] = {"_nrt": False}


def compiled(function: _Kernel) -> _Kernel:
    """Compile a kernel that makes no array."""
    return njit(**_UNCOUNTED)(function)


def inlined(function: _Kernel) -> _Kernel:
    """Compile a kernel that makes no array and is put into each that calls it."""
    return njit(forceinline=True, **_UNCOUNTED)(function)


def _power_of_five(q: int) -> int:
    """Give the first 128 bits of 5^q; below 5^0 rounded up, as the method asks for."""
    power: int = 5 ** abs(q)
    if q >= 0:
        shift = power.bit_length() - 128
        return power << -shift if shift < 0 else power >> shift
    if q >= -27:
        return (1 << ((power - 1).bit_length() + 127)) // power + 1
    found: int = (1 << (2 * (power - 1).bit_length() + 128)) // power + 1
    return found >> (found.bit_length() - 128)


_POWERS = range(-_LARGEST, _LARGEST + 1)
_HIGH = np.array([_power_of_five(q) >> 64 for q in _POWERS], dtype=np.uint64)
_LOW = np.array([_power_of_five(q) & 0xFFFF_FFFF_FFFF_FFFF for q in _POWERS], dtype=np.uint64)
_TENS = np.array([10.0**i for i in range(23)])  # all of them exact
_ROOM = 1 + 2 * WORD  # a sign and two words
_BYTE = uint64(0xFF)
_WHOLE_TENS = np.array([10**i for i in range(8)], dtype=np.uint64)
_TWOS = np.array([2.0**i for i in range(-500, 500)])


@inlined
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Multiply two 64-bit numbers: the high and the low half of the product."""
    mask, half = uint64(0xFFFFFFFF), uint64(32)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    low = a_low * b_low
    middle = a_high * b_low + (low >> half)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (other >> half), (other << half) | (low & mask)


@compiled
def _rounded(w: np.uint64, q: int) -> tuple[float, int]:
    """Round w · 10^q to the nearest float, ties to even; GIVEN_UP where this cannot be decided."""
    # 2^53 and 10^22 are the last whole number and power of ten up to which all are exact.
    if w <= uint64(9007199254740992) and -22 <= q <= 22:
        return (float(w) / _TENS[-q] if q < 0 else float(w) * _TENS[q]), READ
    if w == uint64(0):
        return 0.0, READ
    if q < -_LARGEST or q > _LARGEST:
        return 0.0, GIVEN_UP
    zeros = 0
    while w < uint64(1) << uint64(63):
        w <<= uint64(1)
        zeros += 1
    high, low = _product(w, _HIGH[q + _LARGEST])
    # Nine bits lie below the mantissa. Only where all are set can a carry from below change it.
    if high & uint64(0x1FF) == uint64(0x1FF):
        more, _ = _product(w, _LOW[q + _LARGEST])
        low += more
        if more > low:
            high += uint64(1)
    # Beyond these powers 5^q is itself rounded, so that the product may be one too low.
    if low == uint64(0xFFFFFFFFFFFFFFFF) and (q < -27 or q > 55):
        return 0.0, GIVEN_UP
    upper = high >> uint64(63)
    shift = upper + uint64(9)
    mantissa = high >> shift  # 54 bits: one more than a float keeps, which decides the rounding
    if (
        low <= uint64(1)
        and -4 <= q <= 23
        and mantissa & uint64(3) == uint64(1)
        and mantissa << shift == high
    ):
        mantissa &= ~uint64(1)
    mantissa = (mantissa + (mantissa & uint64(1))) >> uint64(1)
    # 217706 / 2^16 is log2(10): the power of two of 10^q, rounded down.
    exponent = ((217706 * q) >> 16) + 63 + _int(upper) - zeros - 52
    return float(mantissa) * _TWOS[exponent + 500], READ


@compiled
def read_digits(data: npt.NDArray[np.uint8], at: int, w: np.uint64) -> tuple[int, np.uint64]:
    """Append digits to w: the byte after them, and w."""
    while True:
        digit = uint64(data[at]) - uint64(48)  # below "0" it wraps round to a large number
        if digit > uint64(9):
            return at, w
        w = w * uint64(10) + digit
        at += 1


@compiled
def _fraction(
    data: npt.NDArray[np.uint8], at: int, w: np.uint64, digits: int
) -> tuple[int, np.uint64, int, int]:
    """Read what follows a point: the byte after, w, its significant digits, digits behind it."""
    begin = at
    if w == uint64(0):
        while data[at] == 48:  # zeros that are not significant
            at += 1
        digits = begin - at
    at, w = read_digits(data, at, w)
    return at, w, digits + at - begin, at - begin


@compiled
def _power(data: npt.NDArray[np.uint8], at: int) -> tuple[int, int, int]:
    """Read what follows an e: the byte after it, the power, and whether it could be read."""
    down = data[at] == 45
    if down or data[at] == 43:
        at += 1
    after, power = read_digits(data, at, uint64(0))
    if after == at:
        return at, 0, NO_NUMBER
    if after > at + 4:
        return after, 0, GIVEN_UP
    return after, (-_int(power) if down else _int(power)), READ


@inlined
def short(data: npt.NDArray[np.uint8], at: int) -> tuple[float, int, int]:
    """Read a number of at most seven digits before and behind its point, which most are."""
    if not WHOLE or at + _ROOM > len(data):
        return 0.0, at, GIVEN_UP
    word = word_at(data, at)
    negative = word & _BYTE == uint64(45)  # -
    if negative:
        at += 1
        word = word_at(data, at)
    whole = digits_of(word)
    if not 0 < whole < WORD or (word & _BYTE == uint64(48) and whole > 1):
        return 0.0, at, GIVEN_UP
    w, behind = value_of(word, whole), 0
    at += whole
    follows = byte_of(word, whole)
    if follows == uint64(46):  # .
        word = word_at(data, at + 1)
        behind = digits_of(word)
        if not 0 < behind < WORD:
            return 0.0, at, GIVEN_UP
        w = w * _WHOLE_TENS[behind] + value_of(word, behind)
        at += 1 + behind
        follows = byte_of(word, behind)
    if follows | uint64(32) == uint64(101):  # e, E
        return 0.0, at, GIVEN_UP
    value = float(_int(w)) / _TENS[behind]  # below 10^14: both are exact
    return (-value if negative else value), at, READ


@compiled
def read_number(data: npt.NDArray[np.uint8], at: int) -> tuple[float, int, int]:
    """Read the number of JSON's grammar that begins at ``at``."""
    negative = data[at] == 45  # -
    if negative:
        at += 1
    begin, q, status = at, 0, READ
    at, w = read_digits(data, begin, uint64(0))
    digits = at - begin
    if digits == 0 or (data[begin] == 48 and digits > 1):
        return 0.0, at, NO_NUMBER  # no digit, or 007
    if data[at] == 46:  # .
        at, w, digits, behind = _fraction(data, at + 1, w, digits)
        if behind == 0:
            return 0.0, at, NO_NUMBER
        q = -behind
    if data[at] | 32 == 101:  # e, E
        at, power, status = _power(data, at + 1)
        q += power
    # 19 digits always fit 64 bits, 20 may not.
    if digits > 19 or status != READ:
        return 0.0, at, (NO_NUMBER if status == NO_NUMBER else GIVEN_UP)
    value, status = _rounded(w, q)
    return (-value if negative else value), at, status


@compiled
def read_whole(data: npt.NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Read a whole number of at most 18 digits; the next byte is -1 where it is not one."""
    negative = data[at] == 45
    if negative:
        at += 1
    begin = at
    at, value = read_digits(data, at, np.uint64(0))
    digits = at - begin
    more = data[at] == 46 or data[at] | 32 == 101
    # 18 digits always fit 63 bits; JSON forbids leading zeros.
    if digits == 0 or digits > 18 or more or (data[begin] == 48 and digits > 1):
        return 0, -1
    return (-_int(value) if negative else _int(value)), at


@inlined
def short_whole(data: npt.NDArray[np.uint8], at: int) -> tuple[int, int]:
    """Read a whole number of at most seven digits; any other, and a fraction, as ``read_whole``."""
    if at + WORD <= len(data):
        word = word_at(data, at)
        digits = digits_of(word)
        if 0 < digits < WORD and (digits == 1 or byte_of(word, 0) != uint64(48)):
            after = byte_of(word, digits)
            if after != uint64(46) and after | uint64(32) != uint64(101):
                return _int(value_of(word, digits)), at + digits
    return read_whole(data, at)
