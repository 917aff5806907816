"""What is worn on the head and before the face: cap, headscarf, glasses, face mask."""

from __future__ import annotations

from isolux_worlds.drawing.anatomy import PersonFigure, build_symmetric_outline
from isolux_worlds.drawing.canvas import Canvas, Paint
from isolux_worlds.drawing.colour import Colour, darken, lighten

__all__ = ["paint_back_headwear", "paint_headwear", "paint_mask", "paint_spectacles"]


def paint_back_headwear(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint the part of a headscarf that lies behind neck and shoulders."""
    if figure.words["headwear"] != "headscarf":
        return
    colour = darken(figure.look.second, 0.25)
    with canvas.as_part(figure.owner, "headwear"):
        canvas.blob(
            figure.face.to_pixels(
                [
                    (-1.1, -1.0),
                    (1.1, -1.0),
                    (1.25, 0.3),
                    (1.3, 1.3),
                    (0.0, 1.75),
                    (-1.3, 1.3),
                    (-1.25, 0.3),
                ]
            ),
            colour,
            steps=5,
        )


def paint_headwear(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint a cap or a headscarf, if one is worn."""
    worn = figure.words["headwear"]
    if worn == "none":
        return
    with canvas.as_part(figure.owner, "headwear"):
        if worn == "cap":
            _paint_baseball_cap(canvas, figure)
        else:
            _paint_scarf(canvas, figure)


def _paint_baseball_cap(canvas: Canvas, figure: PersonFigure) -> None:
    face, colour, w = figure.face, figure.look.second, figure.face.half_width
    across = (*face.to_pixel(-1.12, 0.0), *face.to_pixel(1.12, 0.0))
    dome = [
        (-1.12, -0.62),
        (-1.13, -1.0),
        (-0.86, -1.5),
        (-0.4, -1.75),
        (0.0, -1.8),
        (0.4, -1.75),
        (0.86, -1.5),
        (1.13, -1.0),
        (1.12, -0.62),
        (0.6, -0.76),
        (0.0, -0.8),
        (-0.6, -0.76),
    ]
    grain_px = max(1.0, 0.05 * w)
    felt = Paint(colour, round=0.5, across=across, grain=0.04, grain_px=grain_px)
    canvas.blob(face.to_pixels(dome), felt, steps=5)
    seam = Paint(darken(colour, 0.35), alpha=0.6)
    for x in (-0.45, 0.0, 0.45):
        canvas.curve(
            face.to_pixels([(0.0, -1.78), (x * 1.2, -1.35), (x * 1.5, -0.78)]), 0.025 * w, seam
        )
    canvas.ellipse(face.to_pixel(0.0, -1.79), 0.09 * w, 0.06 * w, darken(colour, 0.2))
    brim = [
        (-1.02, -0.72),
        (-0.5, -0.9),
        (0.0, -0.93),
        (0.5, -0.9),
        (1.02, -0.72),
        (0.86, -0.5),
        (0.0, -0.42),
        (-0.86, -0.5),
    ]
    canvas.blob(
        face.to_pixels(brim), Paint(darken(colour, 0.22), round=0.4, across=across), steps=5
    )
    edge = face.to_pixels([(-0.84, -0.51), (0.0, -0.44), (0.84, -0.51)])
    canvas.curve(edge, 0.03 * w, Paint(lighten(colour, 0.3), alpha=0.6))
    shade = Paint(figure.look.skin.shadow, alpha=0.4, soft=0.2 * w)
    with canvas.only_on(figure.owner, "face_skin"):
        canvas.ellipse(face.to_pixel(0.0, -0.38), 0.85 * w, 0.12 * w, shade, face.turn)


def _paint_scarf(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint a scarf round the head and under the chin."""
    face, colour, w = figure.face, figure.look.second, figure.face.half_width
    across = (*face.to_pixel(-1.25, 0.0), *face.to_pixel(1.25, 0.0))
    fill = Paint(colour, round=0.45, across=across, grain=0.03, grain_px=max(1.0, 0.06 * w))
    outer = [
        (-1.16, -0.2),
        (-1.13, -0.95),
        (-0.72, -1.55),
        (0.0, -1.75),
        (0.72, -1.55),
        (1.13, -0.95),
        (1.16, -0.2),
        (1.12, 0.6),
        (1.28, 1.35),
        (0.75, 1.75),
        (0.0, 1.85),
        (-0.75, 1.75),
        (-1.28, 1.35),
        (-1.12, 0.6),
    ]
    opening = [
        (-0.86, -0.2),
        (-0.84, 0.35),
        (-0.55, 0.85),
        (0.0, 1.05),
        (0.55, 0.85),
        (0.84, 0.35),
        (0.86, -0.2),
        (0.72, -0.72),
        (0.0, -0.92),
        (-0.72, -0.72),
        (-0.86, -0.2),
    ]
    # One outline with a slit: round the outside, then round the face the other way.
    outline = [*outer, outer[0], *opening]
    canvas.polygon(face.to_pixels(outline), fill)
    fold = Paint(darken(colour, 0.35), alpha=0.5)
    for path in (
        [(-1.0, 0.5), (-0.3, 1.25), (0.6, 1.45)],
        [(-1.1, 0.8), (-0.4, 1.5), (0.5, 1.65)],
        [(0.95, -0.6), (1.02, 0.2), (0.85, 0.85)],
        [(-0.6, -1.35), (0.0, -1.25), (0.7, -1.3)],
    ):
        canvas.curve(face.to_pixels(path), 0.04 * w, fold)
    canvas.curve(face.to_pixels(opening[:6]), 0.05 * w, Paint(lighten(colour, 0.25), alpha=0.6))


def paint_spectacles(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint glasses, if they are worn: rims, bridge, temples and faint lenses."""
    if figure.words["eyewear"] != "glasses":
        return
    face, w, h = figure.face, figure.face.half_width, figure.face.half_height
    rim = (28.0, 24.0, 24.0) if figure.look.style < 0.6 else (96.0, 62.0, 40.0)
    thick = max(1.2, 0.06 * w)
    eyes = [face.to_local(figure.joints[f"{body_side}_eye"]) for body_side in ("right", "left")]
    for x, y in eyes:
        lens = Paint((214.0, 232.0, 242.0), alpha=0.16)
        canvas.ellipse(face.to_pixel(x, y + 0.02), 0.345 * w, 0.20 * h, lens, face.turn)
        middle, top = y + 0.02, ((-0.24, -0.19), (0.0, -0.21), (0.24, -0.19))
        lens_outline = ((0.345, -0.06), (0.28, 0.13), (0.0, 0.205), (-0.28, 0.13), (-0.345, -0.06))
        around = [(x + dx, middle + dy) for dx, dy in ((-0.345, -0.06), *top, *lens_outline)]
        with canvas.as_part(figure.owner, "eyewear"):
            canvas.curve(face.to_pixels(around), thick, rim, steps=3)
    with canvas.as_part(figure.owner, "eyewear"):
        (x0, y0), (x1, y1) = eyes
        bridge = [
            (x0 + 0.32, y0 - 0.02),
            ((x0 + x1) / 2, (y0 + y1) / 2 - 0.06),
            (x1 - 0.32, y1 - 0.02),
        ]
        canvas.curve(face.to_pixels(bridge), thick, rim)
        for (x, y), s in zip(eyes, (-1.0, 1.0), strict=True):
            canvas.line(
                [face.to_pixel(x + s * 0.33, y - 0.02), face.to_pixel(s * 1.0, y - 0.06)],
                thick,
                rim,
            )


def paint_mask(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint a face mask over nose, mouth and chin, with its ear loops."""
    if figure.words["mask"] != "mask":
        return
    face, w = figure.face, figure.face.half_width
    _, nose = face.to_local(figure.joints["nose"])
    colour: Colour = (158.0, 198.0, 214.0) if figure.look.style < 0.7 else (58.0, 60.0, 66.0)
    across = (*face.to_pixel(-0.95, 0.0), *face.to_pixel(0.95, 0.0))
    top, j = nose - 0.10, figure.look.jaw
    half = [(0.42, top + 0.06), (0.93, top + 0.2), (0.88 * j + 0.06, 0.62), (0.52 * j, 0.98)]
    outline = build_symmetric_outline((0.0, top - 0.05), half, (0.0, 1.07))
    with canvas.as_part(figure.owner, "face_mask"):
        canvas.blob(face.to_pixels(outline), Paint(colour, round=0.4, across=across), steps=4)
        for s in (-1.0, 1.0):
            for y in (top + 0.24, 0.6):
                loop = [face.to_pixel(s * 0.9, y), face.to_pixel(s * 1.03, 0.06)]
                canvas.line(loop, 0.03 * w, (235.0, 238.0, 240.0))
    with canvas.only_on(figure.owner, "face_mask"):
        for k in range(3):
            y = nose + 0.28 + 0.16 * k
            pleat = face.to_pixels([(-0.8, y), (0.0, y + 0.05), (0.8, y)])
            canvas.curve(pleat, 0.03 * w, Paint(darken(colour, 0.25), alpha=0.7))
