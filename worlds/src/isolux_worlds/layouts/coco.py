"""A synthetic world as COCO's files: people with boxes, masks and 17 joints, and captions.

``annotations/instances_val2017.json``, ``person_keypoints_val2017.json`` and
``captions_val2017.json``, photos in ``val2017``. COCO says nothing about who people are: the
world's attributes, its own ones too, stand as ``attributes`` of each annotation, as CVAT exports
them. Lin et al. (2014); https://cocodataset.org/#format-data.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from isolux.geometry.keypoints import COCO_KEYPOINTS
from isolux.geometry.masks import masks_from_counts
from isolux_worlds._joins import left_join_in_order
from isolux_worlds.layouts._files import (
    PaintedPicture,
    write_images_and_add_visible_people,
    write_tables_json,
)
from isolux_worlds.layouts._layout import Ids, LayoutWriter, Way
from isolux_worlds.photo_world.tables import JOINTS, PEOPLE
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["LAYOUT", "ids", "write"]

_SPLIT = "val2017"
_KEYPOINT_JOINTS = [JOINTS.index(name.replace(" ", "_")) for name in COCO_KEYPOINTS]
_SKELETON = [
    [16, 14],
    [14, 12],
    [17, 15],
    [15, 13],
    [12, 13],
    [6, 12],
    [7, 13],
    [6, 7],
    [6, 8],
    [7, 9],
    [8, 10],
    [9, 11],
    [2, 3],
    [1, 2],
    [1, 3],
    [2, 4],
    [3, 5],
    [4, 6],
    [5, 7],
]


def ids(world: PhotoWorld) -> Ids:
    """Give photos numbers from 1; people keep theirs."""
    images = world.photos.select(
        "image_id",
        native=pl.int_range(1, pl.len() + 1).cast(pl.String),
        number=pl.int_range(1, pl.len() + 1),
    )
    people = left_join_in_order(world.people.select("person_id", "image_id"), images)
    native = pl.col("person_id").cast(pl.String)
    return Ids(images, people.select("person_id", native=native, native_image="native"))


def write(
    world: PhotoWorld, root: Path, pictures: Iterator[PaintedPicture] | None = None
) -> PhotoWorld:
    """Write the world as COCO; see ``facet.write``. Before rendering there are no masks."""
    names = ids(world)
    files = names.images.with_columns(file_name=pl.format("{}.jpg", pl.col("native").str.zfill(12)))
    path = pl.format(_SPLIT + "/{}", "file_name")
    world = write_images_and_add_visible_people(
        world, root, pictures, dict(files.select("image_id", path).iter_rows())
    )
    images = left_join_in_order(world.photos, files).select(
        "width", "height", "file_name", "caption", license=pl.lit(1), id="number"
    )
    people = left_join_in_order(world.sized_people(), files)
    licences = pl.DataFrame({"id": [1], "name": ["made up: nobody is shown"], "url": [""]})
    categories = pl.DataFrame({"supercategory": ["person"], "id": [1], "name": ["person"]})
    joints = categories.with_columns(
        keypoints=pl.lit([name.replace(" ", "_") for name in COCO_KEYPOINTS]),
        skeleton=pl.Series([_SKELETON], dtype=pl.List(pl.List(pl.Int64))),
    )
    annotations = _build_coco_annotations(people)
    captions = images.select(
        pl.int_range(1, pl.len() + 1).alias("id"), pl.col("id").alias("image_id"), "caption"
    )
    keypoints = annotations.hstack(_build_coco_keypoints(people))
    files_of = {
        "instances": {"annotations": annotations, "categories": categories},
        "person_keypoints": {"annotations": keypoints, "categories": joints},
        "captions": {"annotations": captions},
    }
    for name, tables in files_of.items():
        common = {"licenses": licences, "images": images.drop("caption")}
        write_tables_json(root, f"annotations/{name}_{_SPLIT}.json", common | tables)
    return world


def _build_coco_annotations(people: pl.DataFrame) -> pl.DataFrame:
    """Make an annotation of each person; the area is the mask's, before rendering the box's."""
    box_columns = [pl.col(f"box_{axis}").round(2) for axis in "xywh"]
    columns = {
        "id": pl.col("person_id"),
        "image_id": pl.col("number"),
        "category_id": pl.lit(1),
        "bbox": pl.concat_list(box_columns),
        "area": (pl.col("box_w") * pl.col("box_h")).round(2),
        "iscrowd": pl.lit(0),
        "attributes": pl.struct(_list_coco_attribute_names(people)),
    }
    if "mask_counts" in people.columns:
        has_mask = people["mask_counts"].is_not_null()
        area = np.zeros(people.height)
        masked_people = people.filter(has_mask)
        height, width = masked_people["height"].to_numpy(), masked_people["width"].to_numpy()
        area[has_mask.to_numpy()] = masks_from_counts(
            masked_people["mask_counts"], height, width
        ).area_px
        columns["area"] = pl.lit(pl.Series(area))
        mask = pl.struct(size=pl.concat_list("height", "width"), counts="mask_counts")
        columns["segmentation"] = pl.when(pl.col("mask_counts").is_not_null()).then(mask)
    return people.select(**columns)


def _list_coco_attribute_names(people: pl.DataFrame) -> list[str]:
    """List what is said of people: every attribute of the world, their age and their subject."""
    fixed = {column.name for column in PEOPLE.columns} - {"subject_id", "age"}
    file_columns = {"width", "height", "native", "number", "file_name"}
    return [name for name in people.columns if name not in fixed | file_columns]


def _build_coco_keypoints(people: pl.DataFrame) -> pl.DataFrame:
    """Write COCO's 17 joints flat: x, y, and 0 outside the photo, 1 hidden, 2 seen."""
    x, y = (_stack_joint_column(people, f"joints_{c}").round(2) for c in "xy")
    if "joints_v" in people.columns:
        v = _stack_joint_column(people, "joints_v")
    else:
        wide, high = (people[name].to_numpy()[:, None] for name in ("width", "height"))
        v = np.where((x >= 0) & (x < wide) & (y >= 0) & (y < high), 2.0, 0.0)
    is_labelled = v > 0
    flat = np.stack([np.where(is_labelled, x, 0.0), np.where(is_labelled, y, 0.0), v], axis=2)
    row = pl.Array(pl.Float64, 3 * len(COCO_KEYPOINTS))
    points = pl.Series(flat.reshape(people.height, -1), dtype=row).arr.to_list()
    return pl.DataFrame({"num_keypoints": is_labelled.sum(axis=1), "keypoints": points})


def _stack_joint_column(
    people: pl.DataFrame, name: str
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Take one number of each of the 17 joints: ``[people, 17]``; null: NaN."""
    points = people[name].explode().cast(pl.Float64).to_numpy().reshape(-1, len(JOINTS))
    return points[:, _KEYPOINT_JOINTS]


_INSTANCES = "annotations/instances_val2017.json"
LAYOUT = LayoutWriter(
    "boxes, masks, 17 joints, captions; every attribute of the world",
    write,
    ids,
    ways=(
        Way("detection", _INSTANCES),
        Way("keypoints", "annotations/person_keypoints_val2017.json"),
        Way("segmentation", _INSTANCES, pictures=True),
    ),
    needs_all=True,
)
