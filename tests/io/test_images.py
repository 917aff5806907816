"""Pictures as files hold them: orientation, modes, bombs, damage."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from isolux.core.errors import FileError, IsoluxError
from isolux.io.images import (
    MAX_PIXELS,
    decode_image,
    read_downscaled,
    read_image,
    resize_image,
)


def encoded(pixels, form="PNG", **options):
    stream = io.BytesIO()
    Image.fromarray(np.asarray(pixels, dtype=np.uint8)).save(stream, form, **options)
    return stream.getvalue()


GRADIENT = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF"])
def test_lossless_formats_give_back_what_was_written(tmp_path, form):
    path = tmp_path / "picture"
    path.write_bytes(encoded(GRADIENT, form))
    assert read_image(path).tolist() == GRADIENT.tolist()


@pytest.mark.parametrize("form", ["JPEG", "WEBP"])
def test_lossy_formats_come_near(form):
    even = np.full((32, 32, 3), 120, dtype=np.uint8)
    assert np.abs(decode_image(encoded(even, form), "a").astype(int) - 120).max() <= 2


def test_grey_palette_and_transparency_become_rgb():
    grey = decode_image(encoded(GRADIENT[:, :, 0]), "grey")
    assert grey.tolist() == np.repeat(GRADIENT[:, :, :1], 3, axis=2).tolist()
    clear = np.dstack([GRADIENT, np.zeros((4, 5), dtype=np.uint8)])
    assert (decode_image(encoded(clear), "clear") == 255).all()  # on white
    stream = io.BytesIO()
    palette = Image.fromarray(GRADIENT).quantize(20)
    palette.save(stream, "PNG", transparency=bytes([0] * 20))
    assert decode_image(stream.getvalue(), "palette").shape == (4, 5, 3)


def test_orientation_is_that_of_the_exif_or_of_the_file():
    exif = Image.Exif()
    exif[0x0112] = 6  # the top of the picture is on the right of the file
    data = encoded(GRADIENT, exif=exif.tobytes())
    assert decode_image(data, "a").tolist() == np.rot90(GRADIENT, -1).tolist()
    assert decode_image(data, "a", exif_orientation=False).tolist() == GRADIENT.tolist()


NOISE = np.random.default_rng(4).integers(0, 256, (13, 21, 3), dtype=np.uint8)


def pillow(data):
    """What Pillow alone makes of a picture."""
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))


@pytest.mark.parametrize("orientation", range(10))
def test_a_jpeg_is_turned_as_pillow_turns_it(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(NOISE, "JPEG", exif=exif.tobytes())
    assert decode_image(data, "a").tolist() == pillow(data).tolist()
    assert decode_image(data, "a", exif_orientation=False).shape == NOISE.shape


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_has_the_pixels_that_pillow_gives_it(mode, subsampling, progressive):
    for size in ((1, 1), (13, 21), (64, 50), (1, 50_000)):
        pixels = np.random.default_rng(5).integers(0, 256, (*size, 3), dtype=np.uint8)
        stream = io.BytesIO()
        image = Image.fromarray(pixels).convert(mode)
        image.save(stream, "JPEG", subsampling=subsampling, progressive=progressive)
        data = stream.getvalue()
        assert np.array_equal(decode_image(data, "a"), pillow(data))


def test_a_damaged_jpeg_is_judged_by_pillow():
    # A stray byte in the scan: libjpeg warns, and Pillow takes the picture as it is.
    data = bytearray(encoded(np.repeat(np.repeat(NOISE, 9, 0), 9, 1), "JPEG"))
    data[len(data) // 2] ^= 0x55
    found = decode_image(bytes(data), "a")
    assert np.array_equal(found, pillow(bytes(data)))


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(
    ("longest", "factor", "shape"),
    # 101 wide: halved once to 51 it is still 50 or more, twice to 26 it is not.
    [(102, 1, (60, 101)), (50, 2, (30, 51)), (25, 4, (15, 26)), (12, 8, (8, 13)), (1, 8, (8, 13))],
)
def test_pictures_are_halved_while_they_stay_long_enough(tmp_path, form, longest, factor, shape):
    even = np.full((60, 101, 3), (90, 130, 70), dtype=np.uint8)
    (tmp_path / "a").write_bytes(encoded(even, form))
    found = read_downscaled(tmp_path / "a", longest)
    assert (found.factor, found.pixels.shape[:2]) == (factor, shape)
    assert np.abs(found.pixels.astype(int) - (90, 130, 70)).max() <= 4


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_halving_averages_squares_of_pixels(tmp_path, form):
    smooth = np.asarray(Image.fromarray(NOISE).resize((160, 120), Image.Resampling.BICUBIC))
    (tmp_path / "a").write_bytes(
        encoded(smooth, form, **({"quality": 98} if form == "JPEG" else {}))
    )
    found = read_downscaled(tmp_path / "a", 80).pixels.astype(float)
    squares = smooth.astype(float).reshape(60, 2, 80, 2, 3).mean(axis=(1, 3))
    assert np.abs(found - squares).mean() < (2.5 if form == "JPEG" else 0.51)
    exif = Image.Exif()
    exif[0x0112] = 8
    (tmp_path / "b").write_bytes(encoded(smooth, form, exif=exif.tobytes()))
    assert read_downscaled(tmp_path / "b", 80).pixels.shape == (80, 60, 3)
    lying = read_downscaled(tmp_path / "b", 80, exif_orientation=False)
    assert lying.pixels.shape == (60, 80, 3)


def test_a_bomb_that_is_a_jpeg_is_refused_before_it_is_unpacked(tmp_path):
    data = bytearray(encoded(NOISE, "JPEG"))
    at = data.index(b"\xff\xc0") + 5  # the frame's height and width
    data[at : at + 4] = struct.pack(">HH", 65_000, 65_000)
    (tmp_path / "bomb.jpg").write_bytes(data)
    for read in (read_image, lambda path: read_downscaled(path, 10)):
        with pytest.raises(
            FileError, match=r"like a decompression bomb(.|\n)*89,478,485(.|\n)*bomb\.jpg"
        ):
            read(tmp_path / "bomb.jpg")


def test_a_bomb_is_refused_by_its_header(tmp_path):
    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(99)))
    path = tmp_path / "bomb.png"
    path.write_bytes(bomb + chunk(b"IEND", b""))
    with pytest.raises(
        FileError, match=r"like a decompression bomb(.|\n)*89,478,485(.|\n)*bomb\.png"
    ):
        read_image(path)


def test_what_pillow_only_warns_of_is_refused_too(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)  # someone else's setting
    monkeypatch.setattr("isolux.io.images.MAX_PIXELS", 19)
    with pytest.raises(FileError, match=r"at most 19 pixels(.|\n)*5 × 4"):
        decode_image(encoded(GRADIENT), "a.png")
    assert MAX_PIXELS == 89_478_485


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_a_picture_that_is_cut_off_is_named(form):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    data = encoded(noise, form)
    with pytest.raises(FileError, match=r"not a picture, or it is damaged(.|\n)*where: half\.img"):
        decode_image(data[: len(data) // 2], "half.img")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"PNG, JPEG, WEBP, BMP, TIFF or GIF(.|\n)*cannot identify"):
        decode_image(b"%!PS-Adobe-3.0 EPSF-3.0\n", "a.eps")
    with pytest.raises(FileError, match="the file is empty"):
        decode_image(b"", "a.png")
    with pytest.raises(FileError, match=r"no such file(.|\n)*absent\.png"):
        read_image(tmp_path / "absent.png")
    with pytest.raises(FileError, match="the file cannot be read"):
        read_image(tmp_path)
    stream = io.BytesIO()
    Image.fromarray(np.full((3, 3), 40_000, dtype=np.uint16)).save(stream, "PNG")
    with pytest.raises(FileError, match=r"8 bits a channel(.|\n)*I;16"):
        decode_image(stream.getvalue(), "deep.png")


def test_resizing_averages_what_it_shrinks():
    # Two columns of 10 and two of 30, brought to two columns: the bilinear filter of twice the
    # size weighs neighbours 3 : 3 : 1 within the edge, so 10 · 6/7 + 30 · 1/7 = 12.86.
    rows = np.tile(np.array([10, 10, 30, 30], dtype=np.uint8), (4, 1))
    small = resize_image(np.dstack([rows] * 3), 4, 2)
    assert small[0, :, 0].tolist() == [13, 27]
    assert resize_image(small, 4, 2) is small


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")  # Pillow reads on beyond a damaged tag
@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["PNG", "JPEG", "TIFF", "BMP"]), st.integers(0, 10**6), st.binary(max_size=5)
)
def test_damage_gives_a_picture_or_an_error_of_ours(form, at, put):
    data = encoded(GRADIENT, form)
    at %= len(data)
    try:
        found = decode_image(data[:at] + put + data[at + len(put) :], "damaged")
    except IsoluxError as error:
        assert "damaged" in str(error)  # noqa: PT017
    else:
        assert found.ndim == 3
