"""Copy photos for publication: without metadata, with new names, with regions filled in."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from isolux.io.frames import read_table
from isolux.io.images import read_image
from isolux.io.paths import resolve_inside
from isolux.vocabulary.errors import InputError, SpecError, TableError
from isolux_curate.privacy.metadata import strip_metadata
from isolux_curate.privacy.table import make_pseudonym
from isolux_curate.user_tables import import_user_function, refuse_missing, refuse_rows

if TYPE_CHECKING:
    from isolux.io.images import Pixels

Box = tuple[float, float, float, float]
"""Left, top, width, height in pixels."""
Filler = Callable[["Pixels", np.ndarray], "Pixels"]
"""A function from an image and a mask to fill, ``[height, width]`` bool, to a filled image."""
_INPAINT_RADIUS_PX = 5  # the radius of the neighbourhood that OpenCV inpaints from


def find_filler(method: str) -> Filler:
    """Find a function that fills regions: ``black``, ``opencv`` or ``python:MODULE:FUNCTION``.

    Examples
    --------
    >>> black = find_filler("black")
    >>> black(np.full((2, 2, 3), 9, np.uint8), np.array([[True, False]] * 2))[0].tolist()
    [[0, 0, 0], [9, 9, 9]]
    """
    if method == "black":
        return _fill_black
    if method == "opencv":
        return _load_opencv_filler()
    fill: Filler = import_user_function(
        method,
        "this is not a way to fill a region",
        source="inpaint",
        expected="black, opencv or python:MODULE:FUNCTION",
    )
    return fill


def _fill_black(pixels: Pixels, region: np.ndarray) -> Pixels:
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

    def fill(pixels: Pixels, region: np.ndarray) -> Pixels:
        filled: Pixels = cv2.inpaint(
            pixels, region.astype(np.uint8), _INPAINT_RADIUS_PX, cv2.INPAINT_TELEA
        )
        return filled

    return fill


def fill_regions(pixels: Pixels, boxes: Sequence[Box], fill: Filler) -> Pixels:
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
    filled = np.asarray(fill(pixels, region))
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


def read_regions(
    redact: str | Path | None, rows: pl.DataFrame, file: str, *, column: str = "file"
) -> dict[str, list[Box]]:
    """Read the regions to be filled, by photo."""
    if redact is None:
        return {}
    region_rows = read_table(redact)
    refuse_missing(region_rows, (column, *_REGION_COLUMNS[1:]), str(redact))
    regions = region_rows.with_columns(pl.col(_REGION_COLUMNS[1:]).cast(pl.Float64, strict=False))
    faulty = regions.select(
        pl.any_horizontal(pl.col(_REGION_COLUMNS[1:]).is_null())
        | (pl.col("w") <= 0)
        | (pl.col("h") <= 0)
    ).to_series()
    refuse_rows(
        faulty, "a region is not a box", str(redact), expected="x, y and positive w and h in pixels"
    )
    largest = regions.select(pl.max_horizontal(pl.col(_REGION_COLUMNS[1:]).max())).item()
    if largest is not None and largest <= 1:
        raise TableError(
            "regions look like shares of the picture",
            expected="x, y, w and h in pixels",
            found=f"nothing above {largest:g}",
            where=str(redact),
        )
    file_names = set(rows[file].cast(pl.String)) if file in rows.columns else set()
    boxes_by_file: dict[str, list[Box]] = {}
    for photo, x, y, w, h in regions.select(column, *_REGION_COLUMNS[1:]).iter_rows():
        if str(photo) not in file_names:
            raise TableError(
                "a region is of no photo of the table",
                expected=f"a value of {file}",
                found=repr(photo),
                where=str(redact),
            )
        boxes_by_file.setdefault(str(photo), []).append((x, y, w, h))
    return boxes_by_file


def copy_photos(
    files: pl.Series,
    folder: Path,
    staging_dir: Path,
    secret: bytes,
    keep: Sequence[str],
    regions: Mapping[str, Sequence[Box]],
    fill: Any,
) -> dict[str, str]:
    """Copy each photo without its metadata, under a pseudonym; the new names by file."""
    (staging_dir / "photos").mkdir()
    names: dict[str, str] = {}
    for name in files.cast(pl.String).drop_nulls().unique(maintain_order=True):
        path = resolve_inside(folder, name)
        if not path.is_file():
            raise InputError(
                "a photo is not there",
                expected="every photo that the table names",
                found=name,
                where=str(folder),
            )
        suffix = ".png" if path.suffix.lower() in _TIFF_SUFFIXES else path.suffix.lower()
        new_name = make_pseudonym(secret, "file", name) + suffix
        content = (
            _encode_filled(path, regions.get(name, ()), fill)
            if name in regions or path.suffix.lower() in _TIFF_SUFFIXES
            else strip_metadata(path.read_bytes(), keep, source=str(path))
        )
        (staging_dir / "photos" / new_name).write_bytes(content)
        names[name] = f"photos/{new_name}"
    return names


def _encode_filled(path: Path, boxes: Sequence[Box], fill: Any) -> bytes:
    """Fill a photo's regions; it is encoded anew, upright."""
    from PIL import Image

    pixels = read_image(path)
    picture = Image.fromarray(fill_regions(pixels, boxes, fill) if boxes else pixels)
    buffer = io.BytesIO()
    if path.suffix.lower() in {".jpg", ".jpeg"}:
        picture.save(buffer, "JPEG", quality=_JPEG_QUALITY, subsampling=0)
    else:
        picture.save(buffer, {".webp": "WEBP"}.get(path.suffix.lower(), "PNG"), lossless=True)
    return buffer.getvalue()
