"""The compiled loops over the pixels of one face; imported only by the functions that run them.

A face is one number a pixel: bit k is set where part k is, bit 0 where none is (the background).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from isolux.io.compile_cache import njit

_FLAGS: dict[str, Any] = {"nogil": True, "_nrt": False}  # allocate nothing
_BITS = types.uint64[::1]
_READ = types.Array(types.uint64, 1, "C", readonly=True)
_PICTURE = types.Array(types.uint8, 1, "C", readonly=True)
_EDGES = types.Array(types.int32, 1, "C", readonly=True)

_Bits = npt.NDArray[np.uint64]
_Picture = npt.NDArray[np.uint8]


@njit((_BITS, _PICTURE, types.uint64), **_FLAGS)
def paint(bits: _Bits, picture: _Picture, bit: int) -> None:
    """Set ``bit`` where ``picture`` is not 0."""
    for i in range(len(bits)):
        bits[i] |= bit * np.uint64(picture[i] != 0)  # no branch: eight pixels at a time


@njit((_BITS, _PICTURE, _READ), **_FLAGS)
def paint_labels(bits: _Bits, picture: _Picture, bit_of: _Bits) -> int:
    """Set the bit of each pixel's number, ``bit_of [256]``; return a number without one, or -1."""
    for i in range(len(bits)):
        bit = bit_of[picture[i]]
        # The caller refuses the image and names the number.
        if bit == 0:
            return int(picture[i])
        bits[i] |= bit
    return -1


@njit((_BITS, _EDGES, types.int64, types.int64, types.uint64), **_FLAGS)
def paint_runs(
    bits: _Bits, edges: npt.NDArray[np.int32], height: int, width: int, bit: int
) -> None:
    """Set ``bit`` in runs, whose positions are counted down the columns; pixels go by rows."""
    for e in range(0, len(edges), 2):
        x, y = edges[e] // height, edges[e] % height
        for _ in range(edges[e + 1] - edges[e]):
            # COCO's run lengths go down the columns, images go along the rows.
            bits[y * width + x] |= bit
            y += 1
            if y == height:
                x, y = x + 1, 0


@njit((_BITS, types.boolean), **_FLAGS)
def finalise_bits(bits: _Bits, last_wins: bool) -> None:
    """Set bit 0 exactly where no part is; with ``last_wins`` keep only each pixel's last part."""
    background_bit = np.uint64(1)
    for i in range(len(bits)):
        part_bits = bits[i] & ~background_bit
        if part_bits == 0:
            bits[i] = background_bit
            continue
        # x & (x - 1) clears the lowest bit, so that the highest remains.
        while last_wins and part_bits & (part_bits - background_bit):
            part_bits &= part_bits - background_bit
        bits[i] = part_bits


@njit(
    (_READ, _READ, types.int64[::1], types.int64[::1], types.int64[::1]),
    **_FLAGS,
)
def count_part_pixels(
    truth: _Bits,
    predicted: _Bits,
    area_truth: npt.NDArray[np.int64],
    area_drawn: npt.NDArray[np.int64],
    common: npt.NDArray[np.int64],
) -> None:
    """Add the pixels of each part in the truth, in the prediction, and in both: ``[k]``."""
    first, n = 0, len(truth)
    unit_bit = np.uint64(1)
    # Masks consist of long runs of equal pixels, so that the loop over parts is rarely entered.
    while first < n:
        t, d = truth[first], predicted[first]
        end = first + 1
        while (
            end < n and truth[end] == t and predicted[end] == d
        ):  # runs of equal pixels are counted at once
            end += 1
        for k in range(len(common)):
            in_truth, in_drawn = (t >> np.uint64(k)) & unit_bit, (d >> np.uint64(k)) & unit_bit
            area_truth[k] += (end - first) * np.int64(in_truth)
            area_drawn[k] += (end - first) * np.int64(in_drawn)
            common[k] += (end - first) * np.int64(in_truth & in_drawn)
        first = end
