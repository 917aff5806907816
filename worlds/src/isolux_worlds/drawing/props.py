"""What people hold or have next to them: one painter for each word of ``Outfit.prop``.

A prop hides what is behind it and belongs to no one: its pixels have the owner 0 and the part
``prop``. It hangs on the joints of the hands, so that it goes with the pose.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from isolux_worlds.drawing.anatomy import PersonFigure
from isolux_worlds.drawing.canvas import NO_OWNER, Canvas
from isolux_worlds.drawing.colour import darken
from isolux_worlds.drawing.prop_frame import WOOD, PropFrame
from isolux_worlds.drawing.props_sport import CARRIED, SPORT
from isolux_worlds.drawing.props_work import STAGE, WORK

__all__ = ["BEHIND", "FRONT", "paint_prop", "paint_prop_behind", "paint_seat"]

FRONT = {**SPORT, **STAGE, **WORK}
"""What is in the hands or before the body."""
BEHIND = CARRIED
"""What hangs behind it."""


def paint_prop_behind(canvas: Canvas, figure: PersonFigure, prop: str) -> None:
    """Paint a prop that stands or hangs behind a person (a backpack); call it first."""
    if prop in BEHIND:
        with _paint_as_nobodys_part(canvas):
            BEHIND[prop](PropFrame(canvas, figure, figure.u))


def paint_prop(canvas: Canvas, figure: PersonFigure, prop: str) -> None:
    """Paint a prop in the hands or before the body; call it after the arms."""
    if prop in FRONT:
        with _paint_as_nobodys_part(canvas):
            FRONT[prop](PropFrame(canvas, figure, figure.u))


def paint_seat(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint a bench under a person who sits; call it before the body."""
    h = PropFrame(canvas, figure, figure.u)
    x, y = figure.joint_midpoint("hip")
    _, floor = figure.joint_midpoint("heel")
    with canvas.as_part(NO_OWNER):
        for s in (-1.0, 1.0):
            h.paint_rod(
                (x + 0.95 * s * h.u, y), (x + 1.0 * s * h.u, floor), 0.16, darken(WOOD, 0.35)
            )
        h.paint_slab((x, y + 0.2 * h.u), 1.3, 0.13, WOOD)
        h.paint_slab((x, y + 0.36 * h.u), 1.3, 0.05, darken(WOOD, 0.3))


def _paint_as_nobodys_part(canvas: Canvas) -> AbstractContextManager[None]:
    return canvas.as_part(NO_OWNER, "prop")
