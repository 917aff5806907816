"""Joints and parts as FHIBE's cells, and its aligned faces of 512 pixels.

Keypoints stand by name, polygons by class. A face is turned so that its eyes lie level and cut out
at one and a half times its box; its masks have CelebAMask-HQ's format. Pixels are interpolated,
parts are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.masks import masks_from_counts
from isolux_worlds._joins import left_join_in_order
from isolux_worlds.drawing import encode_image
from isolux_worlds.layouts._files import PaintedPicture, write_bytes_below
from isolux_worlds.layouts.fhibe.outlines import Polygon, trace_bitmap_outlines, trace_mask_outlines
from isolux_worlds.photo_world.tables import JOINTS, PARTS

__all__ = [
    "CLASSES",
    "CLASS_OF_PART",
    "SIDE_PX",
    "Face",
    "format_keypoint_cells",
    "format_segment_cells",
    "write_aligned_face_or_none",
]


def _format_numbered_joint_name(number: int, joint: str) -> str:
    knuckle = joint.endswith(("_pinky", "_thumb")) or joint in ("right_index", "left_index")
    words = joint.replace("_", " ").capitalize() + (" knuckle" if knuckle else "")
    return f"{number}. {words}"


KEYPOINTS = tuple(_format_numbered_joint_name(number, joint) for number, joint in enumerate(JOINTS))
"""``0. Nose`` to ``32. Left foot index``."""

CLASSES = (
    "Face skin",
    "Upper body skin",
    "Left arm skin",
    "Right arm skin",
    "Left leg skin",
    "Right leg skin",
    "Head hair",
    "Left eyebrow",
    "Right eyebrow",
    "Left eye",
    "Right eye",
    "Nose",
    "Upper lip",
    "Lower lip",
    "Inner mouth",
    "Left shoe",
    "Right shoe",
    "Headwear",
    "Mask",
    "Eyewear",
    "Upper body clothes",
    "Lower body clothes",
    "Full body clothes",
    "Sock or legwarmer",
    "Neckwear",
    "Bag",
    "Glove",
    "Jewelry or timepiece",
)
"""FHIBE's 28 classes of parts, by number."""

CLASS_OF_PART: Mapping[str, int] = {
    "face_skin": 0,
    "body_skin": 1,
    "left_arm_skin": 2,
    "right_arm_skin": 3,
    "left_leg_skin": 4,
    "right_leg_skin": 5,
    "left_eyebrow": 7,
    "right_eyebrow": 8,
    "left_eye": 9,
    "right_eye": 10,
    "nose": 11,
    "upper_lip": 12,
    "lower_lip": 13,
    "inner_mouth": 14,
    "left_ear": 0,
    "right_ear": 0,
    "neck": 1,
    "head_hair": 6,
    "facial_hair": 0,
    "headwear": 17,
    "eyewear": 19,
    "face_mask": 18,
    "upper_clothing": 20,
    "lower_clothing": 21,
    "full_body_clothing": 22,
    "left_shoe": 15,
    "right_shoe": 16,
}
"""FHIBE has no class for ears and beards: they are skin of the face; a neck is that of the body."""

_OF_NUMBER = np.array([CLASS_OF_PART.get(part, -1) for part in ("", *PARTS)], dtype=np.int8)


def format_keypoint_cells(people: pl.DataFrame) -> pl.Series:
    """Write each person's joints that lie in the photo: ``{'0. Nose': [x, y, 1], …}``."""
    is_painted = "joints_v" in people.columns
    lists = ["joints_x", "joints_y", *(["joints_v"] if is_painted else [])]
    with_names = people.select("person_id", "width", "height", *lists, name=pl.lit(list(KEYPOINTS)))
    x, y = (pl.col(name).cast(pl.Float64).round(2) for name in lists[:2])
    if is_painted:
        is_present, is_visible = pl.col("joints_v") > 0, (pl.col("joints_v") == 2).cast(pl.Int64)
    else:
        coordinate_limits = zip(lists, ("width", "height"), strict=True)
        inside = [
            pl.col(name).is_between(0, pl.col(limit_name), closed="left")
            for name, limit_name in coordinate_limits
        ]
        is_present, is_visible = pl.all_horizontal(inside), pl.lit(1)
    text = pl.format("'{}': [{}, {}, {}]", "name", x, y, is_visible)
    long = with_names.explode(*lists, "name").filter(is_present).select("person_id", text=text)
    cells = long.group_by("person_id", maintain_order=True).agg(pl.col("text").str.join(", "))
    texts = left_join_in_order(people.select("person_id"), cells, "person_id")
    json_text = pl.concat_str(pl.lit("{"), pl.col("text").fill_null(""), pl.lit("}"))
    return texts.select(keypoints=json_text)["keypoints"]


def format_segment_cells(people: pl.DataFrame) -> pl.Series:
    """Write each person's parts as polygons, from their masks; ``[]`` where nothing is seen."""
    if "part_masks" not in people.columns:
        return pl.Series("segments", ["[]"] * people.height, dtype=pl.String)
    rows = people.select("height", "width", "part_masks").with_row_index("row")
    part_rows = rows.explode("part_masks").unnest("part_masks").drop_nulls("counts")
    part_rows = part_rows.filter(pl.col("part").is_in(list(CLASS_OF_PART)))
    texts: list[list[str]] = [[] for _ in range(people.height)]
    if part_rows.height:
        masks = masks_from_counts(
            part_rows["counts"], part_rows["height"].to_numpy(), part_rows["width"].to_numpy()
        )
        for k, (row, part_name) in enumerate(part_rows.select("row", "part").iter_rows()):
            texts[row] += _format_polygons(CLASS_OF_PART[part_name], trace_mask_outlines(masks, k))
    return pl.Series(
        "segments",
        [_format_numbered_object(segment_texts) for segment_texts in texts],
        dtype=pl.String,
    )


def trace_part_segments(
    labels: npt.NDArray[np.uint8],
) -> tuple[str, dict[int, npt.NDArray[np.bool_]]]:
    """Write the polygons of one person's parts from a picture of them.

    ``labels``: [height, width] uint8.
    """
    classes = _OF_NUMBER[labels]
    present = np.flatnonzero(np.bincount(labels.ravel()))
    masks = {c: classes == c for c in sorted({int(_OF_NUMBER[p]) for p in present}) if c >= 0}
    texts = [
        text
        for c, mask in masks.items()
        for text in _format_polygons(c, trace_bitmap_outlines(mask))
    ]
    return _format_numbered_object(texts), masks


def _format_polygons(number: int, polygons: Iterable[Polygon]) -> list[str]:
    name = f"{number}. {CLASSES[number]}"
    return [
        f"{{'class_name': '{name}', 'num': 0, 'polygon': ["
        + ", ".join(f"{{'x': {x}.0, 'y': {y}.0}}" for x, y in polygon.tolist())
        + "]}"
        for polygon in polygons
    ]


def _format_numbered_object(texts: list[str]) -> str:
    """Count the polygons of a class from 1, as the data do."""
    counts: dict[str, int] = {}
    for i, text in enumerate(texts):
        name = text[: text.index("'num': 0")]
        counts[name] = counts.get(name, 0) + 1
        texts[i] = text.replace("'num': 0", f"'num': {counts[name]}", 1)
    return "[" + ", ".join(texts) + "]"


SIDE_PX = 512
_MARGIN = 1.5
_LEAST_FACE_PX = 64  # pixels of skin seen, below which there is no face to cut out
_OF_FACE = 11  # the first joints are the face's
MASKS = "data/processed/fhibe_face_crop_align/masks/CelebAMask-HQ_format"

_LABELS = (
    "background",
    "skin",
    "nose",
    "eye_g",
    "l_eye",
    "r_eye",
    "l_brow",
    "r_brow",
    "l_ear",
    "r_ear",
    "mouth",
    "u_lip",
    "l_lip",
    "hair",
    "hat",
    "ear_r",
    "neck_l",
    "neck",
    "cloth",
)
_NAME_OF_CLASS: Mapping[str, str] = {
    "Face skin": "skin",
    "Nose": "nose",
    "Eyewear": "eye_g",
    "Left eye": "l_eye",
    "Right eye": "r_eye",
    "Left eyebrow": "l_brow",
    "Right eyebrow": "r_brow",
    "Inner mouth": "mouth",
    "Upper lip": "u_lip",
    "Lower lip": "l_lip",
    "Head hair": "hair",
    "Headwear": "hat",
    "Upper body skin": "neck",
    "Upper body clothes": "cloth",
    "Lower body clothes": "cloth",
    "Full body clothes": "cloth",
}


Face = tuple[int, str, str, str]
"""What the table says of one aligned face: its person, and the cells of joints, parts and masks."""


def write_aligned_face_or_none(
    picture: PaintedPicture, k: int, person: Mapping[str, Any], folder: str, name: str, root: Path
) -> Face | None:
    """Cut out, align and write the face of the k-th person (from 1) of a picture."""
    from PIL import Image

    part_pixels = np.where(picture.owner == k, picture.part_pixels, 0).astype(np.uint8)
    if int((part_pixels == PARTS.index("face_skin") + 1).sum()) < _LEAST_FACE_PX:
        return None
    inverse = _compute_face_alignment(person)  # aligned pixel to the photo's
    size, coefficients = (SIDE_PX, SIDE_PX), tuple(inverse.ravel().tolist())
    transform = Image.Transform.AFFINE
    photo = Image.fromarray(picture.pixels)
    face = photo.transform(size, transform, coefficients, Image.Resampling.BILINEAR)
    labels = Image.fromarray(part_pixels).transform(
        size, transform, coefficients, Image.Resampling.NEAREST
    )
    write_bytes_below(
        root, f"{folder}/faces_crop_and_align_{name}.png", encode_image(np.asarray(face), "png")
    )
    cell, classes = trace_part_segments(np.asarray(labels))
    masks = _write_face_part_masks(classes, name, root)
    return person["person_id"], _format_aligned_joints(person, inverse), cell, str(masks)


def _compute_face_alignment(person: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """Give the affine map from the aligned face to the photo: ``[2, 3]``."""
    x, y = person["joints_x"], person["joints_y"]
    right_eye, left_eye = JOINTS.index("right_eye"), JOINTS.index("left_eye")
    dx, dy = x[left_eye] - x[right_eye], y[left_eye] - y[right_eye]
    turn = math.atan2(dy, dx) if abs(dx) > 1e-6 else 0.0
    if abs(turn) > math.pi / 2:  # seen from behind: keep it upright
        turn -= math.copysign(math.pi, turn)
    centre = (person["face_x"] + person["face_w"] / 2.0, person["face_y"] + person["face_h"] / 2.0)
    scale = _MARGIN * max(person["face_w"], person["face_h"], 1.0) / SIDE_PX
    cos, sin = scale * math.cos(turn), scale * math.sin(turn)
    half = SIDE_PX / 2.0
    across = [cos, -sin, centre[0] - half * (cos - sin)]
    return np.array([across, [sin, cos, centre[1] - half * (sin + cos)]])


def _format_aligned_joints(person: Mapping[str, Any], inverse: npt.NDArray[np.float64]) -> str:
    """Write the joints of the face that are seen, where they lie in the aligned face."""
    xy = np.array([person["joints_x"][:_OF_FACE], person["joints_y"][:_OF_FACE]])
    points = np.linalg.solve(inverse[:, :2], xy - inverse[:, 2:])
    inside = ((points >= 0) & (points < SIDE_PX)).all(axis=0)
    is_visible = inside & (np.array(person["joints_v"][:_OF_FACE]) == 2)
    cells = [
        f"'{KEYPOINTS[i]}': [{points[0, i]:.2f}, {points[1, i]:.2f}, 1]"
        for i in np.flatnonzero(is_visible)
    ]
    return "{" + ", ".join(sorted(cells)) + "}"


def _write_face_part_masks(
    classes: Mapping[int, npt.NDArray[np.bool_]], name: str, root: Path
) -> list[str]:
    """Write a picture for each part that is seen, one of the background, and all in one."""
    combined = np.zeros((SIDE_PX, SIDE_PX), dtype=np.uint8)
    for number, mask in classes.items():
        part_name = _NAME_OF_CLASS.get(CLASSES[number])
        if part_name is not None:
            combined[mask] = _LABELS.index(part_name)
    present = sorted({0, *np.unique(combined).tolist()})  # the background has a file in any case
    pictures = {_LABELS[k]: ((combined == k) * 255).astype(np.uint8) for k in present}
    pictures["combined"] = combined
    for label, picture in pictures.items():
        write_bytes_below(root, f"{MASKS}/{name}/{label}.png", encode_image(picture, "png"))
    return [f"{MASKS}/{name}/{label}.png" for label in pictures]
