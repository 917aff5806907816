"""Photos copied so that they can be published: no metadata, other names, regions filled in."""

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
from isolux.io.paths import inside
from isolux.vocabulary.errors import InputError, SpecError, TableError
from isolux_curate.privacy.metadata import stripped
from isolux_curate.privacy.table import pseudonym
from isolux_curate.user_tables import import_function, refuse_missing, refuse_rows

if TYPE_CHECKING:
    from isolux.io.images import Pixels

Box = tuple[float, float, float, float]
"""Left, top, width, height in pixels."""
Filler = Callable[["Pixels", np.ndarray], "Pixels"]
"""From a picture and what is to be filled, ``[height, width]`` bool, to such a picture."""
_NEAR_PX = 5  # how far from a pixel OpenCV looks for what surrounds it


def filler(how: str) -> Filler:
    """Find what fills regions: ``black``, ``opencv`` or ``python:MODULE:FUNCTION``.

    Examples
    --------
    >>> black = filler("black")
    >>> black(np.full((2, 2, 3), 9, np.uint8), np.array([[True, False]] * 2))[0].tolist()
    [[0, 0, 0], [9, 9, 9]]
    """
    if how == "black":
        return _black
    if how == "opencv":
        return _opencv()
    found: Filler = import_function(
        how,
        "this is not a way to fill a region",
        where="inpaint",
        expected="black, opencv or python:MODULE:FUNCTION",
    )
    return found


def _black(pixels: Pixels, region: np.ndarray) -> Pixels:
    return np.where(region[..., None], np.uint8(0), pixels)


def _opencv() -> Filler:
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
        found: Pixels = cv2.inpaint(pixels, region.astype(np.uint8), _NEAR_PX, cv2.INPAINT_TELEA)
        return found

    return fill


def redacted(pixels: Pixels, boxes: Sequence[Box], fill: Filler) -> Pixels:
    """Fill boxes of a picture; every pixel outside of them stays."""
    height, width = pixels.shape[:2]
    region = np.zeros((height, width), dtype=np.bool_)
    for left, top, wide, high in boxes:
        x, y = max(0, int(np.floor(left))), max(0, int(np.floor(top)))
        right, bottom = int(np.ceil(left + wide)), int(np.ceil(top + high))
        part = region[y : max(bottom, 0), x : max(right, 0)]
        if not part.size:
            raise SpecError(
                "a region is outside its picture",
                expected=f"within {width} × {height}",
                found=f"{(left, top, wide, high)}",
                where="redact",
            )
        part[...] = True
    found = np.asarray(fill(pixels, region))
    if found.shape != pixels.shape or found.dtype != np.uint8:
        raise SpecError(
            "what filled the regions gave no such picture",
            expected=f"{pixels.shape} of uint8",
            found=f"{found.shape} of {found.dtype}",
            where="inpaint",
        )
    return np.where(region[..., None], found, pixels)


_BOX = ("file", "x", "y", "w", "h")
_QUALITY = 95  # of a JPEG whose regions were filled; the others are not encoded anew
_TIFF = (".tif", ".tiff")


def read_regions(
    redact: str | Path | None, rows: pl.DataFrame, file: str, *, column: str = "file"
) -> dict[str, list[Box]]:
    """Read the regions to be filled, by photo."""
    if redact is None:
        return {}
    given = read_table(redact)
    refuse_missing(given, (column, *_BOX[1:]), str(redact))
    sides = given.with_columns(pl.col(_BOX[1:]).cast(pl.Float64, strict=False))
    faulty = sides.select(
        pl.any_horizontal(pl.col(_BOX[1:]).is_null()) | (pl.col("w") <= 0) | (pl.col("h") <= 0)
    ).to_series()
    refuse_rows(
        faulty, "a region is not a box", str(redact), expected="x, y and positive w and h in pixels"
    )
    largest = sides.select(pl.max_horizontal(pl.col(_BOX[1:]).max())).item()
    if largest is not None and largest <= 1:
        raise TableError(
            "regions look like shares of the picture",
            expected="x, y, w and h in pixels",
            found=f"nothing above {largest:g}",
            where=str(redact),
        )
    known = set(rows[file].cast(pl.String)) if file in rows.columns else set()
    found: dict[str, list[Box]] = {}
    for photo, x, y, w, h in sides.select(column, *_BOX[1:]).iter_rows():
        if str(photo) not in known:
            raise TableError(
                "a region is of no photo of the table",
                expected=f"a value of {file}",
                found=repr(photo),
                where=str(redact),
            )
        found.setdefault(str(photo), []).append((x, y, w, h))
    return found


def copy_photos(
    files: pl.Series,
    folder: Path,
    stage: Path,
    secret: bytes,
    keep: Sequence[str],
    regions: Mapping[str, Sequence[Box]],
    fill: Any,
) -> dict[str, str]:
    """Copy each photo without its metadata, under a name that says nothing."""
    (stage / "photos").mkdir()
    names: dict[str, str] = {}
    for name in files.cast(pl.String).drop_nulls().unique(maintain_order=True):
        path = inside(folder, name)
        if not path.is_file():
            raise InputError(
                "a photo is not there",
                expected="every photo that the table names",
                found=name,
                where=str(folder),
            )
        suffix = ".png" if path.suffix.lower() in _TIFF else path.suffix.lower()
        new = pseudonym(secret, "file", name) + suffix
        content = (
            _filled(path, regions.get(name, ()), fill)
            if name in regions or path.suffix.lower() in _TIFF
            else stripped(path.read_bytes(), keep, where=str(path))
        )
        (stage / "photos" / new).write_bytes(content)
        names[name] = f"photos/{new}"
    return names


def _filled(path: Path, boxes: Sequence[Box], fill: Any) -> bytes:
    """Fill a photo's regions; it is encoded anew, upright."""
    from PIL import Image

    pixels = read_image(path)
    picture = Image.fromarray(redacted(pixels, boxes, fill) if boxes else pixels)
    written = io.BytesIO()
    if path.suffix.lower() in {".jpg", ".jpeg"}:
        picture.save(written, "JPEG", quality=_QUALITY, subsampling=0)
    else:
        picture.save(written, {".webp": "WEBP"}.get(path.suffix.lower(), "PNG"), lossless=True)
    return written.getvalue()
