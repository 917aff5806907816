"""Pictures of parts: every way to write black and white, and files that are not what they claim."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from isolux.core.errors import FileError
from isolux.tasks.face_parsing import part_images as _part_pictures
from isolux.tasks.face_parsing.part_images import read_label_image, read_part_image

WHITE = np.array([[0, 255, 255], [0, 0, 255]], np.uint8)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "I;16"])
def test_white_is_the_part_however_it_is_written(tmp_path, mode):
    image = Image.fromarray(WHITE)
    image = image.convert("I").convert(mode) if mode.startswith("I") else image.convert(mode)
    image.save(tmp_path / "a.png")
    assert (read_part_image(tmp_path / "a.png", (2, 3), None) != 0).tolist() == (
        WHITE != 0
    ).tolist()


def test_any_colour_is_the_part_and_what_is_transparent_is_not(tmp_path):
    blue = np.zeros((1, 3, 4), np.uint8)
    blue[0, :, 2], blue[0, :, 3] = (1, 1, 0), (255, 0, 255)
    Image.fromarray(blue).save(tmp_path / "a.png")
    assert read_part_image(tmp_path / "a.png", None, None).tolist() == [[1, 0, 0]]


def test_numbers_are_those_of_the_pixels(tmp_path):
    numbers = np.array([[0, 1, 18]], np.uint8)
    grey = Image.fromarray(numbers)
    palette = grey.copy()
    palette.putpalette([9, 8, 7] * 256)  # whatever its colours are
    for name, image in (("grey", grey), ("palette", palette), ("rgb", grey.convert("RGB")),
                        ("deep", Image.fromarray(numbers.astype(np.uint16)))):  # fmt: skip
        image.save(tmp_path / f"{name}.png")
        assert read_label_image(tmp_path / f"{name}.png", (1, 3), None).tolist() == [[0, 1, 18]]


@pytest.mark.parametrize(
    ("pixels", "found"),
    [
        (np.array([[[1, 2, 3]]], np.uint8), "a picture in colour"),
        (np.array([[300]], np.uint16), "the number 300"),
    ],
)
def test_pictures_that_hold_no_labels(tmp_path, pixels, found):
    Image.fromarray(pixels).save(tmp_path / "a.png")
    with pytest.raises(FileError, match="does not hold one number for each pixel") as caught:
        read_label_image(tmp_path / "a.png", None, "a.png")
    assert found in str(caught.value)


@pytest.mark.parametrize("kept", [0, 7, 20, 30, 45, 60])
def test_pictures_that_are_cut_off(tmp_path, kept):
    noise = np.random.default_rng(0).integers(0, 256, (30, 30), np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(data[:kept])
    with pytest.raises(FileError, match="cut off") as caught:
        read_part_image(tmp_path / "a.png", (30, 30), "a.png, row 3")
    assert "a.png, row 3" in str(caught.value)


def test_a_picture_whose_pixels_are_cut_off(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (300, 300), np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(data[: len(data) // 2])
    with pytest.raises(FileError, match="a picture is damaged or cut off"):
        read_part_image(tmp_path / "a.png", (300, 300), None)


def test_what_is_no_picture(tmp_path):
    (tmp_path / "a.png").write_bytes(b"GIF89a" + bytes(100))
    with pytest.raises(FileError, match="not a picture") as caught:
        read_part_image(tmp_path / "a.png", None, None)
    assert "expected: a PNG file" in str(caught.value)
    with pytest.raises(FileError, match="no such file"):
        read_part_image(tmp_path / "absent.png", None, None)
    with pytest.raises(FileError, match="cannot be read"):
        read_part_image(tmp_path, None, None)


def bomb(side):
    """Make a PNG of ``side``² black pixels: a thousandth of that in bytes."""

    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(bytes(1 << 20), 9))
    return b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")


def test_a_bomb_is_not_unpacked(tmp_path):
    """Its header says 30,000², 900 MB: refused by the size asked for, or by the bound."""
    (tmp_path / "a.png").write_bytes(bomb(30_000))
    with pytest.raises(FileError, match="another size than its image") as caught:
        read_part_image(tmp_path / "a.png", (512, 512), None)
    assert "found: 30000 × 30000" in str(caught.value)
    with pytest.raises(FileError, match="too large to be unpacked") as caught:
        read_label_image(tmp_path / "a.png", None, None)
    assert "at most 67,108,864 pixels" in str(caught.value)


def test_a_file_beyond_all_measure(tmp_path, monkeypatch):
    monkeypatch.setattr(_part_pictures, "_MAX_FILE_BYTES", 50)
    Image.fromarray(WHITE).save(tmp_path / "a.png")
    with pytest.raises(FileError, match="a picture is too large"):
        read_part_image(tmp_path / "a.png", None, None)
