"""Regions of a picture that no one may see (bystanders, plates, documents), filled in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from isolux.vocabulary.errors import SpecError

if TYPE_CHECKING:
    from isolux.io.images import Pixels

__all__ = ["Box", "Filler", "filler", "redacted"]

Box = tuple[float, float, float, float]
"""Left, top, width, height in pixels."""
Filler = Callable[["Pixels", np.ndarray], "Pixels"]
"""From a picture and what is to be filled, ``[height, width]`` bool, to such a picture."""
_NEAR_PX = 5  # how far from a pixel OpenCV looks for what surrounds it
_PARTS = 3


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
    parts = how.split(":")
    if parts[0] != "python" or len(parts) != _PARTS:
        raise SpecError(
            "this is not a way to fill a region",
            expected="black, opencv or python:MODULE:FUNCTION",
            found=repr(how), where="inpaint",
        )  # fmt: skip
    try:
        found: Filler = getattr(import_module(parts[1]), parts[2])
    except (ImportError, AttributeError) as error:
        raise SpecError(
            "there is no such function", expected="an importable module and a function in it",
            found=str(error), where="inpaint",
        ) from error  # fmt: skip
    return found


def _black(pixels: Pixels, region: np.ndarray) -> Pixels:
    return np.where(region[..., None], np.uint8(0), pixels)


def _opencv() -> Filler:
    try:
        cv2 = import_module("cv2")
    except ImportError as error:
        raise SpecError(
            "OpenCV is not installed", expected="pip install opencv-python-headless",
            found=str(error), where="inpaint", hint="--inpaint black needs nothing",
        ) from error  # fmt: skip

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
                "a region is outside its picture", expected=f"within {width} × {height}",
                found=f"{(left, top, wide, high)}", where="redact",
            )  # fmt: skip
        part[...] = True
    found = np.asarray(fill(pixels, region))
    if found.shape != pixels.shape or found.dtype != np.uint8:
        raise SpecError(
            "what filled the regions gave no such picture", expected=f"{pixels.shape} of uint8",
            found=f"{found.shape} of {found.dtype}", where="inpaint",
        )  # fmt: skip
    return np.where(region[..., None], found, pixels)
