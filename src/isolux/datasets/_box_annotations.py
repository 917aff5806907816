"""From boxes with classes to a dataset: what the plain formats of annotation tools share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, ParseError, fromstring
from xml.parsers.expat import ExpatError

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, TableError
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, IMAGES, check
from isolux.datasets._boxes import (
    check_box_columns,
    check_boxes_in_pixels,
    note_empty_and_overhanging_boxes,
)
from isolux.datasets._columns import BOX_COLUMNS
from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.datasets._tables import build_clustered_dataset, build_rows_of_one_attribute

_MAX_NUMBER = 2.0**53
"""Beyond which not every whole number has a float of its own, and no pixel lies."""
BOX_ROW_SCHEMA = {
    "image_id": pl.String,
    "category": pl.String,
    **dict.fromkeys(BOX_COLUMNS, pl.Float64),
    "ignore": pl.Boolean,
    "is_crowd": pl.Boolean,
}
"""Columns of a box: pixels (null: not known), whether it is left out of judgement, or a group."""


def build_box_dataset(
    name: str,
    dataset_info: DatasetInfo,
    rows: Sequence[Mapping[str, Any]] | pl.DataFrame,
    images: pl.DataFrame,
    attributes: Sequence[Mapping[str, str | None]],
    inputs: Mapping[str, str],
    source: str,
    notes: tuple[str, ...] = (),
    *,
    cluster: str = "image",
) -> Dataset:
    """Make a dataset of boxes."""
    frame = (
        rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(list(rows), schema=BOX_ROW_SCHEMA)
    )
    if images.is_empty():
        raise FileError("there is no image in these annotations", where=source)
    is_repeated = images["image_id"].is_duplicated()
    if is_repeated.any():
        raise TableError(
            "two images have the same id",
            expected="every id once",
            found=repr(images["image_id"].filter(is_repeated)[0]),
            where=source,
        )
    check_paths_stay_inside(images["uri"], source, "image")
    boxes = check_box_columns(frame, source).with_columns(
        instance_id=pl.format("{}#{}", "image_id", pl.int_range(pl.len()).over("image_id"))
    )
    instances = boxes.select(
        "instance_id",
        "image_id",
        *BOX_COLUMNS,
        "is_crowd",
        "ignore",
        classes=pl.concat_list("category"),
    )
    pictures = check(images, IMAGES, source=source)
    check_boxes_in_pixels(instances, pictures, source)
    names = dict.fromkeys(
        key for box_attributes in attributes for key in box_attributes if key != "category"
    )
    values = {"category": boxes["category"].to_list()}
    values |= {key: [box_attributes.get(key) for box_attributes in attributes] for key in names}
    table = pl.concat(
        build_rows_of_one_attribute(boxes["instance_id"], key, pl.Series(cells, dtype=pl.String))
        for key, cells in values.items()
    )
    return build_clustered_dataset(
        name,
        dataset_info,
        instances=instances,
        attributes=check(table, ATTRIBUTES),
        images=pictures,
        inputs=inputs,
        source=source,
        notes=(*note_empty_and_overhanging_boxes(instances, pictures), *notes),
        is_boxed=False,
        cluster=cluster,
        clusters={"image": "image_id", "row": None},
    )


def parse_xml_with_root(content: bytes, source: str, root_name: str) -> Element:
    """Parse a document whose root element has this name."""
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise FileError(
            "the file declares a document type or entities, which are not read",
            expected=f"<{root_name}> and what is in it",
            where=source,
        )
    try:
        root_element = fromstring(content)  # noqa: S314  (no entities: refused above)
    except (ParseError, ExpatError, ValueError, LookupError, RecursionError) as error:
        raise FileError(
            "this is not valid XML, or it is cut off", found=str(error)[:200], where=source
        ) from error
    if root_element.tag != root_name:
        raise FileError(
            "this XML is of another kind",
            expected=f"<{root_name}>",
            found=f"<{root_element.tag}>"[:80],
            where=source,
        )
    return root_element


def find_child_text_or_none(element: Element, path: str) -> str | None:
    """Return the text of the first such child; null where there is none or it is empty."""
    child_text = element.findtext(path)
    return child_text.strip() or None if child_text is not None else None


def parse_ascii_number(text: str) -> float:
    """Read a number in ASCII digits; float() also takes 1_000 and digits of other scripts."""
    return float(text if text.isascii() and "_" not in text else "")


def parse_finite_number(text: str | None, source: str, field: str) -> float:
    """Parse a required number that a count of pixels or of images can be."""
    try:
        number = parse_ascii_number(text or "")
    except ValueError:
        number = float("nan")
    if not abs(number) < _MAX_NUMBER:
        raise TableError(
            "a number is missing or is none",
            expected=f"a number below {_MAX_NUMBER:.2g} as {field}",
            found=repr(text),
            where=source,
        )
    return number
