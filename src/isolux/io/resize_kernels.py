"""The compiled loops of a resize; imported only by the function that runs them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from isolux.io.kernels import njit

__all__ = ["across", "down"]

_FLAGS: dict[str, Any] = {"nogil": True, "_nrt": False}
_P = types.Array(types.uint8, 3, "A", readonly=True)
_I = types.Array(types.int32, 1, "A", readonly=True)
_W = types.Array(types.int32, 2, "A", readonly=True)
_BITS = 22  # of a weight, behind the point: Pillow's, whose sums fit 32 bits
_HALF = np.int32(1 << (_BITS - 1))

_Bytes = npt.NDArray[np.uint8]
_Ints = npt.NDArray[np.int32]


@njit((_P, _I, _I, _W, types.uint8[:, :, ::1]), **_FLAGS)
def across(pixels: _Bytes, first: _Ints, count: _Ints, weights: _Ints, out: _Bytes) -> None:
    """Fill ``out[rows, columns, 3]``: column j is made of ``count[j]`` pixels from ``first[j]``."""
    for y in range(out.shape[0]):
        for j in range(out.shape[1]):
            red, green, blue = _HALF, _HALF, _HALF
            start = first[j]
            for k in range(count[j]):
                weight = weights[j, k]
                red += np.int32(pixels[y, start + k, 0]) * weight
                green += np.int32(pixels[y, start + k, 1]) * weight
                blue += np.int32(pixels[y, start + k, 2]) * weight
            out[y, j, 0] = min(max(red >> _BITS, 0), 255)  # type: ignore[assignment]
            out[y, j, 1] = min(max(green >> _BITS, 0), 255)  # type: ignore[assignment]
            out[y, j, 2] = min(max(blue >> _BITS, 0), 255)  # type: ignore[assignment]


@njit((types.Array(types.uint8, 2, "C", readonly=True), _I, _I, _W, types.int32[::1],
       types.uint8[:, ::1]), **_FLAGS)  # fmt: skip
def down(
    lines: _Bytes, first: _Ints, count: _Ints, weights: _Ints, sums: _Ints, out: _Bytes
) -> None:
    """Fill ``out[rows, bytes]``: row i is made of ``count[i]`` lines from ``first[i]``."""
    for i in range(out.shape[0]):
        for b in range(sums.size):
            sums[b] = _HALF
        for k in range(count[i]):
            weight = weights[i, k]
            line = lines[first[i] + k]
            for b in range(sums.size):
                sums[b] += np.int32(line[b]) * weight
        for b in range(sums.size):
            out[i, b] = min(max(sums[b] >> _BITS, 0), 255)
