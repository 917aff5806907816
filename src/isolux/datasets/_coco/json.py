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

from isolux.core.errors import TableError, format_location
from isolux.datasets._boxes import check_box_columns
from isolux.datasets._coco.run_lengths import parse_segmentations_to_mask_columns
from isolux.datasets._columns import BOX_COLUMNS
from isolux.datasets._keypoints import split_coco_keypoints
from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.datasets._tables import left_join_in_order
from isolux.io.json_values import decode_json, format_whole_ids, raw_values_to_text
from isolux.io.refusals import refuse_cells, refuse_repeats

_Id = int | float | str
_REPEATED_ID_PROBLEM = "two rows have the same id"


class _CocoImage(msgspec.Struct, gc=False):
    id: _Id
    file_name: str | None = None
    width: int | float | None = None
    height: int | float | None = None


class _CocoAnnotation(msgspec.Struct, gc=False):
    id: _Id
    image_id: _Id
    category_id: _Id
    bbox: tuple[float, float, float, float] | None = None
    area: float | None = None
    iscrowd: int | float | bool | None = None
    ignore: int | float | bool | None = None
    segmentation: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    keypoints: list[float] | None = None
    num_keypoints: int | float | None = None
    person_id: _Id | None = None
    facet_person_id: _Id | None = None
    attributes: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _CocoCategory(msgspec.Struct):
    id: _Id
    name: str
    supercategory: str | None = None
    keypoints: list[str] | None = None


class _CocoFile(msgspec.Struct):
    images: list[_CocoImage]
    annotations: list[_CocoAnnotation]
    categories: list[_CocoCategory]


@dataclass(frozen=True, slots=True)
class CocoTables:
    """The three lists of the file as frames; ids are text."""

    images: pl.DataFrame
    annotations: pl.DataFrame
    categories: pl.DataFrame


def parse_coco_json(content: bytes, source: str, *, with_masks: bool = True) -> CocoTables:
    """Parse an annotation file and check what refers to what."""
    parsed = decode_json(content, _CocoFile, source)
    images = _build_coco_image_table(parsed.images, source)
    categories = _build_coco_category_table(parsed.categories, source)
    annotations = _build_coco_annotation_table(parsed.annotations, source)
    _check_ids_are_listed(annotations, "image_id", images["image_id"], source)
    _check_ids_are_listed(annotations, "category_id", categories["id"], source)
    if with_masks:
        texts = raw_values_to_text([a.segmentation for a in parsed.annotations], source)
        del parsed, content  # the masks' text is held now: the file goes, if its reader kept it not
        sizes = left_join_in_order(annotations.select("image_id"), images, "image_id")
        mask_columns = parse_segmentations_to_mask_columns(
            texts, sizes["height"], sizes["width"], source, "annotations.segmentation"
        )
        annotations = annotations.hstack(mask_columns)
    category_names = categories.select(
        category_id="id", category="name", supercategory="supercategory"
    )
    names = left_join_in_order(annotations.select("category_id"), category_names, "category_id")
    return CocoTables(images, annotations.hstack(names.drop("category_id")), categories)


def _build_coco_image_table(images: list[_CocoImage], source: str) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "image_id": _read_id_field_as_text(images, "id", source, "images"),
            "uri": pl.Series([row.file_name for row in images], dtype=pl.String),
            "width": _read_pixel_field(images, "width", source),
            "height": _read_pixel_field(images, "height", source),
        }
    )
    refuse_repeats(frame["image_id"], _REPEATED_ID_PROBLEM, "every id once", source, "images.id")
    check_paths_stay_inside(frame["uri"], source, "images.file_name")
    return frame


def _build_coco_category_table(categories: list[_CocoCategory], source: str) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "id": _read_id_field_as_text(categories, "id", source, "categories"),
            "name": pl.Series([row.name for row in categories], dtype=pl.String),
            "supercategory": pl.Series([row.supercategory for row in categories], dtype=pl.String),
            "keypoints": pl.Series([row.keypoints for row in categories], dtype=pl.List(pl.String)),
        }
    )
    refuse_repeats(frame["id"], _REPEATED_ID_PROBLEM, "every id once", source, "categories.id")
    return frame


def _build_coco_annotation_table(annotations: list[_CocoAnnotation], source: str) -> pl.DataFrame:
    person = [
        row.person_id if row.person_id is not None else row.facet_person_id for row in annotations
    ]
    points = [row.keypoints for row in annotations]
    frame = pl.DataFrame(
        {
            "id": _read_id_field_as_text(annotations, "id", source, "annotations"),
            "image_id": _read_id_field_as_text(annotations, "image_id", source, "annotations"),
            "category_id": _read_id_field_as_text(
                annotations, "category_id", source, "annotations"
            ),
            **_build_box_columns([row.bbox for row in annotations]),
            "area": pl.Series([row.area for row in annotations], dtype=pl.Float64, strict=False),
            "is_crowd": _read_boolean_field(annotations, "iscrowd"),
            "ignore": _read_boolean_field(annotations, "ignore"),
            "person": _convert_ids_to_text(person, source, "annotations.person_id"),
            "keypoints": pl.Series(points, dtype=pl.List(pl.Float64), strict=False),
            "num_keypoints": pl.Series(
                [row.num_keypoints for row in annotations], dtype=pl.Int64, strict=False
            ),
            "attributes": raw_values_to_text([row.attributes for row in annotations], source),
        }
    )
    refuse_repeats(frame["id"], _REPEATED_ID_PROBLEM, "every id once", source, "annotations.id")
    return check_box_columns(frame, source, field="annotations.bbox")


def _build_box_columns(boxes: Sequence[tuple[float, ...] | None]) -> dict[str, pl.Series]:
    missing_box = (np.nan,) * 4
    flat = np.fromiter(
        chain.from_iterable(missing_box if box is None else box for box in boxes),
        dtype=np.float64,
        count=4 * len(boxes),
    ).reshape(-1, 4)  # [N, 4]: x, y, width, height; JSON has no NaN of its own
    return {
        name: pl.Series(np.ascontiguousarray(flat[:, i])).fill_nan(None)
        for i, name in enumerate(BOX_COLUMNS)
    }


def _read_id_field_as_text(
    rows: Iterable[Any], field: str, source: str, list_name: str
) -> pl.Series:
    return _convert_ids_to_text(list(map(attrgetter(field), rows)), source, f"{list_name}.{field}")


def _convert_ids_to_text(ids: list[_Id | None], source: str, column: str) -> pl.Series:
    """Write ids as text; numbers all at once where all of them are whole."""
    try:
        return pl.Series(ids, dtype=pl.Int64).cast(pl.String)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series(format_whole_ids(ids, source, column), dtype=pl.String)


def _read_boolean_field(rows: Iterable[Any], field: str) -> pl.Series:
    return pl.Series([bool(flag) for flag in map(attrgetter(field), rows)], dtype=pl.Boolean)


def _read_pixel_field(rows: Iterable[Any], field: str, source: str) -> pl.Series:
    values = list(map(attrgetter(field), rows))
    # COCO's tools keep sides in 32 bits with a sign.
    bad = next(
        (i for i, v in enumerate(values) if v is not None and not (0 < v < 2**31 and v == int(v))),
        None,
    )
    if bad is not None:
        raise TableError(
            f"an image's {field} is not a number of pixels",
            expected="a whole number from 1",
            found=str(values[bad])[:40],
            where=format_location(source, bad + 1, f"images.{field}"),
        )
    return pl.Series(values, dtype=pl.Int64, strict=False)


def _check_ids_are_listed(
    rows: pl.DataFrame, id_column: str, listed_ids: pl.Series, source: str
) -> None:
    singular, plural = (
        ("image", "images") if id_column == "image_id" else ("category", "categories")
    )
    refuse_cells(
        ~rows[id_column].is_in(listed_ids.implode()),
        rows[id_column],
        f"{{n}} annotation(s) are of {singular} ids that the file does not list",
        f"an id of the list of {plural}",
        source,
        column=f"annotations.{id_column}",
    )


def select_coco_instance_columns(
    annotations: pl.DataFrame, tables: CocoTables, source: str
) -> pl.DataFrame:
    """Give the columns of instances for these rows of ``tables.annotations``."""
    masks = [name for name in annotations.columns if name.startswith("mask_")]
    frame = annotations.select(
        pl.col("id").alias("instance_id"),
        "image_id",
        pl.concat_list("category").alias("classes"),
        *BOX_COLUMNS,
        "area",
        "is_crowd",
        (pl.col("ignore") | pl.col("is_crowd")).alias("ignore"),
        *masks,
    )
    keypoint_names = tables.categories.select(category_id="id", names="keypoints")
    names = left_join_in_order(annotations.select("category_id"), keypoint_names, "category_id")[
        "names"
    ]
    return frame.hstack(split_coco_keypoints(annotations, names, source))
