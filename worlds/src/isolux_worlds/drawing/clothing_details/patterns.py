"""Details on cloth that is there already: stripes, numbers, badges, bands, straps and so on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from isolux_worlds.drawing.body import torso_outline
from isolux_worlds.drawing.canvas import Paint
from isolux_worlds.drawing.clothing_details.cloth import Cloth, Painter
from isolux_worlds.drawing.colour import WHITE, Colour, dark, light

__all__ = ["PATTERNS"]


def _pattern_lines(c: Cloth, colour: Colour, step: float, wide: float) -> None:
    x = -1.2
    while x < 1.2:
        c.canvas.line([c.chest.at(x, -0.4), c.chest.at(x, 1.6)], wide * c.u, Paint(colour))
        x += step


def _stripes(c: Cloth) -> None:
    _pattern_lines(c, c.colour, 0.3, 0.13)


def _pinstripes(c: Cloth) -> None:
    _pattern_lines(c, c.colour, 0.22, 0.025)


def _check(c: Cloth) -> None:
    _pattern_lines(c, light(c.colour, 0.5), 0.26, 0.05)
    for k in range(10):
        y = -0.2 + 0.17 * k
        c.canvas.line(
            [c.chest.at(-1.2, y), c.chest.at(1.2, y)],
            0.05 * c.u,
            Paint(dark(c.colour, 0.4), alpha=0.55),
        )


def _wave(c: Cloth) -> None:
    c.canvas.ellipse(c.chest.at(0.0, 0.42), 0.26 * c.u, 0.26 * c.u, Paint(c.colour))
    c.canvas.line(
        [
            c.chest.at(-0.24, 0.46),
            c.chest.at(-0.06, 0.32),
            c.chest.at(0.06, 0.5),
            c.chest.at(0.24, 0.34),
        ],
        0.05 * c.u,
        Paint(light(c.colour, 0.7)),
    )


def _number(c: Cloth) -> None:
    """Digits of seven segments: the subject's own number."""
    ink = Paint(WHITE if sum(c.colour) < 420 else c.colour)
    segments = ("abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg",
                "abfgcd")  # fmt: skip
    ends = {
        "a": (0, 0, 1, 0), "b": (1, 0, 1, 1), "c": (1, 1, 1, 2), "d": (0, 2, 1, 2),
        "e": (0, 1, 0, 2), "f": (0, 0, 0, 1), "g": (0, 1, 1, 1),
    }  # fmt: skip
    number = int(c.figure.look.style * 90) + 10
    for place, digit in enumerate((number // 10, number % 10)):
        for name in segments[digit]:
            x0, y0, x1, y1 = ends[name]
            x = -0.30 + 0.36 * place
            c.canvas.line(
                [
                    c.chest.at(x + 0.2 * x0, 0.3 + 0.17 * y0),
                    c.chest.at(x + 0.2 * x1, 0.3 + 0.17 * y1),
                ],
                0.08 * c.u,
                ink,
            )


def _bib_number(c: Cloth) -> None:
    card = [(-0.42, 0.24), (0.42, 0.24), (0.42, 0.72), (-0.42, 0.72)]
    c.canvas.polygon(c.chest.all(card), Paint((250.0, 250.0, 248.0)))
    _number(replace(c, colour=(190.0, 30.0, 60.0)))
    c.canvas.line(
        [c.chest.at(-0.42, 0.26), c.chest.at(0.42, 0.26)], 0.05 * c.u, Paint((200.0, 40.0, 60.0))
    )


def _trim(c: Cloth) -> None:
    outline = torso_outline(c.figure, 0.02, 0.2)
    c.canvas.line(outline[1:4], 0.2 * c.u, Paint(c.colour))
    c.canvas.line(outline[6:9], 0.2 * c.u, Paint(c.colour))


def _chevron(c: Cloth) -> None:
    for y in (0.3, 0.5):
        c.canvas.line(
            [c.chest.at(-0.9, y - 0.2), c.chest.at(0.0, y + 0.1), c.chest.at(0.9, y - 0.2)],
            0.11 * c.u,
            Paint(c.colour),
        )


def _badge(c: Cloth) -> None:
    r = 0.085 * c.u
    c.canvas.ellipse(c.chest.at(0.42, 0.34), r, r * 1.15, Paint((214.0, 176.0, 82.0), round=0.5))
    c.canvas.polygon(
        c.chest.all([(-0.58, 0.3), (-0.26, 0.3), (-0.26, 0.37), (-0.58, 0.37)]),
        Paint(light(c.colour, 0.5)),
    )


def _belt(c: Cloth) -> None:
    c.canvas.line(
        [c.chest.at(-1.0, 0.95), c.chest.at(1.0, 0.95)], 0.13 * c.u, Paint((30.0, 26.0, 24.0))
    )
    c.canvas.polygon(
        c.chest.all([(-0.08, 0.91), (0.08, 0.91), (0.08, 0.99), (-0.08, 0.99)]),
        Paint((205.0, 175.0, 90.0)),
    )


def _bands(c: Cloth) -> None:
    for y in (0.36, 0.9):
        c.canvas.line([c.chest.at(-1.2, y), c.chest.at(1.2, y)], 0.15 * c.u, Paint(c.colour))
        c.canvas.line(
            [c.chest.at(-1.2, y), c.chest.at(1.2, y)], 0.06 * c.u, Paint((225.0, 228.0, 222.0))
        )


def _bands_white(c: Cloth) -> None:
    for s in (-1.0, 1.0):
        c.canvas.polygon(
            c.chest.all([(0.0, 0.02), (s * 0.1, 0.02), (s * 0.2, 0.46), (s * 0.05, 0.46)]),
            Paint(c.colour),
        )


def _zip(c: Cloth) -> None:
    c.canvas.line([c.chest.at(0.12, -0.2), c.chest.at(-0.04, 1.3)], 0.05 * c.u, Paint(c.colour))
    for s in (-1.0, 1.0):
        c.canvas.line(
            [c.chest.at(s * 0.4, 0.5), c.chest.at(s * 0.64, 0.62)], 0.035 * c.u, Paint(c.colour)
        )


def _camouflage(c: Cloth) -> None:
    tints = (dark(c.colour, 0.25), (120.0, 112.0, 74.0), (88.0, 74.0, 50.0))
    for k, (x, y, size) in enumerate(
        c.figure.rng.uniform((-1.2, -0.3, 0.1), (1.2, 1.5, 0.24), (26, 3))
    ):
        c.canvas.ellipse(
            c.chest.at(float(x), float(y)),
            float(size) * c.u,
            float(size) * 0.6 * c.u,
            Paint(tints[k % 3]),
            float(x),
        )


def _pocket(c: Cloth) -> None:
    c.canvas.line(
        [
            c.chest.at(0.22, 0.34),
            c.chest.at(0.58, 0.34),
            c.chest.at(0.58, 0.6),
            c.chest.at(0.22, 0.6),
            c.chest.at(0.22, 0.34),
        ],
        0.025 * c.u,
        Paint((20.0, 24.0, 30.0), alpha=0.4),
    )


def _straps(c: Cloth) -> None:
    for s in (-1.0, 1.0):
        c.canvas.line(
            [c.chest.at(s * 0.56, -0.25), c.chest.at(s * 0.58, 0.3), c.chest.at(s * 0.85, 0.75)],
            0.15 * c.u,
            Paint(dark(c.colour, 0.35)),
        )
    c.canvas.line(
        [c.chest.at(-0.56, 0.3), c.chest.at(0.56, 0.3)], 0.05 * c.u, Paint((34.0, 34.0, 38.0))
    )


def _harness(c: Cloth) -> None:
    for a, b in (((-0.9, 0.9), (0.9, 0.9)), ((-0.6, -0.2), (0.5, 0.9)), ((0.6, -0.2), (-0.5, 0.9))):
        c.canvas.line([c.chest.at(*a), c.chest.at(*b)], 0.1 * c.u, Paint((222.0, 96.0, 40.0)))


def _sash(c: Cloth) -> None:
    c.canvas.line([c.chest.at(-0.9, 0.72), c.chest.at(0.9, 0.72)], 0.16 * c.u, Paint(c.colour))


def _glitter(c: Cloth) -> None:
    for x, y in c.figure.rng.uniform((-0.9, -0.2), (0.9, 1.2), (40, 2)).tolist():
        r = 0.022 * c.u
        c.canvas.ellipse(c.chest.at(x, y), r, r, Paint(light(c.colour, 0.75), alpha=0.9))


def _dots(c: Cloth) -> None:
    for k in range(56):
        x, y = -0.9 + 0.3 * (k % 7) + 0.15 * (k // 7 % 2), -0.1 + 0.26 * (k // 7)
        r = 0.03 * c.u
        c.canvas.ellipse(c.chest.at(x, y), r, r, Paint(dark(c.colour, 0.15)))


def _splashes(c: Cloth) -> None:
    inks = ((200.0, 60.0, 50.0), (50.0, 110.0, 180.0), (230.0, 180.0, 50.0), (70.0, 150.0, 90.0))
    for k, (x, y) in enumerate(c.figure.rng.uniform((-0.7, 0.0), (0.7, 1.3), (14, 2)).tolist()):
        r = (0.03 + 0.012 * (k % 4)) * c.u
        c.canvas.ellipse(c.chest.at(x, y), r, r * 0.8, Paint(inks[k % 4]))


def _cross(c: Cloth) -> None:
    c.canvas.line([c.chest.at(0.0, 0.32), c.chest.at(0.0, 0.74)], 0.15 * c.u, Paint(c.colour))
    c.canvas.line([c.chest.at(-0.22, 0.53), c.chest.at(0.22, 0.53)], 0.15 * c.u, Paint(c.colour))


def _suit_panel(c: Cloth) -> None:
    box = [(-0.42, 0.34), (0.42, 0.34), (0.42, 0.78), (-0.42, 0.78)]
    c.canvas.polygon(c.chest.all(box), Paint((196.0, 200.0, 206.0)))
    for k, ink in enumerate(((200.0, 60.0, 50.0), (70.0, 130.0, 190.0), (90.0, 170.0, 100.0))):
        r = 0.06 * c.u
        c.canvas.ellipse(c.chest.at(-0.24 + 0.24 * k, 0.5), r, r, Paint(ink, round=0.5))
    c.canvas.line([c.chest.at(-0.5, -0.14), c.chest.at(0.5, -0.14)], 0.2 * c.u, Paint(c.colour))


PATTERNS: Mapping[str, Painter] = {
    "stripes": _stripes, "pinstripes": _pinstripes, "check": _check, "wave": _wave,
    "number": _number, "bib_number": _bib_number, "trim": _trim, "chevron": _chevron,
    "badge": _badge, "belt": _belt, "bands": _bands, "bands_white": _bands_white, "zip": _zip,
    "camouflage": _camouflage, "pocket": _pocket, "straps": _straps, "harness": _harness,
    "sash": _sash, "glitter": _glitter, "dots": _dots, "splashes": _splashes, "cross": _cross,
    "suit_panel": _suit_panel,
}  # fmt: skip
"""Details on cloth that is there already."""
