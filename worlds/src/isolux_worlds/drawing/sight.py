"""What is seen of everyone: boxes, masks, parts and joints, read from the label pictures.

``Rendered`` → ``seen`` → the photo's people with the columns that ``photo_world/tables.py`` adds
after rendering. Nothing is estimated: a mask is who is on top at each pixel, a box its extent, and
a joint is seen where the pixel at it is the person's own. Run lengths are written in one pass down
the columns of the label pictures, not by one bitmap for each part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.kernels import njit
from isolux_worlds.drawing._raster import _Labels
from isolux_worlds.drawing.painting import Rendered
from isolux_worlds.photo_world.tables import JOINTS, PARTS
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["seen"]

_Ints = npt.NDArray[np.int64]
_N_PARTS = len(PARTS)
_PART_TYPE = pl.List(pl.Struct({"part": pl.String, "counts": pl.String}))


def seen(world: PhotoWorld, rendered: Rendered) -> pl.DataFrame:
    """Return the people of a photo with boxes, joints and masks as seen."""
    people = world.people.filter(pl.col("image_id") == rendered.image_id)
    n = people.height
    owner, part = rendered.owner, rendered.part
    boxes, area = _extents(owner, n)
    wholes, parts = _run_lengths(owner, part, n)
    there = area > 0
    columns: list[pl.Series] = [
        pl.Series(name, np.where(there, boxes[:, k], people[name].to_numpy()), dtype=pl.Float64)
        for k, name in enumerate(("box_x", "box_y", "box_w", "box_h"))
    ]
    share = np.divide(area, rendered.body_px, out=np.zeros(n), where=rendered.body_px > 0)
    columns += [
        pl.Series("joints_v", _joints_seen(people, owner), dtype=pl.List(pl.Int8)),
        pl.Series("mask_counts", wholes, dtype=pl.String),
        pl.Series("seen_share", np.minimum(share, 1.0), dtype=pl.Float64),
        pl.Series("part_masks", parts, dtype=_PART_TYPE),
    ]
    return people.with_columns(columns)


def _joints_seen(people: pl.DataFrame, owner: _Labels) -> list[list[int]]:
    n, (height, width) = people.height, owner.shape
    if n == 0:
        return []
    x = np.array(people["joints_x"].to_list(), dtype=np.float64).reshape(n, len(JOINTS))
    y = np.array(people["joints_y"].to_list(), dtype=np.float64).reshape(n, len(JOINTS))
    inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
    column = np.where(inside, x, 0).astype(np.int64)
    row = np.where(inside, y, 0).astype(np.int64)
    own = owner[row, column] == np.arange(1, n + 1)[:, None]
    state = np.where(inside, np.where(own, 2, 1), 0)
    return [[int(v) for v in line] for line in state]


def _extents(owner: _Labels, n: int) -> tuple[npt.NDArray[np.float64], _Ints]:
    """Boxes [n, 4] (x, y, w, h) and areas [n] of each person's pixels."""
    ends, area = np.zeros((256, 4), np.int64), np.zeros(256, np.int64)
    _measure(owner, ends, area)
    x0, y0, x1, y1 = ends[1 : n + 1].T
    boxes = np.stack([x0, y0, x1 - x0 + 1, y1 - y0 + 1], axis=1).astype(np.float64)
    return boxes, area[1 : n + 1]


def _run_lengths(
    owner: _Labels, part: _Labels, n: int
) -> tuple[list[str | None], list[list[dict[str, str]] | None]]:
    """COCO's compressed counts of each person's mask and of each of their parts."""
    wholes: list[str | None] = [None] * n
    parts: list[list[dict[str, str]] | None] = [None] * n
    if n == 0:
        return wholes, parts
    height, width = owner.shape
    key, start, length = _runs(owner, part, n)
    for k, counts in _grouped(key // (_N_PARTS + 1), start, length, height * width):
        wholes[k] = _compressed(counts, height, width)
    for k, counts in _grouped(key, start, length, height * width):
        person, number = divmod(k, _N_PARTS + 1)
        entry = {"part": PARTS[number - 1], "counts": _compressed(counts, height, width)}
        parts[person] = [*(parts[person] or []), entry]
    return wholes, parts


def _runs(owner: _Labels, part: _Labels, n: int) -> tuple[_Ints, _Ints, _Ints]:
    """Find runs of one part down the columns: key (person × parts + part), start, length."""
    whose, what = owner.T.ravel(), part.T.ravel()
    changes = (whose[1:] != whose[:-1]) | (what[1:] != what[:-1])
    first = np.concatenate([[0], np.flatnonzero(changes) + 1])
    length = np.diff(first, append=len(whose))
    person, number = whose[first].astype(np.int64), what[first].astype(np.int64)
    somebody = (person > 0) & (person <= n)
    key = (person - 1) * (_N_PARTS + 1) + number
    return key[somebody], first[somebody], length[somebody]


def _grouped(key: _Ints, start: _Ints, length: _Ints, pixels: int) -> list[tuple[int, list[int]]]:
    """Count background and foreground, in turn, for each key; neighbours are joined."""
    order = np.argsort(key, kind="stable")
    key, start, stop = key[order], start[order], (start + length)[order]
    found = []
    for piece in np.split(np.arange(len(key)), np.flatnonzero(np.diff(key)) + 1):
        if len(piece) == 0:
            continue
        a, b = start[piece], stop[piece]
        apart = np.concatenate([[True], a[1:] > b[:-1]])
        last = np.concatenate([apart[1:], [True]])
        edges = np.stack([a[apart], b[last]], axis=1).ravel()
        counts = np.diff(edges, prepend=0, append=pixels)
        if counts[-1] == 0:
            counts = counts[:-1]
        found.append((int(key[piece[0]]), counts.tolist()))
    return found


def _compressed(counts: list[int], height: int, width: int) -> str:
    from pycocotools import mask  # type: ignore[import-untyped, unused-ignore]

    packed: Any = mask.frPyObjects({"size": [height, width], "counts": counts}, height, width)
    text: bytes = packed["counts"]
    return text.decode("ascii")


@njit(nogil=True, error_model="numpy")
def _measure(owner: _Labels, ends: _Ints, area: _Ints) -> None:
    for y in range(owner.shape[0]):
        for x in range(owner.shape[1]):
            k = owner[y, x]
            if not 0 < k < 255:
                continue
            if area[k] == 0:
                ends[k, 0], ends[k, 1], ends[k, 2], ends[k, 3] = x, y, x, y
            area[k] += 1
            ends[k, 0], ends[k, 2] = min(ends[k, 0], x), max(ends[k, 2], x)
            ends[k, 3] = y
