"""Which pictures a model looks at, whom each shows, and how one is opened."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from isolux.io.images import LARGEST_BYTES, Pixels, decode_image
from isolux.io.picture_folder import PictureFolder
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, IsoluxError, SpecError, TableError
from isolux.vocabulary.tables import IMAGES, INSTANCES

Box = tuple[float, float, float, float]
PictureOf = Literal["image", "person"]
"""What a model is shown: the whole image, or each person's box cut out of it."""

_ADDRESS = r"^[A-Za-z][A-Za-z0-9+.-]+://"
_BOX = ("box_x", "box_y", "box_w", "box_h")
_OPTION = "name the folder that holds them: --images FOLDER (images=…)"
_OF_UNITS = ("labels", "embeddings")


@dataclass(frozen=True, slots=True)
class Unit:
    """Whom one look is about: all of the image, or a box of it (x, y, w, h; None: not known)."""

    id: str
    whole: bool = True
    box: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture to open once: its path below the root, annotated size, and whom it shows.

    ``placed``: what is answered or cut out lies by the annotation's pixels, so a picture of
    another size is no use. ``reason``: why there is no picture, where that is known beforehand.
    ``boxes``: of the people in it, for a model that is given them; None: it is not.
    """

    image_id: str
    path: str | None
    width: int | None
    height: int | None
    units: tuple[Unit, ...]
    placed: bool
    reason: str | None = None
    boxes: tuple[Box, ...] | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """What the model is shown of one unit, or why there is nothing."""

    unit: Unit
    pixels: Pixels | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A picture as it was read: the hash of its bytes (None: not read), its size, its cuts."""

    picture: Picture
    sha256: str | None
    width: int | None
    height: int | None
    cuts: tuple[Cut, ...]


def list_pictures(
    dataset: Dataset, predicts: str, picture_of: PictureOf, *, by_box: bool = False
) -> list[Picture]:
    """List the pictures that a model looks at, in the dataset's order."""
    if predicts not in _OF_UNITS and picture_of == "person":
        raise SpecError(
            f"{predicts} are about whole images",
            expected="--picture-of image",
            found="--picture-of person",
        )
    by_unit = predicts in _OF_UNITS
    instances = INSTANCES.conform(dataset.instances)
    images = _images(dataset)
    if by_unit:
        units = _units(instances, picture_of, dataset.name)
        images = images.filter(pl.col("image_id").is_in(list(units)))
    else:
        units = {name: [Unit(name)] for name in images["image_id"].to_list()}
    _refuse_none(dataset, images)
    placed = not by_unit or picture_of == "person"
    away = images["path"].str.contains(_ADDRESS).fill_null(value=False)
    images = images.with_columns(path=pl.when(~away).then("path"))
    boxes = _boxes(instances, dataset.name) if by_box else None
    return [
        Picture(
            image_id,
            path,
            width,
            height,
            tuple(units[image_id]),
            placed,
            boxes=None if boxes is None else tuple(boxes.get(image_id, ())),
        )
        for image_id, path, width, height in images.iter_rows()
    ]


def _boxes(instances: pl.DataFrame, where: str) -> dict[str, list[Box]]:
    _refuse_without_boxes(
        instances, where, "this model is given people's boxes", "another model finds people itself"
    )
    if "is_crowd" in instances.columns:
        instances = instances.filter(~pl.col("is_crowd").fill_null(value=False))
    found: dict[str, list[Box]] = {}
    known = instances.drop_nulls(list(_BOX))
    for image, x, y, w, h in known.select("image_id", *_BOX).iter_rows():
        found.setdefault(image, []).append((float(x), float(y), float(w), float(h)))
    return found


def _images(dataset: Dataset) -> pl.DataFrame:
    """List every image once: those that are listed, then those that people alone name."""
    listed = IMAGES.conform(dataset.images).unique("image_id", keep="first", maintain_order=True)
    named = dataset.instances.select(pl.col("image_id").cast(pl.String)).unique(maintain_order=True)
    every = pl.concat([listed.select("image_id"), named]).unique(maintain_order=True)
    joined = every.join(listed, on="image_id", how="left", maintain_order="left")
    return joined.select(
        "image_id", pl.coalesce("uri", "image_id").alias("path"), "width", "height"
    )


def _units(instances: pl.DataFrame, picture_of: PictureOf, where: str) -> dict[str, list[Unit]]:
    found: dict[str, list[Unit]] = {}
    if picture_of == "image":
        for instance, image in instances.select("instance_id", "image_id").iter_rows():
            found.setdefault(image, []).append(Unit(instance))
        several = {image: units for image, units in found.items() if len(units) > 1}
        if several:
            image, units = next(iter(several.items()))
            raise SpecError(
                "an image shows several people, and each would get the answer to the whole image",
                expected="--picture-of person, which shows the model each person's box",
                found=f"{len(several):,} of {len(found):,} images; {image!r} shows {len(units)}",
                where=where,
            )
        return found
    _refuse_without_boxes(
        instances,
        where,
        "people cannot be cut out of their images",
        "--picture-of image shows the whole image",
    )
    for instance, image, *box in instances.select("instance_id", "image_id", *_BOX).iter_rows():
        sides = (
            None if None in box else (float(box[0]), float(box[1]), float(box[2]), float(box[3]))
        )
        found.setdefault(image, []).append(Unit(instance, whole=False, box=sides))
    return found


def _refuse_without_boxes(instances: pl.DataFrame, where: str, problem: str, hint: str) -> None:
    if missing := [name for name in _BOX if name not in instances.columns]:
        raise SpecError(
            problem,
            expected="a dataset with their boxes",
            found="without " + ", ".join(missing),
            where=where,
            hint=hint,
        )


def _refuse_none(dataset: Dataset, images: pl.DataFrame) -> None:
    if images.is_empty():
        raise SpecError("there is no picture to show the model", where=dataset.name)
    if images["path"].str.contains(_ADDRESS).fill_null(value=False).all():
        raise SpecError(
            "the pictures cannot be opened",
            expected="images with paths (uri)",
            found="web addresses, which are not opened",
            where=dataset.name,
            hint=_OPTION,
        )
    if dataset.root is None:
        raise SpecError(
            "nothing says where the pictures are",
            expected=f"{images['path'][0]!r} with the dataset's files",
            found="no such file there nor in three folders above",
            where=dataset.name,
            hint=_OPTION,
        )


def hash_picture(picture: Picture, folder: PictureFolder) -> str | None:
    """Hash a picture's bytes without unpacking it; None where it cannot be read."""
    try:
        return hashlib.sha256(_data(picture, folder)).hexdigest()
    except IsoluxError:
        return None


def open_picture(picture: Picture, folder: PictureFolder, box_factor: float = 1.0) -> Opened:
    """Open a picture, turned the way in which it has the annotated size, and cut people out."""
    sha: str | None = None
    try:
        data = _data(picture, folder)
        sha = hashlib.sha256(data).hexdigest()
        pixels = _turned(picture, data)
    except IsoluxError as error:
        why = _line(error)
        return Opened(picture, sha, None, None, tuple(Cut(u, None, why) for u in picture.units))
    height, width = pixels.shape[:2]
    cuts = tuple(_cut(pixels, unit, box_factor) for unit in picture.units)
    return Opened(picture, sha, width, height, cuts)


def _data(picture: Picture, folder: PictureFolder) -> bytes:
    if picture.path is None:
        raise FileError(picture.reason or "a web address, which is not opened")
    path = folder.file(picture.path)
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise FileError("this picture's file is too large")
        return path.read_bytes()
    except OSError as error:
        raise FileError("the file cannot be read", found=error.strerror) from error


def _turned(picture: Picture, data: bytes) -> Pixels:
    """Decode; datasets differ in whether sizes are of the file as it lies or turned by its EXIF."""
    shown = decode_image(data, picture.image_id)
    if _fits(shown, picture):
        return shown
    lying = decode_image(data, picture.image_id, exif_orientation=False)
    if _fits(lying, picture):
        return lying
    if picture.placed:
        raise TableError(
            "picture of another size than annotated",
            expected=f"{picture.width} × {picture.height}",
            found=f"{shown.shape[1]} × {shown.shape[0]}",
        )
    return shown


def _fits(pixels: Pixels, picture: Picture) -> bool:
    sides = zip(pixels.shape[:2], (picture.height, picture.width), strict=True)
    return all(said is None or has == said for has, said in sides)


def _cut(pixels: Pixels, unit: Unit, factor: float) -> Cut:
    if unit.whole:
        return Cut(unit, pixels)
    if unit.box is None:
        return Cut(unit, None, "no box to cut out")
    x, y, w, h = unit.box
    left, right = x + w / 2 - factor * w / 2, x + w / 2 + factor * w / 2
    top, bottom = y + h / 2 - factor * h / 2, y + h / 2 + factor * h / 2
    height, width = pixels.shape[:2]
    rows = slice(max(int(np.floor(top)), 0), min(int(np.ceil(bottom)), height))
    columns = slice(max(int(np.floor(left)), 0), min(int(np.ceil(right)), width))
    part = pixels[rows, columns]
    if not part.size:
        return Cut(unit, None, "a box outside its picture")
    return Cut(unit, np.ascontiguousarray(part))


def _line(error: IsoluxError) -> str:
    """Say in one line why a picture could not be used, without its path."""
    return error.problem if error.found is None else f"{error.problem}: {error.found}"


def picture_folder(dataset: Dataset) -> PictureFolder:
    """Return the folder of a dataset's pictures."""
    return PictureFolder(Path(str(dataset.root)))


def count_units(pictures: Sequence[Picture]) -> int:
    """Count whom the pictures show, or the pictures themselves where they are what is judged."""
    return sum(len(picture.units) for picture in pictures)
