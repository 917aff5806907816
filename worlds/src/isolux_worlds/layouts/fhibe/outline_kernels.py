"""The compiled walk around masks; imported only by the functions that run it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from isolux.io.kernels import njit

__all__ = ["fill_bitmap", "holes_of", "walk_outlines"]

_FLAGS: dict[str, Any] = {"nogil": True, "_nrt": False}
_E = types.Array(types.int32, 1, "C", readonly=True)
_Bits = npt.NDArray[np.uint8]


@njit((_E, types.int64, types.int64, types.int64, types.uint8[:, ::1]), **_FLAGS)
def fill_bitmap(
    edges: npt.NDArray[np.int32], height: int, left: int, top: int, bits: _Bits
) -> None:
    """Set the pixels of a mask's runs in a crop that has a border of one empty pixel."""
    for k in range(0, len(edges), 2):
        for p in range(edges[k], edges[k + 1]):
            bits[p % height - top + 1, p // height - left + 1] = 1


@njit((types.uint8[:, ::1], types.int64, types.int64, types.int64, types.int64), **_FLAGS)
def _turn(bits: _Bits, y: int, x: int, dx: int, dy: int) -> int:
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
def walk_outlines(
    bits: _Bits, walked: _Bits, corners: npt.NDArray[np.int32], ends: npt.NDArray[np.int64]
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
                turn = _turn(bits, y, x, dx, dy)
                if turn != 0:
                    corners[n, 0], corners[n, 1] = x, y
                    n += 1
                    dx, dy = -turn * dy, turn * dx
            if n > last:
                ends[loops] = n
                loops += 1
    return loops


@njit((types.int32[:, ::1], types.int64[::1], types.int64, types.int64[::1]), **_FLAGS)
def holes_of(
    corners: npt.NDArray[np.int32],
    ends: npt.NDArray[np.int64],
    loops: int,
    cuts: npt.NDArray[np.int64],
) -> int:
    """Give, for each loop around a hole, a column that runs through it; returns how many."""
    n, first = 0, 0
    for k in range(loops):
        area, lowest = 0, corners[first, 0]
        for i in range(first, ends[k]):
            j = i + 1 if i + 1 < ends[k] else first
            area += corners[i, 0] * corners[j, 1] - corners[j, 0] * corners[i, 1]
            lowest = min(lowest, corners[i, 0])
        if area < 0:
            cuts[n] = lowest + 1
            n += 1
        first = ends[k]
    return n
