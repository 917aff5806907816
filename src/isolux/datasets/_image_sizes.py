"""Sizes of pictures, for datasets whose boxes are parts of an unknown whole.

From a table, or from the headers of the pictures themselves; none is decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from isolux.core.errors import FileError, extract_first_line
from isolux.datasets._files import Inputs
from isolux.datasets._relative_paths import IMAGE_NAME_PATTERN, list_relative_file_paths
from isolux.datasets._tables import left_join_in_order
from isolux.io.cell_parsing import as_numbers
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file, sha256_listing
from isolux.io.ids import read_ids, reduce_ids
from isolux.io.refusals import refuse_cells, refuse_repeats, require_columns

_SIZE_SCHEMA = {"image_id": pl.String, "width": pl.Int64, "height": pl.Int64, "uri": pl.String}
_ID_NAMES = ("image_id", "ImageID", "id", "file", "filename", "file_name", "path")
_WIDTHS = ("width", "Width")
_HEIGHTS = ("height", "Height")
_SIDE_SWAPPING_ORIENTATIONS = (5, 6, 7, 8)  # EXIF orientations that swap the sides
_ORIENTATION = 0x0112  # EXIF's tag for how a picture must be turned to be seen upright
_DAMAGE_ERRORS = (OSError, SyntaxError, ValueError, KeyError, TypeError, EOFError, struct.error)


def add_image_sizes_or_nulls(
    images: pl.DataFrame, path: str | Path | None, inputs: Inputs
) -> pl.DataFrame:
    """Add width, height and uri to images; null where no table or folder gives them."""
    known_sizes = (
        pl.DataFrame(schema=_SIZE_SCHEMA)
        if path is None
        else read_sizes_from_table_or_folder(path, images["image_id"], inputs)
    )
    return left_join_in_order(images, known_sizes, "image_id")


def read_sizes_from_table_or_folder(
    path: str | Path, image_ids: pl.Series, inputs: Inputs
) -> pl.DataFrame:
    """Read the sizes of these images."""
    root = Path(path).expanduser()
    size_rows = (
        _read_image_sizes_of_folder(root, image_ids)
        if root.is_dir()
        else _read_image_size_table(root)
    )
    refuse_repeats(size_rows["image_id"], "an image has several sizes", "each once", str(root))
    inputs[str(root)] = sha256_listing(root) if root.is_dir() else sha256_file(root)
    return size_rows


def _read_image_size_table(file: Path) -> pl.DataFrame:
    table, source = read_table(file), str(file)
    column_names = [
        next((name for name in names if name in table.columns), names[0])
        for names in (_ID_NAMES, _WIDTHS, _HEIGHTS)
    ]
    require_columns(table, column_names, source)
    size_columns = [
        parse_pixel_counts(table[column], dimension=dimension, source=source, column=column)
        for dimension, column in zip(("width", "height"), column_names[1:], strict=True)
    ]
    ids = reduce_ids(read_ids(table, column_names[0], source), "stem").alias("image_id")
    return pl.DataFrame([ids, *size_columns]).with_columns(uri=pl.lit(None, dtype=pl.String))


def _read_image_sizes_of_folder(root: Path, image_ids: pl.Series) -> pl.DataFrame:
    files = list_relative_file_paths(root)
    pictures = files.filter(files.str.contains(IMAGE_NAME_PATTERN))
    requested_images = pl.DataFrame(
        [reduce_ids(pictures, "stem").alias("image_id"), pictures.alias("uri")]
    ).filter(pl.col("image_id").is_in(image_ids.implode()))
    # One open file each: a picture's size stands nowhere else.
    sizes = [read_oriented_image_size(root / uri) for uri in requested_images["uri"]]
    return requested_images.with_columns(
        width=pl.Series([s.width for s in sizes], dtype=pl.Int64),
        height=pl.Series([s.height for s in sizes], dtype=pl.Int64),
    )


@dataclass(frozen=True, slots=True)
class ImageSize:
    """Pixels, as shown, and whether EXIF turns the stored picture by a quarter to show it."""

    width: int
    height: int
    is_turned: bool


def read_oriented_image_size(file: Path) -> ImageSize:
    """Read how large a picture is from its header, turned as its EXIF says."""
    from PIL import Image

    try:
        with Image.open(file, formats=("PNG", "JPEG", "WEBP", "BMP", "TIFF")) as image:
            width, height = image.size
            is_turned = image.getexif().get(_ORIENTATION) in _SIDE_SWAPPING_ORIENTATIONS
    except (*_DAMAGE_ERRORS, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise FileError(
            "the size of a picture cannot be read from its header",
            found=extract_first_line(error).partition(" <_io.")[0][:120],
            where=str(file),
        ) from error
    shown_size = (height, width) if is_turned else (width, height)
    return ImageSize(*shown_size, is_turned)


def parse_pixel_counts(
    cells: pl.Series, *, dimension: str, source: str, column: str, allows_missing: bool = False
) -> pl.Series:
    """Read a column of widths or heights as whole numbers of pixels."""
    number = as_numbers(cells, source=source, column=column)
    is_valid = (number >= 1) & (number < 2**31) & (number == number.floor())
    is_invalid = ~is_valid.fill_null(value=allows_missing)
    problem = f"an image's {dimension} is not a number of pixels"
    refuse_cells(is_invalid, cells, problem, "a whole number from 1", source, column=column)
    return number.cast(pl.Int64).alias(dimension)


def add_sizes_from_image_files(
    images: pl.DataFrame, file_by_row: Mapping[int, Path]
) -> pl.DataFrame:
    """Put the sizes of these pictures, by row, into a table of images."""
    sizes = {row: read_oriented_image_size(file) for row, file in file_by_row.items()}
    given_sizes = images.select("width", "height").rows()
    rows = [
        (sizes[k].width, sizes[k].height) if k in sizes else given_size
        for k, given_size in enumerate(given_sizes)
    ]
    schema = {"width": pl.Int64, "height": pl.Int64}
    return images.with_columns(pl.DataFrame(rows, schema=schema, orient="row").get_columns())
