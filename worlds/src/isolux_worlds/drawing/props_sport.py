"""Props of sport and the open air: balls, rackets, helmets that are carried, ropes, packs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from isolux_worlds.drawing.anatomy import interpolate_points
from isolux_worlds.drawing.canvas import Paint
from isolux_worlds.drawing.colour import Colour, dark, light
from isolux_worlds.drawing.prop_frame import INK, WOOD, Prop, PropFrame

__all__ = ["CARRIED", "SPORT"]


def _basketball(h: PropFrame) -> None:
    centre, r, line = h.hand("left", 0.0, 0.06), 0.5, (50.0, 30.0, 20.0)
    h.disc(centre, r, (214.0, 112.0, 46.0))
    for k in (-1.0, 0.0, 1.0):
        half_chord, middle = k * 0.35 * r, k * 0.75 * r
        h.curve(
            h.offsets_around(centre, (-0.9 * r, half_chord), (0, middle), (0.9 * r, half_chord)),
            0.03,
            line,
        )
    h.canvas.line(h.offsets_around(centre, (0, -0.97 * r), (0, 0.97 * r)), 0.03 * h.u, line)


def _football(h: PropFrame) -> None:
    centre = h.hand("left", 0.0, 0.05)
    h.disc(centre, 0.46, (244.0, 244.0, 242.0))
    for k in range(6):
        a = 2 * math.pi * k / 5
        patch_centre = (
            centre if k == 5 else h.offset(centre, 0.33 * math.cos(a), 0.33 * math.sin(a))
        )
        h.disc(patch_centre, 0.12, (28.0, 28.0, 32.0))


def _racket(h: PropFrame) -> None:
    hand = h.hand("right")
    top = h.offset(hand, -0.35, -1.15)
    h.rod(h.offset(hand, 0.06, 0.22), interpolate_points(hand, top, 0.55), 0.1, (50.0, 50.0, 56.0))
    h.disc(top, 0.5, (206.0, 60.0, 52.0), 1.15)
    h.disc(top, 0.42, (236.0, 240.0, 236.0), 1.15)
    grid = Paint((150.0, 158.0, 156.0), alpha=0.8)
    for k in range(-3, 4):
        h.canvas.line(h.offsets_around(top, (0.11 * k, -0.42), (0.11 * k, 0.42)), 0.012 * h.u, grid)
        h.canvas.line(h.offsets_around(top, (-0.38, 0.12 * k), (0.38, 0.12 * k)), 0.012 * h.u, grid)


def _bat(h: PropFrame) -> None:
    low, top = h.hand("right", 0.03, 0.2), h.hand("right", -0.5, -1.45)
    wood = Paint((206.0, 160.0, 98.0), round=0.5)
    h.canvas.capsule(low, 0.045 * h.u, top, 0.13 * h.u, wood)


def _paddle(h: PropFrame) -> None:
    blade = h.hand("right", -0.2, 1.4)
    h.rod(h.hand("right", 0.25, -1.7), blade, 0.09, WOOD)
    h.rod(blade, h.hand("right", -0.28, 2.0), 0.36, (226.0, 150.0, 60.0))


def _skateboard(h: PropFrame) -> None:
    hand = h.hand("left", 0.1, 0.2)
    h.rod(h.offset(hand, -0.05, -1.0), h.offset(hand, 0.1, 1.0), 0.42, (196.0, 140.0, 84.0))
    for y in (-0.62, 0.66):
        for x in (0.2, -0.14):
            h.disc(h.offset(hand, x, y), 0.12, (232.0, 226.0, 206.0))


def _visored(h: PropFrame, colour: Colour, visor: Colour) -> None:
    centre = h.hand("left", 0.05, 0.15)
    h.disc(centre, 0.58, colour, 0.95)
    edge = ((-0.42, -0.16), (0, -0.3), (0.42, -0.16), (0.36, 0.18), (0, 0.26), (-0.36, 0.18))
    shine = (*h.offset(centre, -0.4, 0.3), *h.offset(centre, 0.3, -0.3))
    h.canvas.blob(
        h.offsets_around(centre, *edge), Paint(visor, end_colour=light(visor, 0.5), along=shine)
    )


def _hat(h: PropFrame, colour: Colour) -> None:
    centre = h.hand("left", 0.05, 0.15)
    h.disc(centre, 0.58, colour, 0.95)
    h.disc(h.offset(centre, 0.0, 0.34), 0.72, dark(colour, 0.12), 0.16)


def _riding_helmet(h: PropFrame) -> None:
    _hat(h, (38.0, 34.0, 36.0))
    h.rod(h.hand("right"), h.hand("right", -0.25, 1.1), 0.05, dark(WOOD, 0.4))


def _rope(h: PropFrame) -> None:
    hand = h.hand("left", 0.0, 0.35)
    for k in range(4):
        r = 0.42 - 0.05 * k
        colour = (236.0 - 30 * (k % 2), 120.0 + 60 * (k % 2), 60.0)
        h.curve(h.circle(hand, r, 1.1 * r, 5), 0.075, colour)


def _pompoms(h: PropFrame) -> None:
    for body_side in ("right", "left"):
        hand = h.hand(body_side)
        for k in range(14):
            a = 2 * math.pi * k / 14
            colour = ((214.0, 56.0, 50.0), (246.0, 226.0, 120.0))[k % 2]
            h.rod(hand, h.offset(hand, 0.5 * math.cos(a), 0.5 * math.sin(a)), 0.11, colour)


def _ribbon(h: PropFrame) -> None:
    hand, end = h.hand("right"), h.hand("right", -0.1, -0.5)
    path = h.offsets_around(hand, *((-0.4 - 0.22 * k, -0.5 + 0.45 * (-1) ** k) for k in range(6)))
    h.curve([end, *path], 0.08, (226.0, 74.0, 120.0), steps=8)
    h.rod(hand, end, 0.05, INK)


def _buoy(h: PropFrame) -> None:
    hand = h.hand("left", 0.0, 0.45)
    h.curve(h.circle(hand, 0.5, 0.5, 8), 0.24, (236.0, 92.0, 44.0))
    for k in range(4):
        a = math.pi / 4 + math.pi / 2 * k
        h.disc(h.offset(hand, 0.5 * math.cos(a), 0.5 * math.sin(a)), 0.13, (246.0, 244.0, 238.0))


def _backpack(h: PropFrame) -> None:
    x, y = centre = h.chest(0.32)
    u = h.u
    h.slab(centre, 1.05, 0.95, (196.0, 92.0, 48.0))
    h.rod((x - 0.9 * u, y - 0.98 * u), (x + 0.9 * u, y - 0.98 * u), 0.36, (84.0, 104.0, 76.0))


def _field_pack(h: PropFrame) -> None:
    centre = h.chest(0.34)
    h.slab(centre, 1.02, 0.85, (88.0, 92.0, 58.0))
    h.slab(h.offset(centre, 0.0, -0.75), 0.9, 0.14, (66.0, 68.0, 44.0))


SPORT: Mapping[str, Prop] = {
    "basketball": _basketball,
    "football": _football,
    "racket": _racket,
    "helmet": lambda h: _visored(h, (176.0, 40.0, 44.0), (26.0, 30.0, 38.0)),
    "space_helmet": lambda h: _visored(h, (236.0, 238.0, 240.0), (190.0, 140.0, 54.0)),
    "hard_hat": lambda h: _hat(h, (240.0, 196.0, 52.0)),
    "riding_helmet": _riding_helmet,
    "skateboard": _skateboard,
    "bat": _bat,
    "paddle": _paddle,
    "rope": _rope,
    "pompoms": _pompoms,
    "ribbon": _ribbon,
    "hoop": lambda h: h.curve(
        h.circle(h.hand("right", -0.75, 0.0), 0.85, 0.95, 8), 0.09, (240.0, 150.0, 40.0)
    ),
    "buoy": _buoy,
}
"""Word of an outfit to its painter."""

CARRIED: Mapping[str, Prop] = {"backpack": _backpack, "field_pack": _field_pack}
"""What hangs behind the body."""
