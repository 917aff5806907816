"""Images whose annotated size is that of the stored file, which EXIF turns by a quarter.

Label Studio's COCO export writes that size beside boxes of the photo as it is shown. Read as they
stand, photos would be opened unturned, and boxes cut out other places of them.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError
from isolux.core.notes import Caution
from isolux.core.tables import IMAGES
from isolux.datasets._boxes import note_empty_and_overhanging_boxes
from isolux.datasets._columns import BOX_COLUMNS
from isolux.datasets._image_sizes import read_oriented_image_size
from isolux.geometry.frames import choose_frame, reaches_beyond
from isolux.io.image_folder import ImageFolder

# A box whose centre lies outside its image is no careless one. Two of them are no slip, either, if
# nine in ten fit the image turned by a quarter.
_MIN_MISPLACED, _MIN_FITTING_SHARE = 2, 0.9


def correct_turned_sizes(dataset: Dataset) -> Dataset:
    """Exchange width and height where boxes fit the image only as EXIF turns it."""
    boxes = list_sized_boxes(dataset)
    n_misplaced = _count_turned_boxes(boxes)
    if not n_misplaced:
        return dataset
    unturned_ids = list_unturned_images(dataset)
    is_unturned = pl.col("image_id").is_in(unturned_ids.implode())
    if choose_frame(boxes.filter(is_unturned)) != "shown":
        caution = Caution(
            f"{n_misplaced:,} of {boxes.height:,} boxes lie outside their images, and inside"
            " them if width and height are exchanged. Are these the sizes of stored files, which"
            " EXIF turns? With the image files (--images) isolux corrects that."
        )
        return replace(dataset, notes=(caution, *dataset.notes))
    images = dataset.images.with_columns(
        width=pl.when(is_unturned).then("height").otherwise("width"),
        height=pl.when(is_unturned).then("width").otherwise("height"),
    )
    note = (
        f"{len(unturned_ids):,} of {images.height:,} images are turned by EXIF; the dataset has"
        f" their size before that, and boxes that fit them only afterwards ({n_misplaced:,} lie"
        " outside otherwise): width and height were exchanged."
    )
    outdated = note_empty_and_overhanging_boxes(dataset.instances, dataset.images)
    lasting_notes = [text for text in dataset.notes if text not in outdated]
    notes = (note, *note_empty_and_overhanging_boxes(dataset.instances, images), *lasting_notes)
    return replace(dataset, images=images, notes=notes)


def describe_unturned_images(dataset: Dataset) -> str | None:
    """Describe images that are read unturned, though no box says that this is right."""
    boxes = list_sized_boxes(dataset)
    ids = list_unturned_images(dataset)
    if not len(ids) or choose_frame(boxes.filter(pl.col("image_id").is_in(ids.implode()))):
        return None
    return (
        f"{len(ids):,} of {dataset.images.height:,} images are read as they are stored, not"
        " turned by a quarter as their EXIF says: the dataset has their size before turning, and"
        " the boxes fit both ways. If they were drawn on the images as shown (as in Label"
        " Studio), exchange width and height in the annotation."
    )


def list_sized_boxes(dataset: Dataset) -> pl.DataFrame:
    """List boxes with their image's size: ``image_id``, the box, ``width``, ``height``."""
    people, images = dataset.instances, IMAGES.conform(dataset.images)
    numbers = dict.fromkeys((*BOX_COLUMNS, "width", "height"), pl.Float64())
    schema = pl.Schema({"image_id": pl.String(), **numbers})
    if not set(BOX_COLUMNS) <= set(people.columns):
        return pl.DataFrame(schema=schema)
    sizes = images.select("image_id", "width", "height").unique("image_id")
    boxes = people.select(pl.col("image_id").cast(pl.String), *BOX_COLUMNS)
    return boxes.join(sizes, on="image_id").drop_nulls().cast(schema)


def list_unturned_images(dataset: Dataset) -> pl.Series:
    """List images whose annotated size is that of the file before EXIF turns it by a quarter."""
    sized = IMAGES.conform(dataset.images).drop_nulls(["width", "height"])
    sized = sized.filter(pl.col("width") != pl.col("height"))
    if dataset.root is None:
        sized = sized.head(0)
    folder, ids = ImageFolder(dataset.root or ""), []
    paths = sized.select("image_id", pl.coalesce("uri", "image_id"), "width", "height")
    for image_id, path, width, height in paths.iter_rows():
        try:
            shown_size = read_oriented_image_size(folder.find_file(path))
        except (FileError, OSError):  # another check, or the model's run, names it
            continue
        if shown_size.is_turned and (shown_size.height, shown_size.width) == (width, height):
            ids.append(image_id)
    return pl.Series("image_id", ids, dtype=pl.String)


def _count_turned_boxes(boxes: pl.DataFrame) -> int:
    """Count boxes outside their image that fit it turned by a quarter; 0 where others do not."""
    x, y, w, h = (pl.col(name) for name in BOX_COLUMNS)
    centre_x, centre_y = x + w / 2, y + h / 2
    misplaced = boxes.filter(
        (centre_x < 0)
        | (centre_y < 0)
        | (centre_x > pl.col("width"))
        | (centre_y > pl.col("height"))
    )
    n_fitting = misplaced.filter(~reaches_beyond("height", "width")).height
    is_turned = n_fitting >= max(_MIN_MISPLACED, _MIN_FITTING_SHARE * misplaced.height)
    return n_fitting if is_turned else 0
