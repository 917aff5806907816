"""Exposure, colour cast and noise; Monk tones stay what they are in neutral light."""

from __future__ import annotations

import numpy as np
import pytest

from isolux_worlds.drawing import render_photos
from isolux_worlds.drawing.colour import hex_to_rgb, linear_to_srgb, srgb_to_linear
from isolux_worlds.drawing.light import blur_in_place, develop_photo, draw_random_light
from isolux_worlds.photo_world.tables import PARTS
from isolux_worlds.photo_world.vocabulary import BUILT_IN_ATTRIBUTES, MONK_TONES
from tests.worlds.drawing._hand import person, world

LARGEST_DELTA_E = 2.0
"""Of the median of a face's skin from the published tone, CIE 1976: 2.3 is just noticeable."""


def lab(srgb):
    """CIE L*a*b* under D65, written from its definition."""
    v = np.asarray(srgb, dtype=float) / 255
    linear = np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
              [0.0193339, 0.1191920, 0.9503041]]  # fmt: skip
    t = linear @ np.array(to_xyz).T / np.array([0.95047, 1.0, 1.08883])
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    x, y, z = f[..., 0], f[..., 1], f[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def face(rendered, owner=1):
    on = (rendered.owner == owner) & (rendered.part_labels == PARTS.index("face_skin") + 1)
    return rendered.pixels[on]


@pytest.mark.parametrize("tone", MONK_TONES)
@pytest.mark.parametrize("number", [1, 2])
def test_the_median_of_a_face_is_its_monk_tone(tone, number):
    near = person(number, tall=900.0, foot=950.0, skin_tone=tone)
    skin = face(next(render_photos(world(near))))
    assert len(skin) > 1000
    found = np.median(skin, axis=0)
    assert np.linalg.norm(lab(found) - lab(hex_to_rgb(MONK_TONES[tone]))) < LARGEST_DELTA_E


def test_less_light_is_darker_and_more_is_brighter():
    seen = {
        lighting: lab(face(next(render_photos(world(person(), lighting=lighting)))))[:, 0].mean()
        for lighting in BUILT_IN_ATTRIBUTES["lighting"].shares
    }
    assert seen["underexposed"] < seen["dimly_lit"] - 10
    assert seen["dimly_lit"] < seen["well_lit"] - 10
    assert seen["overexposed"] > seen["well_lit"] + 10


def test_nights_are_dark_and_blue_and_evenings_warm():
    seen = {
        when: np.median(face(next(render_photos(world(person(), time_of_day=when)))), axis=0)
        for when in BUILT_IN_ATTRIBUTES["time_of_day"].shares
    }
    day, night, dusk = (seen[w] for w in ("daytime", "night", "dawn_dusk"))
    assert night.sum() < day.sum()
    assert night[2] / night[0] > day[2] / day[0]
    assert dusk[2] / dusk[0] < day[2] / day[0]


def test_neutral_light_changes_nothing_on_average():
    light = draw_random_light("well_lit", "daytime", np.random.default_rng(0))
    picture = np.broadcast_to(np.array([40.0, 128.0, 220.0], np.float32), (200, 200, 3)).copy()
    photo = develop_photo(picture, light, 7).astype(float)
    np.testing.assert_allclose(photo.mean(axis=(0, 1)), [40, 128, 220], atol=0.05)
    deviation = (photo - [40, 128, 220]).std()
    assert deviation == pytest.approx(light.noise, rel=0.25)  # and rounding adds its own


def test_exposure_multiplies_linear_light():
    light = draw_random_light("dimly_lit", "daytime", np.random.default_rng(0))
    picture = np.full((100, 100, 3), 200, np.float32)
    expected = linear_to_srgb(srgb_to_linear(np.array([200.0])) * light.exposure)[0]
    assert develop_photo(picture, light, 7).mean() == pytest.approx(expected, abs=0.1)


def test_srgb_and_linear_light_undo_one_another():
    steps = np.arange(256.0)
    np.testing.assert_allclose(linear_to_srgb(srgb_to_linear(steps)), steps, atol=1e-9)
    assert srgb_to_linear(np.array([128.0]))[0] == pytest.approx(0.21586, abs=1e-5)  # IEC 61966-2-1


def test_softening_is_the_mean_of_a_square():
    rng = np.random.default_rng(1)
    picture = rng.uniform(0, 255, (7, 9, 3)).astype(np.float32)
    before = picture.astype(float)
    blur_in_place(picture, 1)
    assert picture[3, 4, 1] == pytest.approx(before[2:5, 3:6, 1].mean(), abs=1e-3)
    assert picture[0, 0, 0] == pytest.approx(before[:2, :2, 0].mean(), abs=1e-3)
