"""People's masks as runs of foreground, a block of people at a time; damaged ones are listed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import TableError
from isolux.core.tables import IMAGES, INSTANCES
from isolux.geometry.body_parts import list_part_names, unite_part_masks
from isolux.geometry.masks import Masks, masks_from_coco, masks_from_counts

_BATCH_SIZE = 5_000  # people read together: their masks take some hundred megabytes at most
_COLUMNS = {
    "mask_counts": pl.String,
    "mask_polygons": pl.String,
    "mask_height": pl.Int64,
    "mask_width": pl.Int64,
}
_BOX = ("box_x", "box_y", "box_w", "box_h")


@dataclass(frozen=True, slots=True)
class PeopleWithMasks:
    """A block of people and their masks, row by row.

    ``rows``: ``instance_id``, ``image_id``, the box, the image's ``height`` and ``width`` (null:
    not known), keypoints where the dataset has them. ``damaged``: ``instance_id``, ``said``.
    """

    rows: pl.DataFrame
    masks: Masks
    damaged: pl.DataFrame


def read_people_with_masks(dataset: Dataset) -> Iterator[PeopleWithMasks]:
    """Read the masks of a dataset's people, in order; crowds are left out.

    Where there are masks of body parts alone, a person's mask is the union of their parts.
    """
    people = INSTANCES.conform(dataset.instances)
    if not {"mask_counts", "mask_polygons"} & set(people.columns):
        columns = [name for name in ("part_masks", "segments") if name in people.columns]
        if not any(list_part_names(people[column]) for column in columns):
            return
        people = INSTANCES.conform(unite_part_masks(dataset).instances)
    if "is_crowd" in people.columns:
        people = people.filter(~pl.col("is_crowd").fill_null(value=False))
    sizes = IMAGES.conform(dataset.images).select("image_id", "height", "width").unique("image_id")
    copied_columns = [
        c for c in (*_BOX, "keypoints_x", "keypoints_y", "keypoints_v") if c in people.columns
    ]
    with_masks = people.select(
        "instance_id",
        "image_id",
        *copied_columns,
        *(
            pl.col(name).cast(dtype) if name in people.columns else pl.lit(None, dtype).alias(name)
            for name, dtype in _COLUMNS.items()
        ),
    ).filter(pl.any_horizontal(pl.col("mask_counts", "mask_polygons").is_not_null()))
    with_masks = with_masks.join(sizes, on="image_id", how="left", maintain_order="left")
    for block in with_masks.iter_slices(_BATCH_SIZE):
        yield _read_masks(block)


def _read_masks(block: pl.DataFrame) -> PeopleWithMasks:
    """Decode the masks of a block; row by row only where one is damaged."""
    block = block.with_columns(
        mask_height=pl.coalesce("mask_height", "height"),
        mask_width=pl.coalesce("mask_width", "width"),
    )
    no_damage = pl.DataFrame(schema={"instance_id": pl.String, "said": pl.String})
    try:
        return PeopleWithMasks(block, _decode_masks(block), no_damage)
    except (TableError, ValueError, TypeError):
        readable_rows, damaged_rows = [], []
        for row in range(block.height):
            try:
                _decode_masks(block[row])
                readable_rows.append(row)
            except (TableError, ValueError, TypeError) as error:
                message = error.problem if isinstance(error, TableError) else str(error)
                damaged_rows.append((block["instance_id"][row], message[:120]))
        rows = block[readable_rows]
        damaged = pl.DataFrame(damaged_rows, schema=no_damage.schema, orient="row")
        return PeopleWithMasks(rows, _decode_masks(rows), damaged)


def _decode_masks(rows: pl.DataFrame) -> Masks:
    sizes = rows.select("mask_height", "mask_width")
    if sizes.null_count().sum_horizontal()[0]:
        raise TableError("how large the mask's picture is, is not known")
    height, width = (sizes[name].to_numpy().astype(np.int64) for name in sizes.columns)
    if rows["mask_counts"].null_count() == 0:
        return masks_from_counts(rows["mask_counts"], height, width)
    coco_masks = [
        {"size": [h, w], "counts": counts} if counts is not None else json.loads(polygons)
        for counts, polygons, h, w in rows.select(
            "mask_counts", "mask_polygons", "mask_height", "mask_width"
        ).iter_rows()
    ]
    return masks_from_coco(coco_masks, height, width)
