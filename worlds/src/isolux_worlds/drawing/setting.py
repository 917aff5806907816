"""What a scene is painted with: the canvas, the horizon, and colours by time of day and weather.

People stand on a ground that rises to the horizon (``photo_world/placement.py`` puts feet there):
it is at the same height in every photo.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isolux_worlds.drawing.canvas import Canvas, Paint, Point
from isolux_worlds.drawing.colour import Colour, hex_to_rgb, lighten, mix_colours

__all__ = [
    "HORIZON",
    "BackgroundScene",
    "compute_haze_colour",
    "compute_haze_share",
    "paint_fog_and_puddles",
    "paint_rain_or_snow",
]

HORIZON = 0.58
"""Of the photo's height, from above."""
INDOORS = frozenset({"home", "shop"})

_SKY: Mapping[str, tuple[str, str]] = {
    "daytime": ("#4f8fd0", "#cfe4f2"),
    "dawn_dusk": ("#5b5f97", "#f3a871"),
    "night": ("#0b1026", "#27335a"),
}
_CLOUDED: Mapping[str, tuple[str, float]] = {
    "clear": ("#ffffff", 0.0),
    "overcast": ("#b9c0c6", 0.80),
    "rainy": ("#8b959e", 0.85),
    "snowy": ("#d3d9de", 0.85),
    "foggy": ("#cdd2d4", 0.90),
}
_DUSK_TINT: Mapping[str, tuple[str, float]] = {
    "daytime": ("#ffffff", 0.0),
    "dawn_dusk": ("#7a4a52", 0.22),
    "night": ("#0a0f22", 0.62),
}


@dataclass(frozen=True, slots=True)
class BackgroundScene:
    """Where a photo was taken, ready to be painted."""

    canvas: Canvas
    scene: str
    time_of_day: str
    weather: str
    rng: np.random.Generator

    @property
    def width(self) -> float:
        """Pixels."""
        return float(self.canvas.width)

    @property
    def height(self) -> float:
        """Pixels."""
        return float(self.canvas.height)

    @property
    def horizon(self) -> float:
        """The horizon's y in pixels."""
        return HORIZON * self.height

    @property
    def night(self) -> bool:
        """Return whether lamps are lit."""
        return self.time_of_day == "night"

    @property
    def indoors(self) -> bool:
        """Return whether there is a roof."""
        return self.scene in INDOORS

    @property
    def sky(self) -> tuple[Colour, Colour]:
        """Colours of the sky above and at the horizon."""
        top, low = (hex_to_rgb(c) for c in _SKY[self.time_of_day])
        cloud, share = _CLOUDED[self.weather]
        grey = self.tint(hex_to_rgb(cloud))
        return mix_colours(top, grey, share), mix_colours(low, grey, share * 0.85)

    def tint(self, colour: Colour | str) -> Colour:
        """Return a colour as it looks at this time of day and in this weather."""
        base = hex_to_rgb(colour) if isinstance(colour, str) else colour
        shade, share = _DUSK_TINT[self.time_of_day]
        base = mix_colours(base, hex_to_rgb(shade), share)
        if self.weather in {"overcast", "rainy"} and not self.indoors:
            grey = sum(base) / 3
            base = mix_colours(base, (grey * 0.9, grey * 0.93, grey * 0.97), 0.35)
        return base

    def ground(self, colour: str) -> Colour:
        """Return a ground's colour: white under snow, darker when wet."""
        base = self.tint(colour)
        if self.weather == "snowy":
            return mix_colours(base, self.tint("#f0f4f8"), 0.85)
        return mix_colours(base, (30.0, 34.0, 40.0), 0.25) if self.weather == "rainy" else base

    def rectangle(
        self, x0: float, y0: float, x1: float, y1: float, paint_with: Paint | Colour
    ) -> None:
        """Paint a rectangle."""
        self.canvas.polygon([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], paint_with)

    def to_pixel(self, x: float, y: float) -> Point:
        """Return the pixel of parts of width and height."""
        return x * self.width, y * self.height

    def to_pixels(self, *points: Point) -> list[Point]:
        """Return the pixels of places in parts of width and height."""
        return [self.to_pixel(x, y) for x, y in points]

    def uniform(self, low: float, high: float) -> float:
        """Draw a number."""
        return float(self.rng.uniform(low, high))

    def one_of(self, *colours: str) -> Colour:
        """Draw a colour, as it looks now."""
        return self.tint(colours[int(self.rng.integers(len(colours)))])


_FOG_PER_HEIGHT: Mapping[str, float] = {"foggy": 0.42, "rainy": 0.10, "snowy": 0.14}
"""Haze over a person who is half as tall as the photo."""


def compute_haze_colour(scene: BackgroundScene) -> Colour:
    """Return what far things fade to."""
    return lighten(scene.sky[1], 0.1)


def compute_haze_share(scene: BackgroundScene, stature_px: float) -> float:
    """Return how much of a person is lost in haze, 0 to 0.8: more, the smaller they stand."""
    if scene.indoors:
        return 0.0
    return min(0.8, _FOG_PER_HEIGHT.get(scene.weather, 0.0) / max(stature_px, 0.1) * 0.5)


def paint_fog_and_puddles(scene: BackgroundScene) -> None:
    """Paint fog over the scene, or puddles on its ground; call it before the people."""
    if scene.indoors:
        return
    if scene.weather == "foggy":
        veil = compute_haze_colour(scene)
        scene.rectangle(
            0, 0, scene.width, scene.horizon + 0.06 * scene.height, Paint(veil, alpha=0.66)
        )
        for k in range(8):  # thinner towards the viewer
            y = scene.horizon + (0.06 + 0.045 * k) * scene.height
            scene.rectangle(
                0, y, scene.width, y + 0.046 * scene.height, Paint(veil, alpha=0.6 - 0.07 * k)
            )
    if scene.weather == "rainy":
        for x, y in scene.rng.uniform((0.0, 0.66), (1.0, 0.98), (7, 2)).tolist():
            wide = 0.16 * scene.width * (y - 0.5)
            pool = Paint(scene.sky[1], alpha=0.45, soft=4.0)
            scene.canvas.ellipse(scene.to_pixel(x, y), wide, 0.16 * wide, pool)


def paint_rain_or_snow(scene: BackgroundScene) -> None:
    """Paint rain or snow in front of everything; labels stay as they are."""
    if scene.indoors or scene.weather not in {"rainy", "snowy"}:
        return
    drops = scene.rng.uniform(0, 1, (190, 3)).tolist()
    slant = scene.uniform(-0.02, 0.02)
    for x, y, near in drops:
        centre = scene.to_pixel(x, y)
        if scene.weather == "rainy":
            fall = (0.03 + 0.05 * near) * scene.height
            end = (centre[0] + slant * scene.width * near, centre[1] + fall)
            streak = Paint((214.0, 222.0, 232.0), alpha=0.22 + 0.25 * near)
            scene.canvas.capsule(centre, 0.35 + 0.35 * near, end, 0.35 + 0.35 * near, streak)
        else:
            r = (0.002 + 0.006 * near**2) * scene.height
            flake = Paint((248.0, 250.0, 252.0), alpha=0.85, soft=r)
            scene.canvas.ellipse(centre, r, r, flake)
