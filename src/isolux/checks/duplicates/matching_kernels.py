"""Inner loops of the search for duplicate photos: bits that differ, and pictures laid over another.

Two stages, both over all earlier pictures. Perceptual hashes that differ in few bits name the
candidates; a candidate's thumbnail is then laid over the other's, whole or cut at its edges, and
the two are duplicates where they agree in every part. The second stage is what tells a copy that
was cut by a few per cent from another photo of the same place.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

SIDE = 32
"""Pixels along a thumbnail, which is what phash sees of a picture."""
HALF = 16

_Bits = npt.NDArray[np.uint64]
_Floats = npt.NDArray[np.float32]

_MIN_UNALIGNED_CORRELATION = np.float32(0.6)  # correlation of thumbnails as they lie, 16 × 16
_MIN_ROUGH_CORRELATION = np.float32(0.8)  # the same, laid over one another roughly
_MAX_TRIM = np.float32(0.12)  # of a side, that a cut may have taken at one edge
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
def _crop_and_standardise(a: _Floats, trim: _Floats, out: _Floats) -> None:
    """Crop ``a`` by ``trim`` (left, right, top, bottom), resample to its size, standardise."""
    side_px, unit, half = a.shape[0], np.float32(1.0), np.float32(0.5)
    last = np.float32(side_px - 1.001)  # just inside, so that the pixel after it is there to read
    pixel_index, fraction = np.empty((2, SIDE), np.int64), np.empty((2, SIDE), np.float32)
    for axis in range(2):
        begin = trim[2 * axis] * np.float32(side_px)
        step = unit - trim[2 * axis] - trim[2 * axis + 1]
        for k in range(side_px):
            x = min(max(begin + (np.float32(k) + half) * step - half, np.float32(0.0)), last)
            pixel_index[axis, k] = np.int64(x)
            fraction[axis, k] = x - np.float32(pixel_index[axis, k])
    # a picture of one grey has no length to divide by
    total, squared_sum = np.float32(0.0), np.float32(1e-9)
    for r in range(side_px):
        top, v = pixel_index[1, r], fraction[1, r]
        for c in range(side_px):
            left_column, u = pixel_index[0, c], fraction[0, c]
            upper = a[top, left_column] + u * (a[top, left_column + 1] - a[top, left_column])
            lower = a[top + 1, left_column] + u * (
                a[top + 1, left_column + 1] - a[top + 1, left_column]
            )
            pixel = upper + v * (lower - upper)
            out[r, c] = pixel
            total += pixel
            squared_sum += pixel * pixel
    mean = total / np.float32(side_px * side_px)
    scale = unit / np.sqrt(max(squared_sum - mean * total, np.float32(1e-9)))
    for r in range(side_px):
        for c in range(side_px):
            out[r, c] = (out[r, c] - mean) * scale


@njit(nogil=True, fastmath=True)
def _dot_product(a: _Floats, b: _Floats) -> np.float32:
    total = np.float32(0.0)
    for r in range(a.shape[0]):
        for c in range(a.shape[1]):
            total += a[r, c] * b[r, c]
    return total


@njit(nogil=True)
def _search_trims(a: _Floats, b: _Floats, trim: _Floats, out: _Floats) -> np.float32:
    """Search a grid of crops of ``a`` for the best correlation with ``b``; write to ``trim``."""
    best = np.float32(-1.0)
    candidate_trim = np.empty(4, np.float32)
    for p in range(len(_TRIMS)):
        for q in range(len(_TRIMS)):
            candidate_trim[0], candidate_trim[1] = _TRIMS[p, 0], _TRIMS[p, 1]
            candidate_trim[2], candidate_trim[3] = _TRIMS[q, 0], _TRIMS[q, 1]
            _crop_and_standardise(a, candidate_trim, out)
            correlation = _dot_product(out, b)
            if correlation > best:
                best = correlation
                trim[:] = candidate_trim
    return best


@njit(nogil=True)
def _refine_trim(a: _Floats, b: _Floats, trim: _Floats, out: _Floats) -> np.float32:
    """Refine ``trim`` by coordinate ascent on the correlation with ``b``, halving the step."""
    _crop_and_standardise(a, trim, out)
    best = _dot_product(out, b)
    # half of the finest trim of _TRIMS; steps are halved down to a twentieth of a pixel of 32
    step = np.float32(0.0125)
    while step > np.float32(0.0015):
        improved = False
        for edge in range(4):
            for direction in range(2):
                previous = trim[edge]
                trial_trim = previous + step if direction == 0 else previous - step
                trim[edge] = min(max(trial_trim, np.float32(0)), _MAX_TRIM)
                _crop_and_standardise(a, trim, out)
                correlation = _dot_product(out, b)
                if correlation > best + np.float32(1e-5):
                    best, improved = correlation, True
                else:
                    trim[edge] = previous
        if not improved:
            step *= np.float32(0.5)
    _crop_and_standardise(a, trim, out)
    return best


@njit(nogil=True)
def _max_block_difference(a: _Floats, b: _Floats) -> np.float32:
    """Return the largest mean difference of the 8 × 8 blocks, in standard deviations."""
    worst = np.float32(0.0)
    n_blocks, step = 8, SIDE // 8
    for r in range(n_blocks):
        for c in range(n_blocks):
            block_difference = np.float32(0.0)
            for y in range(r * step, (r + 1) * step):
                for x in range(c * step, (c + 1) * step):
                    block_difference += a[y, x] - b[y, x]
            worst = max(worst, abs(block_difference) / (step * step))
    return worst * SIDE  # of unit length over SIDE² pixels: a standard deviation is 1 / SIDE


@njit(nogil=True)
def _matches_when_cropped(
    a: _Floats, a_half: _Floats, b: _Floats, b_half: _Floats, limits: _Floats, measurement: _Floats
) -> bool:
    """Test whether the best crop of ``a`` matches ``b``; write correlation and difference."""
    trim, out_half = np.empty(4, np.float32), np.empty((HALF, HALF), np.float32)
    if _search_trims(a_half, b_half, trim, out_half) < _MIN_ROUGH_CORRELATION:
        return False
    out = np.empty((SIDE, SIDE), np.float32)
    measurement[1] = _refine_trim(a, b, trim, out)
    measurement[2] = _max_block_difference(out, b)
    return bool(measurement[1] >= limits[0] and measurement[2] <= limits[1])


@njit(nogil=True)
def _is_copy(
    a: _Floats, a_half: _Floats, b: _Floats, b_half: _Floats, limits: _Floats, measurement: _Floats
) -> bool:
    """Test whether either thumbnail is the other one, whole or cropped."""
    if _dot_product(a_half, b_half) < _MIN_UNALIGNED_CORRELATION:
        return False
    return _matches_when_cropped(
        a, a_half, b, b_half, limits, measurement
    ) or _matches_when_cropped(b, b_half, a, a_half, limits, measurement)


@njit(nogil=True)
def find_earlier_copies(
    first: int,
    step: int,
    hashes: _Bits,
    mirrored: _Bits,
    thumbs: _Floats,
    halves: _Floats,
    most_bits: int,
    limits: _Floats,
    partner: npt.NDArray[np.int32],
    measurements: _Floats,
) -> None:
    """For pictures ``first``, ``first + step``, … find those before them of which they are copies.

    Shapes: ``thumbs`` [n, 32, 32], ``limits`` [2], ``partner`` [n, k], ``measurements`` [n, k, 3].
    """
    max_copies, measurement = partner.shape[1], np.empty(3, np.float32)
    for j in range(first, len(hashes), step):
        own_hash, n_found = hashes[j], 0
        for i in range(j):
            upright_bits = _differing_bits(own_hash, hashes[i])
            mirrored_bits = _differing_bits(own_hash, mirrored[i])
            if upright_bits > most_bits and mirrored_bits > most_bits:
                continue
            measurement[0], code = upright_bits, i
            if upright_bits > most_bits or not _is_copy(
                thumbs[i], halves[i], thumbs[j], halves[j], limits, measurement
            ):
                measurement[0], code = mirrored_bits, -1 - i
                if mirrored_bits > most_bits or not _is_copy(
                    np.ascontiguousarray(thumbs[i][:, ::-1]),
                    np.ascontiguousarray(halves[i][:, ::-1]),
                    thumbs[j],
                    halves[j],
                    limits,
                    measurement,
                ):
                    continue
            partner[j, n_found] = code
            measurements[j, n_found] = measurement
            n_found += 1
            if n_found == max_copies:
                break
