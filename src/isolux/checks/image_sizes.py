"""Pictures whose size is not that of their annotation: boxes and masks then lie elsewhere.

It happens where pictures were made smaller after they were annotated, or where one program turns
a picture as its EXIF says and another does not. Boxes then tell which way the annotation is.
"""

from __future__ import annotations

import polars as pl

from isolux.checks._image_files import ImageFiles
from isolux.checks._problems import concatenate_problems, make_image_problems
from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.info import CheckInfo
from isolux.core.tables import IMAGES
from isolux.geometry.frames import Frame, choose_frame

INFO = CheckInfo(
    title="Sizes as annotated",
    summary="Pictures that are wider or higher than their annotation says.",
    references=(citations.EXIF.with_location("4.6.5: Orientation"),),
    needs="pixels",
)

_BOX = ("box_x", "box_y", "box_w", "box_h")
_EXCHANGE = "exchange the annotation's width and height"
_FRAMES: dict[Frame | None, tuple[str, str]] = {
    "stored": (
        "the annotation is of the picture before EXIF turns it",
        "read the pictures without turning them, or turn the boxes",
    ),
    "shown": ("the annotated size is that before EXIF turns the picture, boxes are not", _EXCHANGE),
    None: (
        "the annotated size is that before EXIF turns the picture",
        f"boxes fit both ways: if they are of the picture as it is shown, {_EXCHANGE}",
    ),
}


def check(dataset: Dataset, *, pictures: ImageFiles) -> pl.DataFrame:
    """Compare the sizes of files with those that the dataset gives.

    Parameters
    ----------
    dataset : Dataset
        Images with ``width`` and ``height``; those without are not compared.
    pictures : ImageFiles
        What was seen in the files.

    Returns
    -------
    polars.DataFrame
        Table ``problems``: another size is an error; the size of the unturned picture, where EXIF
        says to turn it, a warning, which says by the boxes which of the two is annotated.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from isolux.checks._inspection import inspect_images
    >>> from isolux.checks._image_files import locate_images
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one picture",
    ...     info=DatasetInfo(title="One picture", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"]}),
    ...     images=pl.DataFrame({"image_id": ["1"], "uri": ["1.png"], "width": [8], "height": [6]}),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (4, 3)).save(Path(folder) / "1.png")
    ...     found = check(one, pictures=inspect_images(locate_images(one, folder)))
    >>> found.select("expected", "found").row(0)
    ('8 × 6 pixels', '4 × 3')
    """
    sizes = IMAGES.conform(dataset.images).select("image_id", "width", "height").drop_nulls()
    sized = pictures.rows.drop_nulls("stored_width").join(sizes, on="image_id")
    is_rotated = pl.col("orientation").is_in([5, 6, 7, 8]).fill_null(value=False)
    shown_width = pl.when(is_rotated).then("stored_height").otherwise("stored_width")
    shown_height = pl.when(is_rotated).then("stored_width").otherwise("stored_height")
    sized = sized.with_columns(wide=shown_width, high=shown_height)
    sized = sized.filter((pl.col("wide") != pl.col("width")) | (pl.col("high") != pl.col("height")))
    is_unrotated_size = (pl.col("stored_width") == pl.col("width")) & (
        pl.col("stored_height") == pl.col("height")
    )
    annotated_size = pl.format("{} × {} pixels", "width", "height")
    file_size = pl.format("{} × {}", "wide", "high")
    advice = "take the pictures that were annotated, or scale the annotation"
    unturned = sized.filter(is_unrotated_size)
    problem, hint = _FRAMES[_find_annotated_frame(dataset, unturned)]
    rotated_size = pl.format("{}, turned as its EXIF says", file_size)
    return concatenate_problems(
        make_image_problems(
            "image_sizes",
            sized.filter(~is_unrotated_size),
            "the picture has another size than its annotation",
            "error",
            annotated_size,
            file_size,
            advice,
        ),
        make_image_problems(
            "image_sizes", unturned, problem, "warning", annotated_size, rotated_size, hint
        ),
    )


def _find_annotated_frame(dataset: Dataset, images: pl.DataFrame) -> Frame | None:
    """Choose the frame of these images by all of their boxes; None where nothing tells it."""
    if not set(_BOX) <= set(dataset.instances.columns):
        return None
    boxes = dataset.instances.select(pl.col("image_id").cast(pl.String), *_BOX).drop_nulls()
    return choose_frame(boxes.join(images.select("image_id", "width", "height"), on="image_id"))
