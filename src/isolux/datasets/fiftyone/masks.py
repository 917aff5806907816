"""FiftyOne's masks: of the box alone, as a packed NumPy array; to and from COCO's run lengths.

An array is written by ``numpy.save``, packed by zlib and put into the JSON as base64
(``serialize_numpy_array`` of fiftyone/core/utils.py). Here it is unpacked up to a bound, its header
is read as a literal, and nothing is ever unpickled. A mask of another size than its box is
stretched over the box, as FiftyOne shows it.
"""

from __future__ import annotations

import base64
import io
import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.masks import Masks, masks_from_counts, masks_to_coco
from isolux.vocabulary.errors import TableError, place

Bitmap = npt.NDArray[np.bool_]

_LONGEST = 64 << 20  # characters of base64 of one mask
_LARGEST = 1 << 28  # bytes that one mask may unpack to
_HEADER = 4_096  # bytes before an array's numbers
_EXPECTED = '{"$binary": {"base64": …}}, a zlib-packed array as numpy.save writes it'


@dataclass(frozen=True, slots=True)
class Boxed:
    """A mask as FiftyOne has it: the bitmap of a box, and the picture's size."""

    row: int
    bitmap: Bitmap
    box: tuple[float, float, float, float]
    height: int
    width: int


def unpacked(value: object, where: str, row: int) -> Bitmap:
    """Read a mask: ``[height, width]`` of its box."""
    try:
        array = np.load(io.BytesIO(_data(value)), allow_pickle=False, max_header_size=_HEADER)
    except Exception as error:  # a header is a literal, and NumPy raises whatever its parts do
        raise _damaged(str(error) or type(error).__name__, where, row) from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf" or array.ndim != 2:
        found = f"an array of {array.dtype}, {array.ndim} dimensions"
        raise _damaged(found, where, row)
    return cast("Bitmap", array != 0)


def _data(value: object) -> bytes:
    """Unpack the bytes of an array up to a bound, or raise a ``ValueError``."""
    text = value.get("$binary") if isinstance(value, dict) else None
    text = text.get("base64") if isinstance(text, dict) else None
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise ValueError("too long" if isinstance(text, str) else "no text of base64")
    stream = zlib.decompressobj()
    data = stream.decompress(base64.b64decode(text, validate=True), _LARGEST)
    if not stream.eof:
        raise ValueError("cut off, or it unpacks to far more than a mask")
    return data


def _damaged(found: str, where: str, row: int) -> TableError:
    return TableError(
        "a mask cannot be read", expected=_EXPECTED, found=found[:120], where=place(where, row + 1)
    )


def packed(bitmap: Bitmap) -> dict[str, Any]:
    """Write a mask, as FiftyOne's exporter does."""
    file = io.BytesIO()
    np.save(file, bitmap, allow_pickle=False)
    text = base64.b64encode(zlib.compress(file.getvalue())).decode("ascii")
    return {"$binary": {"base64": text, "subType": "00"}}


@dataclass(frozen=True, slots=True)
class _Window:
    """Whole pixels: from the first column and row to those after the last."""

    x: int
    y: int
    x_end: int
    y_end: int

    @property
    def shape(self) -> tuple[int, int]:
        return max(self.y_end - self.y, 0), max(self.x_end - self.x, 0)


def _window(box: Sequence[float], *, whole: bool) -> _Window:
    """Give the pixels that a box covers: all it touches, or as its sides round."""
    x, y, w, h = box
    sides = (x, y, x + w, y + h)
    if whole:
        return _Window(*map(math.floor, sides[:2]), *map(math.ceil, sides[2:]))
    return _Window(*map(round, sides))


def to_columns(masks: Iterable[Boxed], n: int) -> pl.DataFrame:
    """Place masks in their images: ``mask_counts``, ``mask_height``, ``mask_width``, ``n`` rows."""
    rows, runs, heights, widths = [], [], [], []
    for mask in masks:
        rows.append(mask.row)
        runs.append(_runs(mask))
        heights.append(mask.height)
        widths.append(mask.width)
    if not rows:
        return pl.DataFrame()
    sides = np.array([heights, widths], np.int64)
    placed = masks_to_coco(masks_from_counts(pl.Series(runs, dtype=pl.List(pl.Int64)), *sides))
    found = pl.DataFrame(
        {
            "row": pl.Series(rows, dtype=pl.Int64),
            "mask_counts": [one["counts"].decode("ascii") for one in placed],
            "mask_height": sides[0],
            "mask_width": sides[1],
        }
    )
    every = pl.DataFrame({"row": pl.int_range(n, dtype=pl.Int64, eager=True)})
    return every.join(found, on="row", how="left", maintain_order="left").drop("row")


def _runs(mask: Boxed) -> list[int]:
    """Count the runs of a mask in its picture, columns first, as COCO does."""
    window, bitmap = _window(mask.box, whole=True), mask.bitmap
    if window.shape != bitmap.shape:
        window = _window(mask.box, whole=False)
        bitmap = _stretched(bitmap, window.shape)
    x, y = max(window.x, 0), max(window.y, 0)
    cut = bitmap[y - window.y : max(mask.height - window.y, 0)]
    cut = cut[:, x - window.x : max(mask.width - window.x, 0)]
    whole = np.zeros((mask.width, mask.height), np.bool_)
    whole[x : x + cut.shape[1], y : y + cut.shape[0]] = cut.T
    edges = np.flatnonzero(np.diff(whole.ravel(), prepend=False))
    return cast("list[int]", np.diff([0, *edges, whole.size]).tolist())


def _stretched(bitmap: Bitmap, shape: tuple[int, int]) -> Bitmap:
    """Bring a mask to another size, each pixel that of the nearest."""
    if not bitmap.size:
        return np.zeros(shape, np.bool_)
    rows, columns = (
        ((np.arange(new) + 0.5) * old / new).astype(np.int64)
        for new, old in zip(shape, bitmap.shape, strict=True)
    )
    return cast("Bitmap", bitmap[rows][:, columns])


def crop(masks: Masks, k: int, box: Sequence[float]) -> Bitmap | None:
    """Cut the part of a mask that lies in a box; None where the box covers no pixel."""
    height, width = int(masks.height[k]), int(masks.width[k])
    window = _window(box, whole=True)
    x, x_end = max(window.x, 0), min(window.x_end, width)
    y, y_end = max(window.y, 0), min(window.y_end, height)
    if 0 in window.shape or x_end <= x or y_end <= y:
        return None
    edges = masks.edges[masks.starts[k] : masks.starts[k + 1]].astype(np.int64)
    inside = np.clip(edges - x * height, 0, (x_end - x) * height)
    change = np.zeros((x_end - x) * height + 1, np.int32)
    np.add.at(change, inside[0::2], 1)
    np.add.at(change, inside[1::2], -1)
    columns = np.cumsum(change[:-1]).reshape(x_end - x, height) > 0
    found = np.zeros(window.shape, np.bool_)
    found[y - window.y : y_end - window.y, x - window.x : x_end - window.x] = columns.T[y:y_end]
    return found
