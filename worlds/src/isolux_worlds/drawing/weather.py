"""Weather before the people: rain, snow, and the haze that far things fade into.

Under a roof none of it falls; it shows through the window (``interiors.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

from isolux_worlds.drawing.canvas import Paint
from isolux_worlds.drawing.colour import Colour, light
from isolux_worlds.drawing.setting import Setting

__all__ = ["haze_colour", "haze_of", "paint_falling", "paint_fog_and_puddles"]

_FOG_PER_HEIGHT: Mapping[str, float] = {"foggy": 0.42, "rainy": 0.10, "snowy": 0.14}
"""Haze over a person who is half as tall as the photo."""


def haze_colour(s: Setting) -> Colour:
    """Return what far things fade to."""
    return light(s.sky[1], 0.1)


def haze_of(s: Setting, stature: float) -> float:
    """Return how much of a person is lost in haze, 0 to 0.8: more, the smaller they stand."""
    if s.indoors:
        return 0.0
    return min(0.8, _FOG_PER_HEIGHT.get(s.weather, 0.0) / max(stature, 0.1) * 0.5)


def paint_fog_and_puddles(s: Setting) -> None:
    """Paint fog over the scene, or puddles on its ground; call it before the people."""
    if s.indoors:
        return
    if s.weather == "foggy":
        veil = haze_colour(s)
        s.rectangle(0, 0, s.width, s.horizon + 0.06 * s.height, Paint(veil, alpha=0.66))
        for k in range(8):  # thinner towards the viewer
            y = s.horizon + (0.06 + 0.045 * k) * s.height
            s.rectangle(0, y, s.width, y + 0.046 * s.height, Paint(veil, alpha=0.6 - 0.07 * k))
    if s.weather == "rainy":
        for x, y in s.rng.uniform((0.0, 0.66), (1.0, 0.98), (7, 2)).tolist():
            wide = 0.16 * s.width * (y - 0.5)
            pool = Paint(s.sky[1], alpha=0.45, soft=4.0)
            s.canvas.ellipse(s.at(x, y), wide, 0.16 * wide, pool)


def paint_falling(s: Setting) -> None:
    """Paint rain or snow in front of everything; labels stay as they are."""
    if s.indoors or s.weather not in {"rainy", "snowy"}:
        return
    drops = s.rng.uniform(0, 1, (190, 3)).tolist()
    slant = s.uniform(-0.02, 0.02)
    for x, y, near in drops:
        place = s.at(x, y)
        if s.weather == "rainy":
            fall = (0.03 + 0.05 * near) * s.height
            end = (place[0] + slant * s.width * near, place[1] + fall)
            streak = Paint((214.0, 222.0, 232.0), alpha=0.22 + 0.25 * near)
            s.canvas.capsule(place, 0.35 + 0.35 * near, end, 0.35 + 0.35 * near, streak)
        else:
            r = (0.002 + 0.006 * near**2) * s.height
            flake = Paint((248.0, 250.0, 252.0), alpha=0.85, soft=r)
            s.canvas.ellipse(place, r, r, flake)
