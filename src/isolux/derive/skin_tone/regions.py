"""Where a dataset says that the skin of faces is: masks, boxes, or the whole picture.

Masks of skin come first (CelebAMask-HQ's and FHIBE's pictures of the part ``skin``, run lengths
named so), then the face's own box, then the box of instances that are faces. Of pictures that hold
nothing but a face (FairFace, UTKFace, CelebA, LFW) the middle is taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.derive._pictures import OTHER_SIZE, Seen
from isolux.derive._rows import BOX, boxes_of
from isolux.derive.skin_tone.pixels import FACE_IN_PICTURE, Skin, skin_in_box, skin_in_mask
from isolux.geometry.masks import masks_from_counts
from isolux.io.images import read_image
from isolux.io.paths import inside
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, SpecError
from isolux.vocabulary.tables import INSTANCES

_FACE_BOX = ("face_box_x", "face_box_y", "face_box_w", "face_box_h")
_SKIN = re.compile(r"(?i)(?:\d+\.\s*)?(?:face[ _])?skin")
_NOTHING = "no face's box and no mask of skin"


@dataclass(frozen=True, slots=True)
class Faces:
    """Where each one's skin is looked for.

    Parameters
    ----------
    boxes : [n, 4] float
        Left, upper, right, lower, annotated pixels; NaN: none.
    whole : [n] bool
        The picture is the face.
    runs : list of dict or None, files : list of str or None
        A mask of the skin as run lengths, or its picture below ``root``; None where there is
        neither.
    root : Path or None
    """

    boxes: npt.NDArray[np.float64]
    whole: npt.NDArray[np.bool_]
    runs: list[dict[str, Any] | None]
    files: list[str | None]
    root: Path | None

    def skin(self, seen: Seen, row: int) -> Skin | str:
        """Take the skin of one person from their picture, or say why there is none."""
        mask = self._mask(row)
        if mask is not None:
            return skin_in_mask(seen.pixels, mask)
        if self.whole[row]:
            height, width = seen.pixels.shape[:2]
            left, upper, right, lower = FACE_IN_PICTURE
            box = (left * width, upper * height, right * width, lower * height)
            return skin_in_box(seen.pixels, box)
        if np.isnan(self.boxes[row]).any():
            return _NOTHING
        if not seen.placed:
            return OTHER_SIZE
        return skin_in_box(seen.pixels, self.boxes[row] * seen.scale)

    def _mask(self, row: int) -> npt.NDArray[np.bool_] | None:
        held, file = self.runs[row], self.files[row]
        if held is not None:
            sides = np.array([held["height"]]), np.array([held["width"]])
            masks = masks_from_counts([held["counts"]], *sides)
            flat = np.zeros(int(sides[0][0] * sides[1][0]), dtype=np.bool_)
            for first, end in masks.edges.reshape(-1, 2):
                flat[first:end] = True
            return flat.reshape(int(sides[1][0]), int(sides[0][0])).T
        if file is not None and self.root is not None:
            return np.asarray(read_image(inside(self.root, file)).max(axis=2) > 0)
        return None


def faces_of(dataset: Dataset) -> Faces:
    """Find where the skin of each one's face is."""
    people = INSTANCES.conform(dataset.instances)
    boxes = _face_boxes(people)
    runs, files = _runs(people), _files(people)
    root = None if dataset.root is None else Path(dataset.root)
    if root is not None:
        files = [file if file is None or _is_there(root, file) else None for file in files]
    masked = np.array([r is not None or f is not None for r, f in zip(runs, files, strict=True)])
    found = bool(masked.any() or not np.isnan(boxes).all())
    alone = not found and _one_face_a_picture(people)
    if people.height and not found and not alone:
        raise SpecError(
            "skin tone cannot be computed: nothing says where the faces are",
            expected="boxes of faces, masks of their skin, or pictures of one face each",
            found="none of these",
            where=dataset.name,
        )
    return Faces(boxes, np.full(people.height, alone), runs, files, root)


def _face_boxes(people: pl.DataFrame) -> npt.NDArray[np.float64]:
    """Take the face's own box; the box of an instance whose class is face in its place."""
    own = boxes_of(people, _FACE_BOX)
    is_face = people["classes"].list.contains("face").fill_null(value=False).to_numpy()
    lacking = np.isnan(own).any(axis=1) & is_face
    own[lacking] = boxes_of(people, BOX)[lacking]
    return own


def _one_face_a_picture(people: pl.DataFrame) -> bool:
    """Tell whether pictures are faces: no boxes, one person a picture, no class but ``face``."""
    boxed = not np.isnan(boxes_of(people, BOX)).all()
    other = people["classes"].drop_nulls().list.contains("face").not_().any()
    return not boxed and not other and not people["image_id"].is_duplicated().any()


def _runs(people: pl.DataFrame) -> list[dict[str, Any] | None]:
    if "part_masks" not in people.columns:
        return [None] * people.height
    return [
        next((part for part in held or () if _SKIN.fullmatch(str(part["part"]))), None)
        for held in people["part_masks"].to_list()
    ]


def _files(people: pl.DataFrame) -> list[str | None]:
    """Name the picture of the part ``skin``; FHIBE's lies next to the one that holds all parts."""
    files: list[str | None] = [None] * people.height
    if "part_mask_uri" in people.columns:
        held = people["part_mask_uri"].to_list()
        files = [
            None if uri is None else str(PurePosixPath(uri).with_name("skin.png")) for uri in held
        ]
    if "part_mask_files" in people.columns:
        for row, held in enumerate(people["part_mask_files"].to_list()):
            own = (part["uri"] for part in held or () if _SKIN.fullmatch(str(part["part"])))
            files[row] = next(own, files[row])
    return files


def _is_there(root: Path, file: str) -> bool:
    try:
        return inside(root, file).is_file()
    except FileError:
        return False
