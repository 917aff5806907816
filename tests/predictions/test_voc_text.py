"""Pascal VOC's results: a file a class, told from YOLO's and WIDER FACE's text."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.errors import FileError, TableError
from isolux.predictions import read_outputs
from isolux.predictions._format_detection import detect_output_format
from tests.cli._run import isolux
from tests.datasets.test_plain_boxes import BOXES, voc


def results(root):
    folder = root / "net"
    folder.mkdir()
    for (image, name), (x, y, w, h) in BOXES.items():
        line = f"{image} 0.9 {x} {y} {x + w} {y + h}\n"
        (folder / f"comp3_det_val_{name}.txt").write_text(line)
    return folder


def test_a_file_is_a_class_and_a_line_a_box(tmp_path):
    found = read_outputs(results(tmp_path))
    rows = {(r[1], r[2]): r[3:] for r in found.rows()}
    assert rows == {key: (*box, 0.9) for key, box in BOXES.items()}
    assert set(found["model"]) == {"net"}


@pytest.mark.parametrize(
    ("name", "label"),
    [("comp4_det_test_person.txt", "person"), ("comp3_det_val2007_dog.txt", "dog"),
     ("comp3_det_trainval_traffic_light.txt", "traffic_light"), ("cat.txt", "cat")],
)  # fmt: skip
def test_the_class_is_the_files_name(tmp_path, name, label):
    (tmp_path / name).write_text("a 0.5 1 2 30 40\n")
    assert detect_output_format(tmp_path / name) == "voc_text"
    assert read_outputs(tmp_path / name)["label"].to_list() == [label]


@pytest.mark.parametrize(
    ("line", "form"),
    [("0 0.5 0.5 0.5 0.25 0.9", "yolo_text"), ("0 0.1 0.2 0.3 0.4 0.9", "yolo_text"),
     ("2008_000004 0.1 10 20 300 400", "voc_text"), ("4 0.1 1 20 300 400", "voc_text")],
)  # fmt: skip
def test_yolos_lines_are_not_vocs(tmp_path, line, form):
    (tmp_path / "7.txt").write_text(line + "\n")
    assert detect_output_format(tmp_path / "7.txt") == form


def test_a_class_without_a_detection_is_an_empty_file_among_others(tmp_path):
    folder = results(tmp_path)
    (folder / "comp3_det_val_cow.txt").write_text("")
    assert read_outputs(folder, format="voc_text").height == 2
    with pytest.raises(FileError, match="the file is empty"):
        read_outputs(folder / "comp3_det_val_cow.txt", format="voc_text")


@pytest.mark.parametrize(
    ("line", "said"),
    [("a 0.5 1 2 30", "not a result in Pascal"), ("a 0.5 1 2 30 x", "not a result in Pascal VOC"),
     ("a 0.5 30 2 1 40", "turned over")],
)  # fmt: skip
def test_damaged_lines_are_named(tmp_path, line, said):
    (tmp_path / "dog.txt").write_text(f"a 0.5 1 2 30 40\n{line}\n")
    with pytest.raises(TableError, match=rf"(?s){said}.*row 2"):
        read_outputs(tmp_path / "dog.txt", format="voc_text")


def test_an_audit_reads_them_beside_vocs_own_truth(tmp_path, monkeypatch, capsys):
    (tmp_path / "truth").mkdir()
    done = isolux(
        monkeypatch, capsys, "audit", f"voc:{voc(tmp_path / 'truth')}", "--task", "detection",
        "--predictions", results(tmp_path), "--by", "category", "--min-units", 1,
        "--min-clusters", 1, "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")
    told = rows.filter(metric="average_recall", group="dog")["value"].to_list()
    assert told[0] == 1.0
