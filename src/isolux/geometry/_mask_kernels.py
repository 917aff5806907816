"""The compiled loops over run lengths; imported only by the functions that run them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types

from isolux.io.compile_cache import njit

# Nothing is allocated in here, and numba is quicker where it need not keep count of arrays.
_FLAGS: dict[str, Any] = {"nogil": True, "_nrt": False}
_I = types.Array(types.int64, 1, "A", readonly=True)
_E = types.Array(types.int32, 1, "C", readonly=True)
_U = types.Array(types.uint8, 1, "C", readonly=True)

_Ints = npt.NDArray[np.int64]
_Edges = npt.NDArray[np.int32]


@njit((_U, _I, types.int64[::1]), **_FLAGS)
def count_runs(text: npt.NDArray[np.uint8], starts: _Ints, run_starts: _Ints) -> None:
    """Fill ``run_starts [n + 1]``: where each compressed mask's runs begin in all runs."""
    n = 0
    run_starts[0] = 0
    for mask in range(len(starts) - 1):
        for p in range(starts[mask], starts[mask + 1]):
            n += ((text[p] - 48) & 32) == 0  # the last character of a number
        run_starts[mask + 1] = n


@njit((_U, _I, _I, types.int32[::1]), **_FLAGS)
def decode_counts(
    text: npt.NDArray[np.uint8], starts: _Ints, run_starts: _Ints, runs: _Edges
) -> None:
    """Decode COCO's compressed run lengths into ``runs``; mask k's begin at ``run_starts[k]``."""
    # COCO's text (maskApi.c, rleFrString): five bits a character from '0', bit 32 says that the
    # number goes on, bit 16 of its last character is the sign; from the fourth run on a number is
    # the difference to the run two before. -1 marks what cannot be read.
    for mask in range(len(starts) - 1):
        run, first = run_starts[mask], run_starts[mask]
        run_length, shift = np.int64(0), np.int64(0)
        readable = True
        for r in range(first, run_starts[mask + 1]):
            runs[r] = -1
        for p in range(starts[mask], starts[mask + 1]):
            digit = np.int64(text[p]) - 48
            # Runs are 32-bit: seven characters of five bits each are enough.
            if digit < 0 or digit > 63 or shift > 30:
                readable = False
                break
            run_length |= (digit & 31) << shift
            shift += 5
            if digit & 32:
                continue
            if digit & 16:
                run_length -= np.int64(1) << shift
            if run - first > 2:
                run_length += runs[run - 2]
            runs[run] = run_length if 0 <= run_length < 2**31 else -1
            run += 1
            run_length, shift = np.int64(0), np.int64(0)
        if not (readable and shift == 0) and first < run_starts[mask + 1]:
            runs[first] = -1


@njit(
    (_E, _I, types.int32[::1], types.int64[::1], types.int64[::1]),
    **_FLAGS,
)
def runs_to_edges(
    runs: _Edges, run_starts: _Ints, edges: _Edges, starts: _Ints, total: _Ints
) -> None:
    """Fill ``edges`` and ``starts`` from run lengths, and ``total [n]`` with the pixels of each."""
    n = 0
    for mask in range(len(run_starts) - 1):
        position = np.int64(0)
        for r in range(run_starts[mask], run_starts[mask + 1]):
            if runs[r] < 0:
                # A total of -1 marks a mask that cannot be read; the caller names its row.
                position = np.int64(-1)
                break
            # Runs alternate, background first; one of length 0 changes neither area nor box.
            if (r - run_starts[mask]) % 2 == 1 and runs[r] > 0 and position + runs[r] < 2**31:
                edges[n], edges[n + 1] = position, position + runs[r]
                n += 2
            position += runs[r]
        total[mask] = position
        starts[mask + 1] = n


@njit(
    (_E, _I, _I, types.int64[::1], types.float64[:, ::1]),
    **_FLAGS,
)
def measure_masks(
    edges: _Edges, starts: _Ints, height: _Ints, area: _Ints, box: npt.NDArray[np.float64]
) -> None:
    """Fill ``area [n]`` and the tight ``box [n, 4]`` (xywh); a mask without pixels gets zeros."""
    for k in range(len(starts) - 1):
        if starts[k] == starts[k + 1]:
            continue
        h = height[k]
        column = edges[starts[k]] // h  # followed by addition: divisions would dominate the time
        left_column, base = column, column * h
        top, bottom = h, np.int64(-1)
        for e in range(starts[k], starts[k + 1], 2):
            first, last = np.int64(edges[e]), np.int64(edges[e + 1]) - 1
            area[k] += last - first + 1
            while first >= base + h:
                base += h
            top = min(top, first - base)
            if last >= base + h:  # the run continues in the next column
                top, bottom = np.int64(0), h - 1
            while last >= base + h:
                base += h
            bottom = max(bottom, last - base)
        box[k, 0], box[k, 1] = left_column, top
        box[k, 2], box[k, 3] = base // h - left_column + 1, bottom - top + 1


@njit(nogil=True)
def _find_first_run_after(edges: _Edges, first: int, last: int, position: int) -> int:
    """Find the first run, among edges ``first`` to ``last``, that ends after ``position``."""
    low, high = 0, (last - first) // 2
    while low < high:
        middle = (low + high) // 2
        if edges[first + 2 * middle + 1] <= position:
            low = middle + 1
        else:
            high = middle
    return first + 2 * low


@njit((_E, _I, _I, _E, _I, _I, types.int64[::1]), **_FLAGS)
def intersections_px(
    a_edges: _Edges,
    a_starts: _Ints,
    a_row: _Ints,
    b_edges: _Edges,
    b_starts: _Ints,
    b_row: _Ints,
    n_common: _Ints,
) -> None:
    """Fill ``n_common [p]``: pixels that mask ``a_row[p]`` of a and ``b_row[p]`` of b share.

    The two sorted lists of runs are merged, from the first position where both have begun.
    """
    for p in range(len(a_row)):
        i, i_end = a_starts[a_row[p]], a_starts[a_row[p] + 1]
        j, j_end = b_starts[b_row[p]], b_starts[b_row[p] + 1]
        if i == i_end or j == j_end:
            continue
        # Runs before the other mask's first one cannot share a pixel with it.
        i = _find_first_run_after(a_edges, i, i_end, b_edges[j])
        if i == i_end:
            continue
        j = _find_first_run_after(b_edges, j, j_end, a_edges[i])
        shared = 0
        while i < i_end and j < j_end:
            a_last, b_last = a_edges[i + 1], b_edges[j + 1]
            shared += max(0, min(a_last, b_last) - max(a_edges[i], b_edges[j]))
            if a_last <= b_last:
                i += 2
            else:
                j += 2
        n_common[p] = shared
