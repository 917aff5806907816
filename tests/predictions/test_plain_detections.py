"""Detections of YOLO and FHIBE's API: read, brought to pixels, and audited."""

from __future__ import annotations

import json

import polars as pl
import pytest

import isolux as package
from isolux.core.errors import IsoluxError, JoinError, SpecError, TableError
from isolux.predictions import read_outputs
from tests.cli._run import isolux
from tests.datasets.test_plain_boxes import BOXES, HEIGHT, WIDTH, yolo

SIZES = {"7": (WIDTH, HEIGHT), "8": (WIDTH, HEIGHT)}


def found_by_yolo(root):
    folder = root / "net" / "labels"
    folder.mkdir(parents=True)
    for k, ((image, _), (x, y, w, h)) in enumerate(BOXES.items()):
        shares = [(x + w / 2) / WIDTH, (y + h / 2) / HEIGHT, w / WIDTH, h / HEIGHT]
        (folder / f"{image}.txt").write_text(f"{k} {' '.join(map(str, shares))} 0.9\n")
    return root / "net"


def test_shares_become_pixels(tmp_path):
    found = read_outputs(found_by_yolo(tmp_path), sizes=SIZES)
    sides = found.select("box_x", "box_y", "box_w", "box_h").rows()
    for box, expected in zip(sides, BOXES.values(), strict=True):
        assert box == pytest.approx(expected, abs=1e-9)
    assert set(found["model"]) == {"net"}
    with pytest.raises(SpecError, match="sizes are not known"):
        read_outputs(tmp_path / "net")


def test_an_audit_takes_the_sizes_and_names_of_its_dataset(tmp_path, monkeypatch, capsys):
    truth, found = tmp_path / "truth", tmp_path / "found"
    truth.mkdir()
    found.mkdir()
    done = isolux(
        monkeypatch, capsys, "audit", f"yolo:{yolo(truth)}", "--task", "detection",
        "--predictions", found_by_yolo(found), "--by", "category", "--min-units", 1,
        "--min-clusters", 1, "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")
    told = rows.filter(pl.col("metric") == "average_precision").select("group", "value").rows()
    assert dict(told) == {"overall": 1.0, "cat": 1.0, "dog": 1.0}


def test_boxes_of_pictures_of_no_known_size_are_kept_for_the_audit_to_count(tmp_path):
    path = found_by_yolo(tmp_path)
    found = read_outputs(path, sizes={"7": (WIDTH, HEIGHT)})
    assert found["image_id"].to_list() == ["7", "8"]
    assert found["box_x"].is_null().to_list() == [False, True]
    (tmp_path / "sizes.csv").write_text(f"image_id,width,height\n7,{WIDTH},{HEIGHT}\n")
    with pytest.raises(JoinError, match=r"(?s)sizes of 1 of 2 pictures are not known.*'8'"):
        read_outputs(path, sizes=tmp_path / "sizes.csv")


def test_a_missing_label_file_is_told_before_any_number(tmp_path, monkeypatch, capsys):
    truth, found = tmp_path / "truth", tmp_path / "found"
    truth.mkdir()
    found.mkdir()
    yolo(truth)
    (truth / "labels/val/8.txt").unlink()
    done = isolux(
        monkeypatch, capsys, "audit", f"yolo:{truth}", "--task", "detection", "--predictions",
        found_by_yolo(found), "--by", "category", "--min-units", 1, "--min-clusters", 1,
        "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 0, done.err
    first = " ".join((done.out + done.err).split())
    assert first.startswith("WARNING: 1 of 2 pictures have no label file (8.png")
    assert "no truth for 1 of 2 pictures that have predictions ('8'): 1 prediction" in first


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0 0.5 0.5 0.5 0.5", "save_conf=True"),
        ("0 10 20 30 40 0.9", "not in shares"),
        ("0 0.5 0.5 0.5 0.5 7", "not in shares"),
    ],
)
def test_lines_that_are_no_detections(line, said, tmp_path):
    folder = found_by_yolo(tmp_path)
    (folder / "labels" / "7.txt").write_text(line + "\n")
    with pytest.raises(TableError, match=said):
        read_outputs(folder, format="yolo_text", sizes=SIZES)


# ── FHIBE's API ─────────────────────────────────────────────────────────────────────────────────


def written(tmp_path, content, name="model_outputs.json"):
    (tmp_path / "ours").mkdir(exist_ok=True)
    path = tmp_path / "ours" / name
    path.write_text(json.dumps(content))
    return path


def test_faces_and_people_as_corners(tmp_path):
    faces = {"/x/main_7.png": {"detections": [[4, 5, 24, 35]], "scores": [[0.9]]},
             "/x/main_8.png": {"detections": [], "scores": []}}  # fmt: skip
    found = read_outputs(written(tmp_path, faces))
    assert found.rows() == [("ours", "7", None, 4.0, 5.0, 20.0, 30.0, 0.9)]
    people = {"/x/main_7.png": {"bboxes": [[4, 5, 24, 35]], "scores": [0.9], "labels": [0]}}
    assert read_outputs(written(tmp_path, people))["label"].to_list() == ["0"]


def test_embeddings_and_scores_by_picture(tmp_path):
    name = "/x/faces_crop_and_align_i_s.png"
    found = package.read_predictions(written(tmp_path, {name: {"embeddings": [1.5, 2.0]}}))
    assert found.rows() == [("ours", "i_s", [1.5, 2.0])]
    values = package.read_predictions(written(tmp_path, {name: 0.75}, "lpips_scores.json"))
    assert values.select("instance_id", "metric", "value").rows() == [("i_s", "lpips", 0.75)]
    other = written(tmp_path, {name: 0.5}, "numbers.json")
    with pytest.raises(TableError, match="what these numbers are"):
        read_outputs(other)
    assert read_outputs(other, metric="ssim")["metric"].to_list() == ["ssim"]


@pytest.mark.parametrize(
    "content",
    [
        {"a.png": {"bboxes": [[1, 2, 3, 4]], "scores": []}},
        {"a.png": {"bboxes": [[1, 2, 3]], "scores": [0.5]}},
        {"a.png": {"bboxes": [[9, 2, 3, 4]], "scores": [0.5]}},
        {"a.png": {"masks": []}},
        {"a.png": 0.5, "b.png": "x"},
    ],
)
def test_outputs_that_are_none(content, tmp_path):
    with pytest.raises(IsoluxError):
        read_outputs(written(tmp_path, content, "lpips_scores.json"), format="fhibe_api")
