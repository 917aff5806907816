"""FHIBE's aligned faces of 512 pixels, and their masks in CelebAMask-HQ's format.

A face is turned so that its eyes lie level and cut out at one and a half times its box. Pixels are
interpolated, parts are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux_worlds.drawing import encoded
from isolux_worlds.layouts._files import Picture, write_bytes
from isolux_worlds.layouts.fhibe.points import CLASSES, KEYPOINTS, segments_of_picture
from isolux_worlds.photo_world.tables import JOINTS, PARTS

__all__ = ["MASKS", "SIDE_PX", "Face", "write_face"]

SIDE_PX = 512
_MARGIN = 1.5
_LEAST_FACE_PX = 64  # pixels of skin seen, below which there is no face to cut out
_OF_FACE = 11  # the first joints are the face's
MASKS = "data/processed/fhibe_face_crop_align/masks/CelebAMask-HQ_format"

_LABELS = (
    "background", "skin", "nose", "eye_g", "l_eye", "r_eye", "l_brow", "r_brow", "l_ear", "r_ear",
    "mouth", "u_lip", "l_lip", "hair", "hat", "ear_r", "neck_l", "neck", "cloth",
)  # fmt: skip
_NAME_OF_CLASS: Mapping[str, str] = {
    "Face skin": "skin", "Nose": "nose", "Eyewear": "eye_g", "Left eye": "l_eye",
    "Right eye": "r_eye", "Left eyebrow": "l_brow", "Right eyebrow": "r_brow",
    "Inner mouth": "mouth", "Upper lip": "u_lip", "Lower lip": "l_lip", "Head hair": "hair",
    "Headwear": "hat", "Upper body skin": "neck", "Upper body clothes": "cloth",
    "Lower body clothes": "cloth", "Full body clothes": "cloth",
}  # fmt: skip


Face = tuple[int, str, str, str]
"""What the table says of one aligned face: its person, and the cells of joints, parts and masks."""


def write_face(
    picture: Picture, k: int, person: Mapping[str, Any], folder: str, name: str, root: Path
) -> Face | None:
    """Cut out, align and write the face of the k-th person (from 1) of a picture."""
    from PIL import Image

    own = np.where(picture.owner == k, picture.part, 0).astype(np.uint8)
    if int((own == PARTS.index("face_skin") + 1).sum()) < _LEAST_FACE_PX:
        return None
    inverse = _alignment(person)  # aligned pixel to the photo's
    size, coefficients = (SIDE_PX, SIDE_PX), tuple(inverse.ravel().tolist())
    transform = Image.Transform.AFFINE
    photo = Image.fromarray(picture.pixels)
    face = photo.transform(size, transform, coefficients, Image.Resampling.BILINEAR)
    labels = Image.fromarray(own).transform(size, transform, coefficients, Image.Resampling.NEAREST)
    write_bytes(root, f"{folder}/faces_crop_and_align_{name}.png", encoded(np.asarray(face), "png"))
    cell, classes = segments_of_picture(np.asarray(labels))
    masks = _write_masks(classes, name, root)
    return person["person_id"], _points(person, inverse), cell, str(masks)


def _alignment(person: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """Give the affine map from the aligned face to the photo: ``[2, 3]``."""
    x, y = person["joints_x"], person["joints_y"]
    right, left = JOINTS.index("right_eye"), JOINTS.index("left_eye")
    dx, dy = x[left] - x[right], y[left] - y[right]
    turn = math.atan2(dy, dx) if abs(dx) > 1e-6 else 0.0
    if abs(turn) > math.pi / 2:  # seen from behind: keep it upright
        turn -= math.copysign(math.pi, turn)
    centre = (person["face_x"] + person["face_w"] / 2.0, person["face_y"] + person["face_h"] / 2.0)
    scale = _MARGIN * max(person["face_w"], person["face_h"], 1.0) / SIDE_PX
    cos, sin = scale * math.cos(turn), scale * math.sin(turn)
    half = SIDE_PX / 2.0
    across = [cos, -sin, centre[0] - half * (cos - sin)]
    return np.array([across, [sin, cos, centre[1] - half * (sin + cos)]])


def _points(person: Mapping[str, Any], inverse: npt.NDArray[np.float64]) -> str:
    """Write the joints of the face that are seen, where they lie in the aligned face."""
    xy = np.array([person["joints_x"][:_OF_FACE], person["joints_y"][:_OF_FACE]])
    placed = np.linalg.solve(inverse[:, :2], xy - inverse[:, 2:])
    inside = ((placed >= 0) & (placed < SIDE_PX)).all(axis=0)
    seen = inside & (np.array(person["joints_v"][:_OF_FACE]) == 2)
    cells = [
        f"'{KEYPOINTS[i]}': [{placed[0, i]:.2f}, {placed[1, i]:.2f}, 1]"
        for i in np.flatnonzero(seen)
    ]
    return "{" + ", ".join(sorted(cells)) + "}"


def _write_masks(classes: Mapping[int, npt.NDArray[np.bool_]], name: str, root: Path) -> list[str]:
    """Write a picture for each part that is seen, one of the background, and all in one."""
    combined = np.zeros((SIDE_PX, SIDE_PX), dtype=np.uint8)
    for number, mask in classes.items():
        part = _NAME_OF_CLASS.get(CLASSES[number])
        if part is not None:
            combined[mask] = _LABELS.index(part)
    present = sorted({0, *np.unique(combined).tolist()})  # the background has a file in any case
    pictures = {_LABELS[k]: ((combined == k) * 255).astype(np.uint8) for k in present}
    pictures["combined"] = combined
    for label, picture in pictures.items():
        write_bytes(root, f"{MASKS}/{name}/{label}.png", encoded(picture, "png"))
    return [f"{MASKS}/{name}/{label}.png" for label in pictures]
