"""Props of work: tools, boxes, a clipboard, a stethoscope, a radio."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from isolux_worlds.drawing.canvas import Paint
from isolux_worlds.drawing.colour import Colour, dark
from isolux_worlds.drawing.prop_hold import BRASS, INK, STEEL, WOOD, Hold, stick

__all__ = ["WORK"]


def _hose(h: Hold) -> None:
    hand = h.hand("right")
    path = [
        h.off(hand, 0.25, -0.3),
        h.off(hand, -0.1, 0.1),
        h.off(hand, -0.5, 1.0),
        h.off(hand, 0.3, 1.7),
        h.off(hand, -0.4, 2.3),
    ]
    h.canvas.curve(path, 0.2 * h.u, Paint((214.0, 176.0, 96.0)), steps=8)
    h.rod(h.off(hand, 0.05, -0.1), h.off(hand, 0.42, -0.5), 0.18, (196.0, 60.0, 44.0))


def _pitchfork(h: Hold) -> None:
    hand = h.hand("right")
    top = h.off(hand, -0.12, -1.9)
    h.rod(h.off(hand, 0.1, 2.2), top, 0.09, WOOD)
    for x in (-0.2, 0.0, 0.2):
        h.rod(h.off(top, x, 0.0), h.off(top, x, -0.6), 0.05, STEEL)
    h.rod(h.off(top, -0.2, 0.0), h.off(top, 0.2, 0.0), 0.07, STEEL)


def _headed_tool(h: Hold, head: Colour, wide: float, tall: float) -> None:
    top = stick(h, "right", (-0.12, -0.85), 0.09, WOOD)
    h.slab(top, wide, tall, head, 0.12)


def _mallet(h: Hold) -> None:
    _headed_tool(h, dark(WOOD, 0.3), 0.3, 0.17)


def _gavel(h: Hold) -> None:
    _headed_tool(h, (112.0, 62.0, 36.0), 0.26, 0.15)


def _chisel(h: Hold) -> None:
    stick(h, "right", (-0.1, -0.7), 0.1, STEEL)
    _headed_tool_left(h)


def _headed_tool_left(h: Hold) -> None:
    top = stick(h, "left", (0.12, -0.7), 0.09, WOOD)
    h.slab(top, 0.24, 0.15, (132.0, 136.0, 142.0))


def _wrench(h: Hold) -> None:
    top = stick(h, "right", (-0.15, -0.8), 0.12, STEEL)
    h.disc(top, 0.19, STEEL)
    h.disc(h.off(top, -0.05, -0.12), 0.09, (90.0, 94.0, 100.0))


def _saw(h: Hold) -> None:
    hand = h.hand("right")
    blade = [
        h.off(hand, -0.1, 0.05),
        h.off(hand, 0.16, 0.05),
        h.off(hand, 0.02, 1.45),
        h.off(hand, -0.1, 1.45),
    ]
    h.canvas.polygon(blade, Paint(STEEL))
    h.slab(hand, 0.17, 0.15, WOOD, 0.2)


def _toolbox(h: Hold) -> None:
    hand = h.hand("left")
    h.slab(h.off(hand, 0.0, 0.45), 0.6, 0.27, (196.0, 54.0, 46.0))
    h.slab(h.off(hand, 0.0, 0.2), 0.62, 0.06, (150.0, 40.0, 36.0))
    h.canvas.curve(
        [h.off(hand, -0.25, 0.18), h.off(hand, 0.0, 0.0), h.off(hand, 0.25, 0.18)],
        0.08 * h.u,
        Paint(INK),
    )


def _box(h: Hold) -> None:
    place = h.off(h.chest(1.0), 0.0, 0.0)
    h.slab(place, 0.78, 0.45, (196.0, 152.0, 100.0))
    h.slab(place, 0.1, 0.45, (222.0, 192.0, 146.0))


def _basket(h: Hold) -> None:
    place = h.off(h.chest(1.05), 0.0, 0.0)
    fruits = ((200.0, 50.0, 44.0), (236.0, 170.0, 50.0), (110.0, 150.0, 60.0))
    for k in range(5):
        h.disc(h.off(place, -0.48 + 0.24 * k, -0.2 - 0.06 * (k % 2)), 0.17, fruits[k % 3])
    edge = [
        h.off(place, -0.75, -0.16),
        h.off(place, 0.75, -0.16),
        h.off(place, 0.58, 0.36),
        h.off(place, -0.58, 0.36),
    ]
    h.canvas.polygon(edge, Paint((176.0, 128.0, 76.0), grain=0.3, grain_px=max(1.0, 0.08 * h.u)))


def _cable(h: Hold) -> None:
    hand = h.off(h.hand("left"), 0.0, 0.3)
    for r in (0.4, 0.3, 0.2):
        ring = [
            h.off(hand, r * math.cos(a / 5 * math.pi), r * math.sin(a / 5 * math.pi))
            for a in range(11)
        ]
        h.canvas.curve(ring, 0.06 * h.u, Paint((44.0, 46.0, 52.0)))
    stick(h, "right", (-0.05, -0.55), 0.09, (232.0, 190.0, 50.0))


def _watering_can(h: Hold) -> None:
    hand = h.off(h.hand("left"), 0.0, 0.42)
    green = (76.0, 132.0, 104.0)
    h.rod(h.off(hand, 0.3, 0.15), h.off(hand, 0.85, -0.35), 0.1, green)
    h.disc(h.off(hand, 0.88, -0.38), 0.16, dark(green, 0.2))
    h.slab(hand, 0.38, 0.32, green)
    h.canvas.curve(
        [h.off(hand, -0.3, -0.3), h.off(hand, 0.0, -0.52), h.off(hand, 0.3, -0.3)],
        0.08 * h.u,
        Paint(dark(green, 0.25)),
    )


def _scissors(h: Hold) -> None:
    hand = h.hand("right")
    for s in (-1.0, 1.0):
        h.rod(h.off(hand, 0.08 * s, 0.0), h.off(hand, -0.14 * s, -0.62), 0.055, STEEL)
        h.disc(h.off(hand, 0.1 * s, 0.08), 0.1, (200.0, 60.0, 70.0))
    h.rod(h.hand("left"), h.off(h.hand("left"), 0.1, -0.6), 0.12, INK)


def _radio(h: Hold) -> None:
    hand = h.hand("right")
    h.slab(h.off(hand, 0.0, -0.15), 0.13, 0.26, INK)
    h.rod(h.off(hand, 0.08, -0.4), h.off(hand, 0.08, -0.75), 0.04, INK)


def _baton(h: Hold) -> None:
    stick(h, "right", (-0.1, 1.1), 0.12, (32.0, 32.0, 36.0))


def _clipboard(h: Hold) -> None:
    place = h.off(h.hand("left"), 0.0, -0.25)
    h.slab(place, 0.36, 0.48, (138.0, 96.0, 58.0), -0.1)
    h.slab(h.off(place, 0.0, 0.03), 0.3, 0.4, (246.0, 246.0, 242.0), -0.1)
    h.slab(h.off(place, -0.04, -0.44), 0.14, 0.06, STEEL, -0.1)


def _drip(h: Hold) -> None:
    pole = h.off(h.hand("left"), 0.15, 0.0)
    h.rod(h.off(pole, 0.0, -2.6), h.off(pole, 0.0, 2.6), 0.07, STEEL)
    h.slab(h.off(pole, 0.1, -2.2), 0.2, 0.32, (212.0, 232.0, 240.0))


def _palette(h: Hold) -> None:
    place = h.off(h.hand("left"), 0.1, -0.1)
    h.disc(place, 0.52, (206.0, 162.0, 110.0), 0.72)
    inks = ((200.0, 50.0, 44.0), (40.0, 100.0, 180.0), (240.0, 196.0, 50.0), (60.0, 140.0, 80.0),
            (250.0, 250.0, 246.0))  # fmt: skip
    for k, ink in enumerate(inks):
        h.disc(h.off(place, -0.3 + 0.15 * k, -0.16 + 0.06 * abs(k - 2)), 0.07, ink)
    stick(h, "right", (0.1, -0.7), 0.05, WOOD)


def _stethoscope(h: Hold) -> None:
    x, y = h.figure.middle("shoulder")
    u, tube = h.u, Paint((36.0, 42.0, 54.0))
    path = [
        (x - 0.26 * u, y - 0.26 * u),
        (x - 0.30 * u, y + 0.3 * u),
        (x - 0.05 * u, y + 0.78 * u),
        (x + 0.22 * u, y + 0.4 * u),
        (x + 0.26 * u, y - 0.26 * u),
    ]
    h.canvas.curve(path, 0.075 * u, tube)
    h.canvas.curve([(x - 0.05 * u, y + 0.77 * u), (x + 0.1 * u, y + 1.1 * u)], 0.065 * u, tube)
    h.disc((x + 0.1 * u, y + 1.16 * u), 0.12, STEEL)


def _whistle(h: Hold) -> None:
    x, y = h.figure.middle("shoulder")
    u = h.u
    cord = [(x - 0.24 * u, y - 0.2 * u), (x, y + 0.62 * u), (x + 0.24 * u, y - 0.2 * u)]
    h.canvas.curve(cord, 0.035 * u, Paint((206.0, 44.0, 44.0)))
    h.disc((x, y + 0.7 * u), 0.1, BRASS)
    h.slab(h.off(h.hand("right"), 0.0, -0.22), 0.15, 0.2, (240.0, 208.0, 50.0))


WORK: Mapping[str, Callable[[Hold], None]] = {
    "stethoscope": _stethoscope,
    "hose": _hose,
    "pitchfork": _pitchfork,
    "mallet": _mallet,
    "gavel": _gavel,
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
    "baton": _baton,
    "clipboard": _clipboard,
    "palette": _palette,
    "drip": _drip,
    "whistle": _whistle,
}
"""Word of an outfit to its painter."""
