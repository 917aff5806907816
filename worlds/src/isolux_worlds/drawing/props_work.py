"""Props of work, stage, desk and table: tools, boxes, instruments, microphones, books, a tray."""

from __future__ import annotations

import math
from collections.abc import Mapping

from isolux_worlds.drawing.anatomy import interpolate_points
from isolux_worlds.drawing.canvas import Paint, Point
from isolux_worlds.drawing.colour import Colour, darken
from isolux_worlds.drawing.prop_frame import (
    BRASS,
    INK,
    STEEL,
    WOOD,
    Prop,
    PropFrame,
    paint_stick_and_find_upper_end,
)

__all__ = ["STAGE", "WORK"]


def _paint_hose(frame: PropFrame) -> None:
    hand = frame.hand_point("right")
    path = frame.offset_points(
        hand, (0.25, -0.3), (-0.1, 0.1), (-0.5, 1.0), (0.3, 1.7), (-0.4, 2.3)
    )
    frame.curve(path, 0.2, (214.0, 176.0, 96.0), steps=8)
    frame.paint_rod(
        frame.offset_point(hand, 0.05, -0.1),
        frame.offset_point(hand, 0.42, -0.5),
        0.18,
        (196.0, 60.0, 44.0),
    )


def _paint_pitchfork(frame: PropFrame) -> None:
    top = frame.hand_point("right", -0.12, -1.9)
    frame.paint_rod(frame.hand_point("right", 0.1, 2.2), top, 0.09, WOOD)
    for x in (-0.2, 0.0, 0.2):
        frame.paint_rod(
            frame.offset_point(top, x, 0.0), frame.offset_point(top, x, -0.6), 0.05, STEEL
        )
    frame.paint_rod(
        frame.offset_point(top, -0.2, 0.0), frame.offset_point(top, 0.2, 0.0), 0.07, STEEL
    )


def _paint_headed_tool(frame: PropFrame, head: Colour, wide: float, tall: float) -> None:
    frame.paint_slab(
        paint_stick_and_find_upper_end(frame, "right", (-0.12, -0.85), 0.09, WOOD),
        wide,
        tall,
        head,
        0.12,
    )


def _paint_chisel(frame: PropFrame) -> None:
    paint_stick_and_find_upper_end(frame, "right", (-0.1, -0.7), 0.1, STEEL)
    frame.paint_slab(
        paint_stick_and_find_upper_end(frame, "left", (0.12, -0.7), 0.09, WOOD),
        0.24,
        0.15,
        (132.0, 136.0, 142.0),
    )


def _paint_wrench(frame: PropFrame) -> None:
    top = paint_stick_and_find_upper_end(frame, "right", (-0.15, -0.8), 0.12, STEEL)
    frame.paint_disc(top, 0.19, STEEL)
    frame.paint_disc(frame.offset_point(top, -0.05, -0.12), 0.09, (90.0, 94.0, 100.0))


def _paint_saw(frame: PropFrame) -> None:
    hand = frame.hand_point("right")
    blade = frame.offset_points(hand, (-0.1, 0.05), (0.16, 0.05), (0.02, 1.45), (-0.1, 1.45))
    frame.canvas.polygon(blade, STEEL)
    frame.paint_slab(hand, 0.17, 0.15, WOOD, 0.2)


def _paint_toolbox(frame: PropFrame) -> None:
    hand = frame.hand_point("left")
    frame.paint_slab(frame.offset_point(hand, 0.0, 0.45), 0.6, 0.27, (196.0, 54.0, 46.0))
    frame.paint_slab(frame.offset_point(hand, 0.0, 0.2), 0.62, 0.06, (150.0, 40.0, 36.0))
    frame.curve(frame.offset_points(hand, (-0.25, 0.18), (0.0, 0.0), (0.25, 0.18)), 0.08, INK)


def _paint_cardboard_box(frame: PropFrame) -> None:
    frame.paint_slab(frame.chest_point(1.0), 0.78, 0.45, (196.0, 152.0, 100.0))
    frame.paint_slab(frame.chest_point(1.0), 0.1, 0.45, (222.0, 192.0, 146.0))


def _paint_basket(frame: PropFrame) -> None:
    centre = frame.chest_point(1.05)
    fruits = ((200.0, 50.0, 44.0), (236.0, 170.0, 50.0), (110.0, 150.0, 60.0))
    for k in range(5):
        frame.paint_disc(
            frame.offset_point(centre, -0.48 + 0.24 * k, -0.2 - 0.06 * (k % 2)), 0.17, fruits[k % 3]
        )
    edge = frame.offset_points(centre, (-0.75, -0.16), (0.75, -0.16), (0.58, 0.36), (-0.58, 0.36))
    frame.canvas.polygon(
        edge, Paint((176.0, 128.0, 76.0), grain=0.3, grain_px=max(1.0, 0.08 * frame.u))
    )


def _paint_cable(frame: PropFrame) -> None:
    for r in (0.4, 0.3, 0.2):
        frame.curve(
            frame.ellipse_points(frame.hand_point("left", 0.0, 0.3), r, r, 5),
            0.06,
            (44.0, 46.0, 52.0),
        )
    paint_stick_and_find_upper_end(frame, "right", (-0.05, -0.55), 0.09, (232.0, 190.0, 50.0))


def _paint_watering_can(frame: PropFrame) -> None:
    hand, green = frame.hand_point("left", 0.0, 0.42), (76.0, 132.0, 104.0)
    frame.paint_rod(
        frame.offset_point(hand, 0.3, 0.15), frame.offset_point(hand, 0.85, -0.35), 0.1, green
    )
    frame.paint_disc(frame.offset_point(hand, 0.88, -0.38), 0.16, darken(green, 0.2))
    frame.paint_slab(hand, 0.38, 0.32, green)
    handle = frame.offset_points(hand, (-0.3, -0.3), (0.0, -0.52), (0.3, -0.3))
    frame.curve(handle, 0.08, darken(green, 0.25))


def _paint_scissors(frame: PropFrame) -> None:
    for s in (-1.0, 1.0):
        frame.paint_rod(
            frame.hand_point("right", 0.08 * s),
            frame.hand_point("right", -0.14 * s, -0.62),
            0.055,
            STEEL,
        )
        frame.paint_disc(frame.hand_point("right", 0.1 * s, 0.08), 0.1, (200.0, 60.0, 70.0))
    frame.paint_rod(frame.hand_point("left"), frame.hand_point("left", 0.1, -0.6), 0.12, INK)


def _paint_radio(frame: PropFrame) -> None:
    frame.paint_slab(frame.hand_point("right", 0.0, -0.15), 0.13, 0.26, INK)
    frame.paint_rod(
        frame.hand_point("right", 0.08, -0.4), frame.hand_point("right", 0.08, -0.75), 0.04, INK
    )


def _paint_clipboard(frame: PropFrame) -> None:
    centre = frame.hand_point("left", 0.0, -0.25)
    frame.paint_slab(centre, 0.36, 0.48, (138.0, 96.0, 58.0), -0.1)
    frame.paint_slab(frame.offset_point(centre, 0.0, 0.03), 0.3, 0.4, (246.0, 246.0, 242.0), -0.1)
    frame.paint_slab(frame.offset_point(centre, -0.04, -0.44), 0.14, 0.06, STEEL, -0.1)


def _paint_infusion_stand(frame: PropFrame) -> None:
    pole = frame.hand_point("left", 0.15, 0.0)
    frame.paint_rod(
        frame.offset_point(pole, 0.0, -2.6), frame.offset_point(pole, 0.0, 2.6), 0.07, STEEL
    )
    frame.paint_slab(frame.offset_point(pole, 0.1, -2.2), 0.2, 0.32, (212.0, 232.0, 240.0))


def _paint_palette(frame: PropFrame) -> None:
    centre = frame.hand_point("left", 0.1, -0.1)
    frame.paint_disc(centre, 0.52, (206.0, 162.0, 110.0), 0.72)
    inks = (
        (200.0, 50.0, 44.0),
        (40.0, 100.0, 180.0),
        (240.0, 196.0, 50.0),
        (60.0, 140.0, 80.0),
        (250.0, 250.0, 246.0),
    )
    for k, ink in enumerate(inks):
        frame.paint_disc(
            frame.offset_point(centre, -0.3 + 0.15 * k, -0.16 + 0.06 * abs(k - 2)), 0.07, ink
        )
    paint_stick_and_find_upper_end(frame, "right", (0.1, -0.7), 0.05, WOOD)


def _offset_points_from_throat(frame: PropFrame, *offsets: Point) -> list[Point]:
    return frame.offset_points(frame.figure.joint_midpoint("shoulder"), *offsets)


def _paint_stethoscope(frame: PropFrame) -> None:
    tube = (36.0, 42.0, 54.0)
    path = ((-0.26, -0.26), (-0.30, 0.3), (-0.05, 0.78), (0.22, 0.4), (0.26, -0.26))
    frame.curve(_offset_points_from_throat(frame, *path), 0.075, tube)
    frame.curve(_offset_points_from_throat(frame, (-0.05, 0.77), (0.1, 1.1)), 0.065, tube)
    frame.paint_disc(_offset_points_from_throat(frame, (0.1, 1.16))[0], 0.12, STEEL)


def _paint_whistle(frame: PropFrame) -> None:
    frame.curve(
        _offset_points_from_throat(frame, (-0.24, -0.2), (0.0, 0.62), (0.24, -0.2)),
        0.035,
        (206.0, 44.0, 44.0),
    )
    frame.paint_disc(_offset_points_from_throat(frame, (0.0, 0.7))[0], 0.1, BRASS)
    frame.paint_slab(frame.hand_point("right", 0.0, -0.22), 0.15, 0.2, (240.0, 208.0, 50.0))


WORK: Mapping[str, Prop] = {
    "stethoscope": _paint_stethoscope,
    "hose": _paint_hose,
    "pitchfork": _paint_pitchfork,
    "mallet": lambda h: _paint_headed_tool(h, darken(WOOD, 0.3), 0.3, 0.17),
    "gavel": lambda h: _paint_headed_tool(h, (112.0, 62.0, 36.0), 0.26, 0.15),
    "chisel": _paint_chisel,
    "wrench": _paint_wrench,
    "saw": _paint_saw,
    "toolbox": _paint_toolbox,
    "box": _paint_cardboard_box,
    "basket": _paint_basket,
    "cable": _paint_cable,
    "watering_can": _paint_watering_can,
    "scissors": _paint_scissors,
    "radio": _paint_radio,
    "baton": lambda h: paint_stick_and_find_upper_end(
        h, "right", (-0.1, 1.1), 0.12, (32.0, 32.0, 36.0)
    ),
    "clipboard": _paint_clipboard,
    "palette": _paint_palette,
    "drip": _paint_infusion_stand,
    "whistle": _paint_whistle,
}
"""Word of an outfit to its painter."""


def _paint_guitar(frame: PropFrame) -> None:
    body, head = frame.chest_point(0.9, -0.25, 0.0), frame.chest_point(0.28, 1.75, 0.1)
    frame.paint_rod(body, head, 0.13, darken(WOOD, 0.35))
    frame.paint_disc(frame.offset_point(body, -0.22, 0.10), 0.58, (190.0, 112.0, 48.0))
    frame.paint_disc(frame.offset_point(body, 0.32, -0.14), 0.44, (190.0, 112.0, 48.0))
    frame.paint_disc(frame.offset_point(body, 0.12, -0.04), 0.19, (44.0, 26.0, 16.0))
    string = Paint((232.0, 226.0, 210.0), alpha=0.8)
    for k in (-1.0, 0.0, 1.0):
        string_ends = [
            frame.offset_point(body, -0.4, 0.16 + 0.03 * k),
            frame.offset_point(head, 0.0, 0.03 * k),
        ]
        frame.canvas.line(string_ends, 0.018 * frame.u, string)
    frame.paint_slab(head, 0.17, 0.1, darken(WOOD, 0.5), -0.35)


def _paint_tray(frame: PropFrame) -> None:
    hand = frame.hand_point("left", 0.0, -0.1)
    frame.paint_disc(hand, 0.75, (206.0, 210.0, 216.0), 0.2)
    for x in (-0.32, 0.05, 0.38):
        frame.paint_slab(frame.offset_point(hand, x, -0.26), 0.1, 0.24, (196.0, 228.0, 236.0))
        frame.paint_slab(frame.offset_point(hand, x, -0.14), 0.1, 0.12, (196.0, 90.0, 60.0))


def _paint_laptop(frame: PropFrame) -> None:
    centre = frame.chest_point(0.86, 0.0, 0.1)
    frame.paint_slab(frame.offset_point(centre, 0.0, -0.28), 0.78, 0.5, (66.0, 70.0, 78.0))
    frame.paint_slab(frame.offset_point(centre, 0.0, 0.27), 0.9, 0.07, (176.0, 180.0, 188.0))
    frame.paint_disc(frame.offset_point(centre, 0.0, -0.28), 0.1, (214.0, 218.0, 224.0))


def _paint_books(frame: PropFrame) -> None:
    centre = frame.hand_point("left", 0.02, -0.15)
    for k, colour in enumerate(((176.0, 58.0, 52.0), (60.0, 110.0, 150.0), (226.0, 182.0, 84.0))):
        frame.paint_slab(frame.offset_point(centre, 0.03 * k, -0.18 * k), 0.52, 0.08, colour)


def _paint_book(frame: PropFrame) -> None:
    centre = frame.hand_point("right", -0.02, -0.1)
    frame.paint_slab(centre, 0.34, 0.44, (54.0, 92.0, 128.0), 0.15)
    frame.paint_slab(
        frame.offset_point(centre, 0.03, -0.02), 0.22, 0.05, (236.0, 224.0, 190.0), 0.15
    )


def _paint_microphone(frame: PropFrame) -> None:
    top = frame.hand_point("right", 0.08, -0.42)
    frame.paint_rod(frame.hand_point("right", -0.04, 0.16), top, 0.12, INK)
    frame.paint_disc(top, 0.15, (92.0, 96.0, 104.0))


def _paint_reporter_microphone(frame: PropFrame) -> None:
    _paint_microphone(frame)
    frame.paint_slab(frame.hand_point("right", 0.05, -0.2), 0.13, 0.11, (196.0, 52.0, 48.0))


def _paint_flute(frame: PropFrame) -> None:
    a, b = frame.offset_points(frame.figure.mouth_midpoint, (-0.25, 0.12), (1.7, 0.3))
    frame.paint_rod(a, b, 0.085, (208.0, 212.0, 220.0))
    for k in range(7):
        frame.paint_disc(interpolate_points(a, b, 0.35 + 0.08 * k), 0.03, (120.0, 124.0, 132.0))


def _paint_trumpet(frame: PropFrame) -> None:
    start, end = frame.offset_points(frame.figure.mouth_midpoint, (0.04, 0.16), (1.15, 0.5))
    frame.paint_rod(start, end, 0.1, BRASS)
    for k in range(3):
        valve = interpolate_points(start, end, 0.35 + 0.13 * k)
        frame.paint_rod(valve, frame.offset_point(valve, 0, 0.25), 0.09, darken(BRASS, 0.15))
    frame.canvas.capsule(
        end,
        0.08 * frame.u,
        frame.offset_point(end, 0.38, 0.12),
        0.32 * frame.u,
        Paint(BRASS, round=0.6),
    )


def _paint_drumsticks(frame: PropFrame) -> None:
    for body_side, x in (("right", 0.45), ("left", -0.45)):
        paint_stick_and_find_upper_end(frame, body_side, (x, -0.75), 0.06, (222.0, 190.0, 136.0))


def _paint_bottle(frame: PropFrame) -> None:
    low, top, neck, cap = (frame.hand_point("right", 0.0, y) for y in (0.2, -0.3, -0.4, -0.58))
    frame.paint_rod(low, top, 0.24, (70.0, 140.0, 110.0))
    frame.paint_rod(neck, cap, 0.1, (70.0, 140.0, 110.0))
    frame.paint_slab(frame.hand_point("right", 0.0, -0.05), 0.12, 0.13, (240.0, 236.0, 222.0))


def _paint_headphones(frame: PropFrame) -> None:
    x, y = frame.figure.joint_midpoint("shoulder")
    u = frame.u
    frame.curve(
        [(x - 0.34 * u, y - 0.12 * u), (x, y + 0.12 * u), (x + 0.34 * u, y - 0.12 * u)], 0.09, INK
    )
    for s in (-1.0, 1.0):
        frame.paint_disc((x + 0.34 * s * u, y - 0.08 * u), 0.17, (206.0, 52.0, 60.0), 1.15)


def _paint_prayer_beads(frame: PropFrame) -> None:
    for k in range(12):
        a = 2 * math.pi * k / 12
        bead = frame.hand_point("right", 0.18 * math.cos(a), 0.32 + 0.32 * math.sin(a))
        frame.paint_disc(bead, 0.06, (112.0, 66.0, 40.0))


def _paint_lectern(frame: PropFrame) -> None:
    top = frame.chest_point(1.05)
    face = frame.offset_points(top, (-0.8, 0.0), (0.8, 0.0), (0.6, 3.4), (-0.6, 3.4))
    across, grain_px = (*face[0], *face[1]), max(1.0, 0.1 * frame.u)
    wood = Paint((122.0, 78.0, 48.0), round=0.3, across=across, grain=0.08, grain_px=grain_px)
    frame.canvas.polygon(face, wood)
    frame.paint_slab(frame.offset_point(top, 0.0, -0.02), 0.95, 0.1, (150.0, 100.0, 62.0))
    frame.paint_rod(
        frame.offset_point(top, 0.35, -0.05), frame.offset_point(top, 0.2, -0.7), 0.045, INK
    )
    frame.paint_disc(frame.offset_point(top, 0.19, -0.74), 0.08, INK)


STAGE: Mapping[str, Prop] = {
    "guitar": _paint_guitar,
    "tray": _paint_tray,
    "laptop": _paint_laptop,
    "books": _paint_books,
    "book": _paint_book,
    "microphone": _paint_microphone,
    "reporter_microphone": _paint_reporter_microphone,
    "flute": _paint_flute,
    "trumpet": _paint_trumpet,
    "drumsticks": _paint_drumsticks,
    "bottle": _paint_bottle,
    "headphones": _paint_headphones,
    "beads": _paint_prayer_beads,
    "lectern": _paint_lectern,
}
"""Word of an outfit to its painter."""
