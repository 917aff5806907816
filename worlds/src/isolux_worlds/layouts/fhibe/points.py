"""Joints and parts as FHIBE's cells: keypoints by name, polygons by class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.masks import masks_from_counts
from isolux_worlds._tables import left_join
from isolux_worlds.layouts.fhibe.outlines import Polygon, outlines, outlines_of_bitmap
from isolux_worlds.photo_world.tables import JOINTS, PARTS

__all__ = [
    "CLASSES",
    "CLASS_OF_PART",
    "KEYPOINTS",
    "keypoint_cells",
    "segment_cells",
    "segments_of_picture",
]


def _name(number: int, joint: str) -> str:
    knuckle = joint.endswith(("_pinky", "_thumb")) or joint in ("right_index", "left_index")
    words = joint.replace("_", " ").capitalize() + (" knuckle" if knuckle else "")
    return f"{number}. {words}"


KEYPOINTS = tuple(_name(number, joint) for number, joint in enumerate(JOINTS))
"""``0. Nose`` to ``32. Left foot index``."""

CLASSES = (
    "Face skin", "Upper body skin", "Left arm skin", "Right arm skin", "Left leg skin",
    "Right leg skin", "Head hair", "Left eyebrow", "Right eyebrow", "Left eye", "Right eye",
    "Nose", "Upper lip", "Lower lip", "Inner mouth", "Left shoe", "Right shoe", "Headwear", "Mask",
    "Eyewear", "Upper body clothes", "Lower body clothes", "Full body clothes",
    "Sock or legwarmer", "Neckwear", "Bag", "Glove", "Jewelry or timepiece",
)  # fmt: skip
"""FHIBE's 28 classes of parts, by number."""

CLASS_OF_PART: Mapping[str, int] = {
    "face_skin": 0, "body_skin": 1, "left_arm_skin": 2, "right_arm_skin": 3, "left_leg_skin": 4,
    "right_leg_skin": 5, "left_eyebrow": 7, "right_eyebrow": 8, "left_eye": 9, "right_eye": 10,
    "nose": 11, "upper_lip": 12, "lower_lip": 13, "inner_mouth": 14, "left_ear": 0,
    "right_ear": 0, "neck": 1, "head_hair": 6, "facial_hair": 0, "headwear": 17, "eyewear": 19,
    "face_mask": 18, "upper_clothing": 20, "lower_clothing": 21, "full_body_clothing": 22,
    "left_shoe": 15, "right_shoe": 16,
}  # fmt: skip
"""FHIBE has no class for ears and beards: they are skin of the face; a neck is that of the body."""

_OF_NUMBER = np.array([CLASS_OF_PART.get(part, -1) for part in ("", *PARTS)], dtype=np.int8)


def keypoint_cells(people: pl.DataFrame) -> pl.Series:
    """Write each person's joints that lie in the photo: ``{'0. Nose': [x, y, 1], …}``."""
    is_painted = "joints_v" in people.columns
    lists = ["joints_x", "joints_y", *(["joints_v"] if is_painted else [])]
    named = people.select("person_id", "width", "height", *lists, name=pl.lit(list(KEYPOINTS)))
    x, y = (pl.col(name).cast(pl.Float64).round(2) for name in lists[:2])
    if is_painted:
        there, seen = pl.col("joints_v") > 0, (pl.col("joints_v") == 2).cast(pl.Int64)
    else:
        sides = zip(lists, ("width", "height"), strict=True)
        inside = [pl.col(name).is_between(0, pl.col(side), closed="left") for name, side in sides]
        there, seen = pl.all_horizontal(inside), pl.lit(1)
    text = pl.format("'{}': [{}, {}, {}]", "name", x, y, seen)
    long = named.explode(*lists, "name").filter(there).select("person_id", text=text)
    cells = long.group_by("person_id", maintain_order=True).agg(pl.col("text").str.join(", "))
    joined = left_join(people.select("person_id"), cells, "person_id")
    whole = pl.concat_str(pl.lit("{"), pl.col("text").fill_null(""), pl.lit("}"))
    return joined.select(keypoints=whole)["keypoints"]


def segment_cells(people: pl.DataFrame) -> pl.Series:
    """Write each person's parts as polygons, from their masks; ``[]`` where nothing is seen."""
    if "part_masks" not in people.columns:
        return pl.Series("segments", ["[]"] * people.height, dtype=pl.String)
    rows = people.select("height", "width", "part_masks").with_row_index("row")
    seen = rows.explode("part_masks").unnest("part_masks").drop_nulls("counts")
    seen = seen.filter(pl.col("part").is_in(list(CLASS_OF_PART)))
    texts: list[list[str]] = [[] for _ in range(people.height)]
    if seen.height:
        masks = masks_from_counts(
            seen["counts"], seen["height"].to_numpy(), seen["width"].to_numpy()
        )
        for k, (row, part) in enumerate(seen.select("row", "part").iter_rows()):
            texts[row] += _texts(CLASS_OF_PART[part], outlines(masks, k))
    return pl.Series("segments", [_numbered(found) for found in texts], dtype=pl.String)


def segments_of_picture(
    labels: npt.NDArray[np.uint8],
) -> tuple[str, dict[int, npt.NDArray[np.bool_]]]:
    """Write the polygons of one person's parts from a picture of them.

    ``labels``: [height, width] uint8.
    """
    classes = _OF_NUMBER[labels]
    present = np.flatnonzero(np.bincount(labels.ravel()))
    masks = {c: classes == c for c in sorted({int(_OF_NUMBER[p]) for p in present}) if c >= 0}
    texts = [text for c, mask in masks.items() for text in _texts(c, outlines_of_bitmap(mask))]
    return _numbered(texts), masks


def _texts(number: int, polygons: Iterable[Polygon]) -> list[str]:
    name = f"{number}. {CLASSES[number]}"
    return [
        f"{{'class_name': '{name}', 'num': 0, 'polygon': ["
        + ", ".join(f"{{'x': {x}.0, 'y': {y}.0}}" for x, y in polygon.tolist())
        + "]}"
        for polygon in polygons
    ]


def _numbered(texts: list[str]) -> str:
    """Count the polygons of a class from 1, as the data do."""
    counts: dict[str, int] = {}
    for i, text in enumerate(texts):
        name = text[: text.index("'num': 0")]
        counts[name] = counts.get(name, 0) + 1
        texts[i] = text.replace("'num': 0", f"'num': {counts[name]}", 1)
    return "[" + ", ".join(texts) + "]"
