"""Part masks: files are listed, never opened, and their names say image and part."""

from __future__ import annotations

import tarfile

import pytest

from isolux.core.errors import FileError, SpecError, TableError
from isolux.core.tables import PART_MASK_FILES, check
from isolux.predictions import part_masks
from isolux.tasks.face_parsing.part_names import LABELS


def made(tmp_path, *names):
    for name in names:
        (tmp_path / "net" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "net" / name).touch()
    return tmp_path / "net"


def test_parts_are_listed_by_image_in_the_order_of_the_labels(tmp_path):
    root = made(tmp_path, "1/02000_hat.png", "0/00001_hair.png", "0/00001_l_brow.PNG", "notes.txt")
    found = check(part_masks.read(root), PART_MASK_FILES)
    assert found.drop("uri").rows() == [
        ("net", "00001", "l_brow"),
        ("net", "00001", "hair"),
        ("net", "02000", "hat"),
    ]
    assert found["uri"][2] == str(root / "1" / "02000_hat.png")


def test_the_longest_name_of_a_part_is_taken(tmp_path):
    root = made(tmp_path, "a_b_face_skin.png", "a_b_skin.png")
    found = part_masks.read(root, parts=("skin", "face_skin"))
    assert found.select("image_id", "part").rows() == [("a_b", "skin"), ("a_b", "face_skin")]


def test_names_that_say_no_part(tmp_path):
    with pytest.raises(FileError, match=r"2 file\(s\) have names that end in no part"):
        part_masks.read(made(tmp_path, "00001_skin.png", "00001.png", "_skin.png"))


def test_a_part_that_occurs_twice(tmp_path):
    with pytest.raises(TableError, match="two rows have the same model"):
        part_masks.read(made(tmp_path, "0/00001_skin.png", "1/00001_skin.png"))


def test_folders_that_cannot_be_used(tmp_path):
    with pytest.raises(FileError, match="there is no such folder"):
        part_masks.read(tmp_path / "absent")
    with pytest.raises(FileError, match="part masks are a folder of files"):
        part_masks.read(made(tmp_path, "a_skin.png") / "a_skin.png")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="the folder is empty of masks"):
        part_masks.read(tmp_path / "empty")
    with pytest.raises(SpecError, match="the names of parts cannot be used"):
        part_masks.read(tmp_path, parts=("skin", "skin"))


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    root = made(tmp_path, "a_skin.png")
    (tmp_path / "out.png").touch()
    (root / "b_skin.png").symlink_to(tmp_path / "out.png")
    with pytest.raises(FileError, match="a path leads out of its folder"):
        part_masks.read(root)


def test_a_folder_for_each_image_with_a_file_for_each_part(tmp_path):
    """FHIBE's layout; ``l_eye`` is a part's whole name there, not the eye of an image ``l``."""
    root = made(tmp_path, "f1_s1/l_eye.png", "f1_s1/combined.png", "f1_s1/background.png",
                "f2_s1/hair.PNG", "f2_s1_hat.png")  # fmt: skip
    assert part_masks.read(root).select("image_id", "part").rows() == [
        ("f1_s1", "l_eye"),
        ("f1_s1", "background"),
        ("f1_s1", "combined"),
        ("f2_s1", "hair"),
        ("f2_s1", "hat"),
    ]


def test_a_part_straight_in_the_folder_names_no_image(tmp_path):
    with pytest.raises(FileError, match="names that end in no part") as caught:
        part_masks.read(made(tmp_path, "skin.png"))
    assert "'skin.png'" in str(caught.value)


def test_the_order_of_labels_is_celebamask_hqs():
    """Its own list; FHIBE's label pictures follow it too (skin 1, nose 2, glasses 3, …, cloth 18).

    A widely used parser orders brows before the nose, and so would move twelve of its numbers.
    """
    assert part_masks.FACE_PARTS[:3] == ("skin", "nose", "eye_g")
    assert part_masks.FACE_PARTS[12:] == ("hair", "hat", "ear_r", "neck_l", "neck", "cloth")
    assert LABELS[1:] == part_masks.FACE_PARTS


def test_an_archive_is_to_be_unpacked(tmp_path):
    with tarfile.open(tmp_path / "net.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("../1_skin.png"))
    with pytest.raises(FileError, match="part masks are a folder of files") as caught:
        part_masks.read(tmp_path / "net.tar")
    assert "unpack it first" in str(caught.value)
