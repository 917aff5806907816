"""Checks of files: each with the smallest picture that shows the problem, read from disk."""

from __future__ import annotations

import os

import imagehash
import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.checks import duplicates, image_sizes, images, metadata, missing_files, paths
from isolux.checks._image_files import NoImages, locate_images
from isolux.checks._inspection import inspect_images
from isolux.checks.duplicates.hashes import find_duplicate_pairs, hash_thumbnails
from isolux.core.errors import SpecError
from tests.checks._dataset import dataset, picture, with_files
from tests.laws import _photographs as made


def told(problems):
    return problems.select("severity", "problem", "unit_id").rows()


def seen(data, root):
    return inspect_images(locate_images(data, root))


def test_missing_and_unnamed_files(tmp_path):
    (tmp_path / "in" / "folder.jpg").mkdir(parents=True)
    picture(1).save(tmp_path / "in" / "a.jpg")
    picture(2).save(tmp_path / "in" / "left.PNG")
    picture(3).save(tmp_path / "elsewhere.jpg")  # in a folder of no picture
    (tmp_path / "in" / "notes.txt").touch()
    data = with_files(tmp_path, ["in/a.jpg", "in/b.jpg", "in/folder.jpg"])
    found = missing_files.check(data, pictures=locate_images(data, tmp_path))
    assert told(found) == [
        ("error", "the file is missing", "i1"),
        ("error", "the file is missing", "i2"),
        ("warning", "no image names this picture", "in/left.PNG"),
    ]
    assert found["found"].to_list() == ["nothing", "a folder", None]


def test_no_file_at_all_is_one_problem(tmp_path):
    data = with_files(tmp_path, ["a.jpg", "b.jpg"])
    found = missing_files.check(data, pictures=locate_images(data, tmp_path))
    assert told(found) == [("error", "none of the pictures is there", "made up")]
    assert "--no-images" in found["hint"][0]


def test_addresses_are_not_looked_for(tmp_path):
    with pytest.raises(NoImages, match="addresses, which are not opened"):
        locate_images(with_files(tmp_path, ["http://x.org/a.jpg"]), tmp_path)


def test_paths_that_lead_out_are_errors_and_not_opened(tmp_path):
    root, outside = tmp_path / "set", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    picture(1).save(outside / "secret.png")
    (root / "link.png").symlink_to(outside / "secret.png")
    (root / "folder").symlink_to(outside)
    (root / "loop.png").symlink_to(root / "loop.png")
    picture(2).save(root / "real.png")
    (root / "inner.png").symlink_to(root / "real.png")
    names = ["../outside/secret.png", str(outside / "secret.png"), "link.png",
             "folder/secret.png", "C:\\secret.png", "a\0.png", "loop.png", "inner.png",
             "x/../real.png"]  # fmt: skip
    data = with_files(root, names)
    found = seen(data, root)
    expected = ["outside", "absolute", "link outside", "link outside", "absolute", "outside",
                "missing", "file", "file"]  # fmt: skip
    assert found.rows["place"].to_list() == expected
    assert found.rows["format"].is_not_null().to_list() == [False] * 7 + [True] * 2
    problems = paths.check(data, pictures=found)
    assert set(problems["severity"]) == {"error"}
    assert problems.height == 6


def test_a_folder_beside_the_annotation_is_found(tmp_path):
    (tmp_path / "val2017").mkdir()
    (tmp_path / "annotations").mkdir()
    picture(1).save(tmp_path / "val2017" / "a.jpg")
    data = with_files(tmp_path, ["a.jpg"])
    data.inputs[str(tmp_path / "annotations" / "x.json")] = "0"
    assert locate_images(data, None).root == (tmp_path / "val2017").resolve()


def broken(folder):
    """One file of each kind: the name, and what is said of it."""
    picture(1, 320, 240).save(folder / "fine.jpg")
    data = (folder / "fine.jpg").read_bytes()
    (folder / "cut.jpg").write_bytes(data[: len(data) // 2])
    damaged = bytearray(data)
    damaged[-40:-38] = b"\xff\xd0"  # a marker where there should be none
    (folder / "damaged.jpg").write_bytes(bytes(damaged))
    picture(2).save(folder / "cut.png")
    data = (folder / "cut.png").read_bytes()
    (folder / "cut.png").write_bytes(data[: len(data) // 2])
    (folder / "empty.jpg").touch()
    (folder / "text.jpg").write_text("no picture")
    picture(3).save(folder / "really.jpg", "PNG")
    frames = [picture(4), picture(5)]
    frames[0].save(folder / "moving.webp", save_all=True, append_images=frames[1:])
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    Image.new("1", (9_500, 9_500)).save(folder / "bomb.png")
    os.mkfifo(folder / "pipe.jpg")
    return {
        "fine.jpg": [],
        "cut.jpg": ["the picture is cut off"],
        "damaged.jpg": ["the picture is damaged, though it can be opened"],
        "cut.png": ["the picture is cut off"],
        "empty.jpg": ["the picture cannot be read"],
        "text.jpg": ["the picture cannot be read"],
        "really.jpg": ["the extension names another format"],
        "moving.webp": ["the picture holds several frames"],
        "moving.gif": ["the picture holds several frames"],
        "bomb.png": ["the picture unpacks to more than a photograph has"],
        "pipe.jpg": [],  # no file at all, which the check of files says
    }  # fmt: skip


def test_pictures_that_cannot_be_read_as_they_should(tmp_path):
    expected = broken(tmp_path)
    data = with_files(tmp_path, list(expected))
    found = images.check(data, pictures=seen(data, tmp_path))
    for name, problems in expected.items():
        assert found.filter(file=name)["problem"].to_list() == problems, name


def test_sizes_are_those_of_the_turned_picture(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6
    picture(1, 64, 48).save(tmp_path / "a.jpg", exif=turned)
    picture(1, 64, 48).save(tmp_path / "b.jpg")
    names = ["a.jpg", "a.jpg", "a.jpg", "b.jpg", "b.jpg"]
    data = with_files(tmp_path, names, width=[48, 64, 32, 64, None], height=[64, 48, 24, 48, 48])
    found = image_sizes.check(data, pictures=seen(data, tmp_path))
    assert told(found) == [
        ("error", "the picture has another size than its annotation", "i2"),
        ("warning", "the annotated size is that before EXIF turns the picture", "i1"),
    ]
    assert found["expected"].to_list() == ["32 × 24 pixels", "64 × 48 pixels"]


def with_exif(folder):
    plain, gps, serial, owner, blank = (Image.Exif() for _ in range(5))
    gps[0x8825] = {1: "N", 2: (52.0, 31.0, 12.0), 3: "E", 4: (13.0, 24.0, 36.0)}
    serial[0x8769] = {0xA431: "SN-0042-SECRET"}
    owner[0x8769] = {0xA430: "Ada SECRET"}
    owner[0x013B] = "Ada SECRET"
    blank[0x8769] = {0xA430: "  "}
    blank[0x8825] = {0: b"\2\3\0\0"}  # a version alone says nothing of where
    for name, exif in (("plain", plain), ("gps", gps), ("serial", serial), ("owner", owner),
                       ("blank", blank)):  # fmt: skip
        picture(1).save(folder / f"{name}.jpg", exif=exif)
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><a exif:GPSLatitude="52,31N"/></x:xmpmeta>'
    picture(1).save(folder / "xmp.jpg", xmp=xmp)
    return ["plain.jpg", "gps.jpg", "serial.jpg", "owner.jpg", "blank.jpg", "xmp.jpg"]


def test_what_exif_gives_away_is_said_and_not_shown(tmp_path):
    data = with_files(tmp_path, with_exif(tmp_path))
    found = metadata.check(data, pictures=seen(data, tmp_path))
    assert sorted(found.select("file", "severity", "problem").rows()) == [
        ("gps.jpg", "error", "EXIF tells where the picture was taken"),
        ("owner.jpg", "error", "EXIF names the camera's owner"),
        ("owner.jpg", "warning", "EXIF names an author"),
        ("serial.jpg", "error", "EXIF holds a camera's or lens's serial number"),
        ("xmp.jpg", "error", "EXIF tells where the picture was taken"),
    ]
    assert "SECRET" not in found.write_json()
    assert "52" not in found.write_json()


def test_the_hash_is_imagehashs():
    rng = np.random.default_rng(4)
    photos = [made.photograph(rng) for _ in range(12)]
    small = [p.convert("L").resize((32, 32), Image.Resampling.LANCZOS) for p in photos]
    ours = hash_thumbnails(np.stack([np.array(p) for p in small]))
    assert [f"{h:016x}" for h in ours.upright] == [str(imagehash.phash(p)) for p in photos]
    mirrored = [str(imagehash.phash(made.mirror(p))) for p in small]
    assert [f"{h:016x}" for h in ours.mirrored] == mirrored


def test_a_jpeg_read_small_hashes_as_read_whole(tmp_path):
    rng = np.random.default_rng(5)
    photos = [made.photograph(rng).resize((1280, 960)) for _ in range(6)]
    for k, photo in enumerate(photos):
        photo.save(tmp_path / f"{k}.jpg", quality=90)
    found = seen(with_files(tmp_path, [f"{k}.jpg" for k in range(6)]), tmp_path)
    whole = [int(str(imagehash.phash(Image.open(tmp_path / f"{k}.jpg"))), 16) for k in range(6)]
    ours = hash_thumbnails(found.thumbnails).upright
    assert max(int(a ^ np.uint64(b)).bit_count() for a, b in zip(ours, whole, strict=True)) <= 2


@pytest.fixture
def copies(tmp_path):
    """A photo, its copies, and another photo: files 0 to 4, and 5."""
    rng = np.random.default_rng(6)
    photo, other = made.photograph(rng), made.photograph(rng)
    shown = [photo, made.smaller(photo), made.recompressed(photo), made.cut(photo, rng),
             made.mirror(photo), other]  # fmt: skip
    for k, one in enumerate(shown):
        one.save(tmp_path / f"{k}.png")
    return tmp_path


def owned(folder, subjects, **more):
    n = len(subjects)
    return dataset(
        {"subject_id": subjects, **more},
        {"image_id": [f"i{k}" for k in range(n)], "uri": [f"{k}.png" for k in range(n)]},
    )


@pytest.mark.parametrize(
    ("subjects", "splits", "expected"),
    [
        (["s"] * 6, None, ("warning", "a subject's photo is there twice")),
        (["s", *"tuvw", "x"], None, ("error", "one photo is of different subjects")),
        ([None] * 6, None, ("warning", "a photo is there twice")),
        (["s"] * 6, ["a", *"bcde", "a"], ("error", "one photo is in different splits")),
    ],
)
def test_copies_are_found_and_weighed(copies, subjects, splits, expected):
    data = owned(copies, subjects, **({"split": splits} if splits else {}))
    found = duplicates.check(data, pictures=seen(data, copies))
    assert set(found.select("severity", "problem").rows()) == {expected}
    assert set(found["unit_id"]) == {"i1", "i2", "i3", "i4"}
    assert "mirrored" in found.filter(unit_id="i4")["found"][0]


def test_thresholds_of_duplicates_have_ranges(copies):
    data = owned(copies, ["s"] * 6)
    given = seen(data, copies)
    strict = duplicates.check(data, pictures=given, most_bits=0)
    assert "i3" not in set(strict["unit_id"]), "a cut copy has another hash"
    with pytest.raises(SpecError, match="out of its range"):
        duplicates.check(data, pictures=given, most_bits=65)


def test_pictures_that_show_nothing_are_copies_of_none():
    black = np.zeros((40, 32, 32), np.uint8)
    limits = {"most_bits": 18, "least_correlation": 0.95, "most_apart": 0.35}
    assert find_duplicate_pairs(black, **limits).is_empty()
    assert find_duplicate_pairs(black[:0], **limits).is_empty()


def test_many_copies_of_one_picture_make_few_rows():
    one = np.array(picture(1).convert("L").resize((32, 32)))
    found = find_duplicate_pairs(
        np.stack([one] * 300), most_bits=18, least_correlation=0.95, most_apart=0.35
    )
    assert found.group_by("second").len()["len"].max() == 8
    assert found["second"].n_unique() == 299


def test_the_kernel_is_what_it_says_in_plain_numpy():
    """Every pair whose hashes are near, laid over one another by the slow road: none is missed."""
    rng = np.random.default_rng(7)
    photos = [made.photograph(rng) for _ in range(15)]
    photos += [made.recompressed(p) for p in photos[:5]] + [made.mirror(p) for p in photos[5:10]]
    small = np.stack([np.array(p.convert("L").resize((32, 32))) for p in photos])
    hashes = hash_thumbnails(small)

    def alike(a, b):
        return np.corrcoef(a.ravel().astype(float), b.ravel().astype(float))[0, 1] > 0.99

    expected = {
        (i, j)
        for j in range(len(small))
        for i in range(j)
        if alike(small[i], small[j]) or alike(small[i][:, ::-1], small[j])
    }
    found = find_duplicate_pairs(small, most_bits=18, least_correlation=0.95, most_apart=0.35)
    assert set(found.select("first", "second").rows()) == expected
    for i, j, bits, mirrored in found.select("first", "second", "bits", "mirrored").rows():
        of = hashes.mirrored if mirrored else hashes.upright
        assert bits == int(of[i] ^ hashes.upright[j]).bit_count()
    assert found.schema["correlation"] == pl.Float64
