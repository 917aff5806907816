"""Pictures lose what they say beside the picture, and no pixel."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image, ImageCms, PngImagePlugin

from isolux.core.errors import FileError, SpecError
from isolux_curate.privacy.metadata import strip_image_metadata

SECRETS = (b"Ann Example", b"SERIAL-77", b"Lake Road 5", b"film behind the picture")


def photo() -> Image.Image:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 255, (40, 60, 3)).astype(np.uint8)
    return Image.fromarray(noise).resize((240, 160))


def exif() -> Image.Exif:
    tags = Image.Exif()
    tags[0x010F], tags[0x0110], tags[0x0112] = "Maker", "Model 7", 6
    tags[0x013B], tags[0xA431] = "Ann Example", "SERIAL-77"
    tags.get_ifd(0x8825)[1] = "N"
    tags.get_ifd(0x8825)[2] = (47.0, 22.0, 33.0)
    return tags


def jpeg(**settings: object) -> bytes:
    file = io.BytesIO()
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    photo().save(
        file, "JPEG", exif=exif(), comment=b"Lake Road 5", icc_profile=profile,
        xmp=b"<x>Ann Example</x>", **settings,
    )  # fmt: skip
    return file.getvalue() + b"ftypmp42 film behind the picture"


def pixels(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture.convert("RGB"))


@pytest.mark.parametrize(
    "settings", [{}, {"progressive": True}, {"restart_marker_rows": 1}, {"subsampling": 0}]
)
def test_a_jpeg_keeps_its_pixels_its_colours_and_how_it_is_turned(settings):
    content = jpeg(**settings)
    clean = strip_image_metadata(content)
    assert all(secret in content for secret in SECRETS)
    assert not any(secret in clean for secret in SECRETS)
    np.testing.assert_array_equal(pixels(clean), pixels(content))
    with Image.open(io.BytesIO(clean)) as picture:
        assert dict(picture.getexif()) == {0x0112: 6}
        assert picture.info["icc_profile"]
        assert "comment" not in picture.info
    assert strip_image_metadata(clean) == clean


def of_ann(version: int = 4) -> bytes:
    """Give a profile of a screen that says whose it is, in each place that can."""
    whole = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    (count,) = struct.unpack_from(">I", whole, 128)
    entries = [struct.unpack_from(">4sII", whole, 132 + 12 * k) for k in range(count)]
    tags = {name: whole[at : at + size] for name, at, size in entries}
    tags |= {b"mmod": b"SERIAL-77 of Ann Example", b"desc": tags[b"desc"].replace(
        "sRGB".encode("utf-16-be"), "Ann ".encode("utf-16-be"))}  # fmt: skip
    at, table, body = 132 + 12 * len(tags), b"", b""
    for name, held in tags.items():
        table += struct.pack(">4sII", name, at + len(body), len(held))
        body += held + bytes(-len(held) % 4)
    head = bytearray(whole[:128])
    head[8], head[48:56], head[84:100] = version, b"SERIAL-7", b"Ann Example     "
    made = bytes(head) + struct.pack(">I", len(tags)) + table + body
    return struct.pack(">I", len(made)) + made[4:]


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_profile_keeps_its_colours_and_not_whose_screen_it_was(kind, version):
    file, profile = io.BytesIO(), of_ann(version)
    photo().save(file, kind, icc_profile=profile)
    clean = strip_image_metadata(file.getvalue())
    with Image.open(io.BytesIO(clean)) as picture:
        kept = picture.info["icc_profile"]
    for word in (b"Ann", b"SERIAL", "Ann".encode("utf-16-be")):
        assert word in profile
        assert word not in kept
    to = ImageCms.createProfile("LAB")
    old, new = (
        np.asarray(ImageCms.profileToProfile(photo(), io.BytesIO(one), to, outputMode="LAB"))
        for one in (profile, kept)
    )
    np.testing.assert_array_equal(old, new)
    assert strip_image_metadata(clean) == clean


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_what_only_calls_itself_a_profile_goes(kind):
    file = io.BytesIO()
    photo().save(file, kind, icc_profile=b"Ann Example" * 20)
    clean = strip_image_metadata(file.getvalue())
    with Image.open(io.BytesIO(clean)) as picture:
        assert "icc_profile" not in picture.info
    np.testing.assert_array_equal(pixels(clean), pixels(file.getvalue()))


def test_previews_in_a_jpegs_first_parts_go():
    whole = jpeg()
    more = b"\xff\xe0\x00\x10JFXX\x00\x10Ann Exam" + b"\xff\xee\x00\x0eAnn Example\0"
    first = b"\xff\xe0\x00\x13JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x01\x01Ann"
    clean = strip_image_metadata(whole[:2] + first + more + whole[20:])
    assert clean == strip_image_metadata(whole)
    assert b"Ann" not in clean


def test_tags_stay_that_are_named_and_no_others():
    with Image.open(io.BytesIO(strip_image_metadata(jpeg(), ["Make"]))) as picture:
        assert dict(picture.getexif()) == {0x010F: "Maker", 0x0112: 6}
    with pytest.raises(SpecError, match="Artist"):
        strip_image_metadata(jpeg(), ["Artist"])


def test_a_second_picture_in_the_file_goes_too():
    """Phones put a preview or a film behind the picture (MPF); its index stands in APP2."""
    first = jpeg()
    index = b"\xff\xe2" + (12).to_bytes(2, "big") + b"MPF\x00" + b"preview"[:6]
    clean = strip_image_metadata(first[:2] + index + first[2:] + first)
    assert b"MPF" not in clean
    assert clean == strip_image_metadata(first)


def test_a_png_and_a_webp():
    words = PngImagePlugin.PngInfo()
    words.add_text("Author", "Ann Example")
    words.add_itxt("XML:com.adobe.xmp", "Lake Road 5")
    for kind, more in (
        ("PNG", {"pnginfo": words}), ("WEBP", {"lossless": True, "xmp": b"Lake Road 5"}),
        ("WEBP", {"quality": 80}),
    ):  # fmt: skip
        file = io.BytesIO()
        photo().save(file, kind, exif=exif(), **more)
        content = file.getvalue()
        clean = strip_image_metadata(content)
        assert b"Ann Example" in content
        assert not any(secret in clean for secret in SECRETS)
        np.testing.assert_array_equal(pixels(clean), pixels(content))
        with Image.open(io.BytesIO(clean)) as picture:
            assert set(picture.getexif()) == {0x0112}  # how it is turned


@pytest.mark.parametrize("kind", ["TIFF", "GIF", "BMP"])
def test_formats_whose_metadata_is_not_known_are_refused(kind):
    file = io.BytesIO()
    photo().save(file, kind)
    with pytest.raises(FileError, match="not known"):
        strip_image_metadata(file.getvalue(), source="a.tif")


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.99])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_files_that_are_cut_off_are_named(kind, share):
    file = io.BytesIO()
    photo().save(file, kind)
    content = file.getvalue()
    with pytest.raises(FileError, match=r"a\.jpg"):
        strip_image_metadata(content[: max(13, int(share * len(content)))], source="a.jpg")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_every_format_keeps_how_a_photo_is_turned_and_nothing_else_of_exif(kind):
    file, exif = io.BytesIO(), Image.Exif()
    exif[0x0112], exif[0x013B] = 6, "Ann Example"
    Image.new("RGB", (21, 10)).save(file, kind, exif=exif)
    assert b"Ann Example" in file.getvalue()
    clean = strip_image_metadata(file.getvalue())
    with Image.open(io.BytesIO(clean)) as opened:
        opened.load()
        assert dict(opened.getexif()) == {0x0112: 6}
    assert b"Ann" not in clean
    file = io.BytesIO()
    Image.new("RGB", (21, 10)).save(file, kind)
    with Image.open(io.BytesIO(strip_image_metadata(file.getvalue()))) as opened:
        assert not opened.getexif()
