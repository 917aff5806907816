"""Decode the bit stream of a Label Studio brush mask (format rle-pack)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

COUNT_BITS = 32  # the stream begins with the number of values


@njit()
def _read_bits_or_minus_one(
    packed_bytes: npt.NDArray[np.uint8], offset_bits: int, n_bits: int
) -> int:
    """Read an unsigned number of ``n_bits`` bits at an offset; −1 past the end of the stream."""
    if offset_bits + n_bits > 8 * len(packed_bytes):
        return -1
    number = 0
    for k in range(offset_bits, offset_bits + n_bits):
        number = (number << 1) | ((packed_bytes[k >> 3] >> (7 - (k & 7))) & 1)
    return number


@njit()
def try_unpack_rle_into(packed_bytes: npt.NDArray[np.uint8], values: npt.NDArray[np.uint8]) -> bool:
    """Fill ``values`` with the values of the stream; False where it ends before, or overruns it."""
    value_bits = _read_bits_or_minus_one(packed_bytes, 32, 5) + 1
    if value_bits < 1 or value_bits > 8:
        return False
    length_bits = np.zeros(4, dtype=np.int64)
    for k in range(4):
        length_bits[k] = _read_bits_or_minus_one(packed_bytes, 37 + 4 * k, 4) + 1
    offset_bits, i = 53, 0
    while i < len(values):
        is_run, length_class = (
            _read_bits_or_minus_one(packed_bytes, offset_bits, 1),
            _read_bits_or_minus_one(packed_bytes, offset_bits + 1, 2),
        )
        if is_run < 0 or length_class < 0:
            return False
        offset_bits += 3
        length = _read_bits_or_minus_one(packed_bytes, offset_bits, length_bits[length_class])
        offset_bits += length_bits[length_class]
        if length < 0 or i + length + 1 > len(values):
            return False
        pixel_value = 0
        for k in range(i, i + length + 1):
            if k == i or not is_run:
                pixel_value = _read_bits_or_minus_one(packed_bytes, offset_bits, value_bits)
                offset_bits += value_bits
                if pixel_value < 0:
                    return False
            values[k] = pixel_value
        i += length + 1
    return True
