"""What is on the clothes: buttons, ties, aprons, stripes, badges, reflecting bands and so on.

Each word of ``Outfit.details`` is one function here. Details are painted on the cloth they belong
to; an apron or a vest is clothing of its own and is labelled so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from isolux_worlds.drawing.anatomy import Frame, PersonFigure
from isolux_worlds.drawing.body import build_torso_outline
from isolux_worlds.drawing.canvas import Canvas, Paint, Point, PointList
from isolux_worlds.drawing.clothing import top_trim_and_bottom_colours
from isolux_worlds.drawing.colour import WHITE, Colour, darken, lighten
from isolux_worlds.drawing.outfits import Outfit

__all__ = ["paint_outfit_details"]

_SIGNS = (-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Cloth:
    """Where a detail goes: the canvas, who wears it, the chest's frame, the trim's colour.

    In the chest's frame −1 to 1 is from shoulder to shoulder, 0 the shoulders and 1 the hips.
    """

    canvas: Canvas
    figure: PersonFigure
    chest: Frame
    colour: Colour

    @property
    def u(self) -> float:
        """A head's height in pixels."""
        return self.figure.u

    def line(self, *points: Point, wide: float, colour: Colour, alpha: float = 1.0) -> None:
        """Paint a line, so many heads wide."""
        path = [self.chest.to_pixel(*point) for point in points]
        self.canvas.line(path, wide * self.u, Paint(colour, alpha=alpha))

    def across(self, y: float, half: float, wide: float, colour: Colour, **paint: float) -> None:
        """Paint a line from one side to the other."""
        self.line((-half, y), (half, y), wide=wide, colour=colour, **paint)

    def shape(self, corners: PointList, colour: Colour, alpha: float = 1.0) -> None:
        """Paint a polygon."""
        self.canvas.polygon(self.chest.to_pixels(corners), Paint(colour, alpha=alpha))

    def card(self, half: float, top: float, low: float, colour: Colour) -> None:
        """Paint a rectangle in the middle."""
        self.shape([(-half, top), (half, top), (half, low), (-half, low)], colour)

    def dot(self, x: float, y: float, r: float, fill: Paint | Colour) -> None:
        """Paint a disc, so many heads in radius."""
        r = r * self.u
        self.canvas.ellipse(self.chest.to_pixel(x, y), r, r, fill)


def _build_trunk_frame(figure: PersonFigure) -> Frame:
    middle, hips = figure.joint_midpoint("shoulder"), figure.joint_midpoint("hip")
    left = figure.joints["left_shoulder"]
    right = (left[0] - middle[0], left[1] - middle[1])
    return Frame(middle, right, (hips[0] - middle[0], hips[1] - middle[1]))


def paint_outfit_details(canvas: Canvas, figure: PersonFigure, outfit: Outfit) -> None:
    """Paint every detail of an outfit, in its order."""
    top, second, _ = top_trim_and_bottom_colours(figure, outfit)
    c = _Cloth(canvas, figure, _build_trunk_frame(figure), second)
    part_name = "full_body_clothing" if outfit.is_one_piece else "upper_clothing"
    if outfit.neck == "collar":
        with canvas.as_part(figure.owner, part_name):
            _paint_collar(c, lighten(top, 0.25))
    for word in outfit.details:
        if word in _GARMENTS:
            with canvas.as_part(figure.owner, part_name):
                _GARMENTS[word](c)
        else:
            with canvas.only_on(figure.owner, part_name):
                _PATTERNS[word](c)


def _paint_collar(cloth: _Cloth, colour: Colour) -> None:
    u, (x, y) = cloth.u, cloth.figure.joint_midpoint("shoulder")
    flap = ((0.23, -0.30), (0.03, 0.12), (0.24, 0.14), (0.31, -0.16))
    for s in _SIGNS:
        cloth.canvas.polygon([(x + s * dx * u, y + dy * u) for dx, dy in flap], colour)


def _paint_buttons(cloth: _Cloth) -> None:
    cloth.line((0, 0.12), (0, 1.2), wide=0.02, colour=(20.0, 20.0, 20.0), alpha=0.35)
    for k in range(5):
        cloth.dot(0.0, 0.2 + 0.2 * k, 0.028, lighten(cloth.colour, 0.2))


def _paint_tie(cloth: _Cloth) -> None:
    shape = [
        (-0.07, 0.08),
        (0.07, 0.08),
        (0.05, 0.15),
        (0.10, 0.72),
        (0.0, 0.8),
        (-0.10, 0.72),
        (-0.05, 0.15),
    ]
    tie = (150.0, 38.0, 44.0) if cloth.colour[0] > 150 else darken(cloth.colour, 0.3)
    cloth.shape(shape, tie)


def _paint_bow_tie(cloth: _Cloth) -> None:
    for s in _SIGNS:
        cloth.shape([(0.0, 0.08), (s * 0.18, 0.02), (s * 0.18, 0.15)], (24.0, 22.0, 26.0))


def _paint_lapels(cloth: _Cloth) -> None:
    cloth.shape([(-0.28, -0.28), (0.28, -0.28), (0.0, 0.72)], cloth.colour)
    flap = ((0.28, -0.3), (0.46, 0.05), (0.34, 0.16), (0.42, 0.22), (0.0, 0.76), (0.12, 0.25))
    for s in _SIGNS:
        cloth.shape([(s * x, y) for x, y in flap], (0.0, 0.0, 0.0), alpha=0.22)
    for y in (0.84, 0.98):
        cloth.dot(0.04, y, 0.03, (18.0, 18.0, 20.0))


def _paint_cardigan(cloth: _Cloth) -> None:
    for s in _SIGNS:
        panel = [(s * 0.26, -0.3), (s * 1.3, -0.1), (s * 1.2, 1.3), (s * 0.2, 1.3), (s * 0.14, 0.4)]
        cloth.shape(panel, cloth.colour)


def _paint_apron(cloth: _Cloth) -> None:
    bib = [
        (-0.36, 0.18),
        (0.36, 0.18),
        (0.42, 0.62),
        (0.62, 0.7),
        (0.66, 1.65),
        (-0.66, 1.65),
        (-0.62, 0.7),
        (-0.42, 0.62),
    ]
    edge = (*cloth.chest.to_pixel(-0.8, 1.0), *cloth.chest.to_pixel(0.8, 1.0))
    cloth.canvas.polygon(cloth.chest.to_pixels(bib), Paint(cloth.colour, round=0.35, across=edge))
    for s in _SIGNS:
        cloth.line((s * 0.33, 0.2), (s * 0.27, -0.2), wide=0.06, colour=darken(cloth.colour, 0.2))
    cloth.shape([(-0.32, 1.0), (0.32, 1.0), (0.3, 1.3), (-0.3, 1.3)], darken(cloth.colour, 0.18))


def _paint_dungaree_bib(cloth: _Cloth) -> None:
    bib = [
        (-0.42, 0.34),
        (0.42, 0.34),
        (0.5, 0.72),
        (0.75, 0.85),
        (0.85, 1.3),
        (-0.85, 1.3),
        (-0.75, 0.85),
        (-0.5, 0.72),
    ]
    edge = (*cloth.chest.to_pixel(-0.9, 1), *cloth.chest.to_pixel(0.9, 1))
    cloth.canvas.polygon(cloth.chest.to_pixels(bib), Paint(cloth.colour, round=0.3, across=edge))
    for s in _SIGNS:
        cloth.line((s * 0.36, 0.38), (s * 0.42, -0.16), wide=0.1, colour=cloth.colour)
        cloth.dot(s * 0.36, 0.4, 0.04, (210.0, 190.0, 120.0))
    cloth.card(0.2, 0.46, 0.68, darken(cloth.colour, 0.2))


def _paint_vest(cloth: _Cloth) -> None:
    edge = ((0.3, -0.26), (0.62, -0.2), (0.66, 0.3), (0.78, 0.5), (0.66, 1.1), (0.0, 1.2))
    for s in _SIGNS:
        cloth.shape([*((s * x, y) for x, y in edge), (0.0, 0.55)], cloth.colour)


def _paint_life_vest(cloth: _Cloth) -> None:
    edge = ((0.26, -0.22), (0.66, -0.16), (0.8, 0.3), (0.84, 0.95), (0.05, 0.98), (0.05, 0.3))
    for s in _SIGNS:
        across = (*cloth.chest.to_pixel(s * 0.05, 0.5), *cloth.chest.to_pixel(s * 0.9, 0.5))
        panel = cloth.chest.to_pixels([(s * x, y) for x, y in edge])
        cloth.canvas.blob(panel, Paint(cloth.colour, round=0.4, across=across), steps=3)
    for y in (0.42, 0.74):
        cloth.across(y, 0.84, 0.06, (38.0, 38.0, 42.0))


def _paint_hivis(cloth: _Cloth) -> None:
    _paint_vest(cloth)
    silver = (222.0, 226.0, 214.0)
    for y in (0.48, 0.86):
        cloth.across(y, 0.72, 0.1, silver)
    for s in _SIGNS:
        cloth.line((s * 0.46, -0.22), (s * 0.46, 0.48), wide=0.09, colour=silver)


def _paint_lowered_hood(cloth: _Cloth) -> None:
    for s in _SIGNS:
        shape = [(s * 0.22, -0.36), (s * 0.52, -0.2), (s * 0.44, 0.04), (0.0, 0.2), (0.0, 0.1)]
        cloth.shape(shape, darken(cloth.colour, 0.1))
        cloth.line((s * 0.09, 0.14), (s * 0.11, 0.44), wide=0.03, colour=(240.0, 238.0, 230.0))


def _paint_stripes(cloth: _Cloth, colour: Colour, step: float, wide: float) -> None:
    x = -1.2
    while x < 1.2:
        cloth.line((x, -0.4), (x, 1.6), wide=wide, colour=colour)
        x += step


def _paint_checked_pattern(cloth: _Cloth) -> None:
    _paint_stripes(cloth, lighten(cloth.colour, 0.5), 0.26, 0.05)
    for k in range(10):
        cloth.across(-0.2 + 0.17 * k, 1.2, 0.05, darken(cloth.colour, 0.4), alpha=0.55)


def _paint_wave(cloth: _Cloth) -> None:
    cloth.dot(0.0, 0.42, 0.26, cloth.colour)
    path = ((-0.24, 0.46), (-0.06, 0.32), (0.06, 0.5), (0.24, 0.34))
    cloth.line(*path, wide=0.05, colour=lighten(cloth.colour, 0.7))


_SEGMENTS = {
    "a": (0, 0, 1, 0),
    "b": (1, 0, 1, 1),
    "c": (1, 1, 1, 2),
    "d": (0, 2, 1, 2),
    "e": (0, 1, 0, 2),
    "f": (0, 0, 0, 1),
    "g": (0, 1, 1, 1),
}
_DIGITS = ("abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abfgcd")


def _paint_shirt_number(cloth: _Cloth) -> None:
    """Digits of seven segments: the subject's own number."""
    ink = WHITE if sum(cloth.colour) < 420 else cloth.colour
    number = int(cloth.figure.look.style * 90) + 10
    for digit_index, digit in enumerate((number // 10, number % 10)):
        x = -0.30 + 0.36 * digit_index
        for name in _DIGITS[digit]:
            x0, y0, x1, y1 = _SEGMENTS[name]
            a, b = (x + 0.2 * x0, 0.3 + 0.17 * y0), (x + 0.2 * x1, 0.3 + 0.17 * y1)
            cloth.line(a, b, wide=0.08, colour=ink)


def _paint_bib_number(cloth: _Cloth) -> None:
    cloth.card(0.42, 0.24, 0.72, (250.0, 250.0, 248.0))
    _paint_shirt_number(replace(cloth, colour=(190.0, 30.0, 60.0)))
    cloth.across(0.26, 0.42, 0.05, (200.0, 40.0, 60.0))


def _paint_trim(cloth: _Cloth) -> None:
    outline = build_torso_outline(cloth.figure, 0.02, 0.2)
    cloth.canvas.line(outline[1:4], 0.2 * cloth.u, cloth.colour)
    cloth.canvas.line(outline[6:9], 0.2 * cloth.u, cloth.colour)


def _paint_chevron(cloth: _Cloth) -> None:
    for y in (0.3, 0.5):
        cloth.line((-0.9, y - 0.2), (0.0, y + 0.1), (0.9, y - 0.2), wide=0.11, colour=cloth.colour)


def _paint_badge(cloth: _Cloth) -> None:
    r = 0.085 * cloth.u
    cloth.canvas.ellipse(
        cloth.chest.to_pixel(0.42, 0.34), r, r * 1.15, Paint((214.0, 176.0, 82.0), round=0.5)
    )
    cloth.shape(
        [(-0.58, 0.3), (-0.26, 0.3), (-0.26, 0.37), (-0.58, 0.37)], lighten(cloth.colour, 0.5)
    )


def _paint_belt(cloth: _Cloth) -> None:
    cloth.across(0.95, 1.0, 0.13, (30.0, 26.0, 24.0))
    cloth.card(0.08, 0.91, 0.99, (205.0, 175.0, 90.0))


def _paint_bands(cloth: _Cloth) -> None:
    for y in (0.36, 0.9):
        cloth.across(y, 1.2, 0.15, cloth.colour)
        cloth.across(y, 1.2, 0.06, (225.0, 228.0, 222.0))


def _paint_white_bands(cloth: _Cloth) -> None:
    for s in _SIGNS:
        cloth.shape([(0.0, 0.02), (s * 0.1, 0.02), (s * 0.2, 0.46), (s * 0.05, 0.46)], cloth.colour)


def _paint_zip(cloth: _Cloth) -> None:
    cloth.line((0.12, -0.2), (-0.04, 1.3), wide=0.05, colour=cloth.colour)
    for s in _SIGNS:
        cloth.line((s * 0.4, 0.5), (s * 0.64, 0.62), wide=0.035, colour=cloth.colour)


def _paint_camouflage(cloth: _Cloth) -> None:
    tints = (darken(cloth.colour, 0.25), (120.0, 112.0, 74.0), (88.0, 74.0, 50.0))
    spots = cloth.figure.rng.uniform((-1.2, -0.3, 0.1), (1.2, 1.5, 0.24), (26, 3)).tolist()
    for k, (x, y, size) in enumerate(spots):
        cloth.canvas.ellipse(
            cloth.chest.to_pixel(x, y), size * cloth.u, size * 0.6 * cloth.u, tints[k % 3], x
        )


def _paint_pocket(cloth: _Cloth) -> None:
    edge = ((0.22, 0.34), (0.58, 0.34), (0.58, 0.6), (0.22, 0.6), (0.22, 0.34))
    cloth.line(*edge, wide=0.025, colour=(20.0, 24.0, 30.0), alpha=0.4)


def _paint_straps(cloth: _Cloth) -> None:
    for s in _SIGNS:
        path = ((s * 0.56, -0.25), (s * 0.58, 0.3), (s * 0.85, 0.75))
        cloth.line(*path, wide=0.15, colour=darken(cloth.colour, 0.35))
    cloth.across(0.3, 0.56, 0.05, (34.0, 34.0, 38.0))


def _paint_harness(cloth: _Cloth) -> None:
    for a, b in (((-0.9, 0.9), (0.9, 0.9)), ((-0.6, -0.2), (0.5, 0.9)), ((0.6, -0.2), (-0.5, 0.9))):
        cloth.line(a, b, wide=0.1, colour=(222.0, 96.0, 40.0))


def _paint_glitter(cloth: _Cloth) -> None:
    for x, y in cloth.figure.rng.uniform((-0.9, -0.2), (0.9, 1.2), (40, 2)).tolist():
        cloth.dot(x, y, 0.022, Paint(lighten(cloth.colour, 0.75), alpha=0.9))


def _paint_dots(cloth: _Cloth) -> None:
    for k in range(56):
        x, y = -0.9 + 0.3 * (k % 7) + 0.15 * (k // 7 % 2), -0.1 + 0.26 * (k // 7)
        cloth.dot(x, y, 0.03, darken(cloth.colour, 0.15))


def _paint_splashes(cloth: _Cloth) -> None:
    inks = ((200.0, 60.0, 50.0), (50.0, 110.0, 180.0), (230.0, 180.0, 50.0), (70.0, 150.0, 90.0))
    for k, (x, y) in enumerate(cloth.figure.rng.uniform((-0.7, 0.0), (0.7, 1.3), (14, 2)).tolist()):
        r = (0.03 + 0.012 * (k % 4)) * cloth.u
        cloth.canvas.ellipse(cloth.chest.to_pixel(x, y), r, r * 0.8, inks[k % 4])


def _paint_medical_cross(cloth: _Cloth) -> None:
    cloth.line((0.0, 0.32), (0.0, 0.74), wide=0.15, colour=cloth.colour)
    cloth.across(0.53, 0.22, 0.15, cloth.colour)


def _paint_suit_panel(cloth: _Cloth) -> None:
    cloth.card(0.42, 0.34, 0.78, (196.0, 200.0, 206.0))
    for k, ink in enumerate(((200.0, 60.0, 50.0), (70.0, 130.0, 190.0), (90.0, 170.0, 100.0))):
        cloth.dot(-0.24 + 0.24 * k, 0.5, 0.06, Paint(ink, round=0.5))
    cloth.across(-0.14, 0.5, 0.2, cloth.colour)


_GARMENTS: Mapping[str, Callable[[_Cloth], None]] = {
    "apron": _paint_apron,
    "bib": _paint_dungaree_bib,
    "vest": _paint_vest,
    "life_vest": _paint_life_vest,
    "hivis": _paint_hivis,
    "hood": _paint_lowered_hood,
}
"""Details that are clothing themselves and may lie over skin."""
_PATTERNS: Mapping[str, Callable[[_Cloth], None]] = {
    "buttons": _paint_buttons,
    "tie": _paint_tie,
    "bow": _paint_bow_tie,
    "lapels": _paint_lapels,
    "cardigan": _paint_cardigan,
    "check": _paint_checked_pattern,
    "wave": _paint_wave,
    "number": _paint_shirt_number,
    "bib_number": _paint_bib_number,
    "trim": _paint_trim,
    "chevron": _paint_chevron,
    "badge": _paint_badge,
    "belt": _paint_belt,
    "bands": _paint_bands,
    "bands_white": _paint_white_bands,
    "zip": _paint_zip,
    "camouflage": _paint_camouflage,
    "pocket": _paint_pocket,
    "straps": _paint_straps,
    "harness": _paint_harness,
    "glitter": _paint_glitter,
    "dots": _paint_dots,
    "splashes": _paint_splashes,
    "cross": _paint_medical_cross,
    "suit_panel": _paint_suit_panel,
    "stripes": lambda c: _paint_stripes(c, c.colour, 0.3, 0.13),
    "pinstripes": lambda c: _paint_stripes(c, c.colour, 0.22, 0.025),
    "sash": lambda c: c.across(0.72, 0.9, 0.16, c.colour),
}
"""Details on cloth that is there already."""
