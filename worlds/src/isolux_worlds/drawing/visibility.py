"""Visible boxes, masks, parts and joints of everyone, measured in the label pictures.

``RenderedPhoto`` → ``measure_visible_people`` → the photo's people with the columns that
``photo_world/tables.py`` adds after rendering. Nothing is estimated: a mask is who is on top at
each pixel, a box its extent, and a joint is seen where the pixel at it is the person's own. Run
lengths are written in one pass down the columns of the label pictures, not by one bitmap for each
part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.compile_cache import njit
from isolux_worlds.drawing._raster import _Labels
from isolux_worlds.drawing.rendering import RenderedPhoto
from isolux_worlds.photo_world.tables import JOINTS, PARTS
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["measure_visible_people"]

_Ints = npt.NDArray[np.int64]
_N_PARTS = len(PARTS)
_PART_TYPE = pl.List(pl.Struct({"part": pl.String, "counts": pl.String}))


def measure_visible_people(world: PhotoWorld, rendered: RenderedPhoto) -> pl.DataFrame:
    """Return the people of a photo with their visible boxes, joints and masks."""
    people = world.people.filter(pl.col("image_id") == rendered.image_id)
    n = people.height
    owner, part_labels = rendered.owner, rendered.part_labels
    boxes, area = _measure_visible_boxes_and_areas(owner, n)
    person_masks, part_masks = _encode_person_and_part_masks(owner, part_labels, n)
    is_visible = area > 0
    columns: list[pl.Series] = [
        pl.Series(
            name, np.where(is_visible, boxes[:, k], people[name].to_numpy()), dtype=pl.Float64
        )
        for k, name in enumerate(("box_x", "box_y", "box_w", "box_h"))
    ]
    share = np.divide(area, rendered.body_px, out=np.zeros(n), where=rendered.body_px > 0)
    columns += [
        pl.Series("joints_v", _list_joint_visibility_codes(people, owner), dtype=pl.List(pl.Int8)),
        pl.Series("mask_counts", person_masks, dtype=pl.String),
        pl.Series("seen_share", np.minimum(share, 1.0), dtype=pl.Float64),
        pl.Series("part_masks", part_masks, dtype=_PART_TYPE),
    ]
    return people.with_columns(columns)


def _list_joint_visibility_codes(people: pl.DataFrame, owner: _Labels) -> list[list[int]]:
    n, (height, width) = people.height, owner.shape
    if n == 0:
        return []
    x = np.array(people["joints_x"].to_list(), dtype=np.float64).reshape(n, len(JOINTS))
    y = np.array(people["joints_y"].to_list(), dtype=np.float64).reshape(n, len(JOINTS))
    inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
    column = np.where(inside, x, 0).astype(np.int64)
    row = np.where(inside, y, 0).astype(np.int64)
    is_own_pixel = owner[row, column] == np.arange(1, n + 1)[:, None]
    state = np.where(inside, np.where(is_own_pixel, 2, 1), 0)
    return [[int(v) for v in line] for line in state]


def _measure_visible_boxes_and_areas(
    owner: _Labels, n_people: int
) -> tuple[npt.NDArray[np.float64], _Ints]:
    """Boxes [n, 4] (x, y, w, h) and areas [n] of each person's pixels."""
    bounds, area = np.zeros((256, 4), np.int64), np.zeros(256, np.int64)
    _fill_boxes_and_areas(owner, bounds, area)
    x0, y0, x1, y1 = bounds[1 : n_people + 1].T
    boxes = np.stack([x0, y0, x1 - x0 + 1, y1 - y0 + 1], axis=1).astype(np.float64)
    return boxes, area[1 : n_people + 1]


def _encode_person_and_part_masks(
    owner: _Labels, part_labels: _Labels, n_people: int
) -> tuple[list[str | None], list[list[dict[str, str]] | None]]:
    """COCO's compressed counts of each person's mask and of each of their parts."""
    person_masks: list[str | None] = [None] * n_people
    part_masks: list[list[dict[str, str]] | None] = [None] * n_people
    if n_people == 0:
        return person_masks, part_masks
    height, width = owner.shape
    key, start, length = _find_part_runs(owner, part_labels, n_people)
    for k, counts in _count_runs_by_key(key // (_N_PARTS + 1), start, length, height * width):
        person_masks[k] = _compress_run_lengths(counts, height, width)
    for k, counts in _count_runs_by_key(key, start, length, height * width):
        person, number = divmod(k, _N_PARTS + 1)
        entry = {"part": PARTS[number - 1], "counts": _compress_run_lengths(counts, height, width)}
        part_masks[person] = [*(part_masks[person] or []), entry]
    return person_masks, part_masks


def _find_part_runs(
    owner: _Labels, part_labels: _Labels, n_people: int
) -> tuple[_Ints, _Ints, _Ints]:
    """Find runs of one part down the columns: key (person × parts + part), start, length."""
    owner_column, part_column = owner.T.ravel(), part_labels.T.ravel()
    changes = (owner_column[1:] != owner_column[:-1]) | (part_column[1:] != part_column[:-1])
    first = np.concatenate([[0], np.flatnonzero(changes) + 1])
    length = np.diff(first, append=len(owner_column))
    person, number = owner_column[first].astype(np.int64), part_column[first].astype(np.int64)
    is_person = (person > 0) & (person <= n_people)
    key = (person - 1) * (_N_PARTS + 1) + number
    return key[is_person], first[is_person], length[is_person]


def _count_runs_by_key(
    key: _Ints, start: _Ints, length: _Ints, pixels: int
) -> list[tuple[int, list[int]]]:
    """Count background and foreground, in turn, for each key; neighbours are joined."""
    order = np.argsort(key, kind="stable")
    key, start, stop = key[order], start[order], (start + length)[order]
    counts_by_key = []
    for piece in np.split(np.arange(len(key)), np.flatnonzero(np.diff(key)) + 1):
        if len(piece) == 0:
            continue
        a, b = start[piece], stop[piece]
        starts_run = np.concatenate([[True], a[1:] > b[:-1]])
        last = np.concatenate([starts_run[1:], [True]])
        edges = np.stack([a[starts_run], b[last]], axis=1).ravel()
        counts = np.diff(edges, prepend=0, append=pixels)
        if counts[-1] == 0:
            counts = counts[:-1]
        counts_by_key.append((int(key[piece[0]]), counts.tolist()))
    return counts_by_key


def _compress_run_lengths(counts: list[int], height: int, width: int) -> str:
    from pycocotools import mask  # type: ignore[import-untyped, unused-ignore]

    packed: Any = mask.frPyObjects({"size": [height, width], "counts": counts}, height, width)
    text: bytes = packed["counts"]
    return text.decode("ascii")


@njit(nogil=True, error_model="numpy")
def _fill_boxes_and_areas(owner: _Labels, bounds: _Ints, area: _Ints) -> None:
    for y in range(owner.shape[0]):
        for x in range(owner.shape[1]):
            k = owner[y, x]
            if not 0 < k < 255:
                continue
            if area[k] == 0:
                bounds[k, 0], bounds[k, 1], bounds[k, 2], bounds[k, 3] = x, y, x, y
            area[k] += 1
            bounds[k, 0], bounds[k, 2] = min(bounds[k, 0], x), max(bounds[k, 2], x)
            bounds[k, 3] = y
