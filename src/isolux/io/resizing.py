"""Pillow's resize, to the same pixels, of the part that is kept alone, and outside Python's lock.

Threads that read pictures ahead of a model spend most of their time in a resize, and copying pixels
into Pillow and back holds Python's lock, for which the model's own thread then waits. Weights are
reckoned as Pillow's ``Resample.c`` does: a filter that is stretched to average what it makes
smaller, in 22 binary places, rounded between the two directions. Which direction Pillow takes first
depends on the sizes and on its version, so it is learnt from Pillow: the second picture of a size
is resized by both, and those that follow by what gave the same pixels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from isolux.io.images import Pixels

__all__ = ["Filter", "resized_part"]

Filter = Literal["nearest", "bilinear", "bicubic", "lanczos"]

_SUPPORT = {"bilinear": 1.0, "bicubic": 2.0}
_ONE = 1 << 22
_MOST = 4_096  # sizes that are remembered
_Key = tuple[int, int, int, int, str]
_learnt: dict[_Key, str] = {}
"""Of a size and what it becomes: seen once, across or down first, or no kernel at all."""
_Ints = npt.NDArray[np.int32]


def resized_part(
    pixels: Pixels, size: tuple[int, int], rows: slice, columns: slice, filter_name: Filter
) -> Pixels:
    """Resize a picture as Pillow does, and give some of its rows and columns.

    Examples
    --------
    >>> from PIL import Image
    >>> noise = np.random.default_rng(0).integers(0, 256, (30, 40, 3)).astype(np.uint8)
    >>> whole = np.asarray(Image.fromarray(noise).resize((16, 12), Image.Resampling.BICUBIC))
    >>> for _ in range(3):
    ...     part = resized_part(noise, (12, 16), slice(2, 9), slice(0, 16), "bicubic")
    >>> bool((part == whole[2:9]).all())
    True
    """
    if pixels.shape[:2] == size:
        return pixels[rows, columns]
    key = (pixels.shape[0], pixels.shape[1], *size, filter_name)
    known = _learnt.get(key, "none" if filter_name not in _SUPPORT else "")
    if known in ("across", "down"):
        return _by_kernels(pixels, size, rows, columns, filter_name, known)
    whole = _by_pillow(pixels, size, filter_name)
    if known == "":
        if len(_learnt) < _MOST:
            _learnt[key] = "seen"
    elif known == "seen":
        every = slice(0, size[0]), slice(0, size[1])
        _learnt[key] = _first(pixels, size, every, filter_name, whole)
    return whole[rows, columns]


def _first(
    pixels: Pixels, size: tuple[int, int], every: tuple[slice, slice], filter_name: str,
    whole: Pixels,
) -> str:  # fmt: skip
    """Say which direction first gives Pillow's pixels; undecided where both do or none does."""
    alike = [
        name
        for name in ("across", "down")
        if np.array_equal(_by_kernels(pixels, size, *every, filter_name, name), whole)
    ]
    one_direction = pixels.shape[0] == size[0] or pixels.shape[1] == size[1]
    if len(alike) == 1 or (alike and one_direction):
        return alike[0]
    return "seen" if alike else "none"


def _by_pillow(pixels: Pixels, size: tuple[int, int], filter_name: str) -> Pixels:
    from PIL import Image

    how = Image.Resampling[filter_name.upper()]
    resized = Image.fromarray(pixels).resize((size[1], size[0]), how)
    return np.asarray(resized, dtype=np.uint8)


def _by_kernels(
    pixels: Pixels, size: tuple[int, int], rows: slice, columns: slice, filter_name: str,
    first: str,
) -> Pixels:  # fmt: skip
    tall = tuple(one[rows] for one in _weights(pixels.shape[0], size[0], filter_name))
    wide = tuple(one[columns] for one in _weights(pixels.shape[1], size[1], filter_name))
    if first == "across":
        low, high = int(tall[0].min()), int((tall[0] + tall[1]).max())
        return _down(_across(pixels[low:high], *wide), tall[0] - np.int32(low), *tall[1:])
    low, high = int(wide[0].min()), int((wide[0] + wide[1]).max())
    between = _down(np.ascontiguousarray(pixels[:, low:high]), *tall)
    return _across(between, wide[0] - np.int32(low), *wide[1:])


def _across(pixels: Pixels, first: _Ints, count: _Ints, weights: _Ints) -> Pixels:
    from isolux.io.resize_kernels import across

    out = np.empty((len(pixels), len(first), 3), np.uint8)
    across(pixels, first, count, weights, out)
    return out


def _down(pixels: Pixels, first: _Ints, count: _Ints, weights: _Ints) -> Pixels:
    from isolux.io.resize_kernels import down

    out = np.empty((len(first), *pixels.shape[1:]), np.uint8)
    sums = np.empty(out.shape[1] * 3, np.int32)
    down(pixels.reshape(len(pixels), -1), first, count, weights, sums, out.reshape(len(out), -1))
    return out


@lru_cache(maxsize=512)
def _weights(side: int, wanted: int, filter_name: str) -> tuple[_Ints, _Ints, _Ints]:
    """Give for each pixel of a side the first of those it is made of, how many, and weights."""
    stretch = max(side / wanted, 1.0)
    support = _SUPPORT[filter_name] * stretch
    if side == wanted:
        whole = np.full((side, 1), _ONE, np.int32)
        return np.arange(side, dtype=np.int32), np.ones(side, np.int32), whole
    centre = (np.arange(wanted) + 0.5) * (side / wanted)
    first = np.maximum((centre - support + 0.5).astype(np.int32), 0).astype(np.int32)
    last = np.minimum((centre + support + 0.5).astype(np.int32), side)
    count = (last - first).astype(np.int32)
    weights = np.zeros((wanted, int(np.ceil(support)) * 2 + 1))
    total = np.zeros(wanted)
    for k in range(weights.shape[1]):  # in Pillow's order: a sum of doubles depends on it
        value = _filtered((k + first - centre + 0.5) * (1.0 / stretch), filter_name)
        weights[:, k] = np.where(k < count, value, 0.0)
        total += weights[:, k]
    weights /= np.where(total == 0.0, 1.0, total)[:, None]
    fixed = (weights * _ONE + np.where(weights < 0, -0.5, 0.5)).astype(np.int32)
    return first, count, fixed


def _filtered(x: npt.NDArray[np.float64], filter_name: str) -> npt.NDArray[np.float64]:
    x = np.abs(x)
    if filter_name == "bilinear":
        return np.where(x < 1.0, 1.0 - x, 0.0)
    a = -0.5
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))
