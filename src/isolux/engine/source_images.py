"""Source images of a model: their list, the units in each, decoding and cropping."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, IsoluxError, SpecError, TableError
from isolux.core.tables import IMAGES, INSTANCES
from isolux.io.image_folder import ImageFolder
from isolux.io.images import MAX_FILE_BYTES, Pixels, decode_image
from isolux.models import PERSON_PREDICTIONS

Box = tuple[float, float, float, float]
InputUnit = Literal["image", "person"]
"""The model's input: the full image, or the crop of each person's box."""

_WEB_ADDRESS = r"^[A-Za-z][A-Za-z0-9+.-]+://"
_BOX_COLUMNS = ("box_x", "box_y", "box_w", "box_h")
_IMAGES_HINT = "name the folder that holds them: --images FOLDER (images=…)"


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of one inference: the full image, or a box of it (x, y, w, h; None: unknown)."""

    id: str
    is_full_image: bool = True
    box: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class SourceImage:
    """An image that is opened once: path below the root, annotated size, units in it.

    ``needs_annotated_size``: what is answered or cut out lies by the annotation's pixels, so a
    picture of another size is no use. ``reason``: why there is no picture, where that is known
    beforehand. ``boxes``: of the people in it, for a model that is given them; None: it is not.
    ``classes``: likewise their classes, each once.
    """

    image_id: str
    path: str | None
    width: int | None
    height: int | None
    units: tuple[Unit, ...]
    needs_annotated_size: bool
    reason: str | None = None
    boxes: tuple[Box, ...] | None = None
    classes: tuple[str, ...] | None = None

    @property
    def given_to_model(self) -> tuple[Any, ...]:
        """What a model is given with the picture, as it asked: boxes or classes of its people."""
        return tuple(values for values in (self.boxes, self.classes) if values is not None)


@dataclass(frozen=True, slots=True)
class UnitCrop:
    """The pixels of one unit, or the reason for none."""

    unit: Unit
    pixels: Pixels | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """A decoded image: the hash of its bytes (None: not read), its size, its crops."""

    source: SourceImage
    sha256: str | None
    width: int | None
    height: int | None
    crops: tuple[UnitCrop, ...]


def list_source_images(
    dataset: Dataset,
    predicts: str,
    input_unit: InputUnit,
    *,
    by_box: bool = False,
    by_class: bool = False,
) -> list[SourceImage]:
    """List the source images of a model, in the dataset's order."""
    if predicts not in PERSON_PREDICTIONS and input_unit == "person":
        raise SpecError(
            f"{predicts} are about whole images",
            expected="--input-unit image",
            found="--input-unit person",
        )
    is_by_person = predicts in PERSON_PREDICTIONS
    instances = INSTANCES.conform(dataset.instances)
    images = _list_unique_images(dataset)
    if is_by_person:
        units = _collect_units_by_image(instances, input_unit, dataset.name)
        images = images.filter(pl.col("image_id").is_in(list(units)))
    else:
        if predicts == "images":  # nobody is compared in a picture of nobody
            images = images.filter(pl.col("image_id").is_in(instances["image_id"].implode()))
        units = {name: [Unit(name)] for name in images["image_id"].to_list()}
    _check_has_images(dataset, images)
    has_pixel_answers = not is_by_person and predicts != "images"
    needs_annotated_size = has_pixel_answers or input_unit == "person"
    is_web_address = images["path"].str.contains(_WEB_ADDRESS).fill_null(value=False)
    images = images.with_columns(path=pl.when(~is_web_address).then("path"))
    boxes = _collect_boxes_by_image(instances, dataset.name) if by_box else None
    classes = _collect_classes_by_image(instances) if by_class else None
    return [
        SourceImage(
            image_id,
            path,
            width,
            height,
            tuple(units[image_id]),
            needs_annotated_size,
            boxes=None if boxes is None else tuple(boxes.get(image_id, ())),
            classes=None if classes is None else classes.get(image_id, ()),
        )
        for image_id, path, width, height in images.iter_rows()
    ]


def _collect_boxes_by_image(instances: pl.DataFrame, source: str) -> dict[str, list[Box]]:
    _check_has_boxes(
        instances, source, "this model is given people's boxes", "another model finds people itself"
    )
    if "is_crowd" in instances.columns:
        instances = instances.filter(~pl.col("is_crowd").fill_null(value=False))
    boxes_by_image: dict[str, list[Box]] = {}
    with_boxes = instances.drop_nulls(list(_BOX_COLUMNS))
    for image, x, y, w, h in with_boxes.select("image_id", *_BOX_COLUMNS).iter_rows():
        boxes_by_image.setdefault(image, []).append((float(x), float(y), float(w), float(h)))
    return boxes_by_image


def _collect_classes_by_image(instances: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    rows = instances.select("image_id", "classes").explode("classes").drop_nulls().unique()
    return {
        str(image): tuple(image_rows["classes"].sort())
        for (image,), image_rows in rows.group_by(["image_id"])
    }


def _list_unique_images(dataset: Dataset) -> pl.DataFrame:
    """List every image once: the dataset's images, then those only instances refer to."""
    listed_images = IMAGES.conform(dataset.images).unique(
        "image_id", keep="first", maintain_order=True
    )
    instance_images = dataset.instances.select(pl.col("image_id").cast(pl.String)).unique(
        maintain_order=True
    )
    all_ids = pl.concat([listed_images.select("image_id"), instance_images]).unique(
        maintain_order=True
    )
    all_images = all_ids.join(listed_images, on="image_id", how="left", maintain_order="left")
    return all_images.select(
        "image_id", pl.coalesce("uri", "image_id").alias("path"), "width", "height"
    )


def _collect_units_by_image(
    instances: pl.DataFrame, input_unit: InputUnit, source: str
) -> dict[str, list[Unit]]:
    units_by_image: dict[str, list[Unit]] = {}
    if input_unit == "image":
        for instance, image in instances.select("instance_id", "image_id").iter_rows():
            units_by_image.setdefault(image, []).append(Unit(instance))
        crowded_images = {image: units for image, units in units_by_image.items() if len(units) > 1}
        if crowded_images:
            image, units = next(iter(crowded_images.items()))
            raise SpecError(
                "an image shows several people, and each would get the answer to the whole image",
                expected="--input-unit person, which shows the model each person's box",
                found=f"{len(crowded_images):,} of {len(units_by_image):,} images; {image!r} shows"
                f" {len(units)}",
                where=source,
            )
        return units_by_image
    _check_has_boxes(
        instances,
        source,
        "people cannot be cut out of their images",
        "--input-unit image shows the whole image",
    )
    for instance, image, *box in instances.select(
        "instance_id", "image_id", *_BOX_COLUMNS
    ).iter_rows():
        box_xywh = (
            None if None in box else (float(box[0]), float(box[1]), float(box[2]), float(box[3]))
        )
        units_by_image.setdefault(image, []).append(
            Unit(instance, is_full_image=False, box=box_xywh)
        )
    return units_by_image


def _check_has_boxes(instances: pl.DataFrame, source: str, problem: str, hint: str) -> None:
    if missing := [name for name in _BOX_COLUMNS if name not in instances.columns]:
        raise SpecError(
            problem,
            expected="a dataset with their boxes",
            found="without " + ", ".join(missing),
            where=source,
            hint=hint,
        )


def _check_has_images(dataset: Dataset, images: pl.DataFrame) -> None:
    if images.is_empty():
        raise SpecError("there is no picture to show the model", where=dataset.name)
    if images["path"].str.contains(_WEB_ADDRESS).fill_null(value=False).all():
        raise SpecError(
            "the pictures cannot be opened",
            expected="images with paths (uri)",
            found="web addresses, which are not opened",
            where=dataset.name,
            hint=_IMAGES_HINT,
        )
    if dataset.root is None:
        raise SpecError(
            "nothing says where the pictures are",
            expected=f"{images['path'][0]!r} with the dataset's files",
            found="no such file there nor in three folders above",
            where=dataset.name,
            hint=_IMAGES_HINT,
        )


def hash_image_file(image: SourceImage, folder: ImageFolder) -> str | None:
    """Hash an image file without decoding it; None where it cannot be read."""
    try:
        return hashlib.sha256(_read_image_bytes(image, folder)).hexdigest()
    except IsoluxError:
        return None


def decode_and_crop_units(
    image: SourceImage, folder: ImageFolder, box_factor: float = 1.0
) -> DecodedImage:
    """Decode an image in the orientation of the annotated size, and crop its units."""
    sha256: str | None = None
    try:
        file_bytes = _read_image_bytes(image, folder)
        sha256 = hashlib.sha256(file_bytes).hexdigest()
        pixels = _decode_in_annotated_orientation(image, file_bytes)
    except IsoluxError as error:
        reason = _format_error_without_path(error)
        return DecodedImage(
            image, sha256, None, None, tuple(UnitCrop(u, None, reason) for u in image.units)
        )
    height, width = pixels.shape[:2]
    crops = tuple(_crop_unit_with_margin(pixels, unit, box_factor) for unit in image.units)
    return DecodedImage(image, sha256, width, height, crops)


def _read_image_bytes(image: SourceImage, folder: ImageFolder) -> bytes:
    if image.path is None:
        raise FileError(image.reason or "a web address, which is not opened")
    path = folder.find_file(image.path)
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise FileError("this picture's file is too large")
        return path.read_bytes()
    except OSError as error:
        raise FileError("the file cannot be read", found=error.strerror) from error


def _decode_in_annotated_orientation(image: SourceImage, file_bytes: bytes) -> Pixels:
    """Decode with or without EXIF orientation, whichever has the annotated size."""
    oriented_pixels = decode_image(file_bytes, image.image_id)
    if _has_annotated_size(oriented_pixels, image):
        return oriented_pixels
    unoriented_pixels = decode_image(file_bytes, image.image_id, exif_orientation=False)
    if _has_annotated_size(unoriented_pixels, image):
        return unoriented_pixels
    if image.needs_annotated_size:
        raise TableError(
            "picture of another size than annotated",
            expected=f"{image.width} × {image.height}",
            found=f"{oriented_pixels.shape[1]} × {oriented_pixels.shape[0]}",
        )
    return oriented_pixels


def _has_annotated_size(pixels: Pixels, image: SourceImage) -> bool:
    size_pairs = zip(pixels.shape[:2], (image.height, image.width), strict=True)
    return all(
        annotated_px is None or actual_px == annotated_px for actual_px, annotated_px in size_pairs
    )


def _crop_unit_with_margin(pixels: Pixels, unit: Unit, factor: float) -> UnitCrop:
    if unit.is_full_image:
        return UnitCrop(unit, pixels)
    if unit.box is None:
        return UnitCrop(unit, None, "no box to cut out")
    x, y, w, h = unit.box
    left_px, right_px = x + w / 2 - factor * w / 2, x + w / 2 + factor * w / 2
    top_px, bottom_px = y + h / 2 - factor * h / 2, y + h / 2 + factor * h / 2
    height, width = pixels.shape[:2]
    rows = slice(max(int(np.floor(top_px)), 0), min(int(np.ceil(bottom_px)), height))
    columns = slice(max(int(np.floor(left_px)), 0), min(int(np.ceil(right_px)), width))
    crop = pixels[rows, columns]
    if not crop.size:
        return UnitCrop(unit, None, "a box outside its picture")
    return UnitCrop(unit, np.ascontiguousarray(crop))


def _format_error_without_path(error: IsoluxError) -> str:
    """Format an error in one line, without the path."""
    return error.problem if error.found is None else f"{error.problem}: {error.found}"


def find_image_folder(dataset: Dataset) -> ImageFolder:
    """Return the folder of a dataset's images."""
    return ImageFolder(Path(str(dataset.root)))


def count_units(images: Sequence[SourceImage]) -> int:
    """Count the units in all images."""
    return sum(len(image.units) for image in images)
