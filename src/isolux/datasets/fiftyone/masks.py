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

from isolux.core.errors import TableError, format_location
from isolux.geometry.masks import Masks, masks_from_counts, masks_to_coco

Bitmap = npt.NDArray[np.bool_]

_MAX_BASE64_LENGTH = 64 << 20  # characters of base64 of one mask
_MAX_MASK_BYTES = 1 << 28  # bytes that one mask may unpack to
_MAX_HEADER_BYTES = 4_096  # bytes before an array's numbers
_EXPECTED = '{"$binary": {"base64": …}}, a zlib-packed array as numpy.save writes it'


@dataclass(frozen=True, slots=True)
class BoxMask:
    """A mask as FiftyOne has it: the bitmap of a box, and the picture's size."""

    row: int
    bitmap: Bitmap
    box: tuple[float, float, float, float]
    height: int
    width: int


def unpack_mask(mask_data: object, source: str, row: int) -> Bitmap:
    """Read a mask: ``[height, width]`` of its box."""
    try:
        array = np.load(
            io.BytesIO(_decompress_bounded_bytes(mask_data)),
            allow_pickle=False,
            max_header_size=_MAX_HEADER_BYTES,
        )
    except Exception as error:  # a header is a literal, and NumPy raises whatever its parts do
        raise _build_damaged_mask_error(str(error) or type(error).__name__, source, row) from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf" or array.ndim != 2:
        description = f"an array of {array.dtype}, {array.ndim} dimensions"
        raise _build_damaged_mask_error(description, source, row)
    return cast("Bitmap", array != 0)


def _decompress_bounded_bytes(mask_data: object) -> bytes:
    """Unpack the bytes of an array up to a bound, or raise a ``ValueError``."""
    text = mask_data.get("$binary") if isinstance(mask_data, dict) else None
    text = text.get("base64") if isinstance(text, dict) else None
    if not isinstance(text, str) or len(text) > _MAX_BASE64_LENGTH:
        raise ValueError("too long" if isinstance(text, str) else "no text of base64")
    stream = zlib.decompressobj()
    array_bytes = stream.decompress(base64.b64decode(text, validate=True), _MAX_MASK_BYTES)
    if not stream.eof:
        raise ValueError("cut off, or it unpacks to far more than a mask")
    return array_bytes


def _build_damaged_mask_error(description: str, source: str, row: int) -> TableError:
    return TableError(
        "a mask cannot be read",
        expected=_EXPECTED,
        found=description[:120],
        where=format_location(source, row + 1),
    )


def pack_mask(bitmap: Bitmap) -> dict[str, Any]:
    """Write a mask, as FiftyOne's exporter does."""
    file = io.BytesIO()
    np.save(file, bitmap, allow_pickle=False)
    text = base64.b64encode(zlib.compress(file.getvalue())).decode("ascii")
    return {"$binary": {"base64": text, "subType": "00"}}


@dataclass(frozen=True, slots=True)
class _PixelWindow:
    """Whole pixels: from the first column and row to those after the last."""

    x: int
    y: int
    x_end: int
    y_end: int

    @property
    def shape(self) -> tuple[int, int]:
        return max(self.y_end - self.y, 0), max(self.x_end - self.x, 0)


def _compute_pixel_window_of_box(box: Sequence[float], *, covers_touched: bool) -> _PixelWindow:
    """Give the pixels that a box covers: all it touches, or as its sides round."""
    x, y, w, h = box
    edges = (x, y, x + w, y + h)
    if covers_touched:
        return _PixelWindow(*map(math.floor, edges[:2]), *map(math.ceil, edges[2:]))
    return _PixelWindow(*map(round, edges))


def convert_box_masks_to_columns(masks: Iterable[BoxMask], n_rows: int) -> pl.DataFrame:
    """Convert box masks to full-image run lengths, in ``n_rows`` rows of mask columns."""
    rows, runs, heights, widths = [], [], [], []
    for mask in masks:
        rows.append(mask.row)
        runs.append(_encode_mask_run_lengths(mask))
        heights.append(mask.height)
        widths.append(mask.width)
    if not rows:
        return pl.DataFrame()
    sizes_px = np.array([heights, widths], np.int64)
    compressed = masks_to_coco(
        masks_from_counts(pl.Series(runs, dtype=pl.List(pl.Int64)), *sizes_px)
    )
    mask_table = pl.DataFrame(
        {
            "row": pl.Series(rows, dtype=pl.Int64),
            "mask_counts": [run_lengths["counts"].decode("ascii") for run_lengths in compressed],
            "mask_height": sizes_px[0],
            "mask_width": sizes_px[1],
        }
    )
    all_rows = pl.DataFrame({"row": pl.int_range(n_rows, dtype=pl.Int64, eager=True)})
    return all_rows.join(mask_table, on="row", how="left", maintain_order="left").drop("row")


def _encode_mask_run_lengths(mask: BoxMask) -> list[int]:
    """Count the runs of a mask in its picture, columns first, as COCO does."""
    window, bitmap = _compute_pixel_window_of_box(mask.box, covers_touched=True), mask.bitmap
    if window.shape != bitmap.shape:
        window = _compute_pixel_window_of_box(mask.box, covers_touched=False)
        bitmap = _resize_mask_nearest(bitmap, window.shape)
    x, y = max(window.x, 0), max(window.y, 0)
    visible_part = bitmap[y - window.y : max(mask.height - window.y, 0)]
    visible_part = visible_part[:, x - window.x : max(mask.width - window.x, 0)]
    full_mask = np.zeros((mask.width, mask.height), np.bool_)
    full_mask[x : x + visible_part.shape[1], y : y + visible_part.shape[0]] = visible_part.T
    edges = np.flatnonzero(np.diff(full_mask.ravel(), prepend=False))
    return cast("list[int]", np.diff([0, *edges, full_mask.size]).tolist())


def _resize_mask_nearest(bitmap: Bitmap, shape: tuple[int, int]) -> Bitmap:
    """Resize a mask by nearest neighbour."""
    if not bitmap.size:
        return np.zeros(shape, np.bool_)
    rows, columns = (
        ((np.arange(new) + 0.5) * old / new).astype(np.int64)
        for new, old in zip(shape, bitmap.shape, strict=True)
    )
    return cast("Bitmap", bitmap[rows][:, columns])


def crop_mask_to_box_or_none(masks: Masks, mask_index: int, box: Sequence[float]) -> Bitmap | None:
    """Cut the part of a mask that lies in a box; None where the box covers no pixel."""
    height, width = int(masks.height[mask_index]), int(masks.width[mask_index])
    window = _compute_pixel_window_of_box(box, covers_touched=True)
    x, x_end = max(window.x, 0), min(window.x_end, width)
    y, y_end = max(window.y, 0), min(window.y_end, height)
    if 0 in window.shape or x_end <= x or y_end <= y:
        return None
    edges = masks.edges[masks.starts[mask_index] : masks.starts[mask_index + 1]].astype(np.int64)
    inside = np.clip(edges - x * height, 0, (x_end - x) * height)
    change = np.zeros((x_end - x) * height + 1, np.int32)
    np.add.at(change, inside[0::2], 1)
    np.add.at(change, inside[1::2], -1)
    columns = np.cumsum(change[:-1]).reshape(x_end - x, height) > 0
    cropped = np.zeros(window.shape, np.bool_)
    cropped[y - window.y : y_end - window.y, x - window.x : x_end - window.x] = columns.T[y:y_end]
    return cropped
