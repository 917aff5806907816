"""Props of work: tools, boxes, a clipboard, a stethoscope, a radio."""

from __future__ import annotations

from collections.abc import Mapping

from isolux_worlds.drawing.canvas import Paint, Point
from isolux_worlds.drawing.colour import Colour, dark
from isolux_worlds.drawing.prop_hold import BRASS, INK, STEEL, WOOD, Hold, Prop, stick

__all__ = ["WORK"]


def _hose(h: Hold) -> None:
    hand = h.hand("right")
    path = h.around(hand, (0.25, -0.3), (-0.1, 0.1), (-0.5, 1.0), (0.3, 1.7), (-0.4, 2.3))
    h.curve(path, 0.2, (214.0, 176.0, 96.0), steps=8)
    h.rod(h.off(hand, 0.05, -0.1), h.off(hand, 0.42, -0.5), 0.18, (196.0, 60.0, 44.0))


def _pitchfork(h: Hold) -> None:
    top = h.hand("right", -0.12, -1.9)
    h.rod(h.hand("right", 0.1, 2.2), top, 0.09, WOOD)
    for x in (-0.2, 0.0, 0.2):
        h.rod(h.off(top, x, 0.0), h.off(top, x, -0.6), 0.05, STEEL)
    h.rod(h.off(top, -0.2, 0.0), h.off(top, 0.2, 0.0), 0.07, STEEL)


def _headed_tool(h: Hold, head: Colour, wide: float, tall: float) -> None:
    h.slab(stick(h, "right", (-0.12, -0.85), 0.09, WOOD), wide, tall, head, 0.12)


def _chisel(h: Hold) -> None:
    stick(h, "right", (-0.1, -0.7), 0.1, STEEL)
    h.slab(stick(h, "left", (0.12, -0.7), 0.09, WOOD), 0.24, 0.15, (132.0, 136.0, 142.0))


def _wrench(h: Hold) -> None:
    top = stick(h, "right", (-0.15, -0.8), 0.12, STEEL)
    h.disc(top, 0.19, STEEL)
    h.disc(h.off(top, -0.05, -0.12), 0.09, (90.0, 94.0, 100.0))


def _saw(h: Hold) -> None:
    hand = h.hand("right")
    blade = h.around(hand, (-0.1, 0.05), (0.16, 0.05), (0.02, 1.45), (-0.1, 1.45))
    h.canvas.polygon(blade, STEEL)
    h.slab(hand, 0.17, 0.15, WOOD, 0.2)


def _toolbox(h: Hold) -> None:
    hand = h.hand("left")
    h.slab(h.off(hand, 0.0, 0.45), 0.6, 0.27, (196.0, 54.0, 46.0))
    h.slab(h.off(hand, 0.0, 0.2), 0.62, 0.06, (150.0, 40.0, 36.0))
    h.curve(h.around(hand, (-0.25, 0.18), (0.0, 0.0), (0.25, 0.18)), 0.08, INK)


def _box(h: Hold) -> None:
    h.slab(h.chest(1.0), 0.78, 0.45, (196.0, 152.0, 100.0))
    h.slab(h.chest(1.0), 0.1, 0.45, (222.0, 192.0, 146.0))


def _basket(h: Hold) -> None:
    place = h.chest(1.05)
    fruits = ((200.0, 50.0, 44.0), (236.0, 170.0, 50.0), (110.0, 150.0, 60.0))
    for k in range(5):
        h.disc(h.off(place, -0.48 + 0.24 * k, -0.2 - 0.06 * (k % 2)), 0.17, fruits[k % 3])
    edge = h.around(place, (-0.75, -0.16), (0.75, -0.16), (0.58, 0.36), (-0.58, 0.36))
    h.canvas.polygon(edge, Paint((176.0, 128.0, 76.0), grain=0.3, grain_px=max(1.0, 0.08 * h.u)))


def _cable(h: Hold) -> None:
    for r in (0.4, 0.3, 0.2):
        h.curve(h.circle(h.hand("left", 0.0, 0.3), r, r, 5), 0.06, (44.0, 46.0, 52.0))
    stick(h, "right", (-0.05, -0.55), 0.09, (232.0, 190.0, 50.0))


def _watering_can(h: Hold) -> None:
    hand, green = h.hand("left", 0.0, 0.42), (76.0, 132.0, 104.0)
    h.rod(h.off(hand, 0.3, 0.15), h.off(hand, 0.85, -0.35), 0.1, green)
    h.disc(h.off(hand, 0.88, -0.38), 0.16, dark(green, 0.2))
    h.slab(hand, 0.38, 0.32, green)
    handle = h.around(hand, (-0.3, -0.3), (0.0, -0.52), (0.3, -0.3))
    h.curve(handle, 0.08, dark(green, 0.25))


def _scissors(h: Hold) -> None:
    for s in (-1.0, 1.0):
        h.rod(h.hand("right", 0.08 * s), h.hand("right", -0.14 * s, -0.62), 0.055, STEEL)
        h.disc(h.hand("right", 0.1 * s, 0.08), 0.1, (200.0, 60.0, 70.0))
    h.rod(h.hand("left"), h.hand("left", 0.1, -0.6), 0.12, INK)


def _radio(h: Hold) -> None:
    h.slab(h.hand("right", 0.0, -0.15), 0.13, 0.26, INK)
    h.rod(h.hand("right", 0.08, -0.4), h.hand("right", 0.08, -0.75), 0.04, INK)


def _clipboard(h: Hold) -> None:
    place = h.hand("left", 0.0, -0.25)
    h.slab(place, 0.36, 0.48, (138.0, 96.0, 58.0), -0.1)
    h.slab(h.off(place, 0.0, 0.03), 0.3, 0.4, (246.0, 246.0, 242.0), -0.1)
    h.slab(h.off(place, -0.04, -0.44), 0.14, 0.06, STEEL, -0.1)


def _drip(h: Hold) -> None:
    pole = h.hand("left", 0.15, 0.0)
    h.rod(h.off(pole, 0.0, -2.6), h.off(pole, 0.0, 2.6), 0.07, STEEL)
    h.slab(h.off(pole, 0.1, -2.2), 0.2, 0.32, (212.0, 232.0, 240.0))


def _palette(h: Hold) -> None:
    place = h.hand("left", 0.1, -0.1)
    h.disc(place, 0.52, (206.0, 162.0, 110.0), 0.72)
    inks = ((200.0, 50.0, 44.0), (40.0, 100.0, 180.0), (240.0, 196.0, 50.0), (60.0, 140.0, 80.0),
            (250.0, 250.0, 246.0))  # fmt: skip
    for k, ink in enumerate(inks):
        h.disc(h.off(place, -0.3 + 0.15 * k, -0.16 + 0.06 * abs(k - 2)), 0.07, ink)
    stick(h, "right", (0.1, -0.7), 0.05, WOOD)


def _throat(h: Hold, *offsets: Point) -> list[Point]:
    return h.around(h.figure.middle("shoulder"), *offsets)


def _stethoscope(h: Hold) -> None:
    tube = (36.0, 42.0, 54.0)
    path = ((-0.26, -0.26), (-0.30, 0.3), (-0.05, 0.78), (0.22, 0.4), (0.26, -0.26))
    h.curve(_throat(h, *path), 0.075, tube)
    h.curve(_throat(h, (-0.05, 0.77), (0.1, 1.1)), 0.065, tube)
    h.disc(_throat(h, (0.1, 1.16))[0], 0.12, STEEL)


def _whistle(h: Hold) -> None:
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
    "baton": lambda h: stick(h, "right", (-0.1, 1.1), 0.12, (32.0, 32.0, 36.0)),
    "clipboard": _clipboard,
    "palette": _palette,
    "drip": _drip,
    "whistle": _whistle,
}
"""Word of an outfit to its painter."""
