"""ITA: Monk's tones against a second CIELAB, which pixels count, what light does, bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from isolux import derive
from isolux.core.errors import SpecError
from isolux.derive import skin_tone
from isolux.derive._colour import LINEAR_LIGHT, linear_rgb_to_lab, luminance_to_lightness
from isolux.derive.skin_tone import compute_ita_degrees
from isolux.derive.skin_tone.pixels import (
    extract_cheek_and_chin_skin,
    extract_unclipped_skin_in_mask,
)
from tests._shared import CHECKOUT
from tests.derive._cielab import MONK, ita, lab, rgb_of
from tests.derive._pictured import of, pictured

PAGE = CHECKOUT / "docs" / "methods" / "pixels.md"


def ita_of_skin(rgb):
    return compute_ita_degrees(LINEAR_LIGHT[rgb])


def picture(rgb, size=(90, 90)):
    return np.full((*size, 3), rgb, dtype=np.uint8)


def lit(rgb, light):
    """The stored colour of a surface in other light: each channel's light times a factor."""
    value = np.asarray(rgb) / 255.0
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4) * light
    stored = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.rint(np.clip(stored, 0, 1) * 255).astype(np.uint8)


# Computed by tests/derive/_cielab.py and, for two of them, by hand:
# #a07e56: light .3515, .2086, .0931; Y = .2126·.3515 + .7152·.2086 + .0722·.0931 = .2306;
#   Z / Zn = (.0193·.3515 + .1192·.2086 + .9503·.0931) / 1.0888 = .1103
#   L* = 116·.2306^⅓ − 16 = 55.1; b* = 200·(.2306^⅓ − .1103^⅓) = 200·(.6132 − .4796) = 26.7
#   arctan(5.1 / 26.7) = 10.9°
# #292420: .0222, .0176, .0144; Y = .0184, Z / Zn = .0149; L* = 116·.2639 − 16 = 14.6;
#   b* = 200·(.2639 − .2462) = 3.5; arctan(−35.4 / 3.5) = −84.3°
EXPECTED = {
    "#f6ede4": (83.0, "very light"), "#f3e7db": (80.2, "very light"),
    "#f7ead0": (71.7, "very light"), "#eadaba": (64.7, "very light"), "#d7bd96": (50.3, "light"),
    "#a07e56": (10.9, "tan"), "#825c43": (-20.1, "brown"), "#604134": (-55.4, "dark"),
    "#3a312a": (-78.4, "dark"), "#292420": (-84.3, "dark"),
}  # fmt: skip


def test_monk_tones_agree_with_a_second_implementation():
    for colour, (expected, _) in EXPECTED.items():
        rgb = rgb_of(colour)
        assert ita(rgb) == pytest.approx(expected, abs=0.06)
        assert ita_of_skin(np.array(rgb, dtype=np.uint8)) == pytest.approx(ita(rgb), abs=0.02)


def test_monk_tones_as_faces_have_the_angles_and_classes_of_their_colours(tmp_path):
    pictures = {f"{tone}.png": picture(rgb_of(colour)) for colour, tone in MONK.items()}
    found = skin_tone.derive(pictured(tmp_path, pictures))
    assert of(found, "ita") == [pytest.approx(e, abs=0.06) for e, _ in EXPECTED.values()]
    assert of(found, "ita_peak") == [pytest.approx(e, abs=0.06) for e, _ in EXPECTED.values()]
    assert of(found, "ita_class", "value") == [word for _, word in EXPECTED.values()]
    assert of(found, "ita") == sorted(of(found, "ita"), reverse=True)
    assert of(found, "skin_share") == [1.0] * 10


def test_an_angle_at_a_threshold_is_in_the_darker_class():
    # Very light is above 55, light above 41 and so on; dark is −30 and below.
    angles = pl.DataFrame({"_number": [55.1, 55.0, 41.0, 28.0, 10.0, -29.9, -30.0, None]})
    expression = skin_tone._classify_ita_expression(pl.col("_number"))
    assert angles.select(expression).to_series().to_list() == [
        "very light", "light", "intermediate", "tan", "brown", "brown", "dark", None,
    ]  # fmt: skip


def test_the_page_prints_these_angles():
    page = PAGE.read_text(encoding="utf-8")
    for colour, (_, word) in EXPECTED.items():
        own = [
            cell.strip()
            for cell in next(line for line in page.splitlines() if f"`{colour}`" in line)
            .strip("|")
            .split("|")
        ]
        lightness, _, b = lab(rgb_of(colour))
        light_of_lab = [float(cell.replace("−", "-")) for cell in own[2:6]]
        assert light_of_lab[:3] == [
            pytest.approx(lightness, abs=0.051), pytest.approx(b, abs=0.051),
            pytest.approx(ita(rgb_of(colour)), abs=0.051),
        ]  # fmt: skip
        dim = ita_of_skin(lit(rgb_of(colour), 0.5))
        assert light_of_lab[3] == pytest.approx(dim, abs=0.051)
        warm = ita_of_skin(lit(rgb_of(colour), WARM))
        assert float(own[6].replace("−", "-")) == pytest.approx(warm, abs=0.051)
        assert own[7] == word


@settings(max_examples=300, deadline=None)
@given(st.tuples(*[st.integers(0, 255)] * 3))
def test_every_colour_agrees_with_a_second_cielab(rgb):
    found = linear_rgb_to_lab(LINEAR_LIGHT[np.array(rgb, dtype=np.uint8)])
    assert found == pytest.approx(lab(rgb), abs=0.02)
    luminance = np.array([((lab(rgb)[0] + 16) / 116) ** 3])
    if lab(rgb)[0] > 8:
        assert luminance_to_lightness(luminance)[0] == pytest.approx(lab(rgb)[0], abs=1e-6)


def test_greys_have_no_colour():
    greys = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    assert np.abs(linear_rgb_to_lab(LINEAR_LIGHT[greys])[:, 1:]).max() < 1e-9


# Tungsten light on a camera that is set for daylight, mildly: a third more red, a third less blue.
WARM = np.array([1.3, 1.0, 0.7]) / 1.3


def test_the_order_of_tones_holds_in_white_light_and_not_across_lights():
    tones = np.array([rgb_of(colour) for colour in MONK], dtype=np.uint8)
    for light in (1.0, 0.7, 0.5, 0.25):
        order = ita_of_skin(lit(tones, light))
        assert (np.diff(order) < 0).all(), light
    # In half the light every tone but the darkest, who are at the end, is darker by this angle;
    # the sixth in full light and the fifth in a quarter of it change places.
    assert (ita_of_skin(lit(tones, 0.5)) < ita_of_skin(tones))[:9].all()
    assert ita_of_skin(lit(tones[4], 0.25)) < ita_of_skin(tones[5])
    # Warm light makes the seven lightest darker too, and the three darkest lighter: it draws all
    # towards 0, as b* grows.
    assert (ita_of_skin(lit(tones, WARM)) < ita_of_skin(tones)).tolist() == [True] * 7 + [False] * 3


def test_dim_light_moves_the_class_of_one_person(tmp_path):
    # One person, the fifth tone: two stops take them from light to brown.
    lights = {f"{k}.png": picture(lit(rgb_of("#d7bd96"), 0.5**k)) for k in range(3)}
    found = skin_tone.derive(pictured(tmp_path, lights))
    assert of(found, "ita_class", "value") == ["light", "tan", "brown"]


def test_bluish_light_gives_no_angle_rather_than_a_light_one(tmp_path):
    # b* below 0 at L* below 50: arctan would say +70, "very light", of a dark skin.
    rgb = (60, 59, 80)
    assert ita(rgb) > 55
    assert ita_of_skin(np.array(rgb, dtype=np.uint8)) < -90
    skin = np.zeros((90, 90), dtype=np.uint8)
    skin[30:60, 30:60] = 255
    dataset = pictured(
        tmp_path, {"a.png": picture(rgb), "skin.png": skin}, people=["a.png"],
        part_mask_uri=["combined.png"],
    )  # fmt: skip
    found = skin_tone.derive(dataset)
    assert of(found, "ita") == of(found, "ita_peak") == [None]
    assert of(found, "ita", "reason") == ["bluish light: b* is not above 0"]
    assert of(found, "skin_share") == [1.0]


def test_cheeks_and_chin_count_and_nothing_else_of_the_box():
    # A box of 100 x 100 at (20, 10). The regions of the docstring in colours of their own.
    canvas = picture((10, 200, 10), (130, 140))
    canvas[60:82, 35:58] = (200, 150, 120)  # 10 + 50 to 10 + 72, 20 + 15 to 20 + 38
    canvas[60:82, 82:105] = (180, 130, 100)
    canvas[94:106, 55:85] = (160, 110, 80)
    skin = extract_cheek_and_chin_skin(canvas, (20, 10, 120, 110))
    colours = [(200, 150, 120), (180, 130, 100), (160, 110, 80)]
    for region, colour in zip(skin.regions, colours, strict=True):
        assert region == pytest.approx(np.tile(LINEAR_LIGHT[list(colour)], (len(region), 1)))
    # Of 506 pixels 100 squares have a side of ⌊√5.06⌋ = 2 (11 x 11 of them), of 360 of 1.
    assert (skin.share, skin.n) == (1.0, 22 * 22 * 2 + 12 * 30)


def test_pixels_that_are_no_skin_or_clipped_are_left_out():
    face = picture((160, 126, 86), (100, 100))
    face[:, :50] = (90, 90, 90)  # grey: a mask over the left half
    skin = extract_cheek_and_chin_skin(face, (0, 0, 100, 100))
    # The left cheek, and half of the chin, are grey.
    # Squares of 2 leave 22 of the cheek's 23 columns: 484 and 180 of 968 and 360.
    assert skin.share == pytest.approx(1 - (484 + 180) / (968 + 360))
    for other in ((255, 230, 200), (7, 5, 3), (86, 126, 160), (126, 160, 86)):
        assert extract_cheek_and_chin_skin(picture(other), (0, 0, 90, 90)).n == 0
    for colour in MONK:
        assert extract_cheek_and_chin_skin(picture(rgb_of(colour)), (0, 0, 90, 90)).share == 1.0


def test_squares_that_are_mostly_highlights_are_left_out():
    # Three of four columns are clipped: no square of 3 or 4 pixels a side keeps half of its own.
    face = picture((160, 126, 86), (200, 200))
    face[:, np.arange(200) % 4 != 0] = 255
    assert extract_cheek_and_chin_skin(face, (0, 0, 200, 200)).n == 0
    face = picture((160, 126, 86), (200, 200))
    face[:, np.arange(200) % 4 == 0] = 255
    skin = extract_cheek_and_chin_skin(face, (0, 0, 200, 200))
    assert np.concatenate(skin.regions) == pytest.approx(
        np.tile(LINEAR_LIGHT[[160, 126, 86]], (sum(map(len, skin.regions)), 1))
    )
    assert 0.7 < skin.share < 0.8


def test_a_box_beyond_the_picture_and_without_area():
    face = picture((160, 126, 86), (10, 10))
    assert extract_cheek_and_chin_skin(face, (5, 5, 5, 5)).share == 0.0
    assert extract_cheek_and_chin_skin(face, (1e9, 1e9, 2e9, 2e9)).n == 0
    assert extract_cheek_and_chin_skin(face, (-1e9, -1e9, -1e8, -1e8)).n == 0


def test_light_is_averaged_over_about_a_hundred_squares():
    # Each cheek of 322 x 308: the side is ⌊√(99,176 / 100)⌋ = 31, so 10 x 9 squares. The chin of
    # 420 x 168: ⌊√705.6⌋ = 26, so 16 x 6.
    rng = np.random.default_rng(0)
    noisy = np.clip(rng.normal((160, 126, 86), 10, (1400, 1400, 3)), 0, 254).astype(np.uint8)
    skin = extract_cheek_and_chin_skin(noisy, (0, 0, 1400, 1400))
    assert [len(region) for region in skin.regions] == [10 * 9, 10 * 9, 16 * 6]
    mean = LINEAR_LIGHT[noisy].mean(axis=(0, 1))
    assert np.concatenate(skin.regions).mean(axis=0) == pytest.approx(mean, rel=0.01)
    masked = extract_unclipped_skin_in_mask(noisy, np.ones((700, 700), dtype=np.bool_))
    assert len(masked.regions[0]) == 10 * 10  # ⌊1400 / 140⌋ a side
    assert masked.regions[0].mean(axis=0) == pytest.approx(mean, rel=0.01)
    assert extract_unclipped_skin_in_mask(noisy, np.zeros((9, 9), dtype=np.bool_)).n == 0


@pytest.mark.parametrize("noise", [2, 5, 8])
def test_noise_takes_no_tone_for_something_else(tmp_path, noise):
    # In the darkest skin the channels lie 4 or 5 of 255 apart. A rule on single pixels would drop
    # half of them, the bluer ones, and call the rest two degrees lighter.
    rng = np.random.default_rng(1)
    pictures = {
        f"{tone}.png": np.clip(rng.normal(rgb_of(c), noise, (300, 300, 3)), 0, 254).round()
        for c, tone in MONK.items()
    }
    found = skin_tone.derive(pictured(tmp_path, pictures))
    for expected, exact, share in zip(
        of(found, "ita"), EXPECTED.values(), of(found, "skin_share"), strict=True
    ):
        # The clip at 254 and the curve of light move the mean of noisy pixels by themselves.
        assert expected == pytest.approx(exact[0], abs=1.0 + 0.25 * noise)
        assert share > (0.75 if noise == 8 else 0.9)
    darkest = pictures["10.png"].astype(np.uint8)
    single = darkest[(darkest[..., 0] > darkest[..., 1]) & (darkest[..., 1] >= darkest[..., 2])]
    if noise == 5:
        assert len(single) < 0.55 * 300 * 300
        assert np.median(ita_of_skin(single)) > ita(rgb_of("#292420")) + 2


def test_a_mask_of_skin_goes_before_any_box(tmp_path):
    # The skin is in the left upper quarter; the mask is half the picture's size, as
    # CelebAMask-HQ's are. The middle of the picture, which a box would take, is another tone.
    canvas = picture((65, 40, 30), (80, 80))
    canvas[:40, :40] = (215, 189, 150)
    mask = np.zeros((40, 40, 3), dtype=np.uint8)
    mask[:20, :20] = 255
    parts = [{"part": "l_eye", "uri": "l_eye.png"}, {"part": "skin", "uri": "masks/skin.png"}]
    dataset = pictured(
        tmp_path, {"a.png": canvas, "masks/skin.png": mask}, people=["a.png"],
        part_mask_files=[parts], classes=[["face"]],
        box_x=[0.0], box_y=[0.0], box_w=[80.0], box_h=[80.0],
    )  # fmt: skip
    assert of(skin_tone.derive(dataset), "ita") == [pytest.approx(50.3, abs=0.1)]
    # Run lengths down the columns of 80: 40 columns of 40 pixels each.
    runs = [0, *[n for _ in range(40) for n in (40, 40)]]
    runs[-1] += 3200
    held = {"part": "Face skin", "counts": _compressed(runs), "height": 80, "width": 80}
    dataset = replace(dataset, instances=dataset.instances.drop("part_mask_files").with_columns(
        part_masks=pl.Series([[held]])))  # fmt: skip
    assert of(skin_tone.derive(dataset), "ita") == [pytest.approx(50.3, abs=0.1)]
    # FHIBE names the picture of all parts; that of the skin lies beside it.
    dataset = replace(dataset, instances=dataset.instances.drop("part_masks").with_columns(
        part_mask_uri=pl.lit("masks/combined.png")))  # fmt: skip
    assert of(skin_tone.derive(dataset), "ita") == [pytest.approx(50.3, abs=0.1)]


def _compressed(runs):
    from isolux.geometry.masks import masks_from_counts, masks_to_coco

    masks = masks_from_counts([runs], np.array([80]), np.array([80]))
    return masks_to_coco(masks)[0]["counts"].decode()


def test_the_faces_own_box_goes_before_that_of_an_instance(tmp_path):
    canvas = picture((65, 40, 30), (80, 80))
    canvas[:40, :40] = (215, 189, 150)
    sides = {"box_x": 0.0, "box_y": 0.0, "box_w": 80.0, "box_h": 80.0}
    columns = {k: [v] * 4 for k, v in sides.items()} | {
        f"face_{k}": [0.5 * v, None, None, 0.5 * v] for k, v in sides.items()
    }
    dataset = pictured(tmp_path, {"a.png": canvas}, people=["a.png"] * 4, **columns,
                       classes=[["person"], ["face"], ["person"], None])  # fmt: skip
    found = skin_tone.derive(dataset)
    light = pytest.approx(50.3, abs=0.1)
    assert of(found, "ita")[::3] == [light, light]
    assert of(found, "ita")[1] < 0  # the box of an instance that is a face
    assert of(found, "ita", "reason")[2] == "no face's box and no mask of skin"


def test_a_covered_face_has_no_skin(tmp_path):
    covered = picture((160, 126, 86))
    covered[30:] = (120, 130, 200)
    found = skin_tone.derive(pictured(tmp_path, {"a.png": covered, "b.png": picture((0, 0, 0))}))
    assert of(found, "ita") == [None, None]
    assert of(found, "ita", "reason") == ["too little skin where the face should be"] * 2
    assert of(found, "skin_share") == [0.0, 0.0]


def test_a_face_of_which_a_tenth_is_skin_has_no_angle(tmp_path):
    # A box of 300: cheeks of 69 x 66, a chin of 90 x 36, of which 36 columns are skin;
    # squares of 5 and 6 pixels do not end where the skin does.
    masked = picture((90, 90, 90), (300, 300))
    masked[:, 150:186] = (160, 126, 86)
    dataset = pictured(tmp_path, {"a.png": masked}, classes=[["face"]], box_x=[0.0], box_y=[0.0],
                       box_w=[300.0], box_h=[300.0])  # fmt: skip
    found = skin_tone.derive(dataset)
    assert of(found, "ita") == [None]
    assert of(found, "skin_share") == [pytest.approx(36 * 36 / (2 * 69 * 66 + 90 * 36), rel=0.15)]


def test_people_without_faces_are_refused(tmp_path):
    boxes = {"box_x": [0.0], "box_y": [0.0], "box_w": [9.0], "box_h": [9.0]}
    face = {"a.png": picture((160, 126, 86))}
    for columns in (boxes, {"classes": [["stove"]]}):
        with pytest.raises(SpecError, match=r"nothing says where the faces are(.|\n)*boxes of f"):
            skin_tone.derive(pictured(tmp_path, face, **columns))
    with pytest.raises(SpecError, match="nothing says where the faces are"):
        skin_tone.derive(pictured(tmp_path, face, people=["a.png"] * 2))


def test_the_note_says_that_it_is_light_as_much_as_skin(tmp_path):
    found = derive.add_missing_derived_attributes(
        pictured(tmp_path, {"a.png": picture((160, 126, 86))}), ["ita", "ita_class"]
    )
    assert sum("the light as much as" in note for note in found.notes) == 1
    assert any("light as much as" in note for note in found.notes if note.startswith("ita_class"))
    assert any("light decides as much as" in said for said in skin_tone.INFO.assumptions)


def test_the_peak_is_that_of_each_region_averaged(tmp_path):
    # The left half lies in shade: the left cheek's peak is dim, the right one's bright, and of the
    # chin, half and half, it is the first of two equal peaks, the dim one.
    face = picture(rgb_of("#d7bd96"), (300, 300))
    face[:, :150] = lit(rgb_of("#d7bd96"), 0.5)
    dataset = pictured(tmp_path, {"a.png": face}, classes=[["face"]], box_x=[0.0], box_y=[0.0],
                       box_w=[300.0], box_h=[300.0])  # fmt: skip
    found = skin_tone.derive(dataset)
    bright, dim = 50.33, float(ita_of_skin(lit(rgb_of("#d7bd96"), 0.5)))
    assert of(found, "ita_peak") == [pytest.approx((dim + bright + dim) / 3, abs=0.1)]
    assert dim < of(found, "ita")[0] < bright


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([(1, 1), (1, 50_000), (5, 5), (60, 40)]),
    sides=st.lists(st.floats(width=32), min_size=4, max_size=4),
)
def test_odd_faces_give_angles_or_reasons(tmp_path_factory, seed, size, sides):
    folder = Path(tmp_path_factory.mktemp("odd"))
    rgb = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    columns = dict(
        zip(("face_box_x", "face_box_y", "face_box_w", "face_box_h"), sides, strict=True)
    )
    dataset = pictured(
        folder, {"odd.png": rgb, "good.png": picture((160, 126, 86))},
        **{k: [v, 9.0] for k, v in columns.items()},
    )  # fmt: skip
    found = skin_tone.derive(dataset)
    lacking = found.filter(pl.col("value").is_null())
    assert lacking["reason"].null_count() == 0
    angles = found.filter(pl.col("attribute").is_in(["ita", "ita_peak"]))["number"].drop_nulls()
    assert angles.is_between(-90, 90).all()


def test_files_of_masks_that_are_missing_or_outside_are_no_masks(tmp_path):
    face = {"a.png": picture((160, 126, 86))}
    dataset = pictured(tmp_path / "in", face, part_mask_uri=["../../combined.png"])
    Image.new("L", (9, 9)).save(tmp_path / "skin.png")
    assert of(skin_tone.derive(dataset), "ita") == [pytest.approx(10.9, abs=0.1)]
    assert json.dumps(skin_tone.ITA_CLASSES)
