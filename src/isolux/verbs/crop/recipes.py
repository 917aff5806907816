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

from isolux.geometry.crops import (
    DLIB_EYES,
    Pixels,
    cut_square_top,
    cut_xywh,
    face_square,
    fitted_square,
    oriented,
    resized,
    whole_box,
)
from isolux.geometry.variants import background_black, mask_of, person_black, person_blurred
from isolux.tasks import people_of_parts
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.tables import INSTANCES

Cutting = Callable[[Pixels], Pixels]

NO_BOX = "no box to cut out"
NO_MASK = "no mask of the person"
_THROUGH = 4096  # pixels: FHIBE's first size
_LEAST_PERSON = 100  # pixels: MIAP's smallest side
_EYES_AND_MOUTH = {
    "right eye": ("right eye",),
    "left eye": ("left eye",),
    "mouth right": ("mouth right", "right mouth", "right mouth corner"),
    "mouth left": ("mouth left", "left mouth", "left mouth corner"),
}
"""What the points are called: by FHIBE and BlazePose, and by others."""


Box = tuple[float, float, float, float]

_BOX = ("box_x", "box_y", "box_w", "box_h")
_PARTS = ("part_masks", "segments")
_VISIBLE = 2  # COCO's: 1 is labelled and hidden


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a crop shows: boxes x, y, w, h in pixels, and the points that are visible, by name."""

    id: str
    box: Box | None = None
    face_box: Box | None = None
    points: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    mask: tuple[str, int, int] | None = None


def people_of(dataset: Dataset) -> dict[str, list[Person]]:
    """List the people of each image with their boxes and the points that are visible."""
    table = INSTANCES.conform(with_masks(dataset).instances)
    found: dict[str, list[Person]] = {}
    for row in table.iter_rows(named=True):
        found.setdefault(row["image_id"], []).append(
            Person(row["instance_id"], _box(row, ""), _box(row, "face_"), _points(row), _mask(row))
        )
    return found


def with_masks(dataset: Dataset) -> Dataset:
    """Unite the parts of people who have no other masks (FHIBE's)."""
    held = dataset.instances
    parts = [
        name for name in _PARTS if name in held.columns and held[name].null_count() < len(held)
    ]
    if not parts or ("mask_counts" in held.columns and held["mask_counts"].is_not_null().any()):
        return dataset
    return people_of_parts(dataset)


def _box(row: Mapping[str, Any], prefix: str) -> Any:
    sides = tuple(row.get(prefix + name) for name in _BOX)
    return None if None in sides else sides


def _mask(row: Mapping[str, Any]) -> Any:
    found = tuple(row.get(f"mask_{name}") for name in ("counts", "height", "width"))
    return None if None in found else found


def _points(row: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    names = row.get("keypoint_names") or ()
    parts = (row.get(f"keypoints_{c}") or () for c in "xyv")
    return {
        str(name).lower().replace("_", " "): (float(x), float(y))
        for name, x, y, v in zip(names, *parts, strict=False)
        if v == _VISIBLE and x is not None and y is not None
    }


def subjects_of(dataset: Dataset) -> dict[str, str | None]:
    """Return the subject of each person; null: not known."""
    table = INSTANCES.conform(dataset.instances)
    return dict(table.select("instance_id", "subject_id").iter_rows())


@dataclass(frozen=True, slots=True)
class How:
    """What may be chosen of a recipe; None: the recipe's own, or nothing that it knows."""

    box: Literal["face", "person"] | None = None
    factor: float | None = None
    size: int | None = None
    padding: float | None = None
    wide: Literal["left", "centre"] | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to cut people out.

    Parameters
    ----------
    name, title : str
    source : str
        Where it stands in which publication.
    doubts : tuple of str
        What the publication leaves open, and what is done here.
    takes : mapping
        The settings that it knows, with their defaults.
    place : callable
        From a person and settings to a ``Cutting``; raises a ``SpecError`` that says why not.
    """

    name: str
    title: str
    source: str
    takes: Mapping[str, Any]
    place: Callable[[Person, How], Cutting]
    doubts: tuple[str, ...] = ()

    def settled(self, how: How) -> How:
        """Fill in its own settings."""
        said = {name: getattr(how, name) for name in How.__dataclass_fields__}
        for name, value in said.items():
            if value is not None and name not in self.takes:
                raise SpecError(
                    f"the recipe {self.name!r} has no setting {name!r}",
                    expected=", ".join(self.takes),
                    found=f"{name}={value}",
                )
        own = {name: value for name, value in self.takes.items() if said[name] is None}
        return replace(how, **own)


def recipe_of(name: str) -> Recipe:
    """Find a recipe."""
    if name not in RECIPES:
        raise UnknownNameError("recipe", name, list(RECIPES), where="--recipe")
    return RECIPES[name]


def _box_of(person: Person, how: How) -> Box:
    """Return the box that is meant; a data set of faces has no other box than the face's."""
    found = person.box if how.box == "person" else person.face_box or person.box
    if found is None:
        raise SpecError(NO_BOX)
    return found


def _sized(pixels: Pixels, size: int | None) -> Pixels:
    return pixels if size is None else resized(pixels, size)


def _by_box(person: Person, how: How) -> Cutting:
    box, factor = _box_of(person, how), float(how.factor or 1.0)
    whole_box(box, factor)
    return lambda pixels: _sized(cut_xywh(pixels, box, factor=factor), how.size)


def _by_square(person: Person, how: How) -> Cutting:
    box = _box_of(person, how)
    if min(box[2:]) < _LEAST_PERSON:
        raise SpecError(f"a box with a side below {_LEAST_PERSON} pixels")
    wide = how.wide or "left"
    return lambda pixels: _sized(cut_square_top(pixels, box, wide=wide), how.size)


def _whole(person: Person, how: How) -> Cutting:
    del person
    return lambda pixels: _sized(pixels, how.size)


def _masked(
    person: Person, how: How, *, shown: Callable[[Pixels, npt.NDArray[np.bool_]], Pixels]
) -> Cutting:
    if person.mask is None:
        raise SpecError(NO_MASK)
    counts, height, width = person.mask
    return lambda pixels: _sized(shown(pixels, mask_of(counts, height, width)), how.size)


def _aligned(person: Person, how: How) -> Cutting:
    points = person.points
    found = {}
    for name, known in _EYES_AND_MOUTH.items():
        at = next((points[one] for one in known if one in points), None)
        if at is None:
            raise SpecError(f"the {name} is not visible")
        found[name] = at
    corners = face_square(*found.values())
    return partial(oriented, corners=corners, side=how.size or 512, through=_THROUGH)


def _by_eyes(person: Person, how: How) -> Cutting:
    for name in DLIB_EYES:
        if name not in person.points:
            raise SpecError(f"the {name} corner is not visible")
    padding = 0.25 if how.padding is None else how.padding
    corners = fitted_square(person.points, padding=padding)
    return partial(oriented, corners=corners, side=how.size or 224, fill="black")


_PROBED = "Xiang et al. 2025, Methods, foundation models: CLIP"
_OTHERS = "other people of the photo are a part of its background"
RECIPES: Mapping[str, Recipe] = {
    one.name: one
    for one in (
        Recipe(
            "box",
            "each person's box, larger by a factor",
            "",
            {"box": "face", "factor": 1.0, "size": None},
            _by_box,
        ),
        Recipe(
            "fhibe",
            "FHIBE's cropped faces: the face's box, twice as large",
            "Xiang et al. 2025, Methods, FHIBE derivative datasets",
            {"box": "face", "factor": 2.0, "size": None},
            _by_box,
            ("here, areas outside the photo are filled with the mean of the crop's inside",),
        ),
        Recipe(
            "aligned",
            "FHIBE's cropped and aligned faces: a square turned with eyes and mouth",
            "Xiang et al. 2025, Methods, FHIBE derivative datasets; the square of FFHQ (Karras et"
            " al. 2019)",
            {"size": 512},
            _aligned,
            (
                "how large the square is about eyes and mouth is not said: here it is FFHQ's",
                "FHIBE's own were cut from the full-size photos, not from those of 2,048 pixels",
            ),
        ),
        Recipe(
            "casual-conversations",
            "Casual Conversations' faces: the box 1.5 times as large, 256",
            "Goyal et al. 2022, appendix B.1",
            {"box": "face", "factor": 1.5, "size": 256},
            _by_box,
            ("the filter, and what fills a box beyond the frame, are open: bilinear and the mean",),
        ),
        Recipe(
            "miap",
            "MIAP's people: sides from 100 pixels, long boxes cut to their top square, 224",
            "Goyal et al. 2022, appendix B.2",
            {"box": "person", "size": 224, "wide": "left"},
            _by_square,
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
        Recipe(
            "fairface",
            "FairFace's faces: turned by the corners of the eyes to dlib's mean face",
            "Kärkkäinen & Joo 2021, their published script; dlib's get_face_chip_details",
            {"padding": 0.25, "size": 224},
            _by_eyes,
            (
                "dlib fits the base of the nose too, which data sets do not annotate",
                "theirs are faces that a detector found; these are those that people annotated",
            ),
        ),
        Recipe("whole", "the whole photo, as it is", _PROBED, {"size": None}, _whole),
        Recipe(
            "person-black",
            "the whole photo, the person blacked out",
            _PROBED,
            {"size": None},
            partial(_masked, shown=person_black),
            (_OTHERS,),
        ),
        Recipe(
            "person-blurred",
            "the whole photo, the person blurred (Gaussian, radius 100)",
            _PROBED,
            {"size": None},
            partial(_masked, shown=person_blurred),
            (_OTHERS, "the radius is read as the standard deviation, in pixels of the photo"),
        ),
        Recipe(
            "background-black",
            "the person, all around them blacked out",
            _PROBED,
            {"size": None},
            partial(_masked, shown=background_black),
            (_OTHERS,),
        ),
    )
}
"""By name."""
