"""The piece of clothing that a detail is painted on, and the chest's own coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from isolux_worlds.drawing.anatomy import Figure, Frame
from isolux_worlds.drawing.canvas import Canvas
from isolux_worlds.drawing.colour import Colour

__all__ = ["Cloth", "Painter", "trunk_frame"]


@dataclass(frozen=True, slots=True)
class Cloth:
    """Where a detail goes: the canvas, who wears it, the chest's frame, the trim's colour."""

    canvas: Canvas
    figure: Figure
    chest: Frame
    colour: Colour

    @property
    def u(self) -> float:
        """A head's height in pixels."""
        return self.figure.u


Painter = Callable[[Cloth], None]


def trunk_frame(figure: Figure) -> Frame:
    """Coordinates of the chest: −1 to 1 from shoulder to shoulder, 0 shoulders, 1 hips."""
    middle, hips = figure.middle("shoulder"), figure.middle("hip")
    left = figure.joints["left_shoulder"]
    return Frame(
        middle,
        (left[0] - middle[0], left[1] - middle[1]),
        (hips[0] - middle[0], hips[1] - middle[1]),
    )
