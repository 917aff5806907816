"""Copy photos for publication: without metadata, with new names, with regions filled in."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from isolux.core.errors import InputError, SpecError, TableError
from isolux.io.frames import read_table
from isolux.io.images import read_image
from isolux.io.paths import resolve_inside
from isolux_curate.privacy.metadata import strip_image_metadata
from isolux_curate.privacy.table import compute_pseudonym
from isolux_curate.user_tables import (
    import_user_function,
    refuse_faulty_rows,
    refuse_missing_columns,
)

if TYPE_CHECKING:
    from isolux.io.images import Pixels

Box = tuple[float, float, float, float]
"""Left, top, width, height in pixels."""
Filler = Callable[["Pixels", np.ndarray], "Pixels"]
"""A function from an image and a mask to fill, ``[height, width]`` bool, to a filled image."""
_INPAINT_RADIUS_PX = 5  # the radius of the neighbourhood that OpenCV inpaints from


def load_region_filler(method: str) -> Filler:
    """Find a function that fills regions: ``black``, ``opencv`` or ``python:MODULE:FUNCTION``.

    Examples
    --------
    >>> black = load_region_filler("black")
    >>> black(np.full((2, 2, 3), 9, np.uint8), np.array([[True, False]] * 2))[0].tolist()
    [[0, 0, 0], [9, 9, 9]]
    """
    if method == "black":
        return _fill_region_black
    if method == "opencv":
        return _load_opencv_filler()
    fill: Filler = import_user_function(
        method,
        "this is not a way to fill a region",
        source="inpaint",
        expected="black, opencv or python:MODULE:FUNCTION",
    )
    return fill


def _fill_region_black(pixels: Pixels, region: np.ndarray) -> Pixels:
    return np.where(region[..., None], np.uint8(0), pixels)


def _load_opencv_filler() -> Filler:
    try:
        cv2 = import_module("cv2")
    except ImportError as error:
        raise SpecError(
            "OpenCV is not installed",
            expected="pip install opencv-python-headless",
            found=str(error),
            where="inpaint",
            hint="--inpaint black needs nothing",
        ) from error

    def fill_region_by_inpainting(pixels: Pixels, region: np.ndarray) -> Pixels:
        filled: Pixels = cv2.inpaint(
            pixels, region.astype(np.uint8), _INPAINT_RADIUS_PX, cv2.INPAINT_TELEA
        )
        return filled

    return fill_region_by_inpainting


def fill_boxes_or_refuse(pixels: Pixels, boxes: Sequence[Box], filler: Filler) -> Pixels:
    """Fill boxes of an image; all pixels outside of them stay."""
    height, width = pixels.shape[:2]
    region = np.zeros((height, width), dtype=np.bool_)
    for x_min, y_min, box_width, box_height in boxes:
        x, y = max(0, int(np.floor(x_min))), max(0, int(np.floor(y_min)))
        right, bottom = int(np.ceil(x_min + box_width)), int(np.ceil(y_min + box_height))
        subregion = region[y : max(bottom, 0), x : max(right, 0)]
        if not subregion.size:
            raise SpecError(
                "a region is outside its picture",
                expected=f"within {width} × {height}",
                found=f"{(x_min, y_min, box_width, box_height)}",
                where="redact",
            )
        subregion[...] = True
    filled = np.asarray(filler(pixels, region))
    if filled.shape != pixels.shape or filled.dtype != np.uint8:
        raise SpecError(
            "what filled the regions gave no such picture",
            expected=f"{pixels.shape} of uint8",
            found=f"{filled.shape} of {filled.dtype}",
            where="inpaint",
        )
    return np.where(region[..., None], filled, pixels)


_REGION_COLUMNS = ("file", "x", "y", "w", "h")
_JPEG_QUALITY = 95  # for JPEG files with filled regions; others are not encoded anew
_TIFF_SUFFIXES = (".tif", ".tiff")


def read_redaction_boxes_by_photo(
    redaction_table: str | Path | None,
    rows: pl.DataFrame,
    file_column: str,
    *,
    photo_column: str = "file",
) -> dict[str, list[Box]]:
    """Read the regions to be filled, by photo."""
    if redaction_table is None:
        return {}
    region_rows = read_table(redaction_table)
    refuse_missing_columns(region_rows, (photo_column, *_REGION_COLUMNS[1:]), str(redaction_table))
    regions = region_rows.with_columns(pl.col(_REGION_COLUMNS[1:]).cast(pl.Float64, strict=False))
    faulty = regions.select(
        pl.any_horizontal(pl.col(_REGION_COLUMNS[1:]).is_null())
        | (pl.col("w") <= 0)
        | (pl.col("h") <= 0)
    ).to_series()
    refuse_faulty_rows(
        faulty,
        "a region is not a box",
        str(redaction_table),
        expected="x, y and positive w and h in pixels",
    )
    largest = regions.select(pl.max_horizontal(pl.col(_REGION_COLUMNS[1:]).max())).item()
    if largest is not None and largest <= 1:
        raise TableError(
            "regions look like shares of the picture",
            expected="x, y, w and h in pixels",
            found=f"nothing above {largest:g}",
            where=str(redaction_table),
        )
    file_names = set(rows[file_column].cast(pl.String)) if file_column in rows.columns else set()
    boxes_by_file: dict[str, list[Box]] = {}
    for photo, x, y, w, h in regions.select(photo_column, *_REGION_COLUMNS[1:]).iter_rows():
        if str(photo) not in file_names:
            raise TableError(
                "a region is of no photo of the table",
                expected=f"a value of {file_column}",
                found=repr(photo),
                where=str(redaction_table),
            )
        boxes_by_file.setdefault(str(photo), []).append((x, y, w, h))
    return boxes_by_file


def copy_photos_without_metadata(
    file_names: pl.Series,
    photo_folder: Path,
    staging_dir: Path,
    pseudonym_key: bytes,
    kept_exif_tags: Sequence[str],
    boxes_by_file: Mapping[str, Sequence[Box]],
    filler: Any,
) -> dict[str, str]:
    """Copy each photo without its metadata, under a pseudonym; the new names by file."""
    (staging_dir / "photos").mkdir()
    names: dict[str, str] = {}
    for name in file_names.cast(pl.String).drop_nulls().unique(maintain_order=True):
        path = resolve_inside(photo_folder, name)
        if not path.is_file():
            raise InputError(
                "a photo is not there",
                expected="every photo that the table names",
                found=name,
                where=str(photo_folder),
            )
        suffix = ".png" if path.suffix.lower() in _TIFF_SUFFIXES else path.suffix.lower()
        new_name = compute_pseudonym(pseudonym_key, "file", name) + suffix
        content = (
            _fill_boxes_and_reencode(path, boxes_by_file.get(name, ()), filler)
            if name in boxes_by_file or path.suffix.lower() in _TIFF_SUFFIXES
            else strip_image_metadata(path.read_bytes(), kept_exif_tags, source=str(path))
        )
        (staging_dir / "photos" / new_name).write_bytes(content)
        names[name] = f"photos/{new_name}"
    return names


def _fill_boxes_and_reencode(path: Path, boxes: Sequence[Box], filler: Any) -> bytes:
    """Fill a photo's regions; it is encoded anew, upright."""
    from PIL import Image

    pixels = read_image(path)
    picture = Image.fromarray(fill_boxes_or_refuse(pixels, boxes, filler) if boxes else pixels)
    buffer = io.BytesIO()
    if path.suffix.lower() in {".jpg", ".jpeg"}:
        picture.save(buffer, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
    else:
        picture.save(buffer, {".webp": "WEBP"}.get(path.suffix.lower(), "PNG"), lossless=True)
    return buffer.getvalue()
