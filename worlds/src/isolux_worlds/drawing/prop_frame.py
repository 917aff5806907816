"""Where a prop goes, and the simple solids that props are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from isolux_worlds.drawing.anatomy import PersonFigure, interpolate_points
from isolux_worlds.drawing.canvas import Canvas, Paint, Point
from isolux_worlds.drawing.colour import Colour

__all__ = ["BRASS", "INK", "STEEL", "WOOD", "Prop", "PropFrame", "paint_stick_and_find_upper_end"]

WOOD: Colour = (150.0, 100.0, 58.0)
STEEL: Colour = (172.0, 178.0, 186.0)
BRASS: Colour = (214.0, 172.0, 72.0)
INK: Colour = (34.0, 34.0, 38.0)


@dataclass(frozen=True, slots=True)
class PropFrame:
    """Where a prop goes: both hands, the unit, and the canvas."""

    canvas: Canvas
    figure: PersonFigure
    u: float

    def hand_point(self, body_side: str, x: float = 0.0, y: float = 0.0) -> Point:
        """Return the middle of a hand, or the place that many heads to the right and down."""
        j = self.figure.joints
        return self.offset_point(
            interpolate_points(j[f"{body_side}_wrist"], j[f"{body_side}_index"], 0.7), x, y
        )

    def chest_point(self, down: float, x: float = 0.0, y: float = 0.0) -> Point:
        """Return a place between the shoulders (0) and the hips (1), or that far from it."""
        return self.offset_point(
            interpolate_points(
                self.figure.joint_midpoint("shoulder"), self.figure.joint_midpoint("hip"), down
            ),
            x,
            y,
        )

    def offset_points(self, anchor: Point, *offsets: Point) -> list[Point]:
        """Return the places that many heads to the right and down."""
        return [self.offset_point(anchor, x, y) for x, y in offsets]

    def ellipse_points(self, centre: Point, rx: float, ry: float, n: int) -> list[Point]:
        """Return places on an ellipse, the first once more at the end."""
        angles = [k / n * math.pi for k in range(2 * n + 1)]
        return [self.offset_point(centre, rx * math.cos(a), ry * math.sin(a)) for a in angles]

    def curve(self, path: list[Point], wide: float, colour: Colour, steps: int = 4) -> None:
        """Paint a smooth line, so many heads wide."""
        self.canvas.curve(path, wide * self.u, colour, steps=steps)

    def offset_point(self, anchor: Point, x: float, y: float) -> Point:
        """Return the place that many heads to the right and down."""
        return anchor[0] + x * self.u, anchor[1] + y * self.u

    def paint_rod(self, a: Point, b: Point, wide: float, colour: Colour) -> None:
        """Paint a rod from ``a`` to ``b``, so many heads wide."""
        self.canvas.capsule(a, wide * self.u / 2, b, wide * self.u / 2, Paint(colour, round=0.6))

    def paint_disc(self, centre: Point, r: float, colour: Colour, flat: float = 1.0) -> None:
        """Paint a ball or a disc."""
        self.canvas.ellipse(centre, r * self.u, r * flat * self.u, Paint(colour, round=0.55))

    def paint_slab(
        self, centre: Point, w: float, h: float, colour: Colour, turn: float = 0.0
    ) -> None:
        """Paint a rectangle of half a width and half a height, turned by radians."""
        c, s = math.cos(turn), math.sin(turn)
        around = ((-w, -h), (w, -h), (w, h), (-w, h))
        corners = self.offset_points(centre, *((x * c - y * s, x * s + y * c) for x, y in around))
        self.canvas.polygon(corners, Paint(colour, round=0.2, across=(*corners[0], *corners[1])))


Prop = Callable[[PropFrame], object]


def paint_stick_and_find_upper_end(
    frame: PropFrame, body_side: str, up: Point, wide: float, colour: Colour
) -> Point:
    """Paint a stick in a hand, and return its upper end."""
    hand = frame.hand_point(body_side)
    top = frame.offset_point(hand, *up)
    frame.paint_rod(frame.offset_point(hand, -0.15 * up[0], -0.15 * up[1]), top, wide, colour)
    return top
