"""Things that stand before people: bush, pole, table, wall, parked car.

``occlusion`` says how much is hidden: ``partial`` a part of the body (from below, or a strip down
it), ``heavy`` most of it. Which thing it is hangs on the scene. An occluder's pixels belong to the
owner 255, so that masks, boxes and joints know what is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from isolux_worlds.drawing.anatomy import PersonFigure
from isolux_worlds.drawing.canvas import OCCLUDER, Paint
from isolux_worlds.drawing.colour import Colour, darken, lighten, mix_colours
from isolux_worlds.drawing.setting import BackgroundScene

__all__ = ["paint_occluder"]

_BY_SCENE: Mapping[str, tuple[str, ...]] = {
    "city_street": ("car", "pole", "wall"),
    "residential": ("bush", "wall", "car"),
    "park": ("bush", "trunk"),
    "highway": ("car", "pole"),
    "home": ("table", "cupboard"),
    "shop": ("table", "cupboard"),
}
_FROM_BELOW = {"partial": 0.36, "heavy": 0.70}
"""Of a body's height in the photo, hidden by what stands on the ground."""
_ACROSS = {"partial": 0.46, "heavy": 0.78}
"""Of a body's breadth, hidden by what is upright."""


_BODY_SIDES = ("right", "left")


@dataclass(frozen=True, slots=True)
class _OccluderArea:
    """Where an occluder goes: from x0 to x1, from its top down to its foot."""

    s: BackgroundScene
    x0: float
    x1: float
    top: float
    foot: float

    @property
    def wide(self) -> float:
        return self.x1 - self.x0

    @property
    def tall(self) -> float:
        return self.foot - self.top


def paint_occluder(scene: BackgroundScene, figure: PersonFigure) -> None:
    """Paint the thing in front of a person whose ``occlusion`` is not ``none``."""
    amount = figure.words["occlusion"]
    if amount == "none":
        return
    # The person's own stream: what hides them must not hang on how many stars the sky has.
    scene = replace(scene, rng=figure.rng)
    occluder_types = _BY_SCENE[scene.scene]
    occluder_type = occluder_types[int(scene.rng.integers(len(occluder_types)))]
    left = scene.uniform(0.0, 1.0) < 0.5
    x, y, w, h = _compute_body_box(scene, figure)
    foot = y + h + 0.02 * scene.height
    if y + h > 0.99 * scene.height:  # cut by the border: so is what stands before it
        foot = scene.height + 0.25 * h
    if occluder_type in {"pole", "trunk", "cupboard"}:
        wide = _ACROSS[amount] * w
        x0 = x - 0.06 * w if left else x + 1.06 * w - wide
        area = _OccluderArea(scene, x0, x0 + wide, y - 0.06 * h, foot)
    else:
        top = y + h * (1.0 - _FROM_BELOW[amount])
        area = _OccluderArea(scene, x - 0.22 * w, x + 1.22 * w, top, foot)
    with scene.canvas.as_part(OCCLUDER):
        _PAINTERS[occluder_type](area)


def _compute_body_box(
    scene: BackgroundScene, figure: PersonFigure
) -> tuple[float, float, float, float]:
    """Box of shoulders, hips, knees and head inside the photo: raised arms would misplace it."""
    names = [
        f"{body_side}_{n}"
        for body_side in _BODY_SIDES
        for n in ("shoulder", "hip", "knee", "ankle")
    ]
    joint_points = [figure.joints[n] for n in names]
    always = [figure.joints[f"{body_side}_shoulder"] for body_side in _BODY_SIDES]
    xs = [x for x, y in joint_points if y < scene.height] + [x for x, _ in always]
    ys = [y for _, y in joint_points]
    x0, x1 = max(0.0, min(xs) - 0.3 * figure.u), min(scene.width, max(xs) + 0.3 * figure.u)
    y0 = max(0.0, figure.face.to_pixel(0.0, -1.5)[1])
    y1 = min(scene.height, max(ys) + 0.3 * figure.u)
    return x0, y0, max(x1 - x0, 4.0), max(y1 - y0, 4.0)


def _paint_bush(area: _OccluderArea) -> None:
    s, x0, top, wide = area.s, area.x0, area.top, area.wide
    leaf = s.one_of("#4a7337", "#5b8440", "#3f6534")
    if s.weather == "snowy":
        leaf = mix_colours(leaf, s.tint("#eef2f6"), 0.6)
    grain = max(2.0, 0.028 * wide)
    r = 0.2 * wide
    fill = Paint(leaf, grain=0.25, grain_px=grain)
    s.canvas.polygon(
        [
            (x0, top + r),
            (area.x1, top + r),
            (area.x1 + 0.3 * r, area.foot),
            (x0 - 0.3 * r, area.foot),
        ],
        fill,
    )
    for k in range(6):
        x = x0 + (k + 0.1) / 5.2 * wide
        y = top + r * (0.75 + 0.3 * (k % 2))
        shade = darken(leaf, 0.12 * (k % 3))
        s.canvas.ellipse((x, y), r, r, Paint(shade, grain=0.25, grain_px=grain, round=0.25))
    for x, y in s.rng.uniform(0, 1, (24, 2)).tolist():
        centre = (x0 + x * wide, top + r + y * max(area.tall - r, 1.0))
        glint = Paint(lighten(leaf, 0.16), alpha=0.5)
        s.canvas.ellipse(centre, 0.05 * wide, 0.03 * wide, glint, x * 3)


def _paint_pole(area: _OccluderArea) -> None:
    s, x0, x1 = area.s, area.x0, area.x1
    steel = s.one_of("#6b7178", "#87735d", "#4d5a52")
    fill = Paint(steel, round=0.5, across=(x0, 0.0, x1, 0.0))
    s.rectangle(x0, -4.0, x1, area.foot, fill)
    band = s.tint("#d8b040")
    for up in (0.3, 0.42):
        y = area.top + up * area.tall
        s.rectangle(x0, y, x1, y + 0.03 * area.tall, band)


def _paint_tree_trunk(area: _OccluderArea) -> None:
    s, x0, x1, foot, wide = area.s, area.x0, area.x1, area.foot, area.wide
    bark = s.tint("#6a4f38")
    fill = Paint(
        bark, round=0.5, across=(x0, 0.0, x1, 0.0), grain=0.2, grain_px=max(2.0, 0.12 * wide)
    )
    flare = 0.12 * wide
    root = foot - 0.15 * area.tall
    right = [(x1, -4.0), (x1, root), (x1 + flare, foot)]
    s.canvas.polygon([(x0, -4.0), *right, (x0 - flare, foot), (x0, root)], fill)
    for k in range(4):
        x = x0 + (k + 0.5) / 4 * wide
        crack = [(x, 0.0), (x + 0.04 * wide, 0.5 * foot), (x, foot)]
        s.canvas.line(crack, 0.03 * wide, Paint(darken(bark, 0.4), alpha=0.6))


def _paint_wall(area: _OccluderArea) -> None:
    s, x0, x1, top, tall = area.s, area.x0, area.x1, area.top, area.tall
    brick = s.one_of("#9c5a45", "#a38a70", "#8a8d8f")
    s.rectangle(x0, top, x1, area.foot, Paint(brick, grain=0.08, grain_px=3.0))
    mortar = Paint(lighten(brick, 0.35), alpha=0.7)
    row = max(7.0, 0.1 * tall)
    count = int(tall / row)
    for k in range(count + 1):
        y = top + k * row
        s.canvas.line([(x0, y), (x1, y)], 1.5, mortar)
        for n in range(6):
            x = x0 + (n + 0.5 * (k % 2)) / 5.5 * area.wide
            if x < x1 and y + row <= area.foot:
                s.canvas.line([(x, y), (x, y + row)], 1.5, mortar)
    s.rectangle(x0 - 3, top - 0.05 * tall, x1 + 3, top + 2, lighten(brick, 0.3))


def _paint_table_front(area: _OccluderArea) -> None:
    s, x0, top, wide = area.s, area.x0, area.top, area.wide
    wood = s.one_of("#8a5c3a", "#a5784e", "#5e4432")
    cloth = s.one_of("#d8d2c4", "#a8453c", "#44627a")
    s.rectangle(x0, top, area.x1, area.foot, Paint(cloth, grain=0.03, grain_px=3.0))
    for k in range(7):
        x = x0 + (k + 0.5) / 7 * wide
        fold = Paint(darken(cloth, 0.25), alpha=0.5)
        s.canvas.line([(x, top + 0.1 * area.tall), (x, area.foot)], 2.0, fold)
    s.rectangle(
        x0 - 0.04 * wide, top, area.x1 + 0.04 * wide, top + 0.1 * area.tall, lighten(wood, 0.12)
    )


def _paint_cupboard(area: _OccluderArea) -> None:
    s, x0, foot = area.s, area.x0, area.foot
    wood = s.one_of("#7d5a3e", "#b59a78", "#5c6a6e")
    top = max(-4.0, area.top)
    s.rectangle(x0, top, area.x1, foot, Paint(wood, grain=0.06, grain_px=4.0))
    edge = darken(wood, 0.35)
    for k in (0.0, 0.5, 1.0):
        x = x0 + k * area.wide
        s.canvas.line([(x, top), (x, foot)], 2.5, edge)
    s.canvas.line([(x0, top), (area.x1, top)], 4.0, edge)
    for k in (0.44, 0.56):
        s.canvas.ellipse((x0 + k * area.wide, (top + foot) / 2), 3.0, 3.0, (208.0, 186.0, 120.0))


def _paint_car(area: _OccluderArea) -> None:
    """Paint a parked car from the side: body, roof with windows, wheels."""
    s, top, foot, tall = area.s, area.top, area.foot, area.tall
    paint: Colour = s.one_of("#a33a34", "#3a5a80", "#d5d6d4", "#2f3338", "#5d7a5c", "#c99a3a")
    long = max(area.wide * 1.9, 1.7 * tall)
    middle = (area.x0 + area.x1) / 2
    x0, x1 = middle - long / 2, middle + long / 2
    belt = top + 0.40 * tall
    bonnet = [(x0, belt + 0.1 * tall), (x0 + 0.06 * long, belt), (x1 - 0.05 * long, belt)]
    sill = [(x1, foot - 0.1 * tall), (x0, foot - 0.1 * tall)]
    roof = [(x0 + 0.12 * long, belt + 2), (x0 + 0.24 * long, top), (x1 - 0.27 * long, top)]
    s.canvas.polygon([*roof, (x1 - 0.13 * long, belt + 2)], paint)
    glass, upper = mix_colours(s.tint("#2e3c48"), s.sky[1], 0.25), top + 0.06 * tall
    pane = [(x0 + 0.16 * long, belt), (x0 + 0.26 * long, upper), (x1 - 0.29 * long, upper)]
    s.canvas.polygon([*pane, (x1 - 0.17 * long, belt)], glass)
    s.canvas.line([(middle, top), (middle, belt)], 0.02 * long, paint)
    sheen = Paint(lighten(paint, 0.12), end_colour=darken(paint, 0.25), along=(0, belt, 0, foot))
    s.canvas.polygon([*bonnet, (x1, belt + 0.14 * tall), *sill], sheen)
    for k in (0.2, 0.8):
        wheel = (x0 + k * long, foot - 0.12 * tall)
        r = min(0.085 * long, 0.24 * tall)
        s.canvas.ellipse(wheel, r, r, (28.0, 28.0, 30.0))
        s.canvas.ellipse(wheel, 0.55 * r, 0.55 * r, Paint(s.tint("#a9adb2"), round=0.5))
    lamp = (255.0, 236.0, 180.0) if s.night else s.tint("#f1ead2")
    s.canvas.ellipse((x1 - 0.02 * long, belt + 0.2 * tall), 0.02 * long, 0.05 * tall, lamp)


_PAINTERS: Mapping[str, Callable[[_OccluderArea], None]] = {
    "bush": _paint_bush,
    "pole": _paint_pole,
    "trunk": _paint_tree_trunk,
    "wall": _paint_wall,
    "table": _paint_table_front,
    "cupboard": _paint_cupboard,
    "car": _paint_car,
}
