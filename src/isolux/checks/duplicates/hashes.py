"""Perceptual hashes of pictures, and the search for those that are copies of one another.

A picture is reduced to a grey thumbnail of 32 × 32; its hash is phash's: which of the 64 slowest
waves of the discrete cosine transform are stronger than their median (Zauner 2010; the bits are
those of the package imagehash). A mirrored picture's waves are the same but for the sign of every
second one, so its hash costs no second look.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.images import Pixels

SIDE = 32
MAX_DIFFERING_BITS, MIN_CORRELATION, MAX_BLOCK_DIFFERENCE = 18, 0.95, 0.35
"""The check's thresholds, which docs/methods/checks.md measures."""
_HASH_SIDE = 8  # waves a side, imagehash's hash_size
_MIN_CONTRAST_SD = 2.0  # grey levels: below it a picture shows nothing to tell it by
_MAX_COPIES = 8
_BATCH_SIZE = 4096


@dataclass(frozen=True, slots=True)
class Hashes:
    """``upright``, ``mirrored``: ``[n]`` uint64; ``blank [n]``: shows nothing to be told by."""

    upright: npt.NDArray[np.uint64]
    mirrored: npt.NDArray[np.uint64]
    is_blank: npt.NDArray[np.bool_]


def hash_thumbnails(thumbnails: Pixels) -> Hashes:
    """Hash grey thumbnails: ``[n, 32, 32]`` of 0 to 255.

    Examples
    --------
    >>> noise = np.random.default_rng(0).integers(0, 256, (1, 32, 32), dtype=np.uint8)
    >>> hashes = hash_thumbnails(noise)
    >>> bool(hashes.upright[0] == hash_thumbnails(noise[:, :, ::-1]).mirrored[0])
    True
    """
    # DCT-II along both sides, unnormalised, as scipy.fftpack has it: one product of matrices.
    k, x = np.arange(_HASH_SIDE)[:, None], np.arange(SIDE)[None]
    waves = 2 * np.cos(np.pi * k * (2 * x + 1) / (2 * SIDE))
    strengths = np.empty((len(thumbnails), _HASH_SIDE, _HASH_SIDE))
    for start in range(0, len(thumbnails), _BATCH_SIZE):
        strengths[start : start + _BATCH_SIZE] = waves @ (
            thumbnails[start : start + _BATCH_SIZE] @ waves.T
        )
    mirrored_strengths = strengths * np.where(np.arange(_HASH_SIDE) % 2, -1.0, 1.0)
    blank = thumbnails.std(axis=(1, 2)) < _MIN_CONTRAST_SD
    return Hashes(_pack_hash_bits(strengths), _pack_hash_bits(mirrored_strengths), blank)


def _pack_hash_bits(strengths: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    coefficients = strengths.reshape(len(strengths), _HASH_SIDE * _HASH_SIDE)
    bits = coefficients > np.median(coefficients, axis=1, keepdims=True)
    return np.packbits(bits, axis=1).view(">u8").astype(np.uint64).ravel()


def find_duplicate_pairs(
    thumbnails: Pixels, *, most_bits: int, least_correlation: float, most_apart: float
) -> pl.DataFrame:
    """Find the pictures that are copies of an earlier one: resized, recompressed, cut, mirrored.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first = np.kron(rng.integers(0, 255, (8, 8)), np.ones((4, 4))).astype(np.uint8)
    >>> three = np.stack([first, 255 - first, first[:, ::-1]])
    >>> limits = {"most_bits": 18, "least_correlation": 0.9, "most_apart": 0.6}
    >>> find_duplicate_pairs(three, **limits).select("first", "second", "mirrored").rows()
    [(0, 2, True)]
    """
    from isolux.checks.duplicates.matching_kernels import find_earlier_copies

    hashes = hash_thumbnails(thumbnails)
    rows = np.flatnonzero(~hashes.is_blank)
    thumbs = thumbnails[rows].astype(np.float32)
    halves = thumbs.reshape(-1, SIDE // 2, 2, SIDE // 2, 2).mean(axis=(2, 4))
    partner = np.full((len(rows), _MAX_COPIES), np.iinfo(np.int32).min, dtype=np.int32)
    measurements = np.zeros((len(rows), _MAX_COPIES, 3), dtype=np.float32)
    straight, mirrored = hashes.upright[rows], hashes.mirrored[rows]
    thumbs, halves = _standardise(thumbs), _standardise(halves)
    limits = np.array([least_correlation, most_apart], dtype=np.float32)
    # Interleaved: later pictures have more before them to look at.
    n_workers = max(1, min(os.cpu_count() or 1, 8, len(rows)))
    with ThreadPoolExecutor(n_workers) as pool:
        shared_arrays = (
            straight,
            mirrored,
            thumbs,
            halves,
            most_bits,
            limits,
            partner,
            measurements,
        )
        for future in [
            pool.submit(find_earlier_copies, k, n_workers, *shared_arrays) for k in range(n_workers)
        ]:
            future.result()
    second, slot = np.nonzero(partner != np.iinfo(np.int32).min)
    codes = partner[second, slot]
    is_mirrored = codes < 0
    return pl.DataFrame(
        {
            "first": rows[np.where(is_mirrored, -1 - codes, codes)],
            "second": rows[second],
            "bits": measurements[second, slot, 0].astype(np.int64),
            "correlation": measurements[second, slot, 1].astype(np.float64),
            "apart": measurements[second, slot, 2].astype(np.float64),
            "mirrored": is_mirrored,
        }
    )


def find_copies_of(reference_images: Pixels, candidates: Pixels) -> npt.NDArray[np.intp]:
    """Find the pictures that are copies of some given ones, with the check's own thresholds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> three = np.kron(rng.integers(0, 255, (3, 8, 8)), np.ones((4, 4))).astype(np.uint8)
    >>> find_copies_of(three[:1], three[[1, 0, 2]]).tolist()
    [1]
    """
    if not len(reference_images) or not len(candidates):
        return np.empty(0, np.intp)
    reference_hashes = hash_thumbnails(reference_images)
    candidate_hashes = hash_thumbnails(candidates)
    min_bits = np.full(len(candidates), 64)
    for reference_hash in (*reference_hashes.upright, *reference_hashes.mirrored):
        min_bits = np.minimum(min_bits, np.bitwise_count(candidate_hashes.upright ^ reference_hash))
    rows = np.flatnonzero((min_bits <= MAX_DIFFERING_BITS) & ~candidate_hashes.is_blank)
    if not len(rows):
        return rows
    pairs = find_duplicate_pairs(
        np.concatenate([reference_images, candidates[rows]]),
        most_bits=MAX_DIFFERING_BITS,
        least_correlation=MIN_CORRELATION,
        most_apart=MAX_BLOCK_DIFFERENCE,
    ).filter(pl.col("first") < len(reference_images), pl.col("second") >= len(reference_images))
    copies = np.unique(pairs["second"].to_numpy() - len(reference_images))
    return np.asarray(rows[copies], np.intp)


def _standardise(pictures: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Centre each thumbnail and scale it to unit length."""
    centred = pictures - pictures.mean(axis=(1, 2), keepdims=True)
    length = np.sqrt((centred * centred).sum(axis=(1, 2), keepdims=True))
    return np.asarray(centred / np.maximum(length, 1e-6), dtype=np.float32)
