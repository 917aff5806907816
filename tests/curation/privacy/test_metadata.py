"""Pictures lose what they say beside the picture, and no pixel."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageCms, PngImagePlugin

from isolux.curation.privacy.metadata import stripped
from isolux.vocabulary.errors import FileError, SpecError

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
    clean = stripped(content)
    assert all(secret in content for secret in SECRETS)
    assert not any(secret in clean for secret in SECRETS)
    np.testing.assert_array_equal(pixels(clean), pixels(content))
    with Image.open(io.BytesIO(clean)) as picture:
        assert dict(picture.getexif()) == {0x0112: 6}
        assert picture.info["icc_profile"]
        assert "comment" not in picture.info
    assert stripped(clean) == clean


def test_tags_stay_that_are_named_and_no_others():
    with Image.open(io.BytesIO(stripped(jpeg(), ["Make"]))) as picture:
        assert dict(picture.getexif()) == {0x010F: "Maker", 0x0112: 6}
    with pytest.raises(SpecError, match="Artist"):
        stripped(jpeg(), ["Artist"])


def test_a_second_picture_in_the_file_goes_too():
    """Phones put a preview or a film behind the picture (MPF); its index stands in APP2."""
    first = jpeg()
    index = b"\xff\xe2" + (12).to_bytes(2, "big") + b"MPF\x00" + b"preview"[:6]
    clean = stripped(first[:2] + index + first[2:] + first)
    assert b"MPF" not in clean
    assert clean == stripped(first)


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
        clean = stripped(content)
        assert b"Ann Example" in content
        assert not any(secret in clean for secret in SECRETS)
        np.testing.assert_array_equal(pixels(clean), pixels(content))
        with Image.open(io.BytesIO(clean)) as picture:
            assert not picture.getexif()


@pytest.mark.parametrize("kind", ["TIFF", "GIF", "BMP"])
def test_formats_whose_metadata_is_not_known_are_refused(kind):
    file = io.BytesIO()
    photo().save(file, kind)
    with pytest.raises(FileError, match="not known"):
        stripped(file.getvalue(), where="a.tif")


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.99])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_files_that_are_cut_off_are_named(kind, share):
    file = io.BytesIO()
    photo().save(file, kind)
    content = file.getvalue()
    with pytest.raises(FileError, match=r"a\.jpg"):
        stripped(content[: max(13, int(share * len(content)))], where="a.jpg")
