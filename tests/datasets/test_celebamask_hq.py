from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from isolux.core.errors import FileError, IsoluxError, SpecError, TableError, UnknownNameError
from isolux.datasets.celebamask_hq import INFO, MASKED_PARTS, load
from tests.cli._run import isolux

# The published form: faces are numbered from 0, files of masks have five digits.
ATTRIBUTES = "3\nSmiling Male\n0.jpg  -1 1\n1.jpg  1 -1\n2000.jpg  1 1\n"
MAPPING = (
    "idx             orig_idx        orig_file\n"
    "0               11              000012.jpg\n"
    "1               9               000010.jpg\n"
    "2000            10              000011.jpg\n"
)
POSE = "3\nYaw Raw Pitch\n0.jpg 0.25 -4.5 1e1\n1.jpg 0 0 0\n2000.jpg 1 2 3\n"
MASKS = ("0/00000_l_eye.png", "0/00000_ear_r.png", "0/00000_r_ear.png", "1/02000_hair.png")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "CelebAMask-HQ-attribute-anno.txt").write_text(ATTRIBUTES)
    (tmp_path / "CelebA-HQ-to-CelebA-mapping.txt").write_text(MAPPING)
    (tmp_path / "CelebAMask-HQ-pose-anno.txt").write_text(POSE)
    for name in MASKS:
        mask = tmp_path / "CelebAMask-HQ-mask-anno" / name
        mask.parent.mkdir(parents=True, exist_ok=True)
        mask.write_bytes(b"not a picture: nothing opens it")
    return tmp_path


@pytest.fixture
def celeba(tmp_path):
    lists = tmp_path / "celeba"
    lists.mkdir()
    rows = [(9, 5, 2), (10, 7, 0), (11, 8, 1), (12, 7, 2)]
    text = "".join(f"{file:06}.jpg {who}\n" for file, who, _ in rows)
    (lists / "identity_CelebA.txt").write_text(text)
    text = "".join(f"{file:06}.jpg {part}\n" for file, _, part in rows)
    (lists / "list_eval_partition.txt").write_text(text)
    return lists


def values(dataset, attribute):
    return dataset.values_of(attribute)["value"].to_list()


def test_faces_are_known_as_their_masks_are_named_or_their_pictures(folder):
    assert load(folder).instances["instance_id"].to_list() == ["00000", "00001", "02000"]
    dataset = load(folder, ids="picture")
    assert dataset.instances["instance_id"].to_list() == ["0.jpg", "1.jpg", "2000.jpg"]
    assert dataset.images["uri"][2] == "CelebA-HQ-img/2000.jpg"
    assert values(dataset, "Smiling") == ["no", "yes", "yes"]
    assert values(dataset, "Male") == ["yes", "no", "yes"]


def test_masks_are_listed_by_part_and_not_opened(folder):
    at = "CelebAMask-HQ-mask-anno"
    assert load(folder).instances["part_mask_files"].to_list() == [
        [  # in the order of PARTS; r_ear is an ear, ear_r an earring
            {"part": "l_eye", "uri": f"{at}/0/00000_l_eye.png"},
            {"part": "r_ear", "uri": f"{at}/0/00000_r_ear.png"},
            {"part": "ear_r", "uri": f"{at}/0/00000_ear_r.png"},
        ],
        None,
        [{"part": "hair", "uri": f"{at}/1/02000_hair.png"}],
    ]
    assert len(MASKED_PARTS) == 18


def test_faces_without_masks_and_strange_files_are_counted(folder):
    (folder / "CelebAMask-HQ-mask-anno" / "0" / "00001_beard.png").touch()
    notes = load(folder).notes
    assert "1 of 3 face(s) have no mask." in notes
    assert "1 file(s) below CelebAMask-HQ-mask-anno are not masks and are passed over." in notes


def test_a_part_with_two_masks_is_refused(folder):
    (folder / "CelebAMask-HQ-mask-anno" / "3").mkdir()
    (folder / "CelebAMask-HQ-mask-anno" / "3" / "02000_hair.png").touch()
    with pytest.raises(TableError, match=r"(?s)part of a face has two masks.*02000_hair.png"):
        load(folder)


def test_the_mapping_joins_by_file_since_its_index_counts_from_0(folder, celeba):
    # Face 0 is CelebA's file 000012, whose orig_idx is 11: by number it would be someone else.
    dataset = load(folder)
    assert dataset.images["celeba_file"].to_list() == ["000012.jpg", "000010.jpg", "000011.jpg"]
    assert dataset.instances["subject_id"].to_list() == ["7", "7", "8"]
    assert dataset.instances["cluster_id"].to_list() == ["7", "7", "8"]
    assert values(dataset, "split") == ["test", "train", "val"]
    assert load(folder, split="test").instances["instance_id"].to_list() == ["00000"]


def test_celebas_lists_are_found_below_the_folder_too(folder, celeba):
    assert load(folder).instances["subject_id"].to_list() == ["7", "7", "8"]


def test_without_celebas_lists_it_is_said(folder):
    dataset = load(folder)
    assert dataset.instances["cluster_id"].null_count() == 3
    assert any("identity_CelebA.txt is not at hand" in note for note in dataset.notes)
    with pytest.raises(FileError, match=r"(?s)no face is known to be in the part 'val'.*celeba"):
        load(folder, split="val")
    (folder / "CelebA-HQ-to-CelebA-mapping.txt").unlink()
    assert any("mapping.txt is not at hand" in note for note in load(folder).notes)


def test_faces_that_celebas_lists_lack_are_counted(folder, celeba):
    (celeba / "identity_CelebA.txt").write_text("000012.jpg 7\n")
    dataset = load(folder)
    assert "2 of 3 face(s) have no identity." in dataset.notes
    assert dataset.instances["subject_id"].to_list() == ["7", None, None]


def test_a_mapping_without_its_columns_is_refused(folder):
    file = folder / "CelebA-HQ-to-CelebA-mapping.txt"
    file.write_text(MAPPING.replace("orig_file", "file"))
    with pytest.raises(UnknownNameError, match="no column named 'orig_file'"):
        load(folder)


def test_poses_are_numbers(folder):
    dataset = load(folder)
    assert dataset.values_of("Yaw")["number"].to_list() == [0.25, 0.0, 1.0]
    assert dataset.values_of("Pitch")["number"].to_list() == [10.0, 0.0, 3.0]
    (folder / "CelebAMask-HQ-pose-anno.txt").write_text(POSE.replace("-4.5", "left"))
    with pytest.raises(TableError, match=r"(?s)not numbers.*'left'.*row 1, column 'Raw'"):
        load(folder)
    (folder / "CelebAMask-HQ-pose-anno.txt").write_text(POSE.replace("Raw", "Male"))
    with pytest.raises(TableError, match=r"(?s)angle is named like an attribute.*Male"):
        load(folder)


def test_a_picture_that_is_no_number_is_refused(folder):
    file = folder / "CelebAMask-HQ-attribute-anno.txt"
    file.write_text(ATTRIBUTES.replace("1.jpg", "one.jpg"))
    with pytest.raises(TableError, match=r"(?s)not named by its number.*'one.jpg'.*row 2"):
        load(folder)


def test_settings_that_there_are_not_are_refused(folder):
    with pytest.raises(SpecError, match=r"(?s)ids cannot be set.*mask or picture.*'file'"):
        load(folder, ids="file")
    with pytest.raises(SpecError, match=r"(?s)split cannot be set.*'dev'"):
        load(folder, split="dev")
    with pytest.raises(FileError, match=r"(?s)no such folder of label pictures.*'\.\.'"):
        load(folder, labels="..")


def test_two_label_pictures_of_a_face_are_refused(folder):
    (folder / "labels").mkdir()
    for name in ("1.png", "00001.png", "notes.txt"):
        (folder / "labels" / name).touch()
    with pytest.raises(TableError, match=r"(?s)a face has two label pictures.*labels/00001.png"):
        load(folder, labels="labels")
    (folder / "labels" / "1.png").unlink()
    uris = load(folder, labels="labels").instances["part_mask_uri"].to_list()
    assert uris == [None, "labels/00001.png", None]


def test_whose_judgement_it_is():
    assert INFO.label_source == "perceived"
    assert "research" in INFO.licence


def test_label_pictures_are_compared_by_face_parsing(folder, monkeypatch, capsys):
    # Skin fills the upper half of each face; the model draws the upper half of the second and
    # third, and nothing but a quarter of the first: F1 = 2 · ¼ / (½ + ¼) = 2/3.
    (folder / "labels").mkdir()
    drawn = folder / "net"
    drawn.mkdir()
    for number, rows in ((0, 2), (1, 4), (2000, 4)):
        truth, found = np.zeros((8, 8), np.uint8), np.zeros((8, 8), np.uint8)
        truth[:4], found[:rows] = 1, 255
        Image.fromarray(truth).save(folder / "labels" / f"{number}.png")
        Image.fromarray(found).save(drawn / f"{number:05}_skin.png")
    ran = isolux(
        monkeypatch, capsys, "audit", f"celebamask_hq:{folder}", "--task", "face_parsing",
        "--by", "Male", "--predictions", drawn, "--format", "part_masks",
        "--data-option", "labels=labels", "--data-option", "attributes=Male",
        "--replicates", 100, "--min-units", 1, "--out", folder / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    from isolux.io.run_directory import load_run

    scores = load_run(folder / "run").scores.sort("unit_id")["value"].to_list()
    assert scores == pytest.approx([2 / 3, 1, 1])


@given(text=st.text(st.sampled_from('0123 \n\t.-jpg"/é'), max_size=80))
def test_any_lists_give_a_dataset_or_our_own_error(tmp_path_factory, text):
    root = tmp_path_factory.mktemp("fuzz")
    (root / "CelebAMask-HQ-attribute-anno.txt").write_text(ATTRIBUTES)
    (root / "CelebA-HQ-to-CelebA-mapping.txt").write_bytes(text.encode())
    (root / "CelebAMask-HQ-pose-anno.txt").write_bytes(text.encode())
    with suppress(IsoluxError):
        assert load(root).instances.height == 3
