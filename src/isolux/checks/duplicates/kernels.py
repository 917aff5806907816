"""Inner loops of the search for duplicate photos: bits that differ, and pictures laid over another.

Two stages, both over all earlier pictures. Perceptual hashes that differ in few bits name the
candidates; a candidate's thumbnail is then laid over the other's, whole or cut at its edges, and
the two are duplicates where they agree in every part. The second stage is what tells a copy that
was cut by a few per cent from another photo of the same place.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

SIDE = 32
"""Pixels along a thumbnail, which is what phash sees of a picture."""
HALF = 16

_Bits = npt.NDArray[np.uint64]
_Floats = npt.NDArray[np.float32]

_GLIMPSE = np.float32(0.6)  # correlation of thumbnails as they lie, 16 × 16
_LOOK = np.float32(0.8)  # the same, laid over one another roughly
_WIDEST = np.float32(0.12)  # of a side, that a cut may have taken at one edge
_TRIMS = np.array(
    [(0, 0), (0.025, 0.025), (0.05, 0), (0, 0.05), (0.05, 0.05)], dtype=np.float32
)  # of a side, at both its ends; a photo is cut at its sides independently


@njit(nogil=True)
def _differing_bits(a: np.uint64, b: np.uint64) -> int:
    """Count the bits in which two hashes differ; compiled to the processor's own instruction."""
    x = a ^ b
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(nogil=True, fastmath=True)
def _cut(a: _Floats, trim: _Floats, out: _Floats) -> None:
    """Fill ``out`` with ``a`` cut at left, right, top, bottom, brought back to its size."""
    side, one, half = a.shape[0], np.float32(1.0), np.float32(0.5)
    last = np.float32(side - 1.001)  # just inside, so that the pixel after it is there to read
    at, part = np.empty((2, SIDE), np.int64), np.empty((2, SIDE), np.float32)
    for axis in range(2):
        begin = trim[2 * axis] * np.float32(side)
        step = one - trim[2 * axis] - trim[2 * axis + 1]
        for k in range(side):
            x = min(max(begin + (np.float32(k) + half) * step - half, np.float32(0.0)), last)
            at[axis, k] = np.int64(x)
            part[axis, k] = x - np.float32(at[axis, k])
    # a picture of one grey has no length to divide by
    total, squares = np.float32(0.0), np.float32(1e-9)
    for r in range(side):
        top, v = at[1, r], part[1, r]
        for c in range(side):
            left, u = at[0, c], part[0, c]
            upper = a[top, left] + u * (a[top, left + 1] - a[top, left])
            lower = a[top + 1, left] + u * (a[top + 1, left + 1] - a[top + 1, left])
            value = upper + v * (lower - upper)
            out[r, c] = value
            total += value
            squares += value * value
    mean = total / np.float32(side * side)
    scale = one / np.sqrt(max(squares - mean * total, np.float32(1e-9)))
    for r in range(side):
        for c in range(side):
            out[r, c] = (out[r, c] - mean) * scale


@njit(nogil=True, fastmath=True)
def _dot(a: _Floats, b: _Floats) -> np.float32:
    total = np.float32(0.0)
    for r in range(a.shape[0]):
        for c in range(a.shape[1]):
            total += a[r, c] * b[r, c]
    return total


@njit(nogil=True)
def _rough(a: _Floats, b: _Floats, trim: _Floats, out: _Floats) -> np.float32:
    """Try each of a few cuts of ``a``; leave the one most like ``b`` in ``trim``."""
    best = np.float32(-1.0)
    tried = np.empty(4, np.float32)
    for p in range(len(_TRIMS)):
        for q in range(len(_TRIMS)):
            tried[0], tried[1] = _TRIMS[p, 0], _TRIMS[p, 1]
            tried[2], tried[3] = _TRIMS[q, 0], _TRIMS[q, 1]
            _cut(a, tried, out)
            found = _dot(out, b)
            if found > best:
                best = found
                trim[:] = tried
    return best


@njit(nogil=True)
def _fine(a: _Floats, b: _Floats, trim: _Floats, out: _Floats) -> np.float32:
    """Move the cut's four edges in ever smaller steps as long as ``a`` gets more like ``b``."""
    _cut(a, trim, out)
    best = _dot(out, b)
    # half of the finest trim of _TRIMS; steps are halved down to a twentieth of a pixel of 32
    step = np.float32(0.0125)
    while step > np.float32(0.0015):
        better = False
        for edge in range(4):
            for way in range(2):
                was = trim[edge]
                now = was + step if way == 0 else was - step
                trim[edge] = min(max(now, np.float32(0)), _WIDEST)
                _cut(a, trim, out)
                found = _dot(out, b)
                if found > best + np.float32(1e-5):
                    best, better = found, True
                else:
                    trim[edge] = was
        if not better:
            step *= np.float32(0.5)
    _cut(a, trim, out)
    return best


@njit(nogil=True)
def _worst_part(a: _Floats, b: _Floats) -> np.float32:
    """Largest difference of two laid over one another, of 64 parts, in standard deviations."""
    worst = np.float32(0.0)
    parts, step = 8, SIDE // 8
    for r in range(parts):
        for c in range(parts):
            apart = np.float32(0.0)
            for y in range(r * step, (r + 1) * step):
                for x in range(c * step, (c + 1) * step):
                    apart += a[y, x] - b[y, x]
            worst = max(worst, abs(apart) / (step * step))
    return worst * SIDE  # of unit length over SIDE² pixels: a standard deviation is 1 / SIDE


@njit(nogil=True)
def _laid_over(
    a: _Floats, a_half: _Floats, b: _Floats, b_half: _Floats, limits: _Floats, found: _Floats
) -> bool:
    """Tell whether ``a``, cut as it fits best, is ``b``; leave correlation and difference."""
    trim, out_half = np.empty(4, np.float32), np.empty((HALF, HALF), np.float32)
    if _rough(a_half, b_half, trim, out_half) < _LOOK:
        return False
    out = np.empty((SIDE, SIDE), np.float32)
    found[1] = _fine(a, b, trim, out)
    found[2] = _worst_part(out, b)
    return bool(found[1] >= limits[0] and found[2] <= limits[1])


@njit(nogil=True)
def _is_copy(
    a: _Floats, a_half: _Floats, b: _Floats, b_half: _Floats, limits: _Floats, found: _Floats
) -> bool:
    """Tell whether one of two thumbnails is the other, whole or cut at its edges."""
    if _dot(a_half, b_half) < _GLIMPSE:
        return False
    return _laid_over(a, a_half, b, b_half, limits, found) or _laid_over(
        b, b_half, a, a_half, limits, found
    )


@njit(nogil=True)
def earlier_copies(
    first: int,
    step: int,
    hashes: _Bits,
    mirrored: _Bits,
    thumbs: _Floats,
    halves: _Floats,
    most_bits: int,
    limits: _Floats,
    partner: npt.NDArray[np.int32],
    measured: _Floats,
) -> None:
    """For pictures ``first``, ``first + step``, … find those before them of which they are copies.

    Shapes: ``thumbs`` [n, 32, 32], ``limits`` [2], ``partner`` [n, k], ``measured`` [n, k, 3].
    """
    room, said = partner.shape[1], np.empty(3, np.float32)
    for j in range(first, len(hashes), step):
        own, found = hashes[j], 0
        for i in range(j):
            straight = _differing_bits(own, hashes[i])
            over = _differing_bits(own, mirrored[i])
            if straight > most_bits and over > most_bits:
                continue
            said[0], at = straight, i
            if straight > most_bits or not _is_copy(
                thumbs[i], halves[i], thumbs[j], halves[j], limits, said
            ):
                said[0], at = over, -1 - i
                if over > most_bits or not _is_copy(
                    np.ascontiguousarray(thumbs[i][:, ::-1]),
                    np.ascontiguousarray(halves[i][:, ::-1]),
                    thumbs[j],
                    halves[j],
                    limits,
                    said,
                ):
                    continue
            partner[j, found] = at
            measured[j, found] = said
            found += 1
            if found == room:
                break
