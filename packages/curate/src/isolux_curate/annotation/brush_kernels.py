"""Unpack what Label Studio's brush painted: bits, read one after another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

COUNT_BITS = 32  # of the number of values, first in the stream


@njit()
def _read(data: npt.NDArray[np.uint8], at: int, bits: int) -> int:
    """Read an unsigned number of so many bits; −1 behind the end."""
    if at + bits > 8 * len(data):
        return -1
    found = 0
    for k in range(at, at + bits):
        found = (found << 1) | ((data[k >> 3] >> (7 - (k & 7))) & 1)
    return found


@njit()
def unpack(data: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8]) -> bool:
    """Fill ``out`` with the values of the stream; False where it ends before, or overruns it."""
    value_bits = _read(data, 32, 5) + 1
    if value_bits < 1 or value_bits > 8:
        return False
    length_bits = np.zeros(4, dtype=np.int64)
    for k in range(4):
        length_bits[k] = _read(data, 37 + 4 * k, 4) + 1
    at, i = 53, 0
    while i < len(out):
        run, which = _read(data, at, 1), _read(data, at + 1, 2)
        if run < 0 or which < 0:
            return False
        at += 3
        length = _read(data, at, length_bits[which])
        at += length_bits[which]
        if length < 0 or i + length + 1 > len(out):
            return False
        value = 0
        for k in range(i, i + length + 1):
            if k == i or not run:
                value = _read(data, at, value_bits)
                at += value_bits
                if value < 0:
                    return False
            out[k] = value
        i += length + 1
    return True
