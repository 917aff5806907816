"""COCO's annotation JSON as columns: images, annotations, categories.

The format that ``coco`` reads and that FACET publishes its boxes and masks in. Lin et al. (2014);
https://cocodataset.org/#format-data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl

from isolux.datasets._boxes import checked_boxes
from isolux.datasets._coco.run_lengths import masks_of
from isolux.datasets._columns import BOX
from isolux.datasets._inner_paths import refuse_outside
from isolux.datasets._points import points_of
from isolux.datasets._tables import left_join
from isolux.io.json_values import decode, raw_texts
from isolux.io.refusals import refuse_cells, refuse_repeats
from isolux.vocabulary.errors import TableError, place

_Id = int | str
_TWICE = "two rows have the same id"


class _Image(msgspec.Struct, gc=False):
    id: _Id
    file_name: str | None = None
    width: int | None = None
    height: int | None = None


class _Annotation(msgspec.Struct, gc=False):
    id: _Id
    image_id: _Id
    category_id: _Id
    bbox: tuple[float, float, float, float] | None = None
    area: float | None = None
    iscrowd: int | bool | None = None
    ignore: int | bool | None = None
    segmentation: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    keypoints: list[float] | None = None
    num_keypoints: int | None = None
    person_id: _Id | None = None
    facet_person_id: _Id | None = None
    attributes: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Category(msgspec.Struct):
    id: _Id
    name: str
    supercategory: str | None = None
    keypoints: list[str] | None = None


class _File(msgspec.Struct):
    images: list[_Image]
    annotations: list[_Annotation]
    categories: list[_Category]


@dataclass(frozen=True, slots=True)
class CocoTables:
    """The three lists of the file as frames; ids are text."""

    images: pl.DataFrame
    annotations: pl.DataFrame
    categories: pl.DataFrame


def read_coco(data: bytes, where: str, *, masks: bool = True) -> CocoTables:
    """Parse an annotation file and check what refers to what."""
    read = decode(data, _File, where)
    images = _images(read.images, where)
    categories = _categories(read.categories, where)
    annotations = _annotations(read.annotations, where)
    _refuse_strangers(annotations, "image_id", images["image_id"], where)
    _refuse_strangers(annotations, "category_id", categories["id"], where)
    if masks:
        texts = raw_texts([a.segmentation for a in read.annotations], where)
        del read, data  # the masks' text is held now: the file goes, if its reader kept it not
        sizes = left_join(annotations.select("image_id"), images, "image_id")
        found = masks_of(texts, sizes["height"], sizes["width"], where, "annotations.segmentation")
        annotations = annotations.hstack(found)
    named = categories.select(category_id="id", category="name", supercategory="supercategory")
    names = left_join(annotations.select("category_id"), named, "category_id")
    return CocoTables(images, annotations.hstack(names.drop("category_id")), categories)


def _images(rows: list[_Image], where: str) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "image_id": _ids(rows, "id"),
            "uri": pl.Series([row.file_name for row in rows], dtype=pl.String),
            "width": _whole(rows, "width", where, "images"),
            "height": _whole(rows, "height", where, "images"),
        }
    )
    refuse_repeats(frame["image_id"], _TWICE, "every id once", where, "images.id")
    refuse_outside(frame["uri"], where, "images.file_name")
    return frame


def _categories(rows: list[_Category], where: str) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "id": _ids(rows, "id"),
            "name": pl.Series([row.name for row in rows], dtype=pl.String),
            "supercategory": pl.Series([row.supercategory for row in rows], dtype=pl.String),
            "keypoints": pl.Series([row.keypoints for row in rows], dtype=pl.List(pl.String)),
        }
    )
    refuse_repeats(frame["id"], _TWICE, "every id once", where, "categories.id")
    return frame


def _annotations(rows: list[_Annotation], where: str) -> pl.DataFrame:
    person = [row.person_id if row.person_id is not None else row.facet_person_id for row in rows]
    points = [row.keypoints for row in rows]
    frame = pl.DataFrame(
        {
            "id": _ids(rows, "id"),
            "image_id": _ids(rows, "image_id"),
            "category_id": _ids(rows, "category_id"),
            **_boxes([row.bbox for row in rows]),
            "area": pl.Series([row.area for row in rows], dtype=pl.Float64, strict=False),
            "is_crowd": _flags(rows, "iscrowd"),
            "ignore": _flags(rows, "ignore"),
            "person": _text(person),
            "keypoints": pl.Series(points, dtype=pl.List(pl.Float64), strict=False),
            "num_keypoints": pl.Series(
                [row.num_keypoints for row in rows], dtype=pl.Int64, strict=False
            ),
            "attributes": raw_texts([row.attributes for row in rows], where),
        }
    )
    refuse_repeats(frame["id"], _TWICE, "every id once", where, "annotations.id")
    return checked_boxes(frame, where, field="annotations.bbox")


def _boxes(boxes: Sequence[tuple[float, ...] | None]) -> dict[str, pl.Series]:
    nothing = (np.nan,) * 4
    flat = np.fromiter(
        chain.from_iterable(nothing if box is None else box for box in boxes),
        dtype=np.float64,
        count=4 * len(boxes),
    ).reshape(-1, 4)  # [N, 4]: x, y, width, height; JSON has no NaN of its own
    return {
        name: pl.Series(np.ascontiguousarray(flat[:, i])).fill_nan(None)
        for i, name in enumerate(BOX)
    }


def _ids(rows: Iterable[Any], name: str) -> pl.Series:
    return _text(list(map(attrgetter(name), rows)))


def _text(values: list[_Id | None]) -> pl.Series:
    """Write ids as text; numbers all at once where all of them are numbers."""
    try:
        return pl.Series(values, dtype=pl.Int64).cast(pl.String)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series([None if v is None else str(v) for v in values], dtype=pl.String)


def _flags(rows: Iterable[Any], name: str) -> pl.Series:
    return pl.Series([bool(value) for value in map(attrgetter(name), rows)], dtype=pl.Boolean)


def _whole(rows: Iterable[Any], name: str, where: str, of: str) -> pl.Series:
    values = list(map(attrgetter(name), rows))
    # COCO's tools keep sides in 32 bits with a sign.
    bad = next((i for i, v in enumerate(values) if v is not None and not 0 < v < 2**31), None)
    if bad is not None:
        raise TableError(
            f"an image's {name} is not a number of pixels",
            expected="a whole number from 1",
            found=str(values[bad])[:40],
            where=place(where, bad + 1, f"{of}.{name}"),
        )
    return pl.Series(values, dtype=pl.Int64)


def _refuse_strangers(rows: pl.DataFrame, name: str, known: pl.Series, where: str) -> None:
    what, lists = ("image", "images") if name == "image_id" else ("category", "categories")
    refuse_cells(
        ~rows[name].is_in(known.implode()),
        rows[name],
        f"{{n}} annotation(s) are of {what} ids that the file does not list",
        f"an id of the list of {lists}",
        where,
        column=f"annotations.{name}",
    )


def coco_instances(annotations: pl.DataFrame, tables: CocoTables, where: str) -> pl.DataFrame:
    """Give the columns of instances for these rows of ``tables.annotations``."""
    masks = [name for name in annotations.columns if name.startswith("mask_")]
    frame = annotations.select(
        pl.col("id").alias("instance_id"),
        "image_id",
        pl.concat_list("category").alias("classes"),
        *BOX,
        "area",
        "is_crowd",
        (pl.col("ignore") | pl.col("is_crowd")).alias("ignore"),
        *masks,
    )
    named = tables.categories.select(category_id="id", names="keypoints")
    names = left_join(annotations.select("category_id"), named, "category_id")["names"]
    return frame.hstack(points_of(annotations, names, where))
