"""Masks of people and of predictions, from columns to pairs that overlap enough.

A mask belongs to an image, so both fill the same number of pixels: that is looked at for all of
them, whether or not they touch a person.
"""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.masks import (
    Masks,
    mask_pairs,
    masks_from_coco,
    masks_from_counts,
    masks_to_coco,
)
from isolux.geometry.matching import Pairs
from isolux.tasks._boxes.matching import Settings
from isolux.tasks._boxes.scoring import PairsOf
from isolux.tasks._boxes.table import Found, People
from isolux.tasks._parts import image_sizes
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import TableError, place

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
_EMPTY = {"mask_counts": "1", "mask_height": 1, "mask_width": 1}
"""A picture of one pixel with nothing in it: overlaps nothing."""


def mask_pairs_in(dataset: Dataset, settings: Settings) -> PairsOf:
    """Pair masks that overlap enough for any metric."""

    def pairs_of(found: Found, people: People) -> Pairs:
        masked = people.rows.select(
            pl.any_horizontal(pl.col("mask_counts", "mask_polygons").is_not_null())
        ).to_series()
        truths = _read(_without_polygons(people.rows, dataset), dataset.name)
        size = _sizes(dataset, people, truths, masked.to_numpy())
        rows = found.rows["file_row"].to_numpy() if "file_row" in found.rows.columns else None
        _refuse_size(found.rows, size[found.detections.image], "predictions", rows)
        return mask_pairs(
            found.detections,
            people.truths,
            _read(found.rows, "predictions", rows),
            truths,
            lowest_iou=settings.lowest_iou,
        )

    return pairs_of


def empty_masks(dataset: Dataset) -> int:
    """Count the people whose run lengths hold no pixel: no mask can find them."""
    if "mask_counts" not in dataset.instances.columns:
        return 0
    rows = dataset.instances.filter(pl.col("mask_counts").is_not_null())
    return int((_read(rows, dataset.name).area_px == 0).sum())


def _read(rows: pl.DataFrame, where: str, at: IntArray | None = None) -> Masks:
    return masks_from_counts(
        rows["mask_counts"],
        rows["mask_height"].to_numpy(),
        rows["mask_width"].to_numpy(),
        file=where,
        rows=at,
    )


def _sizes(dataset: Dataset, people: People, truths: Masks, masked: BoolArray) -> IntArray:
    """Find each image's height and width, ``[images, 2]``: its own, else that of its first mask."""
    known = image_sizes(dataset, people.images)
    size = known.select(pl.col("height", "width").fill_null(0)).to_numpy().astype(np.int64)
    image, row = np.unique(people.truths.image[masked], return_index=True)
    at = np.flatnonzero(masked)[row]
    own = np.column_stack([truths.height, truths.width])
    size[image] = np.where(size[image] > 0, size[image], own[at])
    given = people.rows.select("image_id", mask_height=own[:, 0], mask_width=own[:, 1])
    expected = np.where(masked[:, None], size[people.truths.image], own)
    _refuse_size(given, expected, dataset.name, None)
    return size


def _refuse_size(rows: pl.DataFrame, size: IntArray, where: str, at: IntArray | None) -> None:
    """Refuse masks whose ``size [n, 2]`` is known and another one."""
    own = rows.select("mask_height", "mask_width").to_numpy()
    differs = ((own != size) & (size > 0)).any(axis=1)
    if differs.any():
        row = int(np.argmax(differs))
        raise TableError(
            "a mask has another size than its image",
            expected=f"{size[row, 0]} × {size[row, 1]} (height × width)",
            found=f"{own[row, 0]} × {own[row, 1]}, in image {rows['image_id'][row]!r}"
            f" ({int(differs.sum()):,} such masks in all)",
            where=place(where, (row if at is None else int(at[row])) + 1, "mask"),
        )


def _without_polygons(rows: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
    """Give everyone run lengths: polygons are filled, people without a mask get an empty one."""
    held = rows.select("mask_counts", "mask_height", "mask_width", "mask_polygons", "image_id")
    held = held.with_columns(
        pl.col("mask_counts", "mask_polygons").cast(pl.String),
        pl.col("mask_height", "mask_width").cast(pl.Int64),
    ).with_row_index("row")
    outlined = held.filter(pl.col("mask_counts").is_null() & pl.col("mask_polygons").is_not_null())
    if outlined.height:
        held = held.update(_filled(outlined, dataset), on="row")
    return held.with_columns(pl.col(name).fill_null(value) for name, value in _EMPTY.items())


def _filled(outlined: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
    sizes = image_sizes(dataset, outlined)
    unknown = sizes["height"].is_null() | sizes["width"].is_null()
    if unknown.any():
        raise TableError(
            "a mask is given as polygons, but how large its image is, is not known",
            expected="width and height in the table images",
            found=repr(outlined["image_id"][int(unknown.arg_max() or 0)]),
            where=place(dataset.name, None, "images.height"),
        )
    height, width = (sizes[name].to_numpy().astype(np.int64) for name in ("height", "width"))
    polygons = [json.loads(text) for text in outlined["mask_polygons"]]
    written = masks_to_coco(masks_from_coco(polygons, height, width, file=dataset.name))
    counts = [c.decode() if isinstance(c := w["counts"], bytes) else c for w in written]
    return outlined.select("row").with_columns(
        mask_counts=pl.Series(counts, dtype=pl.String),
        mask_height=pl.Series(height),
        mask_width=pl.Series(width),
    )
