"""Skin and limbs along the joints: legs, torso, neck, arms, hands, tattoos.

Limbs are tapered capsules; radii are shares of the head's height, those of an adult by a
figure-drawing handbook's rule of thumb (an upper arm is as wide as a neck is half, and so on).
"""

from __future__ import annotations

import math

from isolux_worlds.drawing.anatomy import PersonFigure, interpolate_points
from isolux_worlds.drawing.canvas import Canvas, Paint, Point
from isolux_worlds.drawing.colour import mix_colours

__all__ = [
    "LIMBS",
    "build_torso_outline",
    "paint_arm_shadow",
    "paint_arm_skin",
    "paint_leg_skin",
    "paint_neck",
    "paint_shoes",
    "paint_tattoo",
    "paint_torso_skin",
    "point_towards",
]

LIMBS = {
    "shoulder": 0.175,
    "elbow": 0.130,
    "wrist": 0.088,
    "hip": 0.30,
    "knee": 0.195,
    "ankle": 0.115,
}
"""Radius at each joint, shares of the head's height."""


def point_towards(a: Point, b: Point, pixels: float) -> Point:
    """Return the place that many pixels from ``a`` towards ``b``."""
    length = math.hypot(b[0] - a[0], b[1] - a[1])
    return interpolate_points(a, b, pixels / length) if length > 0 else a


def _build_rounded_skin_paint(figure: PersonFigure) -> Paint:
    return Paint(figure.look.skin.tone, round=0.42)


def paint_leg_skin(canvas: Canvas, figure: PersonFigure, body_side: str) -> None:
    """Paint thigh and calf."""
    u, j, fill = figure.u * figure.look.build, figure.joints, _build_rounded_skin_paint(figure)
    hip, knee, ankle = (j[f"{body_side}_{n}"] for n in ("hip", "knee", "ankle"))
    with canvas.as_part(figure.owner, f"{body_side}_leg_skin"):
        canvas.capsule(hip, 0.28 * u, knee, LIMBS["knee"] * u, fill)
        calf = interpolate_points(knee, ankle, 0.33)
        canvas.capsule(knee, LIMBS["knee"] * u * 0.9, calf, 0.185 * u, fill)
        canvas.capsule(calf, 0.185 * u, ankle, LIMBS["ankle"] * u, fill)


def paint_shoes(canvas: Canvas, figure: PersonFigure, body_side: str) -> None:
    """Paint a shoe from ankle and heel to the toes, with a lighter sole."""
    u, j, look = figure.u, figure.joints, figure.look
    ankle, heel, toe = (j[f"{body_side}_{n}"] for n in ("ankle", "heel", "foot_index"))
    fill = Paint(look.shoes, round=0.4)
    sole = mix_colours(look.shoes, (240.0, 238.0, 232.0), 0.6)
    down = 0.055 * u
    with canvas.as_part(figure.owner, f"{body_side}_shoe"):
        low_heel, low_toe = (heel[0], heel[1] + down), (toe[0], toe[1] + down)
        canvas.capsule(low_heel, 0.13 * u, low_toe, 0.125 * u, sole)
        canvas.capsule(ankle, 0.135 * u, heel, 0.14 * u, fill)
        canvas.capsule(heel, 0.14 * u, toe, 0.125 * u, fill)
        canvas.capsule(ankle, 0.125 * u, toe, 0.115 * u, fill)


def build_torso_outline(
    figure: PersonFigure, extra_width: float = 0.0, extra_length: float = 0.0
) -> list[Point]:
    """Return the body's outline from the right shoulder round to the left."""
    u, look, j = figure.u, figure.look, figure.joints
    waist = 0.88 - 0.10 * look.feminine
    spine = interpolate_points(figure.joint_midpoint("shoulder"), figure.joint_midpoint("hip"), 0.0)
    low = figure.joint_midpoint("hip")
    length = max(math.hypot(low[0] - spine[0], low[1] - spine[1]), 1e-6)
    dx, dy = (low[0] - spine[0]) / length, (low[1] - spine[1]) / length
    half_outlines: dict[str, list[Point]] = {}
    for body_side in ("right", "left"):
        shoulder, hip = j[f"{body_side}_shoulder"], j[f"{body_side}_hip"]
        sign = -1.0 if body_side == "right" else 1.0
        ox, oy = sign * dy, -sign * dx  # out of the body, across the spine
        tip = (shoulder[0] + ox * 0.02 * u, shoulder[1] + oy * 0.02 * u - 0.15 * u)
        pit = _offset_point_along(
            interpolate_points(shoulder, hip, 0.22), ox, oy, (0.02 + extra_width) * u
        )
        middle, centre = (
            interpolate_points(shoulder, hip, 0.62),
            interpolate_points(spine, low, 0.62),
        )
        belly = _offset_point_along(
            interpolate_points(centre, middle, waist),
            ox,
            oy,
            (0.20 * look.build + extra_width - 0.04) * u,
        )
        hipbone = _offset_point_along(
            hip, ox, oy, (0.25 * look.build + 0.04 * look.feminine + extra_width) * u
        )
        foot = (hipbone[0] + dx * extra_length * u, hipbone[1] + dy * extra_length * u)
        half_outlines[body_side] = [tip, pit, belly, hipbone, foot]
    return [*half_outlines["right"], *reversed(half_outlines["left"])]


def _offset_point_along(point: Point, x: float, y: float, pixels: float) -> Point:
    return point[0] + x * pixels, point[1] + y * pixels


def paint_torso_skin(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint chest and belly: what a garment may leave bare."""
    outline = build_torso_outline(figure, -0.04)
    across = (*outline[1], *outline[-2])
    fill = Paint(figure.look.skin.tone, round=0.35, across=across)
    u, shoulders = figure.u, figure.joint_midpoint("shoulder")
    with canvas.as_part(figure.owner, "body_skin"):
        top = [_offset_point_along(shoulders, x, -0.3, u) for x in (0.2, -0.2)]
        canvas.polygon([*outline, *top], fill)


def paint_neck(canvas: Canvas, figure: PersonFigure) -> None:
    """Paint the neck from under the chin to between the shoulders, in the chin's shadow."""
    u, face, look = figure.u, figure.face, figure.look
    radius = (0.235 - 0.035 * look.feminine) * u
    top, foot = face.to_pixel(0.0, 0.55), figure.joint_midpoint("shoulder")
    foot = (foot[0], foot[1] - 0.04 * u)
    across = (top[0] - radius, top[1], top[0] + radius, top[1])
    throat_outline = ((1.0, -0.25), (1.5, -0.08), (0.0, 0.14), (-1.5, -0.08), (-1.0, -0.25))
    outline = [(top[0] - radius, top[1]), (top[0] + radius, top[1])]
    outline += [(foot[0] + x * radius, foot[1] + y * u) for x, y in throat_outline]
    with canvas.as_part(figure.owner, "neck"):
        canvas.polygon(outline, Paint(look.skin.tone, round=0.4, across=across))
    with canvas.only_on(figure.owner, "neck"):
        shade = Paint(look.skin.shadow, alpha=0.75, soft=0.35 * u)
        canvas.ellipse(face.to_pixel(0.0, 0.98), 0.95 * face.half_width, 0.2 * u, shade)


def paint_arm_skin(canvas: Canvas, figure: PersonFigure, body_side: str) -> None:
    """Paint upper arm, forearm and hand."""
    u, j, fill = figure.u * figure.look.build, figure.joints, _build_rounded_skin_paint(figure)
    shoulder, elbow, wrist = (j[f"{body_side}_{n}"] for n in ("shoulder", "elbow", "wrist"))
    with canvas.as_part(figure.owner, f"{body_side}_arm_skin"):
        canvas.capsule(shoulder, LIMBS["shoulder"] * u * 0.92, elbow, LIMBS["elbow"] * u, fill)
        canvas.capsule(elbow, LIMBS["elbow"] * u, wrist, LIMBS["wrist"] * u, fill)
        _paint_bare_hand(canvas, figure, body_side)


def paint_arm_shadow(canvas: Canvas, figure: PersonFigure, body_side: str) -> None:
    """Shade the trunk along an arm, before the arm is painted."""
    u, j = figure.u, figure.joints
    shoulder, elbow, wrist = (j[f"{body_side}_{n}"] for n in ("shoulder", "elbow", "wrist"))
    shift = (-0.05 * u if canvas.light[0] > 0 else 0.05 * u, 0.04 * u)
    shade = Paint((0.0, 0.0, 0.0), alpha=0.26, soft=0.16 * u)
    with canvas.only_on(figure.owner):
        for a, b, r in (
            (interpolate_points(shoulder, elbow, 0.35), elbow, 0.15),
            (elbow, wrist, 0.12),
        ):
            start, end = (_offset_point_along(point, *shift, 1.0) for point in (a, b))
            canvas.capsule(start, r * u, end, r * u, shade)


def _paint_bare_hand(canvas: Canvas, figure: PersonFigure, body_side: str) -> None:
    u, j, fill = figure.u, figure.joints, _build_rounded_skin_paint(figure)
    wrist, index, pinky, thumb = (
        j[f"{body_side}_{n}"] for n in ("wrist", "index", "pinky", "thumb")
    )
    knuckles = interpolate_points(index, pinky, 0.5)
    palm = interpolate_points(wrist, knuckles, 0.45)
    canvas.capsule(wrist, 0.085 * u, palm, 0.12 * u, fill)
    root = interpolate_points(wrist, thumb, 0.2)
    canvas.capsule(root, 0.055 * u, thumb, 0.04 * u, fill)
    for k in range(4):
        tip = interpolate_points(index, pinky, k / 3)
        tip = interpolate_points(palm, tip, 1.18 if k in {1, 2} else 1.02)
        base = interpolate_points(palm, tip, 0.3)
        canvas.capsule(base, 0.048 * u, tip, 0.036 * u, fill)


def paint_tattoo(canvas: Canvas, figure: PersonFigure) -> None:
    """Ink on the forearm and the neck's side, on bare skin alone: a band, a star and lines."""
    u, j = figure.u, figure.joints
    depth = sum(figure.look.skin.tone) / 765.0
    ink = Paint(mix_colours((88.0, 120.0, 128.0), (34.0, 52.0, 66.0), depth), alpha=0.85)
    body_side = "left" if figure.look.style < 0.5 else "right"
    elbow, wrist = j[f"{body_side}_elbow"], j[f"{body_side}_wrist"]
    with canvas.only_on(figure.owner, f"{body_side}_arm_skin"):
        for share in (0.25, 0.34, 0.66):
            a, b = (
                interpolate_points(elbow, wrist, share),
                interpolate_points(elbow, wrist, share + 0.05),
            )
            canvas.capsule(a, 0.13 * u * 0.35, b, 0.13 * u * 0.35, ink)
            band = [
                _offset_point_perpendicular(a, elbow, wrist, direction * u)
                for direction in (-0.2, 0.2)
            ]
            canvas.line(band, 0.04 * u, ink)
        star = interpolate_points(elbow, wrist, 0.5)
        for k in range(5):
            angle = 2 * math.pi * k / 5
            tip = (star[0] + 0.1 * u * math.cos(angle), star[1] + 0.1 * u * math.sin(angle))
            canvas.line([star, tip], 0.035 * u, ink)
    sign = 1.0 if body_side == "left" else -1.0
    with canvas.only_on(figure.owner, "neck"):
        x, y = figure.joint_midpoint("shoulder")
        x += sign * 0.14 * u
        for k in range(5):
            angle = 2 * math.pi * k / 5 - 0.3
            tip = (x + 0.06 * u * math.cos(angle), y - 0.24 * u + 0.06 * u * math.sin(angle))
            canvas.line([(x, y - 0.24 * u), tip], 0.03 * u, ink)


def _offset_point_perpendicular(point: Point, a: Point, b: Point, pixels: float) -> Point:
    length = max(math.hypot(b[0] - a[0], b[1] - a[1]), 1e-6)
    return _offset_point_along(point, -(b[1] - a[1]) / length, (b[0] - a[0]) / length, pixels)
