"""Which pictures are looked at, whom each shows, and what of a picture a model is shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.engine import list_source_images
from isolux.engine.source_images import SourceImage, Unit, decode_and_crop_units, find_image_folder
from isolux.io.images import read_image
from tests.engine._painted import INFO, paint

TWO = pl.DataFrame(
    {"instance_id": ["p", "q", "r"], "image_id": ["a.png", "a.png", "b.png"],
     "box_x": [0.0, 4.0, None], "box_y": [1.0, 0.0, None],
     "box_w": [2.0, 4.0, None], "box_h": [3.0, 6.0, None]}
)  # fmt: skip


def two_people(tmp_path, images=None):
    rng = np.random.default_rng(0)
    for name in ("a.png", "b.png"):
        Image.fromarray(rng.integers(0, 256, (6, 8, 3)).astype(np.uint8)).save(tmp_path / name)
    frame = pl.DataFrame({"image_id": ["a.png", "b.png"]}) if images is None else images
    return Dataset("two", INFO, TWO, images=frame, root=str(tmp_path))


def opened(dataset, picture, **settings):
    return decode_and_crop_units(picture, find_image_folder(dataset), **settings)


def test_boxes_are_about_every_image_once_and_labels_about_people(tmp_path):
    images = pl.DataFrame({"image_id": ["a.png", "b.png", "empty.png"]})
    people = two_people(tmp_path, images)
    by_image = list_source_images(people, "boxes", "image")
    assert [p.image_id for p in by_image] == ["a.png", "b.png", "empty.png"]
    assert [[u.id for u in p.units] for p in by_image] == [["a.png"], ["b.png"], ["empty.png"]]
    by_person = list_source_images(people, "labels", "person")
    assert [[u.id for u in p.units] for p in by_person] == [["p", "q"], ["r"]]


def test_an_image_of_several_people_gives_no_one_its_answer(tmp_path):
    with pytest.raises(
        SpecError, match=r"(?s)shows several people.*1 of 2 images.*'a.png' shows 2"
    ):
        list_source_images(two_people(tmp_path), "labels", "image")


def test_a_person_is_cut_out_by_their_box(tmp_path):
    people = two_people(tmp_path)
    pixels = np.array(Image.open(tmp_path / "a.png"))
    first, second = list_source_images(people, "labels", "person")
    p, q = opened(people, first).crops
    assert np.array_equal(p.pixels, pixels[1:4, 0:2])
    assert np.array_equal(q.pixels, pixels[0:6, 4:8])
    (r,) = opened(people, second).crops
    assert (r.pixels, r.reason) == (None, "no box to cut out")


def test_a_wider_box_keeps_its_centre_and_ends_where_the_image_does(tmp_path):
    people = two_people(tmp_path)
    pixels = np.array(Image.open(tmp_path / "a.png"))
    p, q = opened(people, list_source_images(people, "labels", "person")[0], box_factor=2.0).crops
    # p: x 0..2 about 1 becomes -1..3, y 1..4 about 2.5 becomes -0.5..5.5: rounded outwards.
    assert np.array_equal(p.pixels, pixels[0:6, 0:3])
    assert np.array_equal(q.pixels, pixels[0:6, 2:8])


def test_a_box_outside_its_picture_is_a_reason(tmp_path):
    people = two_people(tmp_path)
    moved = replace(people, instances=TWO.with_columns(box_x=pl.col("box_x") + 100))
    p, _ = opened(moved, list_source_images(moved, "labels", "person")[0]).crops
    assert (p.pixels, p.reason) == (None, "a box outside its picture")


def test_cut_outs_need_boxes(tmp_path):
    with pytest.raises(SpecError, match=r"(?s)cannot be cut out.*box_x"):
        list_source_images(paint(tmp_path / "in", 2), "labels", "person")


def test_boxes_are_about_whole_images(tmp_path):
    with pytest.raises(SpecError, match="boxes are about whole images"):
        list_source_images(two_people(tmp_path), "boxes", "person")


def test_no_pictures_no_folder_and_web_addresses_are_said(tmp_path):
    people = two_people(tmp_path)
    with pytest.raises(SpecError, match=r"(?s)nothing says where.*--images FOLDER"):
        list_source_images(replace(people, root=None), "boxes", "image")
    none = replace(people, instances=TWO.clear(), images=pl.DataFrame({"image_id": []}))
    with pytest.raises(SpecError, match="there is no picture"):
        list_source_images(none, "boxes", "image")
    away = pl.DataFrame({"image_id": ["a.png", "b.png"], "uri": ["https://x.org/a"] * 2})
    with pytest.raises(SpecError, match="web addresses, which are not opened"):
        list_source_images(replace(people, images=away), "boxes", "image")


def test_a_path_out_of_the_folder_is_a_reason(tmp_path):
    people = two_people(tmp_path)
    picture = SourceImage(
        "x", "../outside.png", None, None, (Unit("x"),), needs_annotated_size=False
    )
    (cut,) = opened(people, picture).crops
    assert cut.reason.startswith("a path leads out of its folder")


def turned_picture(tmp_path):
    """Lying 8 × 4, and 4 × 8 as its EXIF turns it; brighter to one side."""
    pixels = np.zeros((4, 8, 3), np.uint8)
    pixels[:, :4] = 200
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter to be seen upright
    Image.fromarray(pixels).save(tmp_path / "t.jpg", exif=exif, quality=95)


@pytest.mark.parametrize(("width", "height"), [(4, 8), (8, 4)])
def test_a_turned_picture_is_shown_as_its_annotation_has_it(tmp_path, width, height):
    turned_picture(tmp_path)
    picture = SourceImage(
        "t.jpg", "t.jpg", width, height, (Unit("t.jpg"),), needs_annotated_size=True
    )
    people = Dataset("t", INFO, TWO, root=str(tmp_path))
    found = opened(people, picture)
    assert (found.width, found.height) == (width, height)
    bright = found.crops[0].pixels.mean(axis=2) > 100
    upper, left = bright[: height // 2].mean(), bright[:, : width // 2].mean()
    assert (upper > 0.9) == (height == 8)
    assert (left > 0.9) == (height == 4)


def test_a_picture_of_another_size_is_no_use_where_boxes_matter(tmp_path):
    people = two_people(tmp_path)
    for placed, reason in ((True, "another size than annotated"), (False, None)):
        picture = SourceImage(
            "a.png", "a.png", 80, 60, (Unit("a.png"),), needs_annotated_size=placed
        )
        (cut,) = opened(people, picture).crops
        assert (cut.reason is None) == (reason is None)
        assert reason is None or reason in cut.reason


def test_cmyk_alpha_and_palettes_are_shown_as_colours_and_16_bits_are_said(tmp_path):
    people = two_people(tmp_path)
    rgb = Image.fromarray(np.full((6, 8, 3), (204, 102, 51), np.uint8))
    rgb.convert("CMYK").save(tmp_path / "cmyk.jpg", quality=95)
    rgb.convert("RGBA").save(tmp_path / "alpha.png")
    rgb.convert("P").save(tmp_path / "palette.png")
    for name in ("cmyk.jpg", "alpha.png", "palette.png"):
        picture = SourceImage(name, name, None, None, (Unit(name),), needs_annotated_size=False)
        (cut,) = opened(people, picture).crops
        assert np.abs(cut.pixels.astype(int) - (204, 102, 51)).max() <= 12, name
    Image.fromarray(np.full((6, 8), 40_000, np.uint16)).save(tmp_path / "deep.png")
    other = Image.fromarray(np.full((6, 8, 3), 9, np.uint8))
    for kind in ("gif", "webp", "png"):
        rgb.save(tmp_path / f"moving.{kind}", save_all=True, append_images=[other], duration=100)
    rgb.save(tmp_path / "still.gif")
    still = SourceImage("a", "still.gif", None, None, (Unit("a"),), needs_annotated_size=False)
    (cut,) = opened(people, still).crops
    assert np.abs(cut.pixels.astype(int) - (204, 102, 51)).max() <= 12
    for name, said in (("deep.png", "8 bits a channel"),
                       ("moving.gif", "an animation of 2 pictures"),
                       ("moving.webp", "an animation of 2 pictures"),
                       ("moving.png", "an animation of 2 pictures")):  # fmt: skip
        picture = SourceImage(name, name, None, None, (Unit(name),), needs_annotated_size=False)
        (cut,) = opened(people, picture).crops
        assert said in cut.reason


@pytest.mark.parametrize("name", ["a.png", "a.webp", "a.gif"])
def test_what_is_transparent_lies_on_white(tmp_path, name):
    """Half of red over white is (255, 127, 127); what a transparent pixel hides has no part."""
    pixels = np.array([[[255, 0, 0, 255], [255, 0, 0, 128], [0, 90, 0, 0]]], np.uint8)
    if name == "a.gif":
        pixels[0, 1, 3] = 255  # a GIF's pixel is there or not
    Image.fromarray(pixels).save(tmp_path / name, **({"lossless": True} if "webp" in name else {}))
    half = 0 if name == "a.gif" else 127
    found = read_image(tmp_path / name)
    assert (
        np.abs(found[0].astype(int) - [[255, 0, 0], [255, half, half], [255, 255, 255]]).max() <= 1
    )


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.bmp", "a.gif"])
def test_a_picture_of_one_pixel_is_a_picture(tmp_path, name):
    Image.fromarray(np.full((1, 1, 3), 200, np.uint8)).save(tmp_path / name)
    found = read_image(tmp_path / name)
    assert found.shape == (1, 1, 3)
    assert np.abs(found.astype(int) - 200).max() <= 2
