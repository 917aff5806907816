"""Masks to polygons that fill to the same pixels: FHIBE draws its parts so.

A polygon runs along the edges of pixels, at whole numbers, and has a corner at each turn. A region
with a hole is cut in columns that run through its holes, since FHIBE's polygons have none.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from isolux.geometry.masks import Masks

__all__ = ["trace_bitmap_outlines", "trace_mask_outlines"]

Polygon = npt.NDArray[np.int32]
"""``[corners, 2]``: x, y in pixels, clockwise as seen."""


def trace_mask_outlines(masks: Masks, mask_index: int) -> list[Polygon]:
    """Trace mask ``mask_index``."""
    left, top, width, height = (int(coordinate) for coordinate in masks.box_xywh[mask_index])
    tall = int(masks.height[mask_index])
    edges = masks.edges[masks.starts[mask_index] : masks.starts[mask_index + 1]] - left * tall
    lengths = np.diff(edges, prepend=0, append=width * tall)
    columns = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths).reshape(width, tall)
    corner = np.array([left, top], dtype=np.int32)
    return [polygon + corner for polygon in trace_bitmap_outlines(columns.T[top : top + height])]


def trace_bitmap_outlines(bits: npt.NDArray[np.bool_]) -> list[Polygon]:
    """Trace a mask that is a picture, ``[height, width]``; with holes, strip by strip."""
    corners, starts = _trace_loops(bits)
    if not len(starts):
        return []
    x, y = corners.astype(np.int64).T
    following = np.append(np.arange(1, len(x)), 0)
    following[np.append(starts[1:], len(x)) - 1] = starts
    area = np.add.reduceat(x * y[following] - x[following] * y, starts)
    holes = np.minimum.reduceat(x, starts)[area < 0]  # a hole is walked the other way round
    if not len(holes):
        return np.split(corners, starts[1:])
    polygons: list[Polygon] = []
    for left, right in pairwise([0, *np.unique(holes + 1).tolist(), bits.shape[1]]):
        strip, starts = _trace_loops(bits[:, left:right])
        if len(starts):
            polygons += np.split(strip + np.array([left, 0], dtype=np.int32), starts[1:])
    return polygons


def _trace_loops(bits: npt.NDArray[np.bool_]) -> tuple[Polygon, npt.NDArray[np.int64]]:
    """Walk around every region and hole: corners ``[c, 2]``, and where each loop starts ``[l]``."""
    from isolux_worlds.layouts.fhibe.outline_kernels import trace_pixel_outlines

    framed = np.pad(np.ascontiguousarray(bits, dtype=np.uint8), 1)
    across = int((framed[1:] != framed[:-1]).sum())  # every corner ends one of these edges
    corners = np.empty((2 * across + 1, 2), dtype=np.int32)
    loop_ends = np.empty(across + 1, dtype=np.int64)
    n_loops = int(trace_pixel_outlines(framed, np.zeros_like(framed), corners, loop_ends))
    last = int(loop_ends[n_loops - 1]) if n_loops else 0
    return corners[:last] - 1, np.array([0, *loop_ends[: n_loops - 1]], dtype=np.int64)[:n_loops]
