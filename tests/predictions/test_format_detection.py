"""A format recognises its own; what none knows is refused with what was tried and why not."""

from __future__ import annotations

import gzip

import pytest

from isolux.core import registry
from isolux.core.errors import FileError
from isolux.predictions import FileProbe, detect_output_format, read_outputs, read_predictions
from isolux.predictions import widerface_text as wider

YOLO = "0 0.51 0.42 0.10 0.20 0.93\n2 0.30 0.31 0.12 0.22 0.55\n"
ASKED = "not widerface_text: its first line is 6 numbers, where the name of an image should be"


def test_a_text_of_no_format_is_refused_by_each(tmp_path):
    file, packed, folder = tmp_path / "7.txt", tmp_path / "7.txt.gz", tmp_path / "labels"
    folder.mkdir()
    text = "0 51 42 10 20 0.93\n"  # as YOLO's, in pixels
    file.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    (folder / "6.txt").write_text("")  # no people in this image
    (folder / "7.txt").write_text(text)
    for path in (file, packed, folder):
        for read in (detect_output_format, read_outputs, read_predictions):
            with pytest.raises(FileError, match="no format of predictions fits") as caught:
                read(path)
            assert ASKED in str(caught.value)
            assert "'0 51 42 10 20 0.93'" in str(caught.value)
            assert "--format" in str(caught.value)
    assert "not image_files: it holds no pictures" in str(caught.value)


def test_a_folder_of_a_json_file_asks_for_the_file(tmp_path):
    (tmp_path / "net.json").write_text("[]")
    with pytest.raises(FileError, match="name a file instead of its folder"):
        read_outputs(tmp_path)


def test_a_text_of_yolo_is_yolos_and_not_wider_faces(tmp_path):
    folder = tmp_path / "labels"
    folder.mkdir()
    (folder / "6.txt").write_text("")
    (folder / "7.txt").write_text(YOLO)
    assert detect_output_format(folder / "7.txt") == detect_output_format(folder) == "yolo_text"


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"0--Parade/a.jpg\n1\n4 5 20 30 0.9\n", None),
        (b"\r\n0_Parade_7\r\n0\r\n", None),
        (b"7\n1\n4 5 20 30 0.9\n", None),  # an image may be called so
        (b"a.jpg\n", "it ends after its first line, 'a.jpg'"),
        (b"a.jpg 4 5 20 30 0.9\nb.jpg 4 5 20 30 0.9\n", "its second line is 'b.jpg 4 5 20 30 0.9'"),
        (b"4 5 20 30\n", "its first line is 4 numbers"),
    ],
)
def test_wider_face_is_known_by_a_name_and_a_count(tmp_path, head, why):
    said = wider.mismatch(FileProbe(tmp_path / "net.txt", "file", head))
    assert said is None if why is None else said.startswith(why)


def test_a_suffix_that_no_format_has_lists_those_there_are(tmp_path):
    path = tmp_path / "net.xyz"
    path.write_text("a")
    with pytest.raises(FileError, match=r"(?s)'\.xyz'.*--format") as caught:
        detect_output_format(path)
    for said in (
        ".json, .json.gz (coco_results)",
        ".csv, .csv.gz (csv)",
        "a folder or tar archive",
    ):
        assert said in str(caught.value)


@pytest.mark.parametrize("name", ["net.json", "net.txt", "net.npy"])
def test_an_empty_file_and_a_missing_one_are_named(tmp_path, name):
    with pytest.raises(FileError, match="there is no such file"):
        detect_output_format(tmp_path / name)
    (tmp_path / name).write_text("\n")
    with pytest.raises(FileError, match="the file is empty"):
        detect_output_format(tmp_path / name)


def test_an_empty_folder_and_a_zip_archive_are_refused(tmp_path):
    (tmp_path / "net").mkdir()
    with pytest.raises(FileError, match="the folder is empty"):
        detect_output_format(tmp_path / "net")
    (tmp_path / "net.zip").write_bytes(b"PK")
    with pytest.raises(FileError, match=r"(?s)zip archives are not read.*unpack it"):
        detect_output_format(tmp_path / "net.zip")


def test_several_formats_that_fit_are_not_chosen_between(tmp_path, monkeypatch):
    monkeypatch.setattr(registry.load("predictions", "scalabel"), "mismatch", lambda seen: None)
    path = tmp_path / "net.json"
    path.write_text('[{"image_id": 7, "bbox": [1, 2, 3, 4], "score": 0.5}]')
    with pytest.raises(FileError, match=r"(?s)several formats.*coco_results, scalabel.*--format"):
        detect_output_format(path)


def test_a_column_of_answers_makes_a_table_labels(tmp_path):
    path = tmp_path / "net.csv"
    path.write_text("id,answer,embedding\n7,nurse,0.5\n")
    assert detect_output_format(path) == "embeddings"
    assert read_outputs(path, column="answer")["label"].to_list() == ["nurse"]
