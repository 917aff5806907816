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

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

__all__ = ["GIVEN_UP", "NO_NUMBER", "READ", "read_number"]

READ, GIVEN_UP, NO_NUMBER = 0, 1, 2
_LARGEST = 60  # |q| up to which 5^q is kept: wider than any box or score needs


def _power_of_five(q: int) -> int:
    """Give the first 128 bits of 5^q; below 5^0 rounded up, as the method asks for."""
    if q >= 0:
        power = 5**q
        shift = power.bit_length() - 128
        return power << -shift if shift < 0 else power >> shift
    power = 5**-q
    if q >= -27:
        return (1 << ((power - 1).bit_length() + 127)) // power + 1
    found = (1 << (2 * (power - 1).bit_length() + 128)) // power + 1
    return found >> (found.bit_length() - 128)


_POWERS = range(-_LARGEST, _LARGEST + 1)
_HIGH = np.array([_power_of_five(q) >> 64 for q in _POWERS], dtype=np.uint64)
_LOW = np.array([_power_of_five(q) & 0xFFFF_FFFF_FFFF_FFFF for q in _POWERS], dtype=np.uint64)
_TENS = np.array([10.0**i for i in range(23)])  # all of them exact
_TWOS = np.array([2.0**i for i in range(-500, 500)])


@njit(cache=True, inline="always")
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Multiply two 64-bit numbers: the high and the low half of the product."""
    mask, half = uint64(0xFFFFFFFF), uint64(32)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    low = a_low * b_low
    middle = a_high * b_low + (low >> half)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (other >> half), (other << half) | (low & mask)


@njit(cache=True)
def _rounded(w: np.uint64, q: int) -> tuple[float, bool]:
    """Round w · 10^q to the nearest float, ties to even; False where this cannot be decided."""
    if q < -_LARGEST or q > _LARGEST:
        return 0.0, False
    zeros = uint64(0)
    while w < uint64(1) << uint64(63):
        w <<= uint64(1)
        zeros += uint64(1)
    high, low = _product(w, _HIGH[q + _LARGEST])
    if high & uint64(0x1FF) == uint64(0x1FF):
        more, _ = _product(w, _LOW[q + _LARGEST])
        low += more
        if more > low:
            high += uint64(1)
    if low == uint64(0xFFFFFFFFFFFFFFFF) and (q < -27 or q > 55):
        return 0.0, False
    upper = high >> uint64(63)
    shift = upper + uint64(9)
    mantissa = high >> shift
    if (
        low <= uint64(1)
        and -4 <= q <= 23
        and mantissa & uint64(3) == uint64(1)
        and mantissa << shift == high
    ):
        mantissa &= ~uint64(1)
    mantissa = (mantissa + (mantissa & uint64(1))) >> uint64(1)
    exponent = ((217706 * q) >> 16) + 63 + np.int64(upper) - np.int64(zeros) - 52
    return float(mantissa) * _TWOS[exponent + 500], True


@njit(cache=True)
def read_number(data: npt.NDArray[np.uint8], at: int) -> tuple[float, int, int, bool]:
    """Read the number of JSON's grammar that begins at ``at``.

    The data must end in a byte that belongs to no number.

    Returns
    -------
    value, next, status, whole
        ``next`` is the first byte after it. ``whole``: it has neither a point nor an exponent.
    """
    negative = data[at] == 45  # -
    if negative:
        at += 1
    begin = at
    w, digits, q = uint64(0), 0, 0
    while 48 <= data[at] <= 57:
        w = w * uint64(10) + uint64(data[at] - 48)
        digits += digits > 0 or w > uint64(0)
        at += 1
    if at == begin or (data[begin] == 48 and at > begin + 1):
        return 0.0, at, NO_NUMBER, False  # no digit, or 007
    whole = True
    if data[at] == 46:  # .
        whole = False
        at += 1
        begin = at
        while 48 <= data[at] <= 57:
            w = w * uint64(10) + uint64(data[at] - 48)
            digits += digits > 0 or w > uint64(0)
            at += 1
        q = begin - at
        if q == 0:
            return 0.0, at, NO_NUMBER, False
    if data[at] | 32 == 101:  # e, E
        whole = False
        at += 1
        down = data[at] == 45
        if down or data[at] == 43:
            at += 1
        begin = at
        power = 0
        while 48 <= data[at] <= 57 and at < begin + 5:
            power = power * 10 + np.int64(data[at] - 48)
            at += 1
        if at == begin:
            return 0.0, at, NO_NUMBER, False
        if at == begin + 5:
            return 0.0, at, GIVEN_UP, False
        q += -power if down else power
    if digits > 19:
        return 0.0, at, GIVEN_UP, False
    if w == uint64(0):
        value, known = 0.0, True
    elif w <= uint64(9007199254740992) and -22 <= q <= 22:
        value, known = float(w) / _TENS[-q] if q < 0 else float(w) * _TENS[q], True
    else:
        value, known = _rounded(w, q)
    return -value if negative else value, at, READ if known else GIVEN_UP, whole
