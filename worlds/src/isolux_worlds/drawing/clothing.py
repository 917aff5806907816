"""Clothes: trousers, shorts, skirts, tops, sleeves, dresses and robes, by outfit.

Cloth follows the limbs as skin does, a little wider; what hangs (a skirt, a robe) is a shape of
its own. Patterns and trimmings are in ``clothing_details.py``.
"""

from __future__ import annotations

from isolux_worlds.drawing.anatomy import PersonFigure, interpolate_points
from isolux_worlds.drawing.body import LIMBS, build_torso_outline, point_towards
from isolux_worlds.drawing.canvas import Canvas, Paint, Point
from isolux_worlds.drawing.colour import Colour, darken, hex_to_rgb
from isolux_worlds.drawing.outfits import Outfit

__all__ = [
    "paint_bottom_garment",
    "paint_sleeve",
    "paint_top_garment",
    "top_trim_and_bottom_colours",
]


def top_trim_and_bottom_colours(
    figure: PersonFigure, outfit: Outfit
) -> tuple[Colour, Colour, Colour]:
    """Return the colours of top, trim and bottom: the outfit's, or the subject's own."""
    look = figure.look
    return (
        hex_to_rgb(outfit.top) if outfit.top else look.top,
        hex_to_rgb(outfit.second) if outfit.second else look.second,
        hex_to_rgb(outfit.lower) if outfit.lower else look.bottom,
    )


def paint_bottom_garment(canvas: Canvas, figure: PersonFigure, outfit: Outfit) -> None:
    """Paint trousers, shorts or a skirt over the legs."""
    colour = top_trim_and_bottom_colours(figure, outfit)[2]
    part_name = "lower_clothing"
    if outfit.is_one_piece:
        if 0.6 < outfit.hem < 1.5:
            return
        part_name, colour = "full_body_clothing", top_trim_and_bottom_colours(figure, outfit)[0]
        colour = darken(colour, 0.3) if outfit.hem > 0.6 else colour
    with canvas.as_part(figure.owner, part_name):
        if outfit.bottom == "skirt":
            _paint_skirt(canvas, figure, colour)
        else:
            _paint_trousers(canvas, figure, colour, short=outfit.bottom == "shorts")


def _paint_trousers(canvas: Canvas, figure: PersonFigure, colour: Colour, *, short: bool) -> None:
    u, j = figure.u * figure.look.build, figure.joints
    fill = Paint(colour, round=0.45, grain=0.02, grain_px=max(1.0, 0.04 * u))
    pelvis = _build_pelvis_outline(figure)
    canvas.polygon(pelvis, Paint(colour, round=0.35, across=(*pelvis[0], *pelvis[1])))
    for body_side in _order_sides_far_leg_first(figure):
        hip, knee, ankle = (j[f"{body_side}_{n}"] for n in ("hip", "knee", "ankle"))
        hip = interpolate_points(hip, figure.joint_midpoint("hip"), 0.12)
        canvas.capsule(hip, 0.305 * u, knee, 0.24 * u, fill)
        if not short:
            foot = point_towards(ankle, knee, -0.06 * u)
            canvas.capsule(knee, 0.235 * u, foot, 0.185 * u, fill)


def _order_sides_far_leg_first(figure: PersonFigure) -> tuple[str, str]:
    j = figure.joints
    right_lower = j["right_ankle"][1] > j["left_ankle"][1]
    return ("left", "right") if right_lower else ("right", "left")


def _build_pelvis_outline(figure: PersonFigure) -> list[Point]:
    """From the waist to the crotch."""
    outline = build_torso_outline(figure, 0.01)
    right, left = outline[2], outline[-3]
    low_right, low_left = outline[3], outline[-4]
    middle = figure.joint_midpoint("hip")
    crotch = (middle[0], middle[1] + 0.38 * figure.u)
    inner_left, inner_right = ((x, y + 0.15 * figure.u) for x, y in (low_left, low_right))
    waist = [interpolate_points(right, low_right, 0.3), interpolate_points(left, low_left, 0.3)]
    return [*waist, low_left, inner_left, crotch, inner_right, low_right]


def _paint_skirt(canvas: Canvas, figure: PersonFigure, colour: Colour, to: float = 0.72) -> None:
    u, j = figure.u, figure.joints
    outline = build_torso_outline(figure, 0.03)
    right, left = outline[2], outline[-3]
    hem_right = interpolate_points(j["right_hip"], j["right_knee"], to)
    hem_left = interpolate_points(j["left_hip"], j["left_knee"], to)
    x, y = interpolate_points(hem_right, hem_left, 0.5)
    hem = [(hem_left[0] + 0.42 * u, hem_left[1] + 0.05 * u), (x, y + 0.14 * u)]
    hem.append((hem_right[0] - 0.42 * u, hem_right[1] + 0.05 * u))
    corners = [right, left, outline[-4], *hem, outline[3]]
    canvas.polygon(corners, Paint(colour, round=0.4, across=(*corners[-2], *corners[3])))
    for share in (0.25, 0.5, 0.75):
        fold = [
            interpolate_points(right, left, 0.35 + 0.3 * share),
            interpolate_points(corners[5], corners[3], share),
        ]
        canvas.line(fold, 0.03 * u, Paint(darken(colour, 0.35), alpha=0.5))


def paint_top_garment(canvas: Canvas, figure: PersonFigure, outfit: Outfit) -> None:
    """Paint what covers the trunk, from the shoulders to the hem."""
    colour = top_trim_and_bottom_colours(figure, outfit)[0]
    part_name = "full_body_clothing" if outfit.is_one_piece else "upper_clothing"
    with canvas.as_part(figure.owner, part_name):
        if outfit.hem > 0.6:
            _paint_skirt_below_hips(canvas, figure, outfit, colour)
        _paint_garment_trunk(canvas, figure, outfit, colour)


def _paint_garment_trunk(
    canvas: Canvas, figure: PersonFigure, outfit: Outfit, colour: Colour
) -> None:
    outline = build_torso_outline(figure, 0.02, min(outfit.hem, 0.6))
    across = (*outline[1], *outline[-2])
    fill = Paint(colour, round=0.4, across=across, grain=0.015, grain_px=max(1.0, 0.04 * figure.u))
    canvas.polygon(
        [
            *_narrow_shoulders_to_straps(outline, figure, outfit),
            *_build_neckline_outline(figure, outfit),
        ],
        fill,
    )
    u = figure.u
    fold = Paint(darken(colour, 0.45), alpha=0.22, soft=0.06 * u)
    with canvas.only_on(
        figure.owner, "full_body_clothing" if outfit.is_one_piece else "upper_clothing"
    ):
        for body_side, sign in (("right", 1), ("left", -1)):
            pit = outline[1] if body_side == "right" else outline[-2]
            end = (pit[0] + sign * 0.3 * u, pit[1] + 0.3 * u)
            canvas.capsule(pit, 0.03 * u, end, 0.01 * u, fold)


def _narrow_shoulders_to_straps(
    outline: list[Point], figure: PersonFigure, outfit: Outfit
) -> list[Point]:
    """Narrow the shoulders to straps where there are no sleeves."""
    right, left = outline[0], outline[-1]
    if outfit.sleeve == 0:
        middle = figure.joint_midpoint("shoulder")
        right, left = (
            interpolate_points(right, middle, 0.38),
            interpolate_points(left, middle, 0.38),
        )
    return [right, *outline[1:-1], left]


def _build_neckline_outline(figure: PersonFigure, outfit: Outfit) -> list[Point]:
    """From the left of the neck round to its right: how much of throat and chest shows."""
    u, (x, y) = figure.u, figure.joint_midpoint("shoulder")
    wide, deep = {
        "crew": (0.27, 0.10),
        "v": (0.25, 0.50),
        "collar": (0.22, 0.14),
        "scoop": (0.33, 0.30),
        "high": (0.24, -0.12),
    }[outfit.neck]
    rise = 0.35 if outfit.neck != "scoop" else 0.26
    top = y - rise * u
    if outfit.neck == "v":
        return [(x + wide * u, top), (x, y + deep * u), (x - wide * u, top)]
    half_width_px, half, low = 0.7 * wide * u, y + 0.55 * deep * u, (x, y + deep * u)
    return [
        (x + wide * u, top),
        (x + half_width_px, half),
        low,
        (x - half_width_px, half),
        (x - wide * u, top),
    ]


def _paint_skirt_below_hips(
    canvas: Canvas, figure: PersonFigure, outfit: Outfit, colour: Colour
) -> None:
    """Paint a dress, a coat's skirts, a robe: from the hips to where the hem falls."""
    u, j = figure.u, figure.joints
    outline = build_torso_outline(figure, 0.03)
    right, left = outline[2], outline[-3]
    hems = []
    for body_side, sign in (("left", 1.0), ("right", -1.0)):
        hip, knee, ankle = (j[f"{body_side}_{n}"] for n in ("hip", "knee", "ankle"))
        upper_joint, lower_joint, down = (hip, knee, 0) if outfit.hem <= 1 else (knee, ankle, 1)
        hem_point = interpolate_points(upper_joint, lower_joint, outfit.hem - down)
        flare = (0.34 + 0.12 * min(outfit.hem, 1.5)) * u
        hems.append((hem_point[0] + sign * flare, hem_point[1]))
    low = max(hems[0][1], hems[1][1]) + 0.1 * u
    middle = ((hems[0][0] + hems[1][0]) / 2, low)
    corners = [right, left, outline[-4], hems[0], middle, hems[1], outline[3]]
    canvas.polygon(corners, Paint(colour, round=0.4, across=(*hems[1], *hems[0])))
    crease = Paint(darken(colour, 0.4), alpha=0.4)
    for share in (0.22, 0.42, 0.63, 0.82):
        a = interpolate_points(outline[3], outline[-4], 0.2 + 0.6 * share)
        canvas.line([a, interpolate_points(hems[1], hems[0], share)], 0.03 * u, crease)


def paint_sleeve(canvas: Canvas, figure: PersonFigure, outfit: Outfit, body_side: str) -> None:
    """Paint a sleeve as far down the arm as the outfit has it; none leaves the arm bare."""
    if outfit.sleeve == 0:
        return
    u, j = figure.u * figure.look.build, figure.joints
    colour = top_trim_and_bottom_colours(figure, outfit)[0]
    fill = Paint(colour, round=0.45, grain=0.015, grain_px=max(1.0, 0.04 * u))
    shoulder, elbow, wrist = (j[f"{body_side}_{n}"] for n in ("shoulder", "elbow", "wrist"))
    r = LIMBS["shoulder"] * 1.06 * u
    with canvas.as_part(
        figure.owner, "full_body_clothing" if outfit.is_one_piece else "upper_clothing"
    ):
        if outfit.sleeve < 1:
            end = interpolate_points(shoulder, elbow, outfit.sleeve + 0.15)
            canvas.capsule(shoulder, r, end, r * 1.02, fill)
            _paint_straight_sleeve_hem(canvas, figure, body_side, end)
            return
        canvas.capsule(shoulder, r, elbow, 0.16 * u, fill)
        if outfit.sleeve >= 2:
            loose = 0.19 if outfit.hem > 1.5 else 0.118
            canvas.capsule(elbow, 0.16 * u, interpolate_points(elbow, wrist, 0.92), loose * u, fill)
        else:
            canvas.capsule(elbow, 0.16 * u, interpolate_points(elbow, wrist, 0.12), 0.15 * u, fill)
    if outfit.sleeve >= 2:
        start, end = interpolate_points(elbow, wrist, 0.9), interpolate_points(elbow, wrist, 0.93)
        cuff = Paint(darken(colour, 0.3), alpha=0.5)
        canvas.capsule(start, 0.11 * u, end, 0.11 * u, cuff)


def _paint_straight_sleeve_hem(
    canvas: Canvas, figure: PersonFigure, body_side: str, end: Point
) -> None:
    """Close a short sleeve with a straight hem: the arm below it in front of its round end."""
    u, j = figure.u * figure.look.build, figure.joints
    fill = Paint(figure.look.skin.tone, round=0.42)
    elbow = j[f"{body_side}_elbow"]
    start = interpolate_points(end, elbow, 0.22)
    with canvas.as_part(figure.owner, f"{body_side}_arm_skin"):
        canvas.capsule(start, 0.15 * u, elbow, LIMBS["elbow"] * u, fill)
