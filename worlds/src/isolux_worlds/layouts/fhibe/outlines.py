"""Masks to polygons that fill to the same pixels: FHIBE draws its parts so.

A polygon runs along the edges of pixels, at whole numbers, and has a corner at each turn. A region
with a hole is cut in columns that run through its holes, since FHIBE's polygons have none.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from isolux.geometry.masks import Masks

__all__ = ["outlines", "outlines_of_bitmap"]

Polygon = npt.NDArray[np.int32]
"""``[corners, 2]``: x, y in pixels, clockwise as seen."""


def outlines(masks: Masks, k: int) -> list[Polygon]:
    """Trace mask ``k``."""
    from isolux_worlds.layouts.fhibe.outline_kernels import fill_bitmap

    left, top, width, height = (int(side) for side in masks.box_xywh[k])
    bits = np.zeros((height + 2, width + 2), dtype=np.uint8)
    edges = np.ascontiguousarray(masks.edges[masks.starts[k] : masks.starts[k + 1]])
    fill_bitmap(edges, int(masks.height[k]), left, top, bits)
    corner = np.array([left - 1, top - 1], dtype=np.int32)
    return [polygon + corner for polygon in _traced(bits)]


def outlines_of_bitmap(bits: npt.NDArray[np.bool_]) -> list[Polygon]:
    """Trace a mask that is a picture, ``[height, width]``."""
    framed = np.pad(bits.astype(np.uint8), 1)
    return [polygon - 1 for polygon in _traced(framed)]


def _traced(bits: npt.NDArray[np.uint8]) -> list[Polygon]:
    """Trace a mask with an empty border; with holes, strip by strip."""
    from isolux_worlds.layouts.fhibe.outline_kernels import holes_of

    corners, ends, loops = _loops(bits)
    cuts = np.empty(loops, dtype=np.int64)
    n_holes = holes_of(corners, ends, loops, cuts)
    if not n_holes:
        return _parted(corners, ends, loops)
    found: list[Polygon] = []
    bounds = [0, *np.unique(cuts[:n_holes]).tolist(), bits.shape[1]]
    for left, right in pairwise(bounds):
        strip = np.pad(bits[:, left:right], ((0, 0), (1, 1)))
        corner = np.array([left - 1, 0], dtype=np.int32)
        found += [polygon + corner for polygon in _parted(*_loops(strip))]
    return found


def _loops(bits: npt.NDArray[np.uint8]) -> tuple[Polygon, npt.NDArray[np.int64], int]:
    from isolux_worlds.layouts.fhibe.outline_kernels import walk_outlines

    across = int((bits[1:] != bits[:-1]).sum())  # every corner ends one of these edges
    corners = np.empty((2 * across + 1, 2), dtype=np.int32)
    ends = np.empty(across + 1, dtype=np.int64)
    bits = np.ascontiguousarray(bits)
    return corners, ends, int(walk_outlines(bits, np.zeros_like(bits), corners, ends))


def _parted(corners: Polygon, ends: npt.NDArray[np.int64], loops: int) -> list[Polygon]:
    starts = [0, *ends[: max(loops - 1, 0)].tolist()]
    return [corners[a:b] for a, b in zip(starts, ends[:loops].tolist(), strict=False)][:loops]
