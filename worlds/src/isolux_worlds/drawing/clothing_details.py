"""What is on the clothes: buttons, ties, aprons, stripes, badges, reflecting bands and so on.

Each word of ``Outfit.details`` is one function here. Details are painted on the cloth they belong
to; an apron or a vest is clothing of its own and is labelled so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from isolux_worlds.drawing.anatomy import Figure, Frame
from isolux_worlds.drawing.body import torso_outline
from isolux_worlds.drawing.canvas import Canvas, Paint
from isolux_worlds.drawing.clothing import colours_of
from isolux_worlds.drawing.colour import WHITE, Colour, dark, light
from isolux_worlds.drawing.outfits import Outfit

__all__ = ["paint_details"]


@dataclass(frozen=True, slots=True)
class _Cloth:
    """Where a detail goes: the canvas, who wears it, the chest's frame, the trim's colour."""

    canvas: Canvas
    figure: Figure
    chest: Frame
    colour: Colour

    @property
    def u(self) -> float:
        """A head's height in pixels."""
        return self.figure.u


_Painter = Callable[[_Cloth], None]


def trunk_frame(figure: Figure) -> Frame:
    """Coordinates of the chest: −1 to 1 from shoulder to shoulder, 0 shoulders, 1 hips."""
    middle, hips = figure.middle("shoulder"), figure.middle("hip")
    left = figure.joints["left_shoulder"]
    return Frame(
        middle, (left[0] - middle[0], left[1] - middle[1]),
        (hips[0] - middle[0], hips[1] - middle[1]),
    )  # fmt: skip


def paint_details(canvas: Canvas, figure: Figure, outfit: Outfit) -> None:
    """Paint every detail of an outfit, in its order."""
    top, second, _ = colours_of(figure, outfit)
    c = _Cloth(canvas, figure, trunk_frame(figure), second)
    part = "full_body_clothing" if outfit.whole else "upper_clothing"
    if outfit.neck == "collar":
        with canvas.as_part(figure.owner, part):
            _collar(c, light(top, 0.25))
    for word in outfit.details:
        if word in _GARMENTS:
            with canvas.as_part(figure.owner, part):
                _GARMENTS[word](c)
        else:
            with canvas.only_on(figure.owner, part):
                _PATTERNS[word](c)


def _collar(c: _Cloth, colour: Colour) -> None:
    u, (x, y) = c.u, c.figure.middle("shoulder")
    for s in (-1.0, 1.0):
        flap = [(x + s * 0.23 * u, y - 0.30 * u), (x + s * 0.03 * u, y + 0.12 * u),
                (x + s * 0.24 * u, y + 0.14 * u), (x + s * 0.31 * u, y - 0.16 * u)]  # fmt: skip
        c.canvas.polygon(flap, Paint(colour))


def _buttons(c: _Cloth) -> None:
    c.canvas.line([c.chest.at(0, 0.12), c.chest.at(0, 1.2)], 0.02 * c.u,
                Paint((20.0, 20.0, 20.0), alpha=0.35))  # fmt: skip
    for k in range(5):
        r = 0.028 * c.u
        c.canvas.ellipse(c.chest.at(0.0, 0.2 + 0.2 * k), r, r, Paint(light(c.colour, 0.2)))


def _tie(c: _Cloth) -> None:
    shape = [(-0.07, 0.08), (0.07, 0.08), (0.05, 0.15), (0.10, 0.72), (0.0, 0.8), (-0.10, 0.72),
             (-0.05, 0.15)]  # fmt: skip
    tie = (150.0, 38.0, 44.0) if c.colour[0] > 150 else dark(c.colour, 0.3)
    c.canvas.polygon(c.chest.all(shape), Paint(tie))


def _bow(c: _Cloth) -> None:
    for s in (-1.0, 1.0):
        shape = [(0.0, 0.08), (s * 0.18, 0.02), (s * 0.18, 0.15)]
        c.canvas.polygon(c.chest.all(shape), Paint((24.0, 22.0, 26.0)))


def _lapels(c: _Cloth) -> None:
    shirt = [(-0.28, -0.28), (0.28, -0.28), (0.0, 0.72)]
    c.canvas.polygon(c.chest.all(shirt), Paint(c.colour))
    for s in (-1.0, 1.0):
        flap = [(s * 0.28, -0.3), (s * 0.46, 0.05), (s * 0.34, 0.16), (s * 0.42, 0.22), (0.0, 0.76),
                (s * 0.12, 0.25)]  # fmt: skip
        c.canvas.polygon(c.chest.all(flap), Paint((0.0, 0.0, 0.0), alpha=0.22))
    for y in (0.84, 0.98):
        r = 0.03 * c.u
        c.canvas.ellipse(c.chest.at(0.04, y), r, r, Paint((18.0, 18.0, 20.0)))


def _cardigan(c: _Cloth) -> None:
    for s in (-1.0, 1.0):
        panel = [(s * 0.26, -0.3), (s * 1.3, -0.1), (s * 1.2, 1.3), (s * 0.2, 1.3), (s * 0.14, 0.4)]
        c.canvas.polygon(c.chest.all(panel), Paint(c.colour))


def _apron(c: _Cloth) -> None:
    bib = [(-0.36, 0.18), (0.36, 0.18), (0.42, 0.62), (0.62, 0.7), (0.66, 1.65), (-0.66, 1.65),
           (-0.62, 0.7), (-0.42, 0.62)]  # fmt: skip
    edge = (*c.chest.at(-0.8, 1.0), *c.chest.at(0.8, 1.0))
    c.canvas.polygon(c.chest.all(bib), Paint(c.colour, round=0.35, across=edge))
    for s in (-1.0, 1.0):
        c.canvas.line([c.chest.at(s * 0.33, 0.2), c.chest.at(s * 0.27, -0.2)], 0.06 * c.u,
                    Paint(dark(c.colour, 0.2)))  # fmt: skip
    pocket = [(-0.32, 1.0), (0.32, 1.0), (0.3, 1.3), (-0.3, 1.3)]
    c.canvas.polygon(c.chest.all(pocket), Paint(dark(c.colour, 0.18)))


def _bib(c: _Cloth) -> None:
    bib = [(-0.42, 0.34), (0.42, 0.34), (0.5, 0.72), (0.75, 0.85), (0.85, 1.3), (-0.85, 1.3),
           (-0.75, 0.85), (-0.5, 0.72)]  # fmt: skip
    c.canvas.polygon(
        c.chest.all(bib),
        Paint(c.colour, round=0.3, across=(*c.chest.at(-0.9, 1), *c.chest.at(0.9, 1))),
    )
    for s in (-1.0, 1.0):
        c.canvas.line([c.chest.at(s * 0.36, 0.38), c.chest.at(s * 0.42, -0.16)], 0.1 * c.u,
                    Paint(c.colour))  # fmt: skip
        r = 0.04 * c.u
        c.canvas.ellipse(c.chest.at(s * 0.36, 0.4), r, r, Paint((210.0, 190.0, 120.0)))
    c.canvas.polygon(c.chest.all([(-0.2, 0.46), (0.2, 0.46), (0.2, 0.68), (-0.2, 0.68)]),
                   Paint(dark(c.colour, 0.2)))  # fmt: skip


def _vest(c: _Cloth) -> None:
    for s in (-1.0, 1.0):
        panel = [(s * 0.3, -0.26), (s * 0.62, -0.2), (s * 0.66, 0.3), (s * 0.78, 0.5),
                 (s * 0.66, 1.1), (0.0, 1.2), (0.0, 0.55)]  # fmt: skip
        c.canvas.polygon(c.chest.all(panel), Paint(c.colour))


def _life_vest(c: _Cloth) -> None:
    for s in (-1.0, 1.0):
        panel = [(s * 0.26, -0.22), (s * 0.66, -0.16), (s * 0.8, 0.3), (s * 0.84, 0.95),
                 (s * 0.05, 0.98), (s * 0.05, 0.3)]  # fmt: skip
        c.canvas.blob(
            c.chest.all(panel),
            Paint(
                c.colour, round=0.4, across=(*c.chest.at(s * 0.05, 0.5), *c.chest.at(s * 0.9, 0.5))
            ),
            steps=3,
        )
    for y in (0.42, 0.74):
        c.canvas.line([c.chest.at(-0.84, y), c.chest.at(0.84, y)], 0.06 * c.u,
                    Paint((38.0, 38.0, 42.0)))  # fmt: skip


def _hivis(c: _Cloth) -> None:
    _vest(c)
    silver = Paint((222.0, 226.0, 214.0))
    for y in (0.48, 0.86):
        c.canvas.line([c.chest.at(-0.72, y), c.chest.at(0.72, y)], 0.1 * c.u, silver)
    for s in (-1.0, 1.0):
        c.canvas.line([c.chest.at(s * 0.46, -0.22), c.chest.at(s * 0.46, 0.48)], 0.09 * c.u, silver)


def _hood(c: _Cloth) -> None:
    for s in (-1.0, 1.0):
        shape = [(s * 0.22, -0.36), (s * 0.52, -0.2), (s * 0.44, 0.04), (0.0, 0.2), (0.0, 0.1)]
        c.canvas.polygon(c.chest.all(shape), Paint(dark(c.colour, 0.1)))
        c.canvas.line([c.chest.at(s * 0.09, 0.14), c.chest.at(s * 0.11, 0.44)], 0.03 * c.u,
                    Paint((240.0, 238.0, 230.0)))  # fmt: skip


def _pattern_lines(c: _Cloth, colour: Colour, step: float, wide: float) -> None:
    x = -1.2
    while x < 1.2:
        c.canvas.line([c.chest.at(x, -0.4), c.chest.at(x, 1.6)], wide * c.u, Paint(colour))
        x += step


def _stripes(c: _Cloth) -> None:
    _pattern_lines(c, c.colour, 0.3, 0.13)


def _pinstripes(c: _Cloth) -> None:
    _pattern_lines(c, c.colour, 0.22, 0.025)


def _check(c: _Cloth) -> None:
    _pattern_lines(c, light(c.colour, 0.5), 0.26, 0.05)
    for k in range(10):
        y = -0.2 + 0.17 * k
        c.canvas.line([c.chest.at(-1.2, y), c.chest.at(1.2, y)], 0.05 * c.u,
                    Paint(dark(c.colour, 0.4), alpha=0.55))  # fmt: skip


def _wave(c: _Cloth) -> None:
    c.canvas.ellipse(c.chest.at(0.0, 0.42), 0.26 * c.u, 0.26 * c.u, Paint(c.colour))
    c.canvas.line([c.chest.at(-0.24, 0.46), c.chest.at(-0.06, 0.32), c.chest.at(0.06, 0.5),
                 c.chest.at(0.24, 0.34)], 0.05 * c.u, Paint(light(c.colour, 0.7)))  # fmt: skip


def _number(c: _Cloth) -> None:
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
            c.canvas.line([c.chest.at(x + 0.2 * x0, 0.3 + 0.17 * y0),
                         c.chest.at(x + 0.2 * x1, 0.3 + 0.17 * y1)], 0.08 * c.u, ink)  # fmt: skip


def _bib_number(c: _Cloth) -> None:
    card = [(-0.42, 0.24), (0.42, 0.24), (0.42, 0.72), (-0.42, 0.72)]
    c.canvas.polygon(c.chest.all(card), Paint((250.0, 250.0, 248.0)))
    _number(replace(c, colour=(190.0, 30.0, 60.0)))
    c.canvas.line([c.chest.at(-0.42, 0.26), c.chest.at(0.42, 0.26)], 0.05 * c.u,
                Paint((200.0, 40.0, 60.0)))  # fmt: skip


def _trim(c: _Cloth) -> None:
    outline = torso_outline(c.figure, 0.02, 0.2)
    c.canvas.line(outline[1:4], 0.2 * c.u, Paint(c.colour))
    c.canvas.line(outline[6:9], 0.2 * c.u, Paint(c.colour))


def _chevron(c: _Cloth) -> None:
    for y in (0.3, 0.5):
        c.canvas.line(
            [c.chest.at(-0.9, y - 0.2), c.chest.at(0.0, y + 0.1), c.chest.at(0.9, y - 0.2)],
            0.11 * c.u,
            Paint(c.colour),
        )


def _badge(c: _Cloth) -> None:
    r = 0.085 * c.u
    c.canvas.ellipse(c.chest.at(0.42, 0.34), r, r * 1.15, Paint((214.0, 176.0, 82.0), round=0.5))
    c.canvas.polygon(c.chest.all([(-0.58, 0.3), (-0.26, 0.3), (-0.26, 0.37), (-0.58, 0.37)]),
                   Paint(light(c.colour, 0.5)))  # fmt: skip


def _belt(c: _Cloth) -> None:
    c.canvas.line([c.chest.at(-1.0, 0.95), c.chest.at(1.0, 0.95)], 0.13 * c.u,
                Paint((30.0, 26.0, 24.0)))  # fmt: skip
    c.canvas.polygon(c.chest.all([(-0.08, 0.91), (0.08, 0.91), (0.08, 0.99), (-0.08, 0.99)]),
                   Paint((205.0, 175.0, 90.0)))  # fmt: skip


def _bands(c: _Cloth) -> None:
    for y in (0.36, 0.9):
        c.canvas.line([c.chest.at(-1.2, y), c.chest.at(1.2, y)], 0.15 * c.u, Paint(c.colour))
        c.canvas.line([c.chest.at(-1.2, y), c.chest.at(1.2, y)], 0.06 * c.u,
                    Paint((225.0, 228.0, 222.0)))  # fmt: skip


def _bands_white(c: _Cloth) -> None:
    for s in (-1.0, 1.0):
        c.canvas.polygon(
            c.chest.all([(0.0, 0.02), (s * 0.1, 0.02), (s * 0.2, 0.46), (s * 0.05, 0.46)]),
            Paint(c.colour),
        )


def _zip(c: _Cloth) -> None:
    c.canvas.line([c.chest.at(0.12, -0.2), c.chest.at(-0.04, 1.3)], 0.05 * c.u, Paint(c.colour))
    for s in (-1.0, 1.0):
        c.canvas.line([c.chest.at(s * 0.4, 0.5), c.chest.at(s * 0.64, 0.62)], 0.035 * c.u,
                    Paint(c.colour))  # fmt: skip


def _camouflage(c: _Cloth) -> None:
    tints = (dark(c.colour, 0.25), (120.0, 112.0, 74.0), (88.0, 74.0, 50.0))
    for k, (x, y, size) in enumerate(
        c.figure.rng.uniform((-1.2, -0.3, 0.1), (1.2, 1.5, 0.24), (26, 3))
    ):
        c.canvas.ellipse(c.chest.at(float(x), float(y)), float(size) * c.u,
                       float(size) * 0.6 * c.u, Paint(tints[k % 3]), float(x))  # fmt: skip


def _pocket(c: _Cloth) -> None:
    c.canvas.line([c.chest.at(0.22, 0.34), c.chest.at(0.58, 0.34), c.chest.at(0.58, 0.6),
                 c.chest.at(0.22, 0.6), c.chest.at(0.22, 0.34)], 0.025 * c.u,
                Paint((20.0, 24.0, 30.0), alpha=0.4))  # fmt: skip


def _straps(c: _Cloth) -> None:
    for s in (-1.0, 1.0):
        c.canvas.line(
            [c.chest.at(s * 0.56, -0.25), c.chest.at(s * 0.58, 0.3), c.chest.at(s * 0.85, 0.75)],
            0.15 * c.u,
            Paint(dark(c.colour, 0.35)),
        )
    c.canvas.line([c.chest.at(-0.56, 0.3), c.chest.at(0.56, 0.3)], 0.05 * c.u,
                Paint((34.0, 34.0, 38.0)))  # fmt: skip


def _harness(c: _Cloth) -> None:
    for a, b in (((-0.9, 0.9), (0.9, 0.9)), ((-0.6, -0.2), (0.5, 0.9)), ((0.6, -0.2), (-0.5, 0.9))):
        c.canvas.line([c.chest.at(*a), c.chest.at(*b)], 0.1 * c.u, Paint((222.0, 96.0, 40.0)))


def _sash(c: _Cloth) -> None:
    c.canvas.line([c.chest.at(-0.9, 0.72), c.chest.at(0.9, 0.72)], 0.16 * c.u, Paint(c.colour))


def _glitter(c: _Cloth) -> None:
    for x, y in c.figure.rng.uniform((-0.9, -0.2), (0.9, 1.2), (40, 2)).tolist():
        r = 0.022 * c.u
        c.canvas.ellipse(c.chest.at(x, y), r, r, Paint(light(c.colour, 0.75), alpha=0.9))


def _dots(c: _Cloth) -> None:
    for k in range(56):
        x, y = -0.9 + 0.3 * (k % 7) + 0.15 * (k // 7 % 2), -0.1 + 0.26 * (k // 7)
        r = 0.03 * c.u
        c.canvas.ellipse(c.chest.at(x, y), r, r, Paint(dark(c.colour, 0.15)))


def _splashes(c: _Cloth) -> None:
    inks = ((200.0, 60.0, 50.0), (50.0, 110.0, 180.0), (230.0, 180.0, 50.0), (70.0, 150.0, 90.0))
    for k, (x, y) in enumerate(c.figure.rng.uniform((-0.7, 0.0), (0.7, 1.3), (14, 2)).tolist()):
        r = (0.03 + 0.012 * (k % 4)) * c.u
        c.canvas.ellipse(c.chest.at(x, y), r, r * 0.8, Paint(inks[k % 4]))


def _cross(c: _Cloth) -> None:
    c.canvas.line([c.chest.at(0.0, 0.32), c.chest.at(0.0, 0.74)], 0.15 * c.u, Paint(c.colour))
    c.canvas.line([c.chest.at(-0.22, 0.53), c.chest.at(0.22, 0.53)], 0.15 * c.u, Paint(c.colour))


def _suit_panel(c: _Cloth) -> None:
    box = [(-0.42, 0.34), (0.42, 0.34), (0.42, 0.78), (-0.42, 0.78)]
    c.canvas.polygon(c.chest.all(box), Paint((196.0, 200.0, 206.0)))
    for k, ink in enumerate(((200.0, 60.0, 50.0), (70.0, 130.0, 190.0), (90.0, 170.0, 100.0))):
        r = 0.06 * c.u
        c.canvas.ellipse(c.chest.at(-0.24 + 0.24 * k, 0.5), r, r, Paint(ink, round=0.5))
    c.canvas.line([c.chest.at(-0.5, -0.14), c.chest.at(0.5, -0.14)], 0.2 * c.u, Paint(c.colour))


_GARMENTS: Mapping[str, _Painter] = {
    "apron": _apron, "bib": _bib, "vest": _vest, "life_vest": _life_vest, "hivis": _hivis,
    "hood": _hood,
}  # fmt: skip
"""Details that are clothing themselves and may lie over skin."""
_PATTERNS: Mapping[str, _Painter] = {
    "buttons": _buttons, "tie": _tie, "bow": _bow, "lapels": _lapels, "cardigan": _cardigan,
    "stripes": _stripes, "pinstripes": _pinstripes, "check": _check, "wave": _wave,
    "number": _number, "bib_number": _bib_number, "trim": _trim, "chevron": _chevron,
    "badge": _badge, "belt": _belt, "bands": _bands, "bands_white": _bands_white, "zip": _zip,
    "camouflage": _camouflage, "pocket": _pocket, "straps": _straps, "harness": _harness,
    "sash": _sash, "glitter": _glitter, "dots": _dots, "splashes": _splashes, "cross": _cross,
    "suit_panel": _suit_panel,
}  # fmt: skip
"""Details on cloth that is there already."""
