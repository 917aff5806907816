"""Recipes of crops: what each publication cuts out of a picture, and of whom.

From a person's box and points to a function from their picture to their crop; what a recipe cannot
be made of has the reason in words, before any picture is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.tables import INSTANCES
from isolux.geometry.crops import (
    DLIB_EYES,
    Pixels,
    crop_square_top,
    crop_xywh,
    ffhq_square,
    fit_dlib_square,
    pixel_box,
    resize_square,
    warp_square,
)
from isolux.geometry.variants import (
    black_out_background,
    black_out_person,
    blur_person,
    decode_mask,
)

CropFunction = Callable[[Pixels], Pixels]

NO_BOX = "no box to cut out"
NO_MASK = "no mask of the person"
_FHIBE_FIRST_SIZE_PX = 4096  # pixels: the size through which FHIBE's faces are resized
_MIN_PERSON_PX = 100  # pixels: MIAP's minimum box side
_POINT_NAMES = {
    "right eye": ("right eye",),
    "left eye": ("left eye",),
    "mouth right": ("mouth right", "right mouth", "right mouth corner"),
    "mouth left": ("mouth left", "left mouth", "left mouth corner"),
}
"""Spellings of keypoint names: FHIBE's and BlazePose's first."""


Box = tuple[float, float, float, float]

_BOX_COLUMNS = ("box_x", "box_y", "box_w", "box_h")
_PART_COLUMNS = ("part_masks", "segments")
_VISIBLE = 2  # COCO's: 1 is labelled and hidden


@dataclass(frozen=True, slots=True)
class Person:
    """A person to crop: boxes x, y, w, h in pixels, visible keypoints by name, and mask."""

    id: str
    box: Box | None = None
    face_box: Box | None = None
    points: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    mask: tuple[str, int, int] | None = None


def list_people(dataset: Dataset) -> dict[str, list[Person]]:
    """List the people of each image with their boxes and the points that are visible."""
    table = INSTANCES.conform(add_person_masks(dataset).instances)
    people_by_image: dict[str, list[Person]] = {}
    for row in table.iter_rows(named=True):
        people_by_image.setdefault(row["image_id"], []).append(
            Person(
                row["instance_id"],
                _read_box(row, ""),
                _read_box(row, "face_"),
                _read_points(row),
                _read_mask(row),
            )
        )
    return people_by_image


def add_person_masks(dataset: Dataset) -> Dataset:
    """Merge part masks into person masks where people have no other masks (FHIBE)."""
    instances = dataset.instances
    part_columns = [
        name
        for name in _PART_COLUMNS
        if name in instances.columns and instances[name].null_count() < len(instances)
    ]
    if not part_columns or (
        "mask_counts" in instances.columns and instances["mask_counts"].is_not_null().any()
    ):
        return dataset
    # Imported late: masks load compiled code, which most recipes do not need.
    from isolux.geometry.body_parts import unite_part_masks

    return unite_part_masks(dataset)


def _read_box(row: Mapping[str, Any], prefix: str) -> Any:
    edges = tuple(row.get(prefix + name) for name in _BOX_COLUMNS)
    return None if None in edges else edges


def _read_mask(row: Mapping[str, Any]) -> Any:
    mask = tuple(row.get(f"mask_{name}") for name in ("counts", "height", "width"))
    return None if None in mask else mask


def _read_points(row: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    names = row.get("keypoint_names") or ()
    coordinates = (row.get(f"keypoints_{c}") or () for c in "xyv")
    return {
        str(name).lower().replace("_", " "): (float(x), float(y))
        for name, x, y, v in zip(names, *coordinates, strict=False)
        if v == _VISIBLE and x is not None and y is not None
    }


def read_subjects(dataset: Dataset) -> dict[str, str | None]:
    """Return the subject of each person; null: not known."""
    table = INSTANCES.conform(dataset.instances)
    return dict(table.select("instance_id", "subject_id").iter_rows())


@dataclass(frozen=True, slots=True)
class CropOptions:
    """Settings of a recipe; None: the recipe's default, or not applicable."""

    box: Literal["face", "person"] | None = None
    factor: float | None = None
    size: int | None = None
    padding: float | None = None
    square_position: Literal["left", "centre"] | None = None


@dataclass(frozen=True, slots=True)
class CropRecipe:
    """One published way to crop people.

    Parameters
    ----------
    name, title : str
    source : str
        Where it stands in which publication.
    open_questions : tuple of str
        What the publication leaves open, and what is done here.
    defaults : mapping
        The settings that it knows, with their defaults.
    build_crop : callable
        From a person and settings to a ``CropFunction``; raises a ``SpecError`` that says why not.
    """

    name: str
    title: str
    source: str
    defaults: Mapping[str, Any]
    build_crop: Callable[[Person, CropOptions], CropFunction]
    open_questions: tuple[str, ...] = ()

    def fill_defaults(self, options: CropOptions) -> CropOptions:
        """Fill in the recipe's defaults; refuse settings that it does not have."""
        chosen_settings = {
            name: getattr(options, name) for name in CropOptions.__dataclass_fields__
        }
        for name, setting in chosen_settings.items():
            if setting is not None and name not in self.defaults:
                raise SpecError(
                    f"the recipe {self.name!r} has no setting {name!r}",
                    expected=", ".join(self.defaults),
                    found=f"{name}={setting}",
                )
        own_defaults = {
            name: setting
            for name, setting in self.defaults.items()
            if chosen_settings[name] is None
        }
        return replace(options, **own_defaults)


def find_recipe(name: str) -> CropRecipe:
    """Return the recipe of a name."""
    if name not in RECIPES:
        raise UnknownNameError("recipe", name, list(RECIPES), where="--recipe")
    return RECIPES[name]


def _select_box(person: Person, options: CropOptions) -> Box:
    """Select the face box or the person's box; datasets of faces have only one box."""
    box = person.box if options.box == "person" else person.face_box or person.box
    if box is None:
        raise SpecError(NO_BOX)
    return box


def _resize(pixels: Pixels, size: int | None) -> Pixels:
    return pixels if size is None else resize_square(pixels, size)


def _crop_box(person: Person, options: CropOptions) -> CropFunction:
    box, factor = _select_box(person, options), float(options.factor or 1.0)
    pixel_box(box, factor)
    return lambda pixels: _resize(crop_xywh(pixels, box, factor=factor), options.size)


def _crop_square(person: Person, options: CropOptions) -> CropFunction:
    box = _select_box(person, options)
    if min(box[2:]) < _MIN_PERSON_PX:
        raise SpecError(f"a box with a side below {_MIN_PERSON_PX} pixels")
    square_position = options.square_position or "left"
    return lambda pixels: _resize(
        crop_square_top(pixels, box, square_position=square_position), options.size
    )


def _crop_nothing(person: Person, options: CropOptions) -> CropFunction:
    del person
    return lambda pixels: _resize(pixels, options.size)


def _mask_person(
    person: Person,
    options: CropOptions,
    *,
    apply_mask: Callable[[Pixels, npt.NDArray[np.bool_]], Pixels],
) -> CropFunction:
    if person.mask is None:
        raise SpecError(NO_MASK)
    counts, height, width = person.mask
    return lambda pixels: _resize(
        apply_mask(pixels, decode_mask(counts, height, width)), options.size
    )


def _crop_aligned_face(person: Person, options: CropOptions) -> CropFunction:
    points = person.points
    point_by_name = {}
    for name, spellings in _POINT_NAMES.items():
        point = next((points[spelling] for spelling in spellings if spelling in points), None)
        if point is None:
            raise SpecError(f"the {name} is not visible")
        point_by_name[name] = point
    corners = ffhq_square(*point_by_name.values())
    return partial(
        warp_square,
        corners=corners,
        side_px=options.size or 512,
        intermediate_px=_FHIBE_FIRST_SIZE_PX,
    )


def _crop_fairface(person: Person, options: CropOptions) -> CropFunction:
    for name in DLIB_EYES:
        if name not in person.points:
            raise SpecError(f"the {name} corner is not visible")
    padding = 0.25 if options.padding is None else options.padding
    corners = fit_dlib_square(person.points, padding=padding)
    return partial(warp_square, corners=corners, side_px=options.size or 224, fill="black")


_CLIP_SOURCE = "Xiang et al. 2025, Methods, foundation models: CLIP"
_OTHERS_REMAIN = "other people of the photo are a part of its background"
RECIPES: Mapping[str, CropRecipe] = {
    recipe.name: recipe
    for recipe in (
        CropRecipe(
            "box",
            "each person's box, larger by a factor",
            "",
            {"box": "face", "factor": 1.0, "size": None},
            _crop_box,
        ),
        CropRecipe(
            "fhibe",
            "FHIBE's cropped faces: the face's box, twice as large",
            "Xiang et al. 2025, Methods, FHIBE derivative datasets",
            {"box": "face", "factor": 2.0, "size": None},
            _crop_box,
            ("here, areas outside the photo are filled with the mean of the crop's inside",),
        ),
        CropRecipe(
            "aligned",
            "FHIBE's cropped and aligned faces: a square turned with eyes and mouth",
            "Xiang et al. 2025, Methods, FHIBE derivative datasets; the square of FFHQ (Karras et"
            " al. 2019)",
            {"size": 512},
            _crop_aligned_face,
            (
                "how large the square is about eyes and mouth is not said: here it is FFHQ's",
                "FHIBE's own were cut from the full-size photos, not from those of 2,048 pixels",
            ),
        ),
        CropRecipe(
            "casual-conversations",
            "Casual Conversations' faces: the box 1.5 times as large, 256",
            "Goyal et al. 2022, appendix B.1",
            {"box": "face", "factor": 1.5, "size": 256},
            _crop_box,
            ("the filter, and what fills a box beyond the frame, are open: bilinear and the mean",),
        ),
        CropRecipe(
            "miap",
            "MIAP's people: sides from 100 pixels, long boxes cut to their top square, 224",
            "Goyal et al. 2022, appendix B.2",
            {"box": "person", "size": 224, "square_position": "left"},
            _crop_square,
            (
                (
                    "the paper cuts a wide box at its left, its released code at its middle"
                    " (wide=centre)"
                ),
                (
                    "people of unknown presentation are left out by --only, as the paper leaves"
                    " them out"
                ),
            ),
        ),
        CropRecipe(
            "fairface",
            "FairFace's faces: turned by the corners of the eyes to dlib's mean face",
            "Kärkkäinen & Joo 2021, their published script; dlib's get_face_chip_details",
            {"padding": 0.25, "size": 224},
            _crop_fairface,
            (
                "dlib fits the base of the nose too, which data sets do not annotate",
                "theirs are faces that a detector found; these are those that people annotated",
            ),
        ),
        CropRecipe(
            "whole", "the whole photo, as it is", _CLIP_SOURCE, {"size": None}, _crop_nothing
        ),
        CropRecipe(
            "person-black",
            "the whole photo, the person blacked out",
            _CLIP_SOURCE,
            {"size": None},
            partial(_mask_person, apply_mask=black_out_person),
            (_OTHERS_REMAIN,),
        ),
        CropRecipe(
            "person-blurred",
            "the whole photo, the person blurred (Gaussian, radius 100)",
            _CLIP_SOURCE,
            {"size": None},
            partial(_mask_person, apply_mask=blur_person),
            (
                _OTHERS_REMAIN,
                "the radius is read as the standard deviation, in pixels of the photo",
            ),
        ),
        CropRecipe(
            "background-black",
            "the person, all around them blacked out",
            _CLIP_SOURCE,
            {"size": None},
            partial(_mask_person, apply_mask=black_out_background),
            (_OTHERS_REMAIN,),
        ),
    )
}
"""By name."""
