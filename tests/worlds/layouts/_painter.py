"""A painter of blobs: quick pictures of a photo world, with known owners and parts.

It stands in for ``drawing`` where a test is about files: each person is an ellipse of clothing
with a square face, hair and eyes, the later one in front; a bar in front of everybody cuts a hole.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from isolux.geometry.masks import masks_to_coco
from isolux_worlds.layouts import PaintedPicture
from isolux_worlds.photo_world.tables import PARTS
from isolux_worlds.photo_world.world import PhotoWorld
from tests._masks import masks_from_bitmaps

NOBODY, OCCLUDER = 0, 255


def painted(world: PhotoWorld) -> Iterator[PaintedPicture]:
    for image_id, width, height in world.photos.select("image_id", "width", "height").rows():
        people = world.people.filter(image_id=image_id)
        owner = np.zeros((height, width), np.uint8)
        part = np.zeros((height, width), np.uint8)
        for k, person in enumerate(people.to_dicts(), start=1):
            _paint(person, k, owner, part)
        random = np.random.default_rng(int(image_id))
        yield PaintedPicture(
            image_id,
            random.integers(0, 255, (height, width, 3), dtype=np.uint8),
            owner,
            part,
            _seen(people, owner, part, width, height),
        )


def _paint(person, k, owner, part):
    rows, columns = np.mgrid[: owner.shape[0], : owner.shape[1]]

    def fill(x, y, w, h, name, *, who=k, round_=False):
        inside = (columns >= x) & (columns < x + w) & (rows >= y) & (rows < y + h)
        if round_:
            middle = (columns - x - w / 2) / (w / 2), (rows - y - h / 2) / (h / 2)
            inside &= middle[0] ** 2 + middle[1] ** 2 <= 1
        owner[inside] = who
        part[inside] = PARTS.index(name) + 1 if name else 0

    x, y, w, h = (person[f"box_{side}"] for side in "xywh")
    fill(x, y, w, h, "upper_clothing", round_=True)
    fill(x + w / 2 - 4, y + h / 2 - 3, 8, 6, None, who=OCCLUDER)  # a hole
    x, y, w, h = (person[f"face_{side}"] for side in "xywh")
    fill(x, y, w, h, "face_skin")
    fill(x, y, w, h / 4, "head_hair")
    fill(x + w / 5, y + h / 2, w / 5, h / 8, "right_eye")
    fill(x + 3 * w / 5, y + h / 2, w / 5, h / 8, "left_eye")


def _seen(people, owner, part, width, height):
    rows = []
    for k, person in enumerate(people.to_dicts(), start=1):
        mine = owner == k
        box = masks_from_bitmaps([mine]).box_xywh[0]
        parts = [PARTS[p - 1] for p in np.unique(part[mine]) if p]
        masks = [{"part": p, "counts": _counts(mine & (part == PARTS.index(p) + 1))} for p in parts]
        inside = [
            0 <= x < width and 0 <= y < height
            for x, y in zip(person["joints_x"], person["joints_y"], strict=True)
        ]
        shown = [
            int(i) + int(i and bool(mine[int(y), int(x)]))
            for i, x, y in zip(inside, person["joints_x"], person["joints_y"], strict=True)
        ]
        rows.append(
            person
            | dict(zip([f"box_{s}" for s in "xywh"], map(float, box), strict=True))
            | {
                "joints_v": shown,
                "mask_counts": _counts(mine),
                "seen_share": 1.0,
                "part_masks": masks,
            }
        )
    kinds = {**people.schema, "joints_v": pl.List(pl.Int8)}
    return pl.DataFrame(rows, schema_overrides=kinds)


def _counts(mask):
    return masks_to_coco(masks_from_bitmaps([mask]))[0]["counts"].decode()
