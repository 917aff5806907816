"""Props of sport and the open air: balls, rackets, helmets that are carried, ropes, packs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from isolux_worlds.drawing.anatomy import interpolate_points
from isolux_worlds.drawing.canvas import Paint
from isolux_worlds.drawing.colour import Colour, darken, lighten
from isolux_worlds.drawing.prop_frame import INK, WOOD, Prop, PropFrame

__all__ = ["CARRIED", "SPORT"]


def _paint_basketball(frame: PropFrame) -> None:
    centre, r, line = frame.hand_point("left", 0.0, 0.06), 0.5, (50.0, 30.0, 20.0)
    frame.paint_disc(centre, r, (214.0, 112.0, 46.0))
    for k in (-1.0, 0.0, 1.0):
        half_chord, middle = k * 0.35 * r, k * 0.75 * r
        frame.curve(
            frame.offset_points(centre, (-0.9 * r, half_chord), (0, middle), (0.9 * r, half_chord)),
            0.03,
            line,
        )
    frame.canvas.line(
        frame.offset_points(centre, (0, -0.97 * r), (0, 0.97 * r)), 0.03 * frame.u, line
    )


def _paint_football(frame: PropFrame) -> None:
    centre = frame.hand_point("left", 0.0, 0.05)
    frame.paint_disc(centre, 0.46, (244.0, 244.0, 242.0))
    for k in range(6):
        a = 2 * math.pi * k / 5
        patch_centre = (
            centre if k == 5 else frame.offset_point(centre, 0.33 * math.cos(a), 0.33 * math.sin(a))
        )
        frame.paint_disc(patch_centre, 0.12, (28.0, 28.0, 32.0))


def _paint_racket(frame: PropFrame) -> None:
    hand = frame.hand_point("right")
    top = frame.offset_point(hand, -0.35, -1.15)
    frame.paint_rod(
        frame.offset_point(hand, 0.06, 0.22),
        interpolate_points(hand, top, 0.55),
        0.1,
        (50.0, 50.0, 56.0),
    )
    frame.paint_disc(top, 0.5, (206.0, 60.0, 52.0), 1.15)
    frame.paint_disc(top, 0.42, (236.0, 240.0, 236.0), 1.15)
    grid = Paint((150.0, 158.0, 156.0), alpha=0.8)
    for k in range(-3, 4):
        frame.canvas.line(
            frame.offset_points(top, (0.11 * k, -0.42), (0.11 * k, 0.42)), 0.012 * frame.u, grid
        )
        frame.canvas.line(
            frame.offset_points(top, (-0.38, 0.12 * k), (0.38, 0.12 * k)), 0.012 * frame.u, grid
        )


def _paint_bat(frame: PropFrame) -> None:
    low, top = frame.hand_point("right", 0.03, 0.2), frame.hand_point("right", -0.5, -1.45)
    wood = Paint((206.0, 160.0, 98.0), round=0.5)
    frame.canvas.capsule(low, 0.045 * frame.u, top, 0.13 * frame.u, wood)


def _paint_paddle(frame: PropFrame) -> None:
    blade = frame.hand_point("right", -0.2, 1.4)
    frame.paint_rod(frame.hand_point("right", 0.25, -1.7), blade, 0.09, WOOD)
    frame.paint_rod(blade, frame.hand_point("right", -0.28, 2.0), 0.36, (226.0, 150.0, 60.0))


def _paint_skateboard(frame: PropFrame) -> None:
    hand = frame.hand_point("left", 0.1, 0.2)
    frame.paint_rod(
        frame.offset_point(hand, -0.05, -1.0),
        frame.offset_point(hand, 0.1, 1.0),
        0.42,
        (196.0, 140.0, 84.0),
    )
    for y in (-0.62, 0.66):
        for x in (0.2, -0.14):
            frame.paint_disc(frame.offset_point(hand, x, y), 0.12, (232.0, 226.0, 206.0))


def _paint_visored_helmet(frame: PropFrame, colour: Colour, visor: Colour) -> None:
    centre = frame.hand_point("left", 0.05, 0.15)
    frame.paint_disc(centre, 0.58, colour, 0.95)
    edge = ((-0.42, -0.16), (0, -0.3), (0.42, -0.16), (0.36, 0.18), (0, 0.26), (-0.36, 0.18))
    shine = (*frame.offset_point(centre, -0.4, 0.3), *frame.offset_point(centre, 0.3, -0.3))
    frame.canvas.blob(
        frame.offset_points(centre, *edge),
        Paint(visor, end_colour=lighten(visor, 0.5), along=shine),
    )


def _paint_brimmed_hat(frame: PropFrame, colour: Colour) -> None:
    centre = frame.hand_point("left", 0.05, 0.15)
    frame.paint_disc(centre, 0.58, colour, 0.95)
    frame.paint_disc(frame.offset_point(centre, 0.0, 0.34), 0.72, darken(colour, 0.12), 0.16)


def _paint_riding_helmet(frame: PropFrame) -> None:
    _paint_brimmed_hat(frame, (38.0, 34.0, 36.0))
    frame.paint_rod(
        frame.hand_point("right"), frame.hand_point("right", -0.25, 1.1), 0.05, darken(WOOD, 0.4)
    )


def _paint_rope(frame: PropFrame) -> None:
    hand = frame.hand_point("left", 0.0, 0.35)
    for k in range(4):
        r = 0.42 - 0.05 * k
        colour = (236.0 - 30 * (k % 2), 120.0 + 60 * (k % 2), 60.0)
        frame.curve(frame.ellipse_points(hand, r, 1.1 * r, 5), 0.075, colour)


def _paint_pompoms(frame: PropFrame) -> None:
    for body_side in ("right", "left"):
        hand = frame.hand_point(body_side)
        for k in range(14):
            a = 2 * math.pi * k / 14
            colour = ((214.0, 56.0, 50.0), (246.0, 226.0, 120.0))[k % 2]
            frame.paint_rod(
                hand, frame.offset_point(hand, 0.5 * math.cos(a), 0.5 * math.sin(a)), 0.11, colour
            )


def _paint_ribbon(frame: PropFrame) -> None:
    hand, end = frame.hand_point("right"), frame.hand_point("right", -0.1, -0.5)
    path = frame.offset_points(
        hand, *((-0.4 - 0.22 * k, -0.5 + 0.45 * (-1) ** k) for k in range(6))
    )
    frame.curve([end, *path], 0.08, (226.0, 74.0, 120.0), steps=8)
    frame.paint_rod(hand, end, 0.05, INK)


def _paint_buoy(frame: PropFrame) -> None:
    hand = frame.hand_point("left", 0.0, 0.45)
    frame.curve(frame.ellipse_points(hand, 0.5, 0.5, 8), 0.24, (236.0, 92.0, 44.0))
    for k in range(4):
        a = math.pi / 4 + math.pi / 2 * k
        frame.paint_disc(
            frame.offset_point(hand, 0.5 * math.cos(a), 0.5 * math.sin(a)),
            0.13,
            (246.0, 244.0, 238.0),
        )


def _paint_backpack(frame: PropFrame) -> None:
    x, y = centre = frame.chest_point(0.32)
    u = frame.u
    frame.paint_slab(centre, 1.05, 0.95, (196.0, 92.0, 48.0))
    frame.paint_rod(
        (x - 0.9 * u, y - 0.98 * u), (x + 0.9 * u, y - 0.98 * u), 0.36, (84.0, 104.0, 76.0)
    )


def _paint_field_pack(frame: PropFrame) -> None:
    centre = frame.chest_point(0.34)
    frame.paint_slab(centre, 1.02, 0.85, (88.0, 92.0, 58.0))
    frame.paint_slab(frame.offset_point(centre, 0.0, -0.75), 0.9, 0.14, (66.0, 68.0, 44.0))


SPORT: Mapping[str, Prop] = {
    "basketball": _paint_basketball,
    "football": _paint_football,
    "racket": _paint_racket,
    "helmet": lambda h: _paint_visored_helmet(h, (176.0, 40.0, 44.0), (26.0, 30.0, 38.0)),
    "space_helmet": lambda h: _paint_visored_helmet(h, (236.0, 238.0, 240.0), (190.0, 140.0, 54.0)),
    "hard_hat": lambda h: _paint_brimmed_hat(h, (240.0, 196.0, 52.0)),
    "riding_helmet": _paint_riding_helmet,
    "skateboard": _paint_skateboard,
    "bat": _paint_bat,
    "paddle": _paint_paddle,
    "rope": _paint_rope,
    "pompoms": _paint_pompoms,
    "ribbon": _paint_ribbon,
    "hoop": lambda h: h.curve(
        h.ellipse_points(h.hand_point("right", -0.75, 0.0), 0.85, 0.95, 8),
        0.09,
        (240.0, 150.0, 40.0),
    ),
    "buoy": _paint_buoy,
}
"""Word of an outfit to its painter."""

CARRIED: Mapping[str, Prop] = {"backpack": _paint_backpack, "field_pack": _paint_field_pack}
"""What hangs behind the body."""
