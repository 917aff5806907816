"""The painter's kernels: how much of each pixel a shape covers, and whose the pixel then is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image, ImageDraw

from isolux_worlds.drawing.canvas import Canvas, Paint

WHITE = Paint((255.0, 255.0, 255.0))


def cover(draw, width=60, height=50):
    canvas = Canvas(width, height)
    draw(canvas)
    canvas.paint()
    return canvas.picture[:, :, 0] / 255.0


def area_of(corners):
    x, y = np.asarray(corners, dtype=float).T
    return abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2


@pytest.mark.parametrize(
    "corners",
    [
        [(10, 10), (40, 10), (40, 30), (10, 30)],
        [(10.25, 10.5), (40.75, 10.5), (40.75, 30.25), (10.25, 30.25)],
        [(5.3, 4.7), (50.1, 20.2), (12.9, 44.4)],
        [(30, 5), (55, 25), (30, 45), (5, 25), (29, 25)],  # not convex
        [(8.0, 10.1), (51.0, 10.3), (51.0, 10.9)],  # thinner than a pixel
    ],
)
def test_a_polygon_covers_exactly_its_area(corners):
    assert cover(lambda c: c.polygon(corners, WHITE)).sum() == pytest.approx(
        area_of(corners), abs=5e-3
    )
    turned = corners[::-1]
    np.testing.assert_allclose(
        cover(lambda c: c.polygon(turned, WHITE)), cover(lambda c: c.polygon(corners, WHITE)),
        atol=1e-5,
    )  # fmt: skip


def test_a_polygon_equals_pillows_at_16_times_the_size():
    rng = np.random.default_rng(4)
    for _ in range(20):
        corners = rng.uniform((-20, -20), (80, 70), (3, 2))  # often beyond the canvas
        big = Image.new("L", (60 * 16, 50 * 16))
        ImageDraw.Draw(big).polygon([tuple(p) for p in corners * 16 - 0.5], fill=255)
        reference = np.asarray(big, float).reshape(50, 16, 60, 16).mean(axis=(1, 3)) / 255
        found = cover(lambda c, p=corners: c.polygon(p, WHITE))
        # Pillow takes the border's own pixels in: half a sixteenth on either side.
        assert np.abs(found - reference).max() < 0.15
        assert np.abs(found - reference).mean() < 0.004


def test_ellipses_and_capsules_cover_their_area():
    ellipse = cover(lambda c: c.ellipse((30, 25), 20, 10, WHITE, 0.6)).sum()
    assert ellipse == pytest.approx(math.pi * 200, rel=0.005)
    capsule = cover(lambda c: c.capsule((15, 25), 6, (45, 25), 6, WHITE)).sum()
    assert capsule == pytest.approx(math.pi * 36 + 12 * 30, rel=0.005)


def test_labels_are_hard_and_colours_are_not():
    canvas = Canvas(20, 10)
    with canvas.as_part(3, "nose"):
        canvas.polygon([(2.6, 2), (8.4, 2), (8.4, 6), (2.6, 6)], WHITE)
    canvas.paint()
    # 0.4 of the columns 2 and 8 is covered: half-tones, but nobody's.
    assert canvas.picture[3, 2, 0] == pytest.approx(0.4 * 255, abs=0.1)
    assert canvas.owner[3].tolist() == [0] * 3 + [3] * 5 + [0] * 12
    assert set(np.unique(canvas.part_labels)) == {0, 11}  # the nose is the eleventh part
    assert canvas.body_px[3] == 20


def test_a_body_is_counted_once_and_stays_counted_when_hidden():
    canvas = Canvas(20, 10)
    square = [(2, 2), (6, 2), (6, 6), (2, 6)]
    with canvas.as_part(1, "body_skin"):
        canvas.polygon(square, WHITE)
    with canvas.as_part(1, "upper_clothing"):
        canvas.polygon(square, WHITE)
    with canvas.as_part(2, "body_skin"):
        canvas.polygon([(4, 2), (9, 2), (9, 6), (4, 6)], WHITE)
    canvas.paint()
    assert canvas.body_px[1:4].tolist() == [16, 20, 0]
    assert (canvas.owner == 1).sum() == 8


def test_shading_stays_on_the_part_it_is_for():
    canvas = Canvas(20, 10)
    with canvas.as_part(1, "face_skin"):
        canvas.polygon([(2, 2), (6, 2), (6, 6), (2, 6)], Paint((100.0, 100.0, 100.0)))
    with canvas.only_on(1, "face_skin"):
        canvas.ellipse((6, 4), 4, 4, WHITE)
    canvas.paint()
    assert canvas.picture[4, 5, 0] == pytest.approx(255)
    assert canvas.picture[4, 7, 0] == 0
    assert (canvas.owner > 0).sum() == 16


def test_round_shapes_keep_their_colour_where_they_face_the_viewer():
    light = (0.6, 0.0, 0.8)
    canvas = Canvas(41, 41, light=light)
    canvas.capsule((20.5, -10), 15, (20.5, 60), 15, Paint((100.0, 100.0, 100.0), round=0.5))
    canvas.paint()
    row = canvas.picture[20, 6:35, 0]
    assert row[14] == pytest.approx(100, abs=0.5)  # the middle: x = 20.5
    assert row[4] < 95  # the light comes from the right
    assert row[24] > 105


def test_haze_moves_colours_to_its_own():
    canvas = Canvas(4, 4, haze_colour=(200.0, 200.0, 200.0))
    canvas.haze = 0.25
    canvas.polygon([(0, 0), (4, 0), (4, 4), (0, 4)], Paint((100.0, 100.0, 100.0)))
    canvas.paint()
    np.testing.assert_allclose(canvas.picture, 125, atol=1e-3)
