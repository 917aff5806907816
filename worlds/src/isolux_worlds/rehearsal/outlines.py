"""The outline of a mask, as someone clicks it around: its largest part, with fewer corners."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.geometry.masks import masks_from_coco
from isolux_worlds.layouts.fhibe.outlines import outlines

__all__ = ["outline_of"]

_CORNERS = 60


def outline_of(counts: str, size: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Trace a mask: ``[corners, 2]`` x, y in pixels, at most 60 corners."""
    width, height = size
    told = {"size": [height, width], "counts": counts}
    masks = masks_from_coco([told], np.array([height]), np.array([width]))
    polygon = max(outlines(masks, 0), key=_area)
    step = max(1, -(-len(polygon) // _CORNERS))
    return np.asarray(polygon[::step], dtype=np.float64)


def _area(polygon: npt.NDArray[np.int32]) -> float:
    x, y = polygon[:, 0].astype(np.float64), polygon[:, 1].astype(np.float64)
    return float(abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))) / 2
