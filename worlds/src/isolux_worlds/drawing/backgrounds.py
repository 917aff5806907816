"""Scenes out of doors: a city street, houses, a park, a highway. Interiors are in ``interiors.py``.

``paint_background`` paints sky or room, ground and things; no one owns them. What is far is
painted first. The numbers are parts of the photo's size, so that any size works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from isolux_worlds.drawing.canvas import Paint
from isolux_worlds.drawing.colour import Colour, dark, light, mix
from isolux_worlds.drawing.interiors import paint_home, paint_shop
from isolux_worlds.drawing.setting import HORIZON, BackgroundScene

__all__ = ["paint_background"]

_EDGE = HORIZON + 0.005


def paint_background(s: BackgroundScene) -> None:
    """Paint everything behind the people."""
    _SCENES[s.scene](s)


def _sky(s: BackgroundScene) -> None:
    """Paint the sky, with clouds, or stars and a moon."""
    w, h = s.width, s.height
    top, low = s.sky
    s.rectangle(0, 0, w, s.horizon + 4, Paint(top, end_colour=low, along=(0, 0, 0, s.horizon)))
    if s.night and s.weather == "clear":
        for x, y in s.rng.uniform(0, 1, (40, 2)).tolist():
            s.canvas.ellipse(
                s.to_pixel(x, y * 0.5), 1.0, 1.0, Paint((220.0, 224.0, 240.0), alpha=0.7)
            )
        r = 0.035 * h
        s.canvas.ellipse(s.to_pixel(s.uniform(0.1, 0.9), 0.14), r, r, (240.0, 238.0, 220.0))
        return
    bank = light(low, 0.35) if s.weather == "clear" else dark(low, 0.08)
    for _ in range(4 if s.weather == "clear" else 9):
        x, y, size = s.uniform(0, 1), s.uniform(0.03, 0.36), s.uniform(0.08, 0.2) * w
        for k in range(3):
            centre = (x * w + (k - 1) * size * 0.5, y * h + (k % 2) * size * 0.08)
            s.canvas.ellipse(
                centre, size * 0.5, size * 0.15, Paint(bank, alpha=0.4, soft=size * 0.3)
            )


def _ground(
    s: BackgroundScene, near_colour: Colour, far_colour: Colour, grain: float, grain_px: float
) -> None:
    paint_with = Paint(
        far_colour,
        end_colour=near_colour,
        along=(0, s.horizon, 0, s.height),
        grain=grain,
        grain_px=grain_px,
    )
    s.rectangle(0, s.horizon, s.width, s.height, paint_with)


def _lit(s: BackgroundScene, share: float) -> bool:
    return s.night and float(s.rng.random()) < share


_LAMP: Colour = (255.0, 226.0, 150.0)


def _building(s: BackgroundScene, x0: float, x1: float, top: float, foot: float) -> None:
    """Paint a block of flats with rows of windows and a shop below."""
    w, h = s.width, s.height
    wall = s.one_of("#a8745a", "#b9a58c", "#8b8f96", "#c4b49a", "#8f6f63", "#9aa7ad", "#b58e6a")
    s.rectangle(x0, top, x1, foot, Paint(wall, grain=0.04, grain_px=3.0))
    s.rectangle(x0, top, x1, top + 0.012 * h, dark(wall, 0.25))
    columns = max(2, int((x1 - x0) / (0.05 * w)))
    step_x = (x1 - x0) / columns
    step_y = 0.085 * h
    rows = max(1, int((foot - 0.16 * h - top) / step_y))
    glass = s.tint("#5b7386")
    for row in range(rows):
        y = top + 0.03 * h + row * step_y
        for column in range(columns):
            x = x0 + (column + 0.25) * step_x
            pane = _LAMP if _lit(s, 0.45) else mix(glass, s.sky[0], 0.25)
            s.rectangle(x - 1, y - 1, x + 0.5 * step_x + 1, y + 0.6 * step_y + 1, light(wall, 0.25))
            s.rectangle(x, y, x + 0.5 * step_x, y + 0.6 * step_y, pane)
    shop = s.one_of("#7a3c34", "#2f5a4e", "#38507a", "#8a6a32", "#4c3f58")
    y = foot - 0.13 * h
    s.rectangle(x0 + 2, y, x1 - 2, y + 0.03 * h, shop)
    window = _LAMP if s.night else light(mix(glass, s.sky[1], 0.3), 0.1)
    wide, top = x1 - x0, y + 0.035 * h
    show = Paint(window, alpha=0.92)
    s.rectangle(x0 + 0.08 * wide, top, x1 - 0.35 * wide, foot - 0.015 * h, show)
    s.rectangle(x1 - 0.26 * wide, top, x1 - 0.08 * wide, foot, dark(shop, 0.35))


def _street(s: BackgroundScene) -> None:
    w, h = s.width, s.height
    _sky(s)
    foot = s.horizon + 0.03 * h
    far_colour = mix(s.tint("#8797a6"), s.sky[1], 0.5)
    for k in range(9):
        x = (k - 0.5) / 8 * w
        top = s.uniform(0.2, 0.42) * h
        s.rectangle(x, top, x + 0.14 * w, foot, far_colour)
    x = -0.05 * w
    while x < w:
        wide = s.uniform(0.16, 0.28) * w
        if s.uniform(0, 1) > 0.15:
            _building(s, x, x + wide, s.uniform(-0.1, 0.24) * h, foot)
        x += wide
    pavement, road = s.ground("#a9a6a0"), s.ground("#55575c")
    _ground(s, pavement, dark(pavement, 0.08), 0.05, 2.0)
    y0, y1 = s.horizon + 0.09 * h, s.horizon + 0.22 * h
    s.rectangle(0, y0 - 3, w, y0, light(pavement, 0.25))
    s.rectangle(0, y0, w, y1, Paint(road, grain=0.06, grain_px=2.0))
    s.rectangle(0, y1, w, y1 + 4, light(pavement, 0.25))
    for k in range(7):
        x = (k / 6 - 0.03) * w
        middle = (y0 + y1) / 2
        s.rectangle(x, middle - 1.5, x + 0.07 * w, middle + 1.5, s.ground("#e8e4d4"))
    for k in range(9):
        joint = [(k / 8 * w, y1 + 4), (((k / 8 - 0.5) * 1.9 + 0.5) * w, h)]
        s.canvas.line(joint, 1.4, Paint(dark(pavement, 0.3), alpha=0.5))
    for x in (s.uniform(0.05, 0.3), s.uniform(0.7, 0.95)):
        _lamp_post(s, x * w)


def _lamp_post(s: BackgroundScene, x: float) -> None:
    w, h = s.width, s.height
    top, foot = s.horizon - 0.36 * h, s.horizon + 0.09 * h
    steel = s.tint("#3c4248")
    s.canvas.line([(x, foot), (x, top), (x + 0.03 * w, top - 0.01 * h)], 4.0, steel)
    bulb = (x + 0.035 * w, top - 0.004 * h)
    if s.night:
        r = 0.09 * h
        s.canvas.ellipse(bulb, r, r, Paint(_LAMP, alpha=0.3, soft=r * 1.6))
    s.canvas.ellipse(bulb, 7.0, 4.0, _LAMP if s.night else s.tint("#e6e2d4"))


def _tree(s: BackgroundScene, x: float, foot: float, tall: float) -> None:
    """Paint a tree: a trunk and a crown of three masses of leaves, bare or white in snow."""
    trunk = s.tint("#5f4632")
    s.canvas.capsule((x, foot), 0.045 * tall, (x, foot - 0.55 * tall), 0.03 * tall, trunk)
    leaf = s.one_of("#4f7a3a", "#5f8b42", "#416b39", "#6f8f3c")
    if s.weather == "snowy":
        leaf = mix(leaf, s.tint("#eef2f6"), 0.65)
    grain = max(2.0, 0.017 * tall)
    for dx, dy, r, shade in (
        (-0.18, 0.62, 0.24, 0.22),
        (0.2, 0.64, 0.24, 0.16),
        (0.0, 0.82, 0.27, 0.0),
        (-0.08, 0.68, 0.2, 0.06),
        (0.12, 0.74, 0.16, -0.08),
    ):
        colour = dark(leaf, shade) if shade >= 0 else light(leaf, -shade)
        leaves = Paint(colour, round=0.35, grain=0.22, grain_px=grain)
        centre = (x + dx * tall, foot - dy * tall)
        s.canvas.ellipse(centre, r * tall, r * 0.88 * tall, leaves)


def _house(s: BackgroundScene, x: float, wide: float, foot: float) -> None:
    wall = s.one_of("#d9cdb6", "#c9d3d4", "#e3d2b0", "#b7725c", "#a9b8a4", "#e0dcd2")
    tall = 0.55 * wide
    roof = s.one_of("#7a3f34", "#5a5f66", "#6b4a38", "#46515c")
    if s.weather == "snowy":
        roof = mix(roof, s.tint("#f2f5f8"), 0.8)
    y = foot - tall
    s.rectangle(x, y, x + wide, foot, Paint(wall, grain=0.03, grain_px=3.0))
    peak = y - 0.30 * wide
    gable = [(x - 0.06 * wide, y), (x + 0.5 * wide, peak), (x + 1.06 * wide, y)]
    s.canvas.polygon(gable, Paint(roof, grain=0.08, grain_px=3.0))
    door = s.one_of("#6b3a2c", "#37586b", "#4a5d43")
    s.rectangle(x + 0.43 * wide, foot - 0.3 * wide, x + 0.57 * wide, foot, door)
    for k in (0.12, 0.70):
        for up in (0.14, 0.42) if tall > 0.2 * s.height else (0.2,):
            pane = _LAMP if _lit(s, 0.6) else s.tint("#87a3b4")
            x0, y0 = x + k * wide, foot - up * wide - 0.13 * wide
            x1, y1, frame = x0 + 0.18 * wide, y0 + 0.13 * wide, s.tint("#f4f1ea")
            s.rectangle(x0 - 2, y0 - 2, x1 + 2, y1 + 2, frame)
            s.rectangle(x0, y0, x1, y1, pane)
            s.canvas.line([(x0 + 0.09 * wide, y0), (x0 + 0.09 * wide, y1)], 1.5, frame)


def _residential(s: BackgroundScene) -> None:
    w, h = s.width, s.height
    _sky(s)
    hill = mix(s.tint("#7c9a76"), s.sky[1], 0.4)
    s.canvas.ellipse((0.3 * w, s.horizon + 0.05 * h), 0.6 * w, 0.16 * h, hill)
    foot = s.horizon + 0.03 * h
    start = s.uniform(-0.12, 0.0)
    for k in range(3):
        x = (start + 0.38 * k) * w
        _tree(s, x - 0.03 * w, foot, s.uniform(0.3, 0.42) * h)
        _house(s, x, s.uniform(0.26, 0.31) * w, foot)
    lawn, path = s.ground("#7fa35a"), s.ground("#b9b2a3")
    _ground(s, lawn, dark(lawn, 0.06), 0.09, 2.5)
    fence = s.tint("#efece4")
    y = s.horizon + 0.05 * h
    for up in (0.0, -0.02):
        s.canvas.line([(0, y + up * h), (w, y + up * h)], 2.0, fence)
    for k in range(int(w / (0.022 * w))):
        x = k * 0.022 * w
        s.rectangle(x, y - 0.035 * h, x + 0.01 * w, y + 0.015 * h, fence)
    s.canvas.polygon(
        [(0, 0.80 * h), (w, 0.74 * h), (w, 0.86 * h), (0, 0.97 * h)],
        Paint(path, grain=0.06, grain_px=2.0),
    )


def _park(s: BackgroundScene) -> None:
    w, h = s.width, s.height
    _sky(s)
    far_colour = mix(s.tint("#5f8258"), s.sky[1], 0.35)
    for k in range(12):
        r = s.uniform(0.06, 0.1) * w
        s.canvas.ellipse(
            ((k / 11) * w, s.horizon - 0.02 * h),
            r,
            r * 0.8,
            Paint(far_colour, grain=0.12, grain_px=4.0),
        )
    lawn = s.ground("#6f9a4c")
    _ground(s, lawn, mix(lawn, far_colour, 0.3), 0.12, 3.0)
    path = s.ground("#c8b48e")
    bend = s.uniform(0.3, 0.7)
    down = ((0.0, _EDGE), (0.02, _EDGE), (0.12, 0.72), (-0.02, 0.85), (0.2, 1.1))
    back = ((-0.35, 1.1), (-0.2, 0.85), (0.02, 0.72))
    edge = s.to_pixels(*((bend + x, y) for x, y in (*down, *back)))
    s.canvas.blob(edge, Paint(path, grain=0.07, grain_px=2.0), steps=6)
    columns = ((-0.02, 0.12), (0.22, 0.38), (0.6, 0.78), (0.86, 1.02))
    for x in [s.uniform(*column) for column in columns]:
        y = s.uniform(0.6, 0.66)
        _tree(s, x * w, y * h, s.uniform(0.42, 0.62) * h)
    x, y, wood = s.uniform(0.15, 0.6) * w, 0.665 * h, s.tint("#7a5638")
    for up in (0.0, 0.03, 0.05):
        s.rectangle(x, y - up * h - 4, x + 0.17 * w, y - up * h, wood)
    for leg in (0.01, 0.15):
        leg_x = x + leg * w
        iron = s.tint("#40444a")
        s.rectangle(leg_x, y - 0.06 * h, leg_x + 4, y + 0.03 * h, iron)


def _highway(s: BackgroundScene) -> None:
    w, h = s.width, s.height
    _sky(s)
    for k in range(4):
        x = s.uniform(-0.1, 1.1) * w
        hill = mix(s.tint("#6d8a72"), s.sky[1], 0.55 - 0.1 * k)
        s.canvas.ellipse(
            (x, s.horizon + 0.06 * h), s.uniform(0.25, 0.5) * w, s.uniform(0.12, 0.22) * h, hill
        )
    verge, road = s.ground("#8a9660"), s.ground("#595b60")
    _ground(s, verge, dark(verge, 0.05), 0.1, 3.0)
    vanish = s.uniform(0.35, 0.65)
    asphalt = s.to_pixels((vanish - 0.02, 0.58), (vanish + 0.02, 0.58), (1.25, 1.0), (-0.25, 1.0))
    s.canvas.polygon(asphalt, Paint(road, grain=0.06, grain_px=2.0))
    line = s.tint("#ece8da")
    for share in (-0.16, 1.16):
        far, right, left = (vanish, 0.58), (share + 0.012, 1.0), (share - 0.012, 1.0)
        s.canvas.polygon(s.to_pixels(far, far, right, left), line)
    for lane in (0.28, 0.72):
        for near in (0.05, 0.12, 0.22, 0.38, 0.62):
            y0, y1 = near, near * 1.35
            x0, x1 = vanish + (lane - vanish) * y0, vanish + (lane - vanish) * y1
            corners = ((x0, -0.008, y0), (x0, 0.008, y0), (x1, 0.008, y1), (x1, -0.008, y1))
            dash = s.to_pixels(*((x + half * y, 0.58 + 0.42 * y) for x, half, y in corners))
            s.canvas.polygon(dash, line)
    rail, y = s.tint("#aeb4ba"), s.horizon + 0.035 * h
    s.rectangle(0, y, (vanish - 0.12) * w, y + 0.014 * h, rail)
    s.rectangle((vanish + 0.12) * w, y, w, y + 0.014 * h, rail)
    x = (0.1 if vanish > 0.5 else 0.76) * w
    s.rectangle(x + 0.06 * w, 0.3 * h, x + 0.07 * w, 0.62 * h, rail)
    s.rectangle(x, 0.22 * h, x + 0.14 * w, 0.36 * h, s.tint("#2f6d52"))
    for up in (0.25, 0.285, 0.32):
        s.rectangle(x + 0.015 * w, up * h, x + 0.11 * w, (up + 0.012) * h, line)
    for _ in range(2):
        _far_car(s, vanish)


def _far_car(s: BackgroundScene, vanish: float) -> None:
    near = s.uniform(0.08, 0.2)
    x = (vanish + s.uniform(-0.6, 0.6) * near) * s.width
    y = (0.58 + 0.42 * near) * s.height
    wide = 0.35 * near * s.width
    colour = s.one_of("#a63d35", "#c9ccd0", "#39506b", "#e0dccf", "#33363b")
    s.rectangle(x - wide / 2, y - 0.42 * wide, x + wide / 2, y, colour)
    s.rectangle(
        x - 0.38 * wide, y - 0.72 * wide, x + 0.38 * wide, y - 0.4 * wide, dark(colour, 0.45)
    )
    tail = (255.0, 70.0, 50.0) if s.night else s.tint("#c33a30")
    for wheel_offset in (-0.4, 0.4):
        s.canvas.ellipse((x + wheel_offset * wide, y - 0.28 * wide), 0.07 * wide, 0.06 * wide, tail)


_SCENES: Mapping[str, Callable[[BackgroundScene], None]] = {
    "city_street": _street,
    "residential": _residential,
    "park": _park,
    "highway": _highway,
    "home": paint_home,
    "shop": paint_shop,
}
