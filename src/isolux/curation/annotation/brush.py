"""Masks that were painted with Label Studio's brush: its run lengths, read as COCO's.

Label Studio packs the picture of a brush, four bytes a pixel, by the format ``rle-pack`` of
thi.ng/umbrella (run-length encoding of bits; https://thi.ng/rle-pack). What counts is the fourth
byte: how opaque the paint is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isolux.geometry.masks import masks_from_counts, masks_to_coco

__all__ = ["painted"]

_CHANNELS = 4
_MOST = 1 << 28  # pixels; more is no photo


def painted(rle: Sequence[int], shown: tuple[int, int], size: tuple[int, int]) -> dict[str, Any]:
    """Read a brush's mask.

    Examples
    --------
    A picture of 2 × 1 pixels whose right one is painted: 8 values of 8 bits in two runs of 4.

    >>> bits = f"{8:032b}" + f"{7:05b}" + f"{1:04b}" * 4
    >>> bits += "100" + "11" + f"{0:08b}" + "100" + "11" + f"{255:08b}"
    >>> bits += "0" * (-len(bits) % 8)
    >>> rle = [int(bits[k : k + 8], 2) for k in range(0, len(bits), 8)]
    >>> painted(rle, (2, 1), (2, 1))["counts"]
    '11'
    """
    from isolux.curation.annotation.brush_kernels import COUNT_BITS, unpack

    wide, high = shown
    number = wide * high * _CHANNELS
    try:
        data = np.array(rle, dtype=np.uint8)
    except (OverflowError, TypeError, ValueError):
        data = np.empty(0, dtype=np.uint8)
    head = COUNT_BITS // 8
    told = int.from_bytes(data[:head].tobytes(), "big")
    if data.ndim != 1 or len(data) <= head or told != number or not 0 < number < _MOST:
        return {"trouble": "what was painted is not a mask of this picture: please paint it again."}
    values = np.zeros(number, dtype=np.uint8)
    if not unpack(data, values):
        return {"trouble": "what was painted is cut off: please paint it again."}
    bits = values.reshape(high, wide, _CHANNELS)[..., _CHANNELS - 1] > 0
    return _as_coco(_stretched(bits, size))


def _stretched(bits: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Take for each pixel of the photo the one of the picture that lies at its centre."""
    high, wide = bits.shape
    rows, columns = (
        ((np.arange(now) + 0.5) * before / now).astype(np.int64)
        for now, before in ((size[1], high), (size[0], wide))
    )
    return np.asarray(bits[rows[:, None], columns[None, :]])


def _as_coco(bits: np.ndarray) -> dict[str, Any]:
    height, width = bits.shape
    flat = bits.ravel(order="F").astype(np.int8)
    turns = np.flatnonzero(np.diff(flat, prepend=np.int8(0)))
    counts = np.diff(np.concatenate([[0], turns, [flat.size]]))
    masks = masks_from_counts([counts.tolist()], np.array([height]), np.array([width]))
    return {
        "counts": masks_to_coco(masks)[0]["counts"].decode(), "height": height, "width": width,
    }  # fmt: skip
