"""The compiled walk around masks; imported only by the functions that run it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from isolux.io.compile_cache import njit

__all__ = ["trace_pixel_outlines"]

_FLAGS: dict[str, Any] = {"nogil": True, "_nrt": False}
_Bits = npt.NDArray[np.uint8]


@njit((types.uint8[:, ::1], types.int64, types.int64, types.int64, types.int64), **_FLAGS)
def _choose_turn_at_corner(bits: _Bits, y: int, x: int, dx: int, dy: int) -> int:
    """Say where to go on from the corner x, y: 1 right, -1 left, 0 straight."""
    # The pixels ahead, to the right and to the left of the way.
    right_y, right_x, left_y, left_x = y, x, y, x
    if dx == 1:
        left_y = y - 1
    elif dx == -1:
        right_y, right_x, left_x = y - 1, x - 1, x - 1
    elif dy == 1:
        right_x = x - 1
    else:
        right_y, left_y, left_x = y - 1, y - 1, x - 1
    if bits[right_y, right_x] == 0:
        return 1
    return -1 if bits[left_y, left_x] == 1 else 0


@njit((types.uint8[:, ::1], types.uint8[:, ::1], types.int32[:, ::1], types.int64[::1]), **_FLAGS)
def trace_pixel_outlines(
    bits: _Bits, walked: _Bits, corners: npt.NDArray[np.int32], loop_ends: npt.NDArray[np.int64]
) -> int:
    """Walk along the pixels' edges around every region, the region on the right."""
    n, loops = 0, 0
    height, width = bits.shape
    for y0 in range(1, height):
        for x0 in range(1, width):
            if bits[y0, x0] != 1 or bits[y0 - 1, x0] == 1 or walked[y0, x0] == 1:
                continue
            x, y, dx, dy = x0, y0, 1, 0
            last = n
            while True:
                if dx == 1:
                    if walked[y, x] == 1:
                        break
                    walked[y, x] = 1
                x += dx
                y += dy
                turn = _choose_turn_at_corner(bits, y, x, dx, dy)
                if turn != 0:
                    corners[n, 0], corners[n, 1] = x, y
                    n += 1
                    dx, dy = -turn * dy, turn * dx
            if n > last:
                loop_ends[loops] = n
                loops += 1
    return loops
