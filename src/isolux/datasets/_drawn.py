"""From boxes with classes to a dataset: what the plain formats of annotation tools share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, ParseError, fromstring
from xml.parsers.expat import ExpatError

import polars as pl

from isolux.datasets._boxes import box_notes, checked_boxes, refuse_shares
from isolux.datasets._columns import BOX
from isolux.datasets._inner_paths import refuse_outside
from isolux.datasets._tables import attribute_table, dataset_of
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, TableError
from isolux.vocabulary.info import DatasetInfo
from isolux.vocabulary.tables import ATTRIBUTES, IMAGES, check

ROW = {
    "image_id": pl.String,
    "category": pl.String,
    **dict.fromkeys(BOX, pl.Float64),
    "ignore": pl.Boolean,
    "is_crowd": pl.Boolean,
}
"""Columns of a box: pixels (null: not known), whether it is left out of judgement, or a group."""


def dataset_of_boxes(
    name: str,
    info: DatasetInfo,
    rows: Sequence[Mapping[str, Any]] | pl.DataFrame,
    images: pl.DataFrame,
    attributes: Sequence[Mapping[str, str | None]],
    inputs: Mapping[str, str],
    where: str,
    notes: tuple[str, ...] = (),
    *,
    cluster: str = "image",
) -> Dataset:
    """Make a dataset of boxes."""
    frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(list(rows), schema=ROW)
    if images.is_empty():
        raise FileError("there is no image in these annotations", where=where)
    twice = images["image_id"].is_duplicated()
    if twice.any():
        raise TableError(
            "two images have the same id",
            expected="every id once",
            found=repr(images["image_id"].filter(twice)[0]),
            where=where,
        )
    refuse_outside(images["uri"], where, "image")
    boxes = checked_boxes(frame, where).with_columns(
        instance_id=pl.format("{}#{}", "image_id", pl.int_range(pl.len()).over("image_id"))
    )
    instances = boxes.select(
        "instance_id", "image_id", *BOX, "is_crowd", "ignore", classes=pl.concat_list("category")
    )
    pictures = check(images, IMAGES, where=where)
    refuse_shares(instances, pictures, where)
    names = dict.fromkeys(key for own in attributes for key in own if key != "category")
    values = {"category": boxes["category"].to_list()}
    values |= {key: [own.get(key) for own in attributes] for key in names}
    table = pl.concat(
        attribute_table(boxes["instance_id"], key, pl.Series(cells, dtype=pl.String))
        for key, cells in values.items()
    )
    return dataset_of(
        name,
        info,
        instances=instances,
        attributes=check(table, ATTRIBUTES),
        images=pictures,
        inputs=inputs,
        where=where,
        notes=(*box_notes(instances, pictures), *notes),
        is_boxed=False,
        cluster=cluster,
        clusters={"image": "image_id", "row": None},
    )


def parsed(data: bytes, where: str, root: str) -> Element:
    """Parse a document whose root element has this name."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise FileError(
            "the file declares a document type or entities, which are not read",
            expected=f"<{root}> and what is in it",
            where=where,
        )
    try:
        found = fromstring(data)  # noqa: S314  (no entities: refused above)
    except (ParseError, ExpatError, ValueError, LookupError, RecursionError) as error:
        raise FileError(
            "this is not valid XML, or it is cut off", found=str(error)[:200], where=where
        ) from error
    if found.tag != root:
        raise FileError(
            "this XML is of another kind",
            expected=f"<{root}>",
            found=f"<{found.tag}>"[:80],
            where=where,
        )
    return found


def text_in(element: Element, path: str) -> str | None:
    """Return the text of the first such child; null where there is none or it is empty."""
    found = element.findtext(path)
    return found.strip() or None if found is not None else None


def plain_number(text: str) -> float:
    """Read a number in ASCII digits; float() also takes 1_000 and digits of other scripts."""
    return float(text if text.isascii() and "_" not in text else "")


def number_in(text: str | None, where: str, field: str) -> float:
    """Read a number that must be there."""
    try:
        number = plain_number(text or "")
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        raise TableError(
            "a number is missing or is none",
            expected=f"a finite number as {field}",
            found=repr(text),
            where=where,
        )
    return number
