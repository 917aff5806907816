"""COCO and any set in its format: boxes, masks, crowds, keypoints of 80 categories.

Reads an annotation file (``instances_val2017.json``, ``person_keypoints_val2017.json``): one
instance for each annotation, its image, its category as class. No image is opened. COCO says
nothing about who people are; labels of skin and gender come from other tables
(``coco_caption_bias``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import refuse_unknown_names
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.tables import ATTRIBUTES, IMAGES, INSTANCES, check
from isolux.datasets._boxes import (
    BoxOrder,
    check_boxes_in_pixels,
    convert_corner_boxes_to_xywh,
    note_empty_and_overhanging_boxes,
)
from isolux.datasets._coco.json import CocoTables, parse_coco_json, select_coco_instance_columns
from isolux.datasets._files import Inputs, find_single_file
from isolux.datasets._tables import build_clustered_dataset, build_rows_of_one_attribute

INFO = DatasetInfo(
    title="COCO",
    summary="Objects of 80 categories in everyday scenes: boxes, masks, crowds, people's joints.",
    references=(
        citations.COCO.with_location("section 4; the format: https://cocodataset.org/#format-data"),
    ),
    licence="annotations CC BY 4.0; images under their own licences on Flickr",
    training_allowed=True,
    withdrawal="no way for the people shown to withdraw is published",
    label_source="perceived",
    noun="objects",
    terms=(
        ("category", "annotated category"),
        ("supercategory", "group of categories"),
    ),
    assumptions=(
        "images are independent of one another, those in one image are not",
        "everyone in an image is annotated, or covered by a crowd box",
    ),
)

_STANDARD_ATTRIBUTES = ("category", "supercategory")
_MAX_AREA_RATIO, _MIN_AREA_RATIO = (
    1.1,
    0.02,
)  # of the box: a mask lies within it, and a thin pole fills a little
_AREA_SLACK_PX = 4.0  # square pixels, for boxes of a few
_CAUTION_SHARE = 0.05  # of the annotations, from which implausible areas are cautioned on
_Cell = bool | int | float | str | None
_AttributeValues = dict[str, _Cell | list[_Cell]]
_AttributeRows = tuple[list[str], list[str | None], list[float | None]]
"""Attributes that every file gives."""


def load(
    path: str | Path,
    *,
    categories: Sequence[str] | None = None,
    masks: bool = True,
    box_format: BoxOrder = "xywh",
) -> Dataset:
    r"""Load COCO annotations.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``row``, or a column.

    Parameters
    ----------
    path : str or Path
        The JSON file, or a folder that holds a single one (itself or in ``annotations/``).
    categories : sequence of str, optional
        Names of the categories whose instances are kept (``["person"]``); all where not given.
        The others' images stay.
    masks : bool
        Keep the masks. Without them a large file is read in less time and memory.
    box_format : {"xywh", "xyxy"}
        What ``bbox`` is: left, top, width, height, as COCO has it; or two corners, as some
        converters write it.

    Returns
    -------
    Dataset
        ``instances``: the box in pixels, ``classes``, ``area`` (of the mask, square pixels),
        ``is_crowd``, ``ignore`` (crowds, and what the file marks so), mask and keypoint columns
        where the file has any. ``attributes``: ``category`` and ``supercategory``, and what
        annotations hold under ``attributes``, as CVAT and others write it.

    Raises
    ------
    FileError
        No such file, no JSON or JSON that is cut off (with the byte).
    TableError
        With the row in its list: a value of a wrong type, a repeated id, an id of no image or
        category, a box with a negative side, a mask that is not of its image's size; boxes that
        leave their images and are corners.

    Examples
    --------
    >>> import json, tempfile
    >>> file = {
    ...     "images": [{"id": 7, "file_name": "7.jpg", "width": 64, "height": 48}],
    ...     "annotations": [{"id": 1, "image_id": 7, "category_id": 1, "bbox": [4, 5, 20, 30]}],
    ...     "categories": [{"id": 1, "name": "person"}],
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "instances.json").write_text(json.dumps(file))
    ...     load(folder).instances.select("classes", "box_x", "box_h", "cluster_id").row(0)
    (['person'], 4.0, 30.0, '7')
    """
    file = find_single_file(path, ("annotations/*.json", "*.json"), "annotations (JSON)")
    source, inputs = str(file), Inputs()
    tables = parse_coco_json(inputs.read(file), source, with_masks=masks)
    annotations = _select_categories(tables, categories, source)
    images = check(tables.images, IMAGES, source=source)
    raw_instances = select_coco_instance_columns(annotations, tables, source)
    converted = convert_corner_boxes_to_xywh(raw_instances, images, box_format, source)
    instances = check(converted, INSTANCES, source=source)
    check_boxes_in_pixels(instances, images, source)
    custom_attributes, notes = read_custom_attributes(tables.annotations, _STANDARD_ATTRIBUTES)
    dataset = build_clustered_dataset(
        "coco",
        INFO,
        instances=instances,
        attributes=_build_attributes(annotations, custom_attributes),
        images=images,
        inputs=inputs,
        notes=(
            *caution_on_areas(instances),
            *note_empty_and_overhanging_boxes(instances, images),
            *notes,
        ),
        is_boxed=False,
        cluster="image",
        clusters={"image": "image_id", "row": None},
    )
    return replace(dataset, categories=dict(tables.categories.select("id", "name").rows()))


def _select_categories(
    tables: CocoTables, categories: Sequence[str] | None, source: str
) -> pl.DataFrame:
    if categories is None:
        return tables.annotations
    category_names = tables.categories["name"].to_list()
    refuse_unknown_names("category", categories, category_names, where=source)
    return tables.annotations.filter(pl.col("category").is_in(list(categories)))


def _build_attributes(annotations: pl.DataFrame, custom_attributes: pl.DataFrame) -> pl.DataFrame:
    tables = [
        build_rows_of_one_attribute(annotations["id"], name, annotations[name])
        for name in _STANDARD_ATTRIBUTES
        if annotations[name].is_not_null().any() or name == "category"
    ]
    selected = custom_attributes.filter(pl.col("unit_id").is_in(annotations["id"].implode()))
    return check(pl.concat([*tables, selected]), ATTRIBUTES)


def caution_on_areas(instances: pl.DataFrame) -> tuple[str, ...]:
    """Caution where many areas are larger than their boxes, or next to nothing beside them."""
    box = pl.col("box_w") * pl.col("box_h")
    rows = instances.filter(~pl.col("is_crowd")).select("area", box=box).filter(pl.col("box") > 0)
    rows = rows.drop_nulls()
    if not rows.height:
        return ()
    larger = pl.col("area") > _MAX_AREA_RATIO * pl.col("box") + _AREA_SLACK_PX
    smaller = pl.col("area") < _MIN_AREA_RATIO * pl.col("box") - _AREA_SLACK_PX
    implausible = rows.filter(larger | smaller)
    if implausible.height < _CAUTION_SHARE * rows.height:
        return ()
    first = implausible.row(0, named=True)
    return (
        Caution(
            f"{implausible.height:,} of {rows.height:,} annotations have an area that their box "
            f"cannot"
            f" have, such as {first['area']:g} square pixels in a box of {first['box']:,.0f}:"
            " small, medium and large go by it. Leave `area` out of the file to go by the boxes."
        ),
    )


def read_custom_attributes(
    annotations: pl.DataFrame, reserved: Sequence[str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Build a row for each value of each custom attribute; null where it is missing."""
    texts = annotations["attributes"]
    if texts.null_count() == len(texts):  # COCO itself, whose 860,000 rows need no second look
        return ATTRIBUTES.empty(), ()
    ids = annotations["id"].to_list()
    parsed = [{} if text is None else _parse_attributes(text) for text in texts]
    unreadable_rows = [i for i, values_by_name in enumerate(parsed) if values_by_name is None]
    readable = [values_by_name or {} for values_by_name in parsed]
    names = list(dict.fromkeys(name for values_by_name in readable for name in values_by_name))
    tables = [ATTRIBUTES.empty()]
    for name in names:
        units, values, numbers = _build_attribute_rows(
            ids, [values_by_name.get(name) for values_by_name in readable]
        )
        attribute_name = f"attributes.{name}" if name in reserved else name
        texts = pl.Series(values, dtype=pl.String)
        number = pl.Series(numbers, dtype=pl.Float64)
        tables.append(
            build_rows_of_one_attribute(pl.Series(units), attribute_name, texts, number=number)
        )
    note = (
        f"{len(unreadable_rows):,} annotation(s) have attributes that are not an object of values,"
        f" the first in row {unreadable_rows[0] + 1}; those were not read."
        if unreadable_rows
        else ""
    )
    return check(pl.concat(tables), ATTRIBUTES), (note,) if note else ()


def _parse_attributes(text: str) -> _AttributeValues | None:
    try:
        return msgspec.json.decode(text, type=_AttributeValues)
    except (msgspec.ValidationError, RecursionError):
        return None


def _build_attribute_rows(ids: Sequence[str], cells: Sequence[Any]) -> _AttributeRows:
    """Build the rows of one attribute: a row for each value of a list, null for none."""
    units: list[str] = []
    values: list[str | None] = []
    numbers: list[float | None] = []
    for unit, cell in zip(ids, cells, strict=True):
        cell_values = cell if isinstance(cell, list) else [cell]
        number_by_text = {
            _format_cell(cell_value): _cell_to_number(cell_value)
            for cell_value in cell_values or [None]
        }  # a value twice is one
        units += [unit] * len(number_by_text)
        values += number_by_text
        numbers += number_by_text.values()
    return units, values, numbers


def _format_cell(cell: _Cell) -> str | None:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    text = "" if cell is None else str(cell).strip()
    return text or None


def _cell_to_number(cell: _Cell) -> float | None:
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None
