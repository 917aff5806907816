"""Scenes under a roof: a living room and a shop. Time of day and weather show through a window."""

from __future__ import annotations

from isolux_worlds.drawing.canvas import Paint
from isolux_worlds.drawing.colour import Colour, darken, lighten, mix_colours
from isolux_worlds.drawing.setting import BackgroundScene

__all__ = ["paint_home", "paint_shop"]

_LAMP: Colour = (255.0, 226.0, 150.0)


def _paint_window(scene: BackgroundScene, x0: float, y0: float, x1: float, y1: float) -> None:
    """Paint a window with the sky, a tree line and the weather behind it."""
    top, low = scene.sky
    scene.rectangle(x0, y0, x1, y1, Paint(top, end_colour=low, along=(0, y0, 0, y1)))
    tall = y1 - y0
    ridge = mix_colours(scene.tint("#64845a"), low, 0.3)
    if scene.weather == "snowy":
        ridge = mix_colours(ridge, scene.tint("#eef2f6"), 0.7)
    for k in range(5):
        r = 0.2 * tall
        x = x0 + (k + 0.5) / 5 * (x1 - x0)
        scene.canvas.ellipse((x, y1 - 0.02 * tall), min(r, x - x0, x1 - x), r, ridge)
    if scene.weather in {"rainy", "snowy"}:
        colour: Colour = (225.0, 232.0, 240.0)
        for x, y in scene.rng.uniform(0.03, 0.95, (26, 2)).tolist():
            centre = (x0 + x * (x1 - x0), y0 + y * 0.9 * tall)
            if scene.weather == "rainy":
                low_end = (centre[0] - 1.5, min(y1, centre[1] + 0.09 * tall))
                scene.canvas.line([centre, low_end], 1.1, Paint(colour, alpha=0.6))
            else:
                scene.canvas.ellipse(centre, 1.6, 1.6, Paint(colour, alpha=0.9))
    if scene.weather == "foggy":
        scene.rectangle(x0, y0, x1, y1, Paint(lighten(low, 0.4), alpha=0.55))
    frame = scene.tint("#f2efe8")
    for x in (x0, (x0 + x1) / 2, x1):
        scene.canvas.line([(x, y0), (x, y1)], 5.0, frame)
    for y in (y0, (y0 + y1) / 2, y1):
        scene.canvas.line([(x0, y), (x1, y)], 5.0, frame)


def paint_home(scene: BackgroundScene) -> None:
    """Paint a living room: wall, window, picture, sofa, lamp, plant, rug."""
    w, h = scene.width, scene.height
    wall = scene.one_of("#d8cbb4", "#c3cfc8", "#dcc8bd", "#c9cdd8", "#e2d9bd")
    floor_y = scene.horizon + 0.02 * h
    scene.rectangle(
        0, 0, w, floor_y, Paint(lighten(wall, 0.12), end_colour=wall, along=(0, 0, 0, floor_y))
    )
    boards = scene.one_of("#9b7048", "#855c3c", "#b08a5f")
    down = (0, floor_y, 0, h)
    wood = Paint(darken(boards, 0.12), end_colour=boards, along=down, grain=0.05, grain_px=4.0)
    scene.rectangle(0, floor_y, w, h, wood)
    for k in range(15):
        a, b = (k / 14 * w, floor_y), ((k / 14 - 0.5) * 2.4 * w + w / 2, h)
        scene.canvas.line([a, b], 1.3, Paint(darken(boards, 0.4), alpha=0.5))
    scene.rectangle(0, floor_y - 0.018 * h, w, floor_y, scene.tint("#f3efe6"))
    left = scene.uniform(0, 1) < 0.5
    x = (0.06 if left else 0.66) * w
    _paint_window(scene, x, 0.1 * h, x + 0.27 * w, 0.42 * h)
    x = (0.52 if left else 0.2) * w
    scene.rectangle(x, 0.14 * h, x + 0.17 * w, 0.33 * h, scene.tint("#5a4332"))
    inside = (x + 0.012 * w, 0.155 * h, x + 0.158 * w, 0.315 * h)
    ink, ground = scene.one_of("#d9a86a", "#7fa0b0", "#b86f5c"), scene.one_of("#f1e3c2", "#3e5a66")
    scene.rectangle(*inside, Paint(ink, end_colour=ground, along=(0, inside[1], 0, inside[3])))
    _paint_sofa(scene, (0.3 if left else 0.08) * w)
    _paint_lamp_and_plant(scene, floor_y, left=left)
    rug = scene.one_of("#8d4a44", "#4f6b7c", "#93854f", "#6a5878")
    scene.canvas.ellipse(scene.to_pixel(0.5, 0.88), 0.4 * w, 0.09 * h, rug)
    scene.canvas.ellipse(scene.to_pixel(0.5, 0.88), 0.34 * w, 0.07 * h, lighten(rug, 0.18))


def _paint_sofa(scene: BackgroundScene, x: float) -> None:
    cloth = scene.one_of("#5c7a86", "#86594f", "#6f7a58", "#77708c", "#a58a5e")
    y, w, h = 0.47 * scene.height, 0.5 * scene.width, scene.height
    scene.canvas.capsule((x, y), 0.04 * h, (x + w, y), 0.04 * h, cloth)
    scene.rectangle(
        x - 0.02 * w, y, x + 1.02 * w, y + 0.15 * h, Paint(cloth, grain=0.03, grain_px=2.0)
    )
    scene.rectangle(x, y + 0.09 * h, x + w, y + 0.17 * h, lighten(cloth, 0.14))
    for k in (0.0, 1.0):
        top, low = (x + k * w, y + 0.07 * h), (x + k * w, y + 0.17 * h)
        scene.canvas.capsule(top, 0.032 * h, low, 0.032 * h, darken(cloth, 0.12))
    scene.canvas.line(
        [(x + w / 2, y + 0.09 * h), (x + w / 2, y + 0.17 * h)], 2.0, darken(cloth, 0.3)
    )
    cushion = scene.one_of("#d8a35a", "#c9d0c4", "#b55b4e")
    scene.canvas.ellipse(
        (x + 0.16 * w, y + 0.06 * h), 0.045 * h, 0.04 * h, Paint(cushion, round=0.3)
    )


def _paint_lamp_and_plant(scene: BackgroundScene, floor_y: float, *, left: bool) -> None:
    w, h = scene.width, scene.height
    x = (0.93 if left else 0.05) * w
    scene.canvas.line([(x, floor_y + 0.04 * h), (x, 0.26 * h)], 4.0, scene.tint("#4a4440"))
    if scene.night:
        r = 0.2 * h
        scene.canvas.ellipse((x, 0.24 * h), r, r, Paint(_LAMP, alpha=0.35, soft=r * 1.6))
    edge = ((-0.03, 0.18), (0.03, 0.18), (0.05, 0.28), (-0.05, 0.28))
    shade = [(x + dx * w, y * h) for dx, y in edge]
    scene.canvas.polygon(shade, _LAMP if scene.night else scene.tint("#efe3c4"))
    x = (0.02 if left else 0.97) * w
    rim, pot = floor_y - 0.06 * h, scene.tint("#b0704e")
    scene.rectangle(x - 0.03 * w, rim, x + 0.03 * w, floor_y + 0.04 * h, pot)
    for k in range(9):
        a = -2.6 + 0.55 * k
        tip = (x + 0.05 * w * a / 2, floor_y - (0.26 - 0.05 * abs(a)) * h)
        scene.canvas.capsule((x, rim), 2.0, tip, 6.0, darken(scene.tint("#557f46"), 0.12 * (k % 2)))


def paint_shop(scene: BackgroundScene) -> None:
    """Paint a shop: shelves of goods, ceiling lights, tiled floor, a window at the side."""
    w, h = scene.width, scene.height
    wall = scene.one_of("#e2dfd6", "#d6dde0", "#e6dcc8")
    floor_y = scene.horizon + 0.02 * h
    scene.rectangle(0, 0, w, floor_y, wall)
    for k in range(4):
        x = (0.05 + 0.26 * k) * w
        scene.rectangle(x, 0.025 * h, x + 0.14 * w, 0.05 * h, (250.0, 250.0, 240.0))
    tile = scene.tint("#cfcabd")
    scene.rectangle(
        0, floor_y, w, h, Paint(darken(tile, 0.1), end_colour=tile, along=(0, floor_y, 0, h))
    )
    joint = Paint(darken(tile, 0.28), alpha=0.6)
    for k in range(13):
        scene.canvas.line(
            [(k / 12 * w, floor_y), ((k / 12 - 0.5) * 2.6 * w + w / 2, h)], 1.3, joint
        )
    for near in (0.1, 0.25, 0.48, 0.8):
        y = floor_y + near * (h - floor_y)
        scene.canvas.line([(0, y), (w, y)], 1.3, joint)
    is_on_left = scene.uniform(0, 1) < 0.5
    x = (0.02 if is_on_left else 0.80) * w
    _paint_window(scene, x, 0.1 * h, x + 0.18 * w, 0.46 * h)
    _paint_shelves(scene, (0.24 if is_on_left else 0.02) * w, 0.74 * w, floor_y)


def _paint_shelves(scene: BackgroundScene, x0: float, wide: float, floor_y: float) -> None:
    frame = scene.one_of("#8a6a4a", "#70757c", "#9a8f80")
    top = 0.1 * scene.height
    scene.rectangle(x0, top, x0 + wide, floor_y, darken(frame, 0.3))
    rows = 5
    step = (floor_y - top) / rows
    inks = ("#b8443c", "#d9a13b", "#3f7a58", "#3d6a94", "#c9c2ae", "#8a5a86", "#d97d4c", "#5fa0a0")
    for row in range(rows):
        board = top + (row + 1) * step - 4
        x = x0 + 5
        while True:
            w, h = scene.uniform(0.014, 0.034) * scene.width, scene.uniform(0.45, 0.8) * step
            if x + w > x0 + wide - 5:
                break
            colour = scene.one_of(*inks)
            for _ in range(min(int(scene.rng.integers(1, 4)), int((x0 + wide - 5 - x) / w))):
                scene.rectangle(x, board - h, x + w - 1.5, board, colour)
                label = lighten(colour, 0.55)
                scene.rectangle(x, board - 0.62 * h, x + w - 1.5, board - 0.4 * h, label)
                x += w
        scene.rectangle(x0, board, x0 + wide, board + 5, frame)
