"""Scenes out of doors: a city street, houses, a park, a highway. Interiors are in ``interiors.py``.

``paint_background`` paints sky or room, ground and things; no one owns them. What is far is
painted first. The numbers are parts of the photo's size, so that any size works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from isolux_worlds.drawing.canvas import Paint
from isolux_worlds.drawing.colour import Colour, darken, lighten, mix_colours
from isolux_worlds.drawing.interiors import paint_home, paint_shop
from isolux_worlds.drawing.setting import HORIZON, BackgroundScene

__all__ = ["paint_background"]

_EDGE = HORIZON + 0.005


def paint_background(scene: BackgroundScene) -> None:
    """Paint everything behind the people."""
    _SCENES[scene.scene](scene)


def _paint_sky(scene: BackgroundScene) -> None:
    """Paint the sky, with clouds, or stars and a moon."""
    w, h = scene.width, scene.height
    top, low = scene.sky
    scene.rectangle(
        0, 0, w, scene.horizon + 4, Paint(top, end_colour=low, along=(0, 0, 0, scene.horizon))
    )
    if scene.night and scene.weather == "clear":
        for x, y in scene.rng.uniform(0, 1, (40, 2)).tolist():
            scene.canvas.ellipse(
                scene.to_pixel(x, y * 0.5), 1.0, 1.0, Paint((220.0, 224.0, 240.0), alpha=0.7)
            )
        r = 0.035 * h
        scene.canvas.ellipse(
            scene.to_pixel(scene.uniform(0.1, 0.9), 0.14), r, r, (240.0, 238.0, 220.0)
        )
        return
    bank = lighten(low, 0.35) if scene.weather == "clear" else darken(low, 0.08)
    for _ in range(4 if scene.weather == "clear" else 9):
        x, y, size = scene.uniform(0, 1), scene.uniform(0.03, 0.36), scene.uniform(0.08, 0.2) * w
        for k in range(3):
            centre = (x * w + (k - 1) * size * 0.5, y * h + (k % 2) * size * 0.08)
            scene.canvas.ellipse(
                centre, size * 0.5, size * 0.15, Paint(bank, alpha=0.4, soft=size * 0.3)
            )


def _paint_ground_gradient(
    scene: BackgroundScene, near_colour: Colour, far_colour: Colour, grain: float, grain_px: float
) -> None:
    paint_with = Paint(
        far_colour,
        end_colour=near_colour,
        along=(0, scene.horizon, 0, scene.height),
        grain=grain,
        grain_px=grain_px,
    )
    scene.rectangle(0, scene.horizon, scene.width, scene.height, paint_with)


def _draw_is_window_lit(scene: BackgroundScene, share: float) -> bool:
    return scene.night and float(scene.rng.random()) < share


_LAMP: Colour = (255.0, 226.0, 150.0)


def _paint_building(scene: BackgroundScene, x0: float, x1: float, top: float, foot: float) -> None:
    """Paint a block of flats with rows of windows and a shop below."""
    w, h = scene.width, scene.height
    wall = scene.one_of("#a8745a", "#b9a58c", "#8b8f96", "#c4b49a", "#8f6f63", "#9aa7ad", "#b58e6a")
    scene.rectangle(x0, top, x1, foot, Paint(wall, grain=0.04, grain_px=3.0))
    scene.rectangle(x0, top, x1, top + 0.012 * h, darken(wall, 0.25))
    columns = max(2, int((x1 - x0) / (0.05 * w)))
    step_x = (x1 - x0) / columns
    step_y = 0.085 * h
    rows = max(1, int((foot - 0.16 * h - top) / step_y))
    glass = scene.tint("#5b7386")
    for row in range(rows):
        y = top + 0.03 * h + row * step_y
        for column in range(columns):
            x = x0 + (column + 0.25) * step_x
            pane = (
                _LAMP
                if _draw_is_window_lit(scene, 0.45)
                else mix_colours(glass, scene.sky[0], 0.25)
            )
            scene.rectangle(
                x - 1, y - 1, x + 0.5 * step_x + 1, y + 0.6 * step_y + 1, lighten(wall, 0.25)
            )
            scene.rectangle(x, y, x + 0.5 * step_x, y + 0.6 * step_y, pane)
    shop = scene.one_of("#7a3c34", "#2f5a4e", "#38507a", "#8a6a32", "#4c3f58")
    y = foot - 0.13 * h
    scene.rectangle(x0 + 2, y, x1 - 2, y + 0.03 * h, shop)
    window = _LAMP if scene.night else lighten(mix_colours(glass, scene.sky[1], 0.3), 0.1)
    wide, top = x1 - x0, y + 0.035 * h
    show = Paint(window, alpha=0.92)
    scene.rectangle(x0 + 0.08 * wide, top, x1 - 0.35 * wide, foot - 0.015 * h, show)
    scene.rectangle(x1 - 0.26 * wide, top, x1 - 0.08 * wide, foot, darken(shop, 0.35))


def _paint_street(scene: BackgroundScene) -> None:
    w, h = scene.width, scene.height
    _paint_sky(scene)
    foot = scene.horizon + 0.03 * h
    far_colour = mix_colours(scene.tint("#8797a6"), scene.sky[1], 0.5)
    for k in range(9):
        x = (k - 0.5) / 8 * w
        top = scene.uniform(0.2, 0.42) * h
        scene.rectangle(x, top, x + 0.14 * w, foot, far_colour)
    x = -0.05 * w
    while x < w:
        wide = scene.uniform(0.16, 0.28) * w
        if scene.uniform(0, 1) > 0.15:
            _paint_building(scene, x, x + wide, scene.uniform(-0.1, 0.24) * h, foot)
        x += wide
    pavement, road = scene.ground("#a9a6a0"), scene.ground("#55575c")
    _paint_ground_gradient(scene, pavement, darken(pavement, 0.08), 0.05, 2.0)
    y0, y1 = scene.horizon + 0.09 * h, scene.horizon + 0.22 * h
    scene.rectangle(0, y0 - 3, w, y0, lighten(pavement, 0.25))
    scene.rectangle(0, y0, w, y1, Paint(road, grain=0.06, grain_px=2.0))
    scene.rectangle(0, y1, w, y1 + 4, lighten(pavement, 0.25))
    for k in range(7):
        x = (k / 6 - 0.03) * w
        middle = (y0 + y1) / 2
        scene.rectangle(x, middle - 1.5, x + 0.07 * w, middle + 1.5, scene.ground("#e8e4d4"))
    for k in range(9):
        joint = [(k / 8 * w, y1 + 4), (((k / 8 - 0.5) * 1.9 + 0.5) * w, h)]
        scene.canvas.line(joint, 1.4, Paint(darken(pavement, 0.3), alpha=0.5))
    for x in (scene.uniform(0.05, 0.3), scene.uniform(0.7, 0.95)):
        _paint_lamp_post(scene, x * w)


def _paint_lamp_post(scene: BackgroundScene, x: float) -> None:
    w, h = scene.width, scene.height
    top, foot = scene.horizon - 0.36 * h, scene.horizon + 0.09 * h
    steel = scene.tint("#3c4248")
    scene.canvas.line([(x, foot), (x, top), (x + 0.03 * w, top - 0.01 * h)], 4.0, steel)
    bulb = (x + 0.035 * w, top - 0.004 * h)
    if scene.night:
        r = 0.09 * h
        scene.canvas.ellipse(bulb, r, r, Paint(_LAMP, alpha=0.3, soft=r * 1.6))
    scene.canvas.ellipse(bulb, 7.0, 4.0, _LAMP if scene.night else scene.tint("#e6e2d4"))


def _paint_tree(scene: BackgroundScene, x: float, foot: float, tall: float) -> None:
    """Paint a tree: a trunk and a crown of three masses of leaves, bare or white in snow."""
    trunk = scene.tint("#5f4632")
    scene.canvas.capsule((x, foot), 0.045 * tall, (x, foot - 0.55 * tall), 0.03 * tall, trunk)
    leaf = scene.one_of("#4f7a3a", "#5f8b42", "#416b39", "#6f8f3c")
    if scene.weather == "snowy":
        leaf = mix_colours(leaf, scene.tint("#eef2f6"), 0.65)
    grain = max(2.0, 0.017 * tall)
    for dx, dy, r, shade in (
        (-0.18, 0.62, 0.24, 0.22),
        (0.2, 0.64, 0.24, 0.16),
        (0.0, 0.82, 0.27, 0.0),
        (-0.08, 0.68, 0.2, 0.06),
        (0.12, 0.74, 0.16, -0.08),
    ):
        colour = darken(leaf, shade) if shade >= 0 else lighten(leaf, -shade)
        leaves = Paint(colour, round=0.35, grain=0.22, grain_px=grain)
        centre = (x + dx * tall, foot - dy * tall)
        scene.canvas.ellipse(centre, r * tall, r * 0.88 * tall, leaves)


def _paint_house(scene: BackgroundScene, x: float, wide: float, foot: float) -> None:
    wall = scene.one_of("#d9cdb6", "#c9d3d4", "#e3d2b0", "#b7725c", "#a9b8a4", "#e0dcd2")
    tall = 0.55 * wide
    roof = scene.one_of("#7a3f34", "#5a5f66", "#6b4a38", "#46515c")
    if scene.weather == "snowy":
        roof = mix_colours(roof, scene.tint("#f2f5f8"), 0.8)
    y = foot - tall
    scene.rectangle(x, y, x + wide, foot, Paint(wall, grain=0.03, grain_px=3.0))
    peak = y - 0.30 * wide
    gable = [(x - 0.06 * wide, y), (x + 0.5 * wide, peak), (x + 1.06 * wide, y)]
    scene.canvas.polygon(gable, Paint(roof, grain=0.08, grain_px=3.0))
    door = scene.one_of("#6b3a2c", "#37586b", "#4a5d43")
    scene.rectangle(x + 0.43 * wide, foot - 0.3 * wide, x + 0.57 * wide, foot, door)
    for k in (0.12, 0.70):
        for up in (0.14, 0.42) if tall > 0.2 * scene.height else (0.2,):
            pane = _LAMP if _draw_is_window_lit(scene, 0.6) else scene.tint("#87a3b4")
            x0, y0 = x + k * wide, foot - up * wide - 0.13 * wide
            x1, y1, frame = x0 + 0.18 * wide, y0 + 0.13 * wide, scene.tint("#f4f1ea")
            scene.rectangle(x0 - 2, y0 - 2, x1 + 2, y1 + 2, frame)
            scene.rectangle(x0, y0, x1, y1, pane)
            scene.canvas.line([(x0 + 0.09 * wide, y0), (x0 + 0.09 * wide, y1)], 1.5, frame)


def _paint_residential_street(scene: BackgroundScene) -> None:
    w, h = scene.width, scene.height
    _paint_sky(scene)
    hill = mix_colours(scene.tint("#7c9a76"), scene.sky[1], 0.4)
    scene.canvas.ellipse((0.3 * w, scene.horizon + 0.05 * h), 0.6 * w, 0.16 * h, hill)
    foot = scene.horizon + 0.03 * h
    start = scene.uniform(-0.12, 0.0)
    for k in range(3):
        x = (start + 0.38 * k) * w
        _paint_tree(scene, x - 0.03 * w, foot, scene.uniform(0.3, 0.42) * h)
        _paint_house(scene, x, scene.uniform(0.26, 0.31) * w, foot)
    lawn, path = scene.ground("#7fa35a"), scene.ground("#b9b2a3")
    _paint_ground_gradient(scene, lawn, darken(lawn, 0.06), 0.09, 2.5)
    fence = scene.tint("#efece4")
    y = scene.horizon + 0.05 * h
    for up in (0.0, -0.02):
        scene.canvas.line([(0, y + up * h), (w, y + up * h)], 2.0, fence)
    for k in range(int(w / (0.022 * w))):
        x = k * 0.022 * w
        scene.rectangle(x, y - 0.035 * h, x + 0.01 * w, y + 0.015 * h, fence)
    scene.canvas.polygon(
        [(0, 0.80 * h), (w, 0.74 * h), (w, 0.86 * h), (0, 0.97 * h)],
        Paint(path, grain=0.06, grain_px=2.0),
    )


def _paint_park(scene: BackgroundScene) -> None:
    w, h = scene.width, scene.height
    _paint_sky(scene)
    far_colour = mix_colours(scene.tint("#5f8258"), scene.sky[1], 0.35)
    for k in range(12):
        r = scene.uniform(0.06, 0.1) * w
        scene.canvas.ellipse(
            ((k / 11) * w, scene.horizon - 0.02 * h),
            r,
            r * 0.8,
            Paint(far_colour, grain=0.12, grain_px=4.0),
        )
    lawn = scene.ground("#6f9a4c")
    _paint_ground_gradient(scene, lawn, mix_colours(lawn, far_colour, 0.3), 0.12, 3.0)
    path = scene.ground("#c8b48e")
    bend = scene.uniform(0.3, 0.7)
    down = ((0.0, _EDGE), (0.02, _EDGE), (0.12, 0.72), (-0.02, 0.85), (0.2, 1.1))
    back = ((-0.35, 1.1), (-0.2, 0.85), (0.02, 0.72))
    edge = scene.to_pixels(*((bend + x, y) for x, y in (*down, *back)))
    scene.canvas.blob(edge, Paint(path, grain=0.07, grain_px=2.0), steps=6)
    columns = ((-0.02, 0.12), (0.22, 0.38), (0.6, 0.78), (0.86, 1.02))
    for x in [scene.uniform(*column) for column in columns]:
        y = scene.uniform(0.6, 0.66)
        _paint_tree(scene, x * w, y * h, scene.uniform(0.42, 0.62) * h)
    x, y, wood = scene.uniform(0.15, 0.6) * w, 0.665 * h, scene.tint("#7a5638")
    for up in (0.0, 0.03, 0.05):
        scene.rectangle(x, y - up * h - 4, x + 0.17 * w, y - up * h, wood)
    for leg in (0.01, 0.15):
        leg_x = x + leg * w
        iron = scene.tint("#40444a")
        scene.rectangle(leg_x, y - 0.06 * h, leg_x + 4, y + 0.03 * h, iron)


def _paint_highway(scene: BackgroundScene) -> None:
    w, h = scene.width, scene.height
    _paint_sky(scene)
    for k in range(4):
        x = scene.uniform(-0.1, 1.1) * w
        hill = mix_colours(scene.tint("#6d8a72"), scene.sky[1], 0.55 - 0.1 * k)
        scene.canvas.ellipse(
            (x, scene.horizon + 0.06 * h),
            scene.uniform(0.25, 0.5) * w,
            scene.uniform(0.12, 0.22) * h,
            hill,
        )
    verge, road = scene.ground("#8a9660"), scene.ground("#595b60")
    _paint_ground_gradient(scene, verge, darken(verge, 0.05), 0.1, 3.0)
    vanish = scene.uniform(0.35, 0.65)
    asphalt = scene.to_pixels(
        (vanish - 0.02, 0.58), (vanish + 0.02, 0.58), (1.25, 1.0), (-0.25, 1.0)
    )
    scene.canvas.polygon(asphalt, Paint(road, grain=0.06, grain_px=2.0))
    line = scene.tint("#ece8da")
    for share in (-0.16, 1.16):
        far, right, left = (vanish, 0.58), (share + 0.012, 1.0), (share - 0.012, 1.0)
        scene.canvas.polygon(scene.to_pixels(far, far, right, left), line)
    for lane in (0.28, 0.72):
        for near in (0.05, 0.12, 0.22, 0.38, 0.62):
            y0, y1 = near, near * 1.35
            x0, x1 = vanish + (lane - vanish) * y0, vanish + (lane - vanish) * y1
            corners = ((x0, -0.008, y0), (x0, 0.008, y0), (x1, 0.008, y1), (x1, -0.008, y1))
            dash = scene.to_pixels(*((x + half * y, 0.58 + 0.42 * y) for x, half, y in corners))
            scene.canvas.polygon(dash, line)
    rail, y = scene.tint("#aeb4ba"), scene.horizon + 0.035 * h
    scene.rectangle(0, y, (vanish - 0.12) * w, y + 0.014 * h, rail)
    scene.rectangle((vanish + 0.12) * w, y, w, y + 0.014 * h, rail)
    x = (0.1 if vanish > 0.5 else 0.76) * w
    scene.rectangle(x + 0.06 * w, 0.3 * h, x + 0.07 * w, 0.62 * h, rail)
    scene.rectangle(x, 0.22 * h, x + 0.14 * w, 0.36 * h, scene.tint("#2f6d52"))
    for up in (0.25, 0.285, 0.32):
        scene.rectangle(x + 0.015 * w, up * h, x + 0.11 * w, (up + 0.012) * h, line)
    for _ in range(2):
        _paint_distant_car(scene, vanish)


def _paint_distant_car(scene: BackgroundScene, vanish: float) -> None:
    near = scene.uniform(0.08, 0.2)
    x = (vanish + scene.uniform(-0.6, 0.6) * near) * scene.width
    y = (0.58 + 0.42 * near) * scene.height
    wide = 0.35 * near * scene.width
    colour = scene.one_of("#a63d35", "#c9ccd0", "#39506b", "#e0dccf", "#33363b")
    scene.rectangle(x - wide / 2, y - 0.42 * wide, x + wide / 2, y, colour)
    scene.rectangle(
        x - 0.38 * wide, y - 0.72 * wide, x + 0.38 * wide, y - 0.4 * wide, darken(colour, 0.45)
    )
    tail = (255.0, 70.0, 50.0) if scene.night else scene.tint("#c33a30")
    for wheel_offset in (-0.4, 0.4):
        scene.canvas.ellipse(
            (x + wheel_offset * wide, y - 0.28 * wide), 0.07 * wide, 0.06 * wide, tail
        )


_SCENES: Mapping[str, Callable[[BackgroundScene], None]] = {
    "city_street": _paint_street,
    "residential": _paint_residential_street,
    "park": _paint_park,
    "highway": _paint_highway,
    "home": paint_home,
    "shop": paint_shop,
}
