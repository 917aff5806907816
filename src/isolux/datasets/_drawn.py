"""From boxes with classes to a dataset: what the plain formats of annotation tools share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux.datasets._boxes import box_notes, checked_boxes, refuse_shares
from isolux.datasets._clusters import clustered_as
from isolux.datasets._inner_paths import refuse_outside
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, TableError
from isolux.vocabulary.info import DatasetInfo
from isolux.vocabulary.tables import ATTRIBUTES, IMAGES, INSTANCES, check

__all__ = ["ROW", "dataset_of_boxes"]

ROW = {
    "image_id": pl.String,
    "category": pl.String,
    **dict.fromkeys(("box_x", "box_y", "box_w", "box_h"), pl.Float64),
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
            "two images have the same id", expected="every id once",
            found=repr(images["image_id"].filter(twice)[0]), where=where,
        )  # fmt: skip
    refuse_outside(images["uri"], where, "image")
    boxes = checked_boxes(frame, where).with_columns(
        instance_id=pl.format("{}#{}", "image_id", pl.int_range(pl.len()).over("image_id"))
    )
    instances = check(
        boxes.select(
            "instance_id", "image_id", pl.concat_list("category").alias("classes"),
            "box_x", "box_y", "box_w", "box_h", "is_crowd", "ignore",
        ),
        INSTANCES, where=where,
    )  # fmt: skip
    pictures = check(images, IMAGES, where=where)
    refuse_shares(instances, pictures, where)
    names = dict.fromkeys(key for own in attributes for key in own if key != "category")
    values = {"category": boxes["category"].to_list()}
    values |= {key: [own.get(key) for own in attributes] for key in names}
    table = pl.concat(
        [
            ATTRIBUTES.conform(
                pl.DataFrame(
                    {"unit_id": boxes["instance_id"], "value": pl.Series(own, dtype=pl.String)}
                ).with_columns(unit_kind=pl.lit("instance"), attribute=pl.lit(key))
            )
            for key, own in values.items()
        ]
    )
    dataset = Dataset(
        name=name, info=info, instances=instances, attributes=check(table, ATTRIBUTES),
        images=pictures, inputs=inputs, notes=(*box_notes(instances, pictures), *notes),
    )  # fmt: skip
    return clustered_as(dataset, default=cluster, names={"image": "image_id", "row": None})
