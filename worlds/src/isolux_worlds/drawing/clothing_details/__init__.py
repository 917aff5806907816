"""What is on the clothes: buttons, ties, aprons, stripes, badges, reflecting bands and so on.

Each word of ``Outfit.details`` is one function here. Details are painted on the cloth they belong
to; an apron or a vest is clothing of its own and is labelled so.
"""

from __future__ import annotations

from collections.abc import Mapping

from isolux_worlds.drawing.anatomy import Figure
from isolux_worlds.drawing.canvas import Canvas, Paint
from isolux_worlds.drawing.clothing import colours_of
from isolux_worlds.drawing.clothing_details.cloth import Cloth, Painter, trunk_frame
from isolux_worlds.drawing.clothing_details.patterns import PATTERNS
from isolux_worlds.drawing.colour import Colour, dark, light
from isolux_worlds.drawing.outfits import Outfit

__all__ = ["paint_details"]


def paint_details(canvas: Canvas, figure: Figure, outfit: Outfit) -> None:
    """Paint every detail of an outfit, in its order."""
    top, second, _ = colours_of(figure, outfit)
    c = Cloth(canvas, figure, trunk_frame(figure), second)
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


def _collar(c: Cloth, colour: Colour) -> None:
    u, (x, y) = c.u, c.figure.middle("shoulder")
    for s in (-1.0, 1.0):
        flap = [
            (x + s * 0.23 * u, y - 0.30 * u),
            (x + s * 0.03 * u, y + 0.12 * u),
            (x + s * 0.24 * u, y + 0.14 * u),
            (x + s * 0.31 * u, y - 0.16 * u),
        ]
        c.canvas.polygon(flap, Paint(colour))


def _buttons(c: Cloth) -> None:
    c.canvas.line(
        [c.chest.at(0, 0.12), c.chest.at(0, 1.2)], 0.02 * c.u, Paint((20.0, 20.0, 20.0), alpha=0.35)
    )
    for k in range(5):
        r = 0.028 * c.u
        c.canvas.ellipse(c.chest.at(0.0, 0.2 + 0.2 * k), r, r, Paint(light(c.colour, 0.2)))


def _tie(c: Cloth) -> None:
    shape = [(-0.07, 0.08), (0.07, 0.08), (0.05, 0.15), (0.10, 0.72), (0.0, 0.8), (-0.10, 0.72),
             (-0.05, 0.15)]  # fmt: skip
    tie = (150.0, 38.0, 44.0) if c.colour[0] > 150 else dark(c.colour, 0.3)
    c.canvas.polygon(c.chest.all(shape), Paint(tie))


def _bow(c: Cloth) -> None:
    for s in (-1.0, 1.0):
        shape = [(0.0, 0.08), (s * 0.18, 0.02), (s * 0.18, 0.15)]
        c.canvas.polygon(c.chest.all(shape), Paint((24.0, 22.0, 26.0)))


def _lapels(c: Cloth) -> None:
    shirt = [(-0.28, -0.28), (0.28, -0.28), (0.0, 0.72)]
    c.canvas.polygon(c.chest.all(shirt), Paint(c.colour))
    for s in (-1.0, 1.0):
        flap = [
            (s * 0.28, -0.3),
            (s * 0.46, 0.05),
            (s * 0.34, 0.16),
            (s * 0.42, 0.22),
            (0.0, 0.76),
            (s * 0.12, 0.25),
        ]
        c.canvas.polygon(c.chest.all(flap), Paint((0.0, 0.0, 0.0), alpha=0.22))
    for y in (0.84, 0.98):
        r = 0.03 * c.u
        c.canvas.ellipse(c.chest.at(0.04, y), r, r, Paint((18.0, 18.0, 20.0)))


def _cardigan(c: Cloth) -> None:
    for s in (-1.0, 1.0):
        panel = [(s * 0.26, -0.3), (s * 1.3, -0.1), (s * 1.2, 1.3), (s * 0.2, 1.3), (s * 0.14, 0.4)]
        c.canvas.polygon(c.chest.all(panel), Paint(c.colour))


def _apron(c: Cloth) -> None:
    bib = [(-0.36, 0.18), (0.36, 0.18), (0.42, 0.62), (0.62, 0.7), (0.66, 1.65), (-0.66, 1.65),
           (-0.62, 0.7), (-0.42, 0.62)]  # fmt: skip
    edge = (*c.chest.at(-0.8, 1.0), *c.chest.at(0.8, 1.0))
    c.canvas.polygon(c.chest.all(bib), Paint(c.colour, round=0.35, across=edge))
    for s in (-1.0, 1.0):
        c.canvas.line(
            [c.chest.at(s * 0.33, 0.2), c.chest.at(s * 0.27, -0.2)],
            0.06 * c.u,
            Paint(dark(c.colour, 0.2)),
        )
    pocket = [(-0.32, 1.0), (0.32, 1.0), (0.3, 1.3), (-0.3, 1.3)]
    c.canvas.polygon(c.chest.all(pocket), Paint(dark(c.colour, 0.18)))


def _bib(c: Cloth) -> None:
    bib = [(-0.42, 0.34), (0.42, 0.34), (0.5, 0.72), (0.75, 0.85), (0.85, 1.3), (-0.85, 1.3),
           (-0.75, 0.85), (-0.5, 0.72)]  # fmt: skip
    c.canvas.polygon(
        c.chest.all(bib),
        Paint(c.colour, round=0.3, across=(*c.chest.at(-0.9, 1), *c.chest.at(0.9, 1))),
    )
    for s in (-1.0, 1.0):
        c.canvas.line(
            [c.chest.at(s * 0.36, 0.38), c.chest.at(s * 0.42, -0.16)], 0.1 * c.u, Paint(c.colour)
        )
        r = 0.04 * c.u
        c.canvas.ellipse(c.chest.at(s * 0.36, 0.4), r, r, Paint((210.0, 190.0, 120.0)))
    c.canvas.polygon(
        c.chest.all([(-0.2, 0.46), (0.2, 0.46), (0.2, 0.68), (-0.2, 0.68)]),
        Paint(dark(c.colour, 0.2)),
    )


def _vest(c: Cloth) -> None:
    for s in (-1.0, 1.0):
        panel = [
            (s * 0.3, -0.26),
            (s * 0.62, -0.2),
            (s * 0.66, 0.3),
            (s * 0.78, 0.5),
            (s * 0.66, 1.1),
            (0.0, 1.2),
            (0.0, 0.55),
        ]
        c.canvas.polygon(c.chest.all(panel), Paint(c.colour))


def _life_vest(c: Cloth) -> None:
    for s in (-1.0, 1.0):
        panel = [
            (s * 0.26, -0.22),
            (s * 0.66, -0.16),
            (s * 0.8, 0.3),
            (s * 0.84, 0.95),
            (s * 0.05, 0.98),
            (s * 0.05, 0.3),
        ]
        c.canvas.blob(
            c.chest.all(panel),
            Paint(
                c.colour, round=0.4, across=(*c.chest.at(s * 0.05, 0.5), *c.chest.at(s * 0.9, 0.5))
            ),
            steps=3,
        )
    for y in (0.42, 0.74):
        c.canvas.line(
            [c.chest.at(-0.84, y), c.chest.at(0.84, y)], 0.06 * c.u, Paint((38.0, 38.0, 42.0))
        )


def _hivis(c: Cloth) -> None:
    _vest(c)
    silver = Paint((222.0, 226.0, 214.0))
    for y in (0.48, 0.86):
        c.canvas.line([c.chest.at(-0.72, y), c.chest.at(0.72, y)], 0.1 * c.u, silver)
    for s in (-1.0, 1.0):
        c.canvas.line([c.chest.at(s * 0.46, -0.22), c.chest.at(s * 0.46, 0.48)], 0.09 * c.u, silver)


def _hood(c: Cloth) -> None:
    for s in (-1.0, 1.0):
        shape = [(s * 0.22, -0.36), (s * 0.52, -0.2), (s * 0.44, 0.04), (0.0, 0.2), (0.0, 0.1)]
        c.canvas.polygon(c.chest.all(shape), Paint(dark(c.colour, 0.1)))
        c.canvas.line(
            [c.chest.at(s * 0.09, 0.14), c.chest.at(s * 0.11, 0.44)],
            0.03 * c.u,
            Paint((240.0, 238.0, 230.0)),
        )


_GARMENTS: Mapping[str, Painter] = {
    "apron": _apron, "bib": _bib, "vest": _vest, "life_vest": _life_vest, "hivis": _hivis,
    "hood": _hood,
}  # fmt: skip
"""Details that are clothing themselves and may lie over skin."""
_PATTERNS: Mapping[str, Painter] = {
    "buttons": _buttons, "tie": _tie, "bow": _bow, "lapels": _lapels, "cardigan": _cardigan,
    **PATTERNS,
}  # fmt: skip
"""Details on cloth that is there already."""
