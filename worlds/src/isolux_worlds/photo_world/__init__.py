"""A rendered world: households, their people and photos, every probability of which is known.

``settings`` reads a world, ``people.py`` draws it, ``injected_effects.py`` simulates for whom a
model is right and gives the exact rate of every group. Pixels, native layouts and simulated models'
files are made elsewhere, in ``drawing``, ``layouts`` and ``predictors``.
"""

from __future__ import annotations

from isolux_worlds.photo_world.injected_effects import compute_person_rates, draw_is_right
from isolux_worlds.photo_world.people import draw_people
from isolux_worlds.photo_world.settings import (
    PRESETS,
    WorldSettings,
    format_world_yaml,
    parse_world,
    preset,
    read_world,
)
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = [
    "PRESETS",
    "PhotoWorld",
    "WorldSettings",
    "compute_person_rates",
    "draw_is_right",
    "draw_people",
    "format_world_yaml",
    "parse_world",
    "preset",
    "read_world",
]
