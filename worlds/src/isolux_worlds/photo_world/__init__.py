"""A rendered world: households, their people and photos, every probability of which is known.

``settings`` reads a world, ``people.py`` draws it, ``injected_effects.py`` simulates for whom a
model is right and gives the exact rate of every group. Pixels, native layouts and simulated models'
files are made elsewhere, in ``drawing``, ``layouts`` and ``predictors``.
"""

from __future__ import annotations

from isolux_worlds.photo_world.injected_effects import draw_is_right, person_rates
from isolux_worlds.photo_world.people import draw_people
from isolux_worlds.photo_world.settings import (
    PRESETS,
    WorldSettings,
    parse_world,
    preset,
    read_world,
    world_text,
)
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = [
    "PRESETS",
    "PhotoWorld",
    "WorldSettings",
    "draw_is_right",
    "draw_people",
    "parse_world",
    "person_rates",
    "preset",
    "read_world",
    "world_text",
]
