"""Hair of the head: what falls behind the body, what lies on the skull and before the shoulders.

Six types that differ in outline and texture, so that they are told apart from afar: straight
(smooth), wavy (a rippled edge), curly (locks as rings), coily (a dense round shape with a fine
edge), dreadlocks (strands), bald. Length is the subject's own; a cap flattens what lies under it,
a headscarf hides it all.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from isolux_worlds.drawing._raster import _Floats
from isolux_worlds.drawing.anatomy import PersonFigure
from isolux_worlds.drawing.canvas import Canvas, Paint, Point
from isolux_worlds.drawing.colour import Colour, darken, lighten

__all__ = ["paint_back_hair", "paint_hair"]

_FINE_PX = 9.0
"""Half a face's width from which single strands are painted."""
_LONG = 0.42
"""From this length on hair falls below the ears."""


def paint_back_hair(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint the hair behind neck and shoulders; call it before the body."""
    if not _is_hair_visible(figure) or _has_short_hair(figure):
        return
    hair_type, w = figure.words["hair_type"], figure.face.half_width
    colour = darken(figure.look.hair, 0.22)
    with canvas.as_part(figure.owner, "head_hair"):
        if hair_type == "coily":
            _paint_afro(canvas, figure, colour)
        elif hair_type == "curly":
            _paint_curls(
                canvas, figure, colour, _build_hair_outline_behind_head(figure, 1.22), 0.19 * w
            )
        elif hair_type == "dreadlocks":
            _paint_dreadlocks(canvas, figure, colour, np.linspace(-1.12, 1.12, 13), 0.2)
        else:
            _paint_long_straight_hair(canvas, figure, colour)


def paint_hair(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint the hair on the skull and the locks around the face; call it after the head."""
    if not _is_hair_visible(figure):
        if figure.words["hair_type"] == "bald" and figure.words["headwear"] == "none":
            _paint_scalp_gleam(canvas, figure)
        return
    hair_type = figure.words["hair_type"]
    tops = {
        "coily": _paint_coily_hair_on_skull,
        "curly": _paint_curly_hair_on_skull,
        "dreadlocks": _paint_dreadlocks_on_skull,
    }
    with canvas.as_part(figure.owner, "head_hair"):
        tops.get(hair_type, _paint_straight_hair_on_skull)(canvas, figure)
    if figure.face.half_width >= _FINE_PX:
        _paint_crown_highlight(canvas, figure)


def _is_hair_visible(figure: PersonFigure) -> bool:
    return figure.words["hair_type"] != "bald" and figure.words["headwear"] != "headscarf"


def _has_short_hair(figure: PersonFigure) -> bool:
    return figure.look.length < _LONG


def _has_bun(figure: PersonFigure) -> bool:
    look = figure.look
    return look.style > 0.8 and look.feminine >= 0.5 and figure.words["headwear"] == "none"


def _hair_end_y(figure: PersonFigure) -> float:
    """How far down hair falls, in the face's frame."""
    return 0.05 + 2.1 * (figure.look.length - 0.30)


def _hair_volume(figure: PersonFigure) -> float:
    """How far hair stands off the skull: little under a cap."""
    return 0.25 if figure.words["headwear"] == "cap" else 1.0


def _paint_scalp_gleam(canvas: Canvas, figure: PersonFigure) -> None:
    face, w = figure.face, figure.face.half_width
    shine = Paint(figure.look.skin.sheen, alpha=0.5, soft=0.4 * w)
    with canvas.only_on(figure.owner, "face_skin"):
        gleam_x = 0.3 if canvas.light[0] > 0 else -0.3
        canvas.ellipse(face.to_pixel(gleam_x, -1.1), 0.4 * w, 0.22 * w, shine, face.turn)


def _build_hair_paint(figure: PersonFigure, colour: Colour, grain: float = 0.1) -> Paint:
    face = figure.face
    across = (*face.to_pixel(-1.15, 0.0), *face.to_pixel(1.15, 0.0))
    size = max(1.0, 0.05 * face.half_width)
    return Paint(colour, round=0.3, across=across, grain=grain, grain_px=size)


def _push_every_second_point_outwards(points: list[Point], deep: float) -> list[Point]:
    """Push every second place outwards, from the face's middle."""
    return [
        (x * (1.0 + deep * (k % 2)) - math.copysign(deep * 0.5, x), y)
        for k, (x, y) in enumerate(points)
    ]


def _paint_long_straight_hair(canvas: Canvas, figure: PersonFigure, colour: Colour) -> None:
    """Straight and wavy hair behind the shoulders."""
    if _has_bun(figure):
        return
    end = _hair_end_y(figure)
    side_points = [(1.06, -0.9), (1.16, -0.5)]
    side_points += [(1.2 + 0.10 * t, -0.5 + (end + 0.5) * t) for t in (0.2, 0.4, 0.6, 0.8)]
    if figure.words["hair_type"] == "wavy":
        side_points = _push_every_second_point_outwards(side_points, 0.09)
    side_points.append((1.16, end + 0.1))
    outline = [
        *side_points,
        (0.0, end + 0.22),
        *[(-x, y) for x, y in reversed(side_points)],
        (0.0, -1.3),
    ]
    canvas.blob(figure.face.to_pixels(outline), _build_hair_paint(figure, colour), steps=4)


def _build_hair_outline_behind_head(figure: PersonFigure, wide: float) -> list[Point]:
    """Places around and behind the head, down to where hair ends."""
    end = _hair_end_y(figure)
    points = []
    for t in np.linspace(0.0, 1.0, 6):
        y = -0.8 + (end + 0.8) * float(t)
        points += [(x * wide, y + 0.06 * abs(x)) for x in (-1.0, -0.66, -0.3, 0.3, 0.66, 1.0)]
    return points


def _paint_curls(
    canvas: Canvas, figure: PersonFigure, colour: Colour, ring_centres: list[Point], r: float
) -> None:
    """Locks: discs whose edges make a curly outline, with the shade of a ring on each."""
    rng, w = figure.rng, figure.face.half_width
    centres = figure.face.to_pixels(
        np.asarray(ring_centres) + rng.normal(0.0, 0.05, (len(ring_centres), 2))
    )
    sizes, turns = (
        rng.uniform(0.85, 1.25, len(ring_centres)),
        rng.uniform(0.0, 3.1, len(ring_centres)),
    )
    rows = list(zip(centres.tolist(), (sizes * r).tolist(), turns.tolist(), strict=True))
    for (x, y), a, turn in rows:
        canvas.ellipse((x, y), a, 0.82 * a, Paint(colour, round=0.22), turn)
    if w < _FINE_PX:
        return
    bright, gap = Paint(lighten(colour, 0.25), alpha=0.45), Paint(darken(colour, 0.5), alpha=0.5)
    with canvas.only_on(figure.owner, "head_hair"):
        for (x, y), a, turn in rows:
            c, s = math.cos(turn) * a, math.sin(turn) * a
            for paint_with, k in ((gap, 0.75), (bright, 0.42)):
                arc = [(x - k * c, y - k * s), (x + k * 0.9 * s, y - k * 0.9 * c)]
                arc += [(x + k * c, y + k * s), (x - k * 0.2 * s, y + k * 0.5 * c)]
                canvas.curve(arc, 0.17 * a, paint_with)


def _paint_dreadlocks(
    canvas: Canvas, figure: PersonFigure, colour: Colour, roots: _Floats, drop: float
) -> None:
    """Dreadlocks: thick strands from the skull down, each a little bent."""
    face, w = figure.face, figure.face.half_width
    end = _hair_end_y(figure) + drop if not _has_short_hair(figure) else -0.05 + drop
    bends = figure.rng.normal(0.0, 0.05, (len(roots), 3))
    for x, bend in zip(roots.tolist(), bends.tolist(), strict=True):
        top = -1.25 + 0.5 * abs(x)
        foot = end + 1.2 * bend[2]
        path = [(x * 0.86, top), (x * 1.05 + bend[0], top + 0.4 * (foot - top))]
        path += [(x * 1.12 + bend[1], top + 0.75 * (foot - top)), (x * 1.1, foot)]
        centres = [tuple(p) for p in face.to_pixels(path).tolist()]
        for (ax, ay), (bx, by), r in zip(
            centres[:-1], centres[1:], (0.105, 0.1, 0.085), strict=True
        ):
            rope = Paint(colour, round=0.6, grain=0.22, grain_px=max(1.0, 0.06 * w))
            canvas.capsule((ax, ay), r * w, (bx, by), r * w * 0.92, rope)
        if w >= _FINE_PX:
            _paint_dreadlock_knots(canvas, figure, colour, centres)


def _paint_dreadlock_knots(
    canvas: Canvas, figure: PersonFigure, colour: Colour, path: list[Point]
) -> None:
    """Short dark lines across a strand."""
    w = figure.face.half_width
    ink = Paint(darken(colour, 0.5), alpha=0.5)
    for (ax, ay), (bx, by) in pairwise(path):
        for t in (0.2, 0.5, 0.8):
            x, y = ax + (bx - ax) * t, ay + (by - ay) * t
            knot = [(x - 0.07 * w, y + 0.03 * w), (x + 0.07 * w, y - 0.02 * w)]
            canvas.line(knot, 0.025 * w, ink)


def _paint_afro(canvas: Canvas, figure: PersonFigure, colour: Colour) -> None:
    """Paint a round mass behind the head, its edge fine and uneven."""
    face, w = figure.face, figure.face.half_width
    reach = 1.12 + 0.62 * figure.look.length * _hair_volume(figure)
    angles = np.linspace(0.0, 2 * math.pi, 30, endpoint=False)
    bumps = reach * (1.0 + figure.rng.normal(0.0, 0.022, len(angles)))
    centres = np.column_stack([bumps * np.cos(angles), -0.55 + bumps * 0.92 * np.sin(angles)])
    across = (*face.to_pixel(-reach, 0.0), *face.to_pixel(reach, 0.0))
    fill = Paint(colour, grain=0.3, grain_px=max(1.0, 0.055 * w), round=0.3, across=across)
    canvas.blob(face.to_pixels(centres), fill, steps=3)
    for x, y in face.to_pixels(centres).tolist():
        canvas.ellipse((x, y), 0.085 * w, 0.085 * w, Paint(colour, grain=0.3, grain_px=2.0))


def _build_hair_outline_on_skull(lift: float, hairline: list[Point], low: float) -> list[Point]:
    """Outline of hair on the skull: around the head outside, back along the hairline."""
    half = [(1.03, low), (1.05 + 0.3 * lift, -0.55), (0.94 + 0.4 * lift, -1.08 - 0.2 * lift)]
    half.append((0.55 + 0.2 * lift, -1.42 - 0.6 * lift))
    crown = (0.0, -1.52 - 0.75 * lift)
    return [(-x, y) for x, y in half] + [crown] + list(reversed(half)) + hairline


def _build_hairline(figure: PersonFigure) -> list[Point]:
    """From the right temple (of the picture) to the left: a fringe, a parting, or swept back."""
    look = figure.look
    p, fringe = look.parting, look.feminine >= 0.5 and look.style < 0.3
    recede = 0.12 * min(1.0, max(0.0, (look.age - 45) / 30)) * (1.0 - look.feminine)
    if fringe:
        line = [
            (0.93, -0.3),
            (0.84, -0.5),
            (0.4, -0.56),
            (0.0, -0.54),
            (-0.4, -0.56),
            (-0.84, -0.5),
            (-0.93, -0.3),
        ]
    elif look.style < 0.6:
        line = [
            (0.93, -0.2),
            (0.88, -0.6),
            (0.62, -0.84),
            (0.1, -0.94),
            (-0.42, -1.06),
            (-0.8, -0.7),
            (-0.94, -0.2),
        ]
    else:
        line = [
            (0.93, -0.2),
            (0.86, -0.64),
            (0.68, -0.96),
            (0.0, -1.02),
            (-0.68, -0.96),
            (-0.86, -0.64),
            (-0.93, -0.2),
        ]
    if p < 0:
        line = [(-x, y) for x, y in reversed(line)]
    return [(x, y - recede if abs(x) < 0.85 else y) for x, y in line]


def _paint_straight_hair_on_skull(canvas: Canvas, figure: PersonFigure) -> None:
    """Straight and wavy hair: cap, and for long hair a lock on either side."""
    look, wavy = figure.look, figure.words["hair_type"] == "wavy"
    lift = (0.05 + 0.12 * look.style + (0.06 if wavy else 0.0)) * _hair_volume(figure)
    outline = _build_hair_outline_on_skull(
        lift, _build_hairline(figure), 0.12 if _has_short_hair(figure) else 0.2
    )
    if wavy:
        outline = [
            (x * (1.0 + 0.035 * (k % 2)), y - 0.04 * (k % 2)) for k, (x, y) in enumerate(outline)
        ]
    fill = _build_hair_paint(figure, look.hair)
    if _has_bun(figure):
        w = figure.face.half_width
        canvas.ellipse(
            figure.face.to_pixel(0.0, -1.78), 0.46 * w, 0.40 * w, Paint(look.hair, round=0.5)
        )
    canvas.blob(figure.face.to_pixels(outline), fill, steps=4)
    if not _has_short_hair(figure) and not _has_bun(figure):
        _paint_side_locks(canvas, figure, fill, wavy=wavy)
    if figure.face.half_width >= _FINE_PX:
        _paint_hair_strands(canvas, figure, wavy=wavy)


def _paint_side_locks(canvas: Canvas, figure: PersonFigure, fill: Paint, *, wavy: bool) -> None:
    end = _hair_end_y(figure)
    for s in (-1.0, 1.0):
        outer = [(1.1, -0.75), (1.17, -0.35), (1.2, 0.05)]
        outer += [(1.19 - 0.05 * t, 0.05 + (end - 0.05) * t) for t in (0.3, 0.55, 0.8)]
        inner = [(0.90, 0.05), (0.92, -0.3), (0.86, -0.7)]
        inner = [(0.86 + 0.04 * (1 - t), 0.1 + (end - 0.2) * t) for t in (0.75, 0.45, 0.15)] + inner
        if wavy:
            outer, inner = (
                _push_every_second_point_outwards(outer, 0.1),
                _push_every_second_point_outwards(inner, 0.07),
            )
        tip = [(1.05, end + 0.06)]
        outline = [(s * x, y) for x, y in outer + tip + inner]
        canvas.blob(figure.face.to_pixels(outline), fill, steps=4)


def _paint_hair_strands(canvas: Canvas, figure: PersonFigure, *, wavy: bool) -> None:
    """Fine lines that follow the hair: from the parting over the skull, and down the locks."""
    face, look = figure.face, figure.look
    w, part_x = face.half_width, -0.4 * look.parting
    tints = (Paint(darken(look.hair, 0.4), alpha=0.4), Paint(lighten(look.hair, 0.25), alpha=0.35))
    jitter = figure.rng.normal(0.0, 0.03, 40)
    with canvas.only_on(figure.owner, "head_hair"):
        for k, a in enumerate(np.linspace(-1.0, 1.0, 15)):
            x = float(a)
            root = (part_x + 0.25 * x, -1.46 - 0.1 * look.style)
            mid = (0.75 * x + 0.25 * part_x + float(jitter[k]), -1.25 + 0.3 * abs(x))
            tip = (1.04 * x, -0.72 + 0.25 * abs(x))
            canvas.curve(face.to_pixels([root, mid, tip]), 0.022 * w, tints[k % 2])
        if _has_short_hair(figure) or _has_bun(figure):
            return
        end = _hair_end_y(figure)
        for k, x in enumerate((-1.12, -1.04, -0.96, 0.96, 1.04, 1.12)):
            sway = 0.05 if wavy else 0.0
            path = [
                (x + sway * (-1) ** n + float(jitter[20 + k]), -0.7 + (end + 0.6) * n / 6)
                for n in range(7)
            ]
            canvas.curve(face.to_pixels(path), 0.024 * w, tints[k % 2])


def _paint_curly_hair_on_skull(canvas: Canvas, figure: PersonFigure) -> None:
    w, volume = figure.face.half_width, _hair_volume(figure)
    reach = 1.0 + 0.16 * volume
    cap = figure.face.to_pixels(
        _build_hair_outline_on_skull(0.08 * volume, _build_hairline(figure), 0.0)
    )
    canvas.blob(cap, _build_hair_paint(figure, darken(figure.look.hair, 0.2)), steps=4)
    centres = []
    for ring, r in ((13, 1.0), (11, 0.8), (7, 0.5)):
        for a in np.linspace(math.pi * 1.0, math.pi * 2.0, ring):
            x, y = r * reach * math.cos(a), -0.62 + r * 0.92 * reach * math.sin(a)
            if y < -0.78 or abs(x) > 0.9:
                centres.append((x, y))
    if not _has_short_hair(figure):
        end = _hair_end_y(figure)
        for t in np.linspace(0.0, 1.0, max(3, int((end + 0.5) / 0.28))):
            y = -0.5 + (end + 0.5) * float(t)
            centres += [(-1.1 - 0.04 * (y > 0), y), (1.1 + 0.04 * (y > 0), y)]
    _paint_curls(canvas, figure, figure.look.hair, centres, 0.2 * w)


def _paint_coily_hair_on_skull(canvas: Canvas, figure: PersonFigure) -> None:
    face, look, w = figure.face, figure.look, figure.face.half_width
    lift = (0.05 + 0.42 * look.length) * _hair_volume(figure)
    line = [
        (0.92, -0.25),
        (0.86, -0.62),
        (0.62, -0.9),
        (0.0, -0.98),
        (-0.62, -0.9),
        (-0.86, -0.62),
        (-0.92, -0.25),
    ]
    outline = _build_hair_outline_on_skull(lift, line, 0.05)
    across = (*face.to_pixel(-1.2, 0.0), *face.to_pixel(1.2, 0.0))
    fill = Paint(look.hair, grain=0.34, grain_px=max(1.0, 0.055 * w), round=0.3, across=across)
    canvas.blob(face.to_pixels(outline), fill, steps=4)
    edge = np.asarray(outline)
    dense = np.concatenate([edge + (np.roll(edge, -1, axis=0) - edge) * t for t in (0, 0.33, 0.66)])
    tuft = Paint(look.hair, grain=0.34, grain_px=max(1.0, 0.05 * w))
    for x, y in face.to_pixels(dense).tolist():
        canvas.ellipse((x, y), 0.045 * w, 0.045 * w, tuft)
    if w < _FINE_PX:
        return
    dots = figure.rng.uniform((-1.25, -1.9), (1.25, 0.0), (90, 2))
    coil = (Paint(lighten(look.hair, 0.2), alpha=0.4), Paint(darken(look.hair, 0.55), alpha=0.5))
    with canvas.only_on(figure.owner, "head_hair"):
        for k, (x, y) in enumerate(face.to_pixels(dots).tolist()):
            canvas.ellipse((x, y), 0.035 * w, 0.03 * w, coil[k % 2])


def _paint_dreadlocks_on_skull(canvas: Canvas, figure: PersonFigure) -> None:
    face, look, w = figure.face, figure.look, figure.face.half_width
    cap = face.to_pixels(
        _build_hair_outline_on_skull(0.1 * _hair_volume(figure), _build_hairline(figure), -0.1)
    )
    canvas.blob(cap, _build_hair_paint(figure, darken(look.hair, 0.15), 0.2), steps=4)
    roots = np.array([-1.0, -0.93, 0.93, 1.0, -1.08, 1.08])
    _paint_dreadlocks(canvas, figure, look.hair, roots, 0.12)
    tints = (Paint(darken(look.hair, 0.5), alpha=0.6), Paint(lighten(look.hair, 0.18), alpha=0.5))
    with canvas.only_on(figure.owner, "head_hair"):
        for k, a in enumerate(np.linspace(-0.95, 0.95, 9)):
            x = float(a)
            path = [(0.35 * x, -1.55), (0.8 * x, -1.3 + 0.2 * abs(x)), (1.02 * x, -0.85)]
            canvas.curve(face.to_pixels(path), 0.06 * w, tints[k % 2])


def _paint_crown_highlight(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint a band of light on the crown, towards the light."""
    face, look, w = figure.face, figure.look, figure.face.half_width
    gleam_x = 0.35 if canvas.light[0] > 0 else -0.35
    strength = 0.16 if figure.words["hair_type"] in {"coily", "dreadlocks"} else 0.34
    shine = Paint(lighten(look.hair, 0.45), alpha=strength, soft=0.25 * w)
    with canvas.only_on(figure.owner, "head_hair"):
        canvas.ellipse(
            face.to_pixel(gleam_x, -1.25), 0.42 * w, 0.12 * w, shine, face.turn + 0.5 * gleam_x
        )
