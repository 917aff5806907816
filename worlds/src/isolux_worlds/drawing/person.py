"""One person from back to front: what is behind them, body, clothes, head, what they hold."""

from __future__ import annotations

from isolux_worlds.drawing.anatomy import PersonFigure
from isolux_worlds.drawing.body import (
    paint_arm_shadow,
    paint_arm_skin,
    paint_leg_skin,
    paint_neck,
    paint_shoes,
    paint_tattoo,
    paint_torso_skin,
)
from isolux_worlds.drawing.canvas import Canvas
from isolux_worlds.drawing.clothing import paint_bottom_garment, paint_sleeve, paint_top_garment
from isolux_worlds.drawing.clothing_details import paint_outfit_details
from isolux_worlds.drawing.face import paint_head
from isolux_worlds.drawing.hair import paint_back_hair, paint_hair
from isolux_worlds.drawing.headwear import (
    paint_back_headwear,
    paint_headwear,
    paint_mask,
    paint_spectacles,
)
from isolux_worlds.drawing.outfits import OUTFITS
from isolux_worlds.drawing.props import paint_prop, paint_prop_behind, paint_seat

__all__ = ["paint_person"]


def paint_person(canvas: Canvas, figure: PersonFigure) -> None:
    """Append everything of a person to a canvas, farthest first."""
    outfit = OUTFITS[figure.words["occupation"]]
    if figure.words["pose"] == "sitting":
        paint_seat(canvas, figure)
    paint_prop_behind(canvas, figure, outfit.prop)
    paint_back_hair(canvas, figure)
    paint_back_headwear(canvas, figure)
    for body_side in ("right", "left"):
        paint_leg_skin(canvas, figure, body_side)
        paint_shoes(canvas, figure, body_side)
    paint_torso_skin(canvas, figure)
    paint_bottom_garment(canvas, figure, outfit)
    paint_neck(canvas, figure)
    paint_top_garment(canvas, figure, outfit)
    paint_outfit_details(canvas, figure, outfit)
    for body_side in ("right", "left"):
        paint_arm_shadow(canvas, figure, body_side)
        paint_arm_skin(canvas, figure, body_side)
        paint_sleeve(canvas, figure, outfit, body_side)
    if figure.words["tattoo"] == "yes":
        paint_tattoo(canvas, figure)
    paint_head(canvas, figure)
    paint_hair(canvas, figure)
    paint_mask(canvas, figure)
    paint_spectacles(canvas, figure)
    paint_headwear(canvas, figure)
    paint_prop(canvas, figure, outfit.prop)
