"""Worlds made by hand: one photo, people whose place, pose and looks a test chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from isolux_worlds.drawing.anatomy import build_person_figure
from isolux_worlds.photo_world.poses import POSES, draw_joint_positions
from isolux_worlds.photo_world.vocabulary import BUILT_IN_ATTRIBUTES
from isolux_worlds.photo_world.world import PhotoWorld

WIDTH, HEIGHT = 320, 240

PLAIN = {
    "scene": "park", "time_of_day": "daytime", "weather": "clear", "lighting": "well_lit",
    "perceived_gender_presentation": "masculine", "skin_tone": "5", "age_group": "middle",
    "hair_color": "black", "hair_type": "straight", "facial_hair": "no", "tattoo": "no",
    "occupation": "student", "headwear": "none", "eyewear": "none", "mask": "none",
    "pose": "standing", "view": "full", "distance": "near", "occlusion": "none",
}  # fmt: skip
"""The values of everybody and of the photo where a test names none."""
_OF_IMAGE = tuple(name for name, drawn in BUILT_IN_ATTRIBUTES.items() if drawn.level == "image")


def person(
    number: int = 1, *, x: float = 160.0, foot: float = 230.0, tall: float = 210.0,
    layer: int = 0, age: int = 30, **words: str,
) -> dict[str, Any]:  # fmt: skip
    """A row of ``people``: somebody ``tall`` pixels tall, whose hips are at ``x``."""
    named = PLAIN | words
    poses = tuple(POSES)
    body = draw_joint_positions(
        np.array([poses.index(named["pose"])]), poses, np.random.default_rng(number)
    )
    xs = body.x[:, 0] * tall + x
    ys = (body.y[:, 0] - body.y[:, 0].max()) * tall + foot
    half_w = abs(float(xs[8] - xs[7])) / 2
    top, bottom = (
        float((v[0] - body.y[:, 0].max()) * tall + foot) for v in (body.face_top, body.face_bottom)
    )
    return {
        "person_id": number, "image_id": "000001", "subject_id": f"s{number:06d}", "layer": layer,
        "box_x": 0.0, "box_y": 0.0, "box_w": float(WIDTH), "box_h": float(HEIGHT),
        "face_x": float(xs[7]), "face_y": top, "face_w": 2 * half_w, "face_h": bottom - top,
        "joints_x": xs.astype(np.float32).tolist(), "joints_y": ys.astype(np.float32).tolist(),
        "age": age, **named,
    }  # fmt: skip


def world(*people: dict[str, Any], seed: int = 3, **photo: str) -> PhotoWorld:
    """A world of one photo."""
    described = {name: PLAIN[name] for name in _OF_IMAGE} | photo
    rows = [row | described for row in people]
    image = {
        "image_id": "000001", "household_id": "h00001", "width": WIDTH, "height": HEIGHT,
        "caption": "Somebody.", **described,
    }  # fmt: skip
    schema = {"joints_x": pl.List(pl.Float32), "joints_y": pl.List(pl.Float32)}
    table = pl.DataFrame(rows or [person() | described], schema_overrides=schema)
    none = pl.DataFrame()
    return PhotoWorld(
        settings=None, seed=seed, households=none, subjects=none, photos=pl.DataFrame([image]),
        people=table if rows else table.clear(),
    )  # fmt: skip


def figure(row: dict[str, Any], owner: int = 1):
    """The figure that is painted for a row."""
    return build_person_figure(row, owner, 3)
