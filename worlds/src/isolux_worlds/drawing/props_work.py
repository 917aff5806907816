"""Props of work, stage, desk and table: tools, boxes, instruments, microphones, books, a tray."""

from __future__ import annotations

import math
from collections.abc import Mapping

from isolux_worlds.drawing.anatomy import interpolate_points
from isolux_worlds.drawing.canvas import Paint, Point
from isolux_worlds.drawing.colour import Colour, dark
from isolux_worlds.drawing.prop_frame import BRASS, INK, STEEL, WOOD, Prop, PropFrame, paint_stick

__all__ = ["STAGE", "WORK"]


def _hose(h: PropFrame) -> None:
    hand = h.hand("right")
    path = h.offsets_around(hand, (0.25, -0.3), (-0.1, 0.1), (-0.5, 1.0), (0.3, 1.7), (-0.4, 2.3))
    h.curve(path, 0.2, (214.0, 176.0, 96.0), steps=8)
    h.rod(h.offset(hand, 0.05, -0.1), h.offset(hand, 0.42, -0.5), 0.18, (196.0, 60.0, 44.0))


def _pitchfork(h: PropFrame) -> None:
    top = h.hand("right", -0.12, -1.9)
    h.rod(h.hand("right", 0.1, 2.2), top, 0.09, WOOD)
    for x in (-0.2, 0.0, 0.2):
        h.rod(h.offset(top, x, 0.0), h.offset(top, x, -0.6), 0.05, STEEL)
    h.rod(h.offset(top, -0.2, 0.0), h.offset(top, 0.2, 0.0), 0.07, STEEL)


def _headed_tool(h: PropFrame, head: Colour, wide: float, tall: float) -> None:
    h.slab(paint_stick(h, "right", (-0.12, -0.85), 0.09, WOOD), wide, tall, head, 0.12)


def _chisel(h: PropFrame) -> None:
    paint_stick(h, "right", (-0.1, -0.7), 0.1, STEEL)
    h.slab(paint_stick(h, "left", (0.12, -0.7), 0.09, WOOD), 0.24, 0.15, (132.0, 136.0, 142.0))


def _wrench(h: PropFrame) -> None:
    top = paint_stick(h, "right", (-0.15, -0.8), 0.12, STEEL)
    h.disc(top, 0.19, STEEL)
    h.disc(h.offset(top, -0.05, -0.12), 0.09, (90.0, 94.0, 100.0))


def _saw(h: PropFrame) -> None:
    hand = h.hand("right")
    blade = h.offsets_around(hand, (-0.1, 0.05), (0.16, 0.05), (0.02, 1.45), (-0.1, 1.45))
    h.canvas.polygon(blade, STEEL)
    h.slab(hand, 0.17, 0.15, WOOD, 0.2)


def _toolbox(h: PropFrame) -> None:
    hand = h.hand("left")
    h.slab(h.offset(hand, 0.0, 0.45), 0.6, 0.27, (196.0, 54.0, 46.0))
    h.slab(h.offset(hand, 0.0, 0.2), 0.62, 0.06, (150.0, 40.0, 36.0))
    h.curve(h.offsets_around(hand, (-0.25, 0.18), (0.0, 0.0), (0.25, 0.18)), 0.08, INK)


def _box(h: PropFrame) -> None:
    h.slab(h.chest(1.0), 0.78, 0.45, (196.0, 152.0, 100.0))
    h.slab(h.chest(1.0), 0.1, 0.45, (222.0, 192.0, 146.0))


def _basket(h: PropFrame) -> None:
    centre = h.chest(1.05)
    fruits = ((200.0, 50.0, 44.0), (236.0, 170.0, 50.0), (110.0, 150.0, 60.0))
    for k in range(5):
        h.disc(h.offset(centre, -0.48 + 0.24 * k, -0.2 - 0.06 * (k % 2)), 0.17, fruits[k % 3])
    edge = h.offsets_around(centre, (-0.75, -0.16), (0.75, -0.16), (0.58, 0.36), (-0.58, 0.36))
    h.canvas.polygon(edge, Paint((176.0, 128.0, 76.0), grain=0.3, grain_px=max(1.0, 0.08 * h.u)))


def _cable(h: PropFrame) -> None:
    for r in (0.4, 0.3, 0.2):
        h.curve(h.circle(h.hand("left", 0.0, 0.3), r, r, 5), 0.06, (44.0, 46.0, 52.0))
    paint_stick(h, "right", (-0.05, -0.55), 0.09, (232.0, 190.0, 50.0))


def _watering_can(h: PropFrame) -> None:
    hand, green = h.hand("left", 0.0, 0.42), (76.0, 132.0, 104.0)
    h.rod(h.offset(hand, 0.3, 0.15), h.offset(hand, 0.85, -0.35), 0.1, green)
    h.disc(h.offset(hand, 0.88, -0.38), 0.16, dark(green, 0.2))
    h.slab(hand, 0.38, 0.32, green)
    handle = h.offsets_around(hand, (-0.3, -0.3), (0.0, -0.52), (0.3, -0.3))
    h.curve(handle, 0.08, dark(green, 0.25))


def _scissors(h: PropFrame) -> None:
    for s in (-1.0, 1.0):
        h.rod(h.hand("right", 0.08 * s), h.hand("right", -0.14 * s, -0.62), 0.055, STEEL)
        h.disc(h.hand("right", 0.1 * s, 0.08), 0.1, (200.0, 60.0, 70.0))
    h.rod(h.hand("left"), h.hand("left", 0.1, -0.6), 0.12, INK)


def _radio(h: PropFrame) -> None:
    h.slab(h.hand("right", 0.0, -0.15), 0.13, 0.26, INK)
    h.rod(h.hand("right", 0.08, -0.4), h.hand("right", 0.08, -0.75), 0.04, INK)


def _clipboard(h: PropFrame) -> None:
    centre = h.hand("left", 0.0, -0.25)
    h.slab(centre, 0.36, 0.48, (138.0, 96.0, 58.0), -0.1)
    h.slab(h.offset(centre, 0.0, 0.03), 0.3, 0.4, (246.0, 246.0, 242.0), -0.1)
    h.slab(h.offset(centre, -0.04, -0.44), 0.14, 0.06, STEEL, -0.1)


def _drip(h: PropFrame) -> None:
    pole = h.hand("left", 0.15, 0.0)
    h.rod(h.offset(pole, 0.0, -2.6), h.offset(pole, 0.0, 2.6), 0.07, STEEL)
    h.slab(h.offset(pole, 0.1, -2.2), 0.2, 0.32, (212.0, 232.0, 240.0))


def _palette(h: PropFrame) -> None:
    centre = h.hand("left", 0.1, -0.1)
    h.disc(centre, 0.52, (206.0, 162.0, 110.0), 0.72)
    inks = (
        (200.0, 50.0, 44.0),
        (40.0, 100.0, 180.0),
        (240.0, 196.0, 50.0),
        (60.0, 140.0, 80.0),
        (250.0, 250.0, 246.0),
    )
    for k, ink in enumerate(inks):
        h.disc(h.offset(centre, -0.3 + 0.15 * k, -0.16 + 0.06 * abs(k - 2)), 0.07, ink)
    paint_stick(h, "right", (0.1, -0.7), 0.05, WOOD)


def _throat(h: PropFrame, *offsets: Point) -> list[Point]:
    return h.offsets_around(h.figure.middle("shoulder"), *offsets)


def _stethoscope(h: PropFrame) -> None:
    tube = (36.0, 42.0, 54.0)
    path = ((-0.26, -0.26), (-0.30, 0.3), (-0.05, 0.78), (0.22, 0.4), (0.26, -0.26))
    h.curve(_throat(h, *path), 0.075, tube)
    h.curve(_throat(h, (-0.05, 0.77), (0.1, 1.1)), 0.065, tube)
    h.disc(_throat(h, (0.1, 1.16))[0], 0.12, STEEL)


def _whistle(h: PropFrame) -> None:
    h.curve(_throat(h, (-0.24, -0.2), (0.0, 0.62), (0.24, -0.2)), 0.035, (206.0, 44.0, 44.0))
    h.disc(_throat(h, (0.0, 0.7))[0], 0.1, BRASS)
    h.slab(h.hand("right", 0.0, -0.22), 0.15, 0.2, (240.0, 208.0, 50.0))


WORK: Mapping[str, Prop] = {
    "stethoscope": _stethoscope,
    "hose": _hose,
    "pitchfork": _pitchfork,
    "mallet": lambda h: _headed_tool(h, dark(WOOD, 0.3), 0.3, 0.17),
    "gavel": lambda h: _headed_tool(h, (112.0, 62.0, 36.0), 0.26, 0.15),
    "chisel": _chisel,
    "wrench": _wrench,
    "saw": _saw,
    "toolbox": _toolbox,
    "box": _box,
    "basket": _basket,
    "cable": _cable,
    "watering_can": _watering_can,
    "scissors": _scissors,
    "radio": _radio,
    "baton": lambda h: paint_stick(h, "right", (-0.1, 1.1), 0.12, (32.0, 32.0, 36.0)),
    "clipboard": _clipboard,
    "palette": _palette,
    "drip": _drip,
    "whistle": _whistle,
}
"""Word of an outfit to its painter."""


def _guitar(h: PropFrame) -> None:
    body, head = h.chest(0.9, -0.25, 0.0), h.chest(0.28, 1.75, 0.1)
    h.rod(body, head, 0.13, dark(WOOD, 0.35))
    h.disc(h.offset(body, -0.22, 0.10), 0.58, (190.0, 112.0, 48.0))
    h.disc(h.offset(body, 0.32, -0.14), 0.44, (190.0, 112.0, 48.0))
    h.disc(h.offset(body, 0.12, -0.04), 0.19, (44.0, 26.0, 16.0))
    string = Paint((232.0, 226.0, 210.0), alpha=0.8)
    for k in (-1.0, 0.0, 1.0):
        string_ends = [h.offset(body, -0.4, 0.16 + 0.03 * k), h.offset(head, 0.0, 0.03 * k)]
        h.canvas.line(string_ends, 0.018 * h.u, string)
    h.slab(head, 0.17, 0.1, dark(WOOD, 0.5), -0.35)


def _tray(h: PropFrame) -> None:
    hand = h.hand("left", 0.0, -0.1)
    h.disc(hand, 0.75, (206.0, 210.0, 216.0), 0.2)
    for x in (-0.32, 0.05, 0.38):
        h.slab(h.offset(hand, x, -0.26), 0.1, 0.24, (196.0, 228.0, 236.0))
        h.slab(h.offset(hand, x, -0.14), 0.1, 0.12, (196.0, 90.0, 60.0))


def _laptop(h: PropFrame) -> None:
    centre = h.chest(0.86, 0.0, 0.1)
    h.slab(h.offset(centre, 0.0, -0.28), 0.78, 0.5, (66.0, 70.0, 78.0))
    h.slab(h.offset(centre, 0.0, 0.27), 0.9, 0.07, (176.0, 180.0, 188.0))
    h.disc(h.offset(centre, 0.0, -0.28), 0.1, (214.0, 218.0, 224.0))


def _books(h: PropFrame) -> None:
    centre = h.hand("left", 0.02, -0.15)
    for k, colour in enumerate(((176.0, 58.0, 52.0), (60.0, 110.0, 150.0), (226.0, 182.0, 84.0))):
        h.slab(h.offset(centre, 0.03 * k, -0.18 * k), 0.52, 0.08, colour)


def _book(h: PropFrame) -> None:
    centre = h.hand("right", -0.02, -0.1)
    h.slab(centre, 0.34, 0.44, (54.0, 92.0, 128.0), 0.15)
    h.slab(h.offset(centre, 0.03, -0.02), 0.22, 0.05, (236.0, 224.0, 190.0), 0.15)


def _microphone(h: PropFrame) -> None:
    top = h.hand("right", 0.08, -0.42)
    h.rod(h.hand("right", -0.04, 0.16), top, 0.12, INK)
    h.disc(top, 0.15, (92.0, 96.0, 104.0))


def _reporter_microphone(h: PropFrame) -> None:
    _microphone(h)
    h.slab(h.hand("right", 0.05, -0.2), 0.13, 0.11, (196.0, 52.0, 48.0))


def _flute(h: PropFrame) -> None:
    a, b = h.offsets_around(h.figure.middle_of_mouth, (-0.25, 0.12), (1.7, 0.3))
    h.rod(a, b, 0.085, (208.0, 212.0, 220.0))
    for k in range(7):
        h.disc(interpolate_points(a, b, 0.35 + 0.08 * k), 0.03, (120.0, 124.0, 132.0))


def _trumpet(h: PropFrame) -> None:
    start, end = h.offsets_around(h.figure.middle_of_mouth, (0.04, 0.16), (1.15, 0.5))
    h.rod(start, end, 0.1, BRASS)
    for k in range(3):
        valve = interpolate_points(start, end, 0.35 + 0.13 * k)
        h.rod(valve, h.offset(valve, 0, 0.25), 0.09, dark(BRASS, 0.15))
    h.canvas.capsule(
        end, 0.08 * h.u, h.offset(end, 0.38, 0.12), 0.32 * h.u, Paint(BRASS, round=0.6)
    )


def _drumsticks(h: PropFrame) -> None:
    for body_side, x in (("right", 0.45), ("left", -0.45)):
        paint_stick(h, body_side, (x, -0.75), 0.06, (222.0, 190.0, 136.0))


def _bottle(h: PropFrame) -> None:
    low, top, neck, cap = (h.hand("right", 0.0, y) for y in (0.2, -0.3, -0.4, -0.58))
    h.rod(low, top, 0.24, (70.0, 140.0, 110.0))
    h.rod(neck, cap, 0.1, (70.0, 140.0, 110.0))
    h.slab(h.hand("right", 0.0, -0.05), 0.12, 0.13, (240.0, 236.0, 222.0))


def _headphones(h: PropFrame) -> None:
    x, y = h.figure.middle("shoulder")
    u = h.u
    h.curve(
        [(x - 0.34 * u, y - 0.12 * u), (x, y + 0.12 * u), (x + 0.34 * u, y - 0.12 * u)], 0.09, INK
    )
    for s in (-1.0, 1.0):
        h.disc((x + 0.34 * s * u, y - 0.08 * u), 0.17, (206.0, 52.0, 60.0), 1.15)


def _beads(h: PropFrame) -> None:
    for k in range(12):
        a = 2 * math.pi * k / 12
        bead = h.hand("right", 0.18 * math.cos(a), 0.32 + 0.32 * math.sin(a))
        h.disc(bead, 0.06, (112.0, 66.0, 40.0))


def _lectern(h: PropFrame) -> None:
    top = h.chest(1.05)
    face = h.offsets_around(top, (-0.8, 0.0), (0.8, 0.0), (0.6, 3.4), (-0.6, 3.4))
    across, grain_px = (*face[0], *face[1]), max(1.0, 0.1 * h.u)
    wood = Paint((122.0, 78.0, 48.0), round=0.3, across=across, grain=0.08, grain_px=grain_px)
    h.canvas.polygon(face, wood)
    h.slab(h.offset(top, 0.0, -0.02), 0.95, 0.1, (150.0, 100.0, 62.0))
    h.rod(h.offset(top, 0.35, -0.05), h.offset(top, 0.2, -0.7), 0.045, INK)
    h.disc(h.offset(top, 0.19, -0.74), 0.08, INK)


STAGE: Mapping[str, Prop] = {
    "guitar": _guitar,
    "tray": _tray,
    "laptop": _laptop,
    "books": _books,
    "book": _book,
    "microphone": _microphone,
    "reporter_microphone": _reporter_microphone,
    "flute": _flute,
    "trumpet": _trumpet,
    "drumsticks": _drumsticks,
    "bottle": _bottle,
    "headphones": _headphones,
    "beads": _beads,
    "lectern": _lectern,
}
"""Word of an outfit to its painter."""
