"""``isolux check`` as somebody types it."""

from __future__ import annotations

import json

import polars as pl
import pytest

from tests.checks._dataset import coco, picture
from tests.cli._run import isolux


@pytest.fixture
def root(tmp_path):
    coco(tmp_path / "set")
    return tmp_path / "set"


def test_problems_are_grouped_and_set_the_exit_code(monkeypatch, capsys, root):
    ran = isolux(monkeypatch, capsys, "check", f"coco:{root}")
    assert ran.code == 1, ran.err
    for words in (
        "a box is outside its image", "the file is missing", "the picture is cut off",
        "the picture has another size than its annotation", "a photo is there twice",
        "no image names this picture", "4 errors, 4 warnings from 12 check(s)",
        "exit code 1, set by errors",
    ):  # fmt: skip
        assert words in ran.out
    assert "Traceback" not in ran.err


def test_warnings_count_when_strict(monkeypatch, capsys, root):
    flags = ["check", f"coco:{root}", "--only", "duplicates"]
    ran = isolux(monkeypatch, capsys, *flags)
    assert (ran.code, "exit code 0, set by errors" in ran.out) == (0, True)
    ran = isolux(monkeypatch, capsys, *flags, "--strict")
    assert (ran.code, "exit code 1, set by errors and warnings" in ran.out) == (1, True)


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_all_problems_are_written(monkeypatch, capsys, root, tmp_path, suffix):
    out = tmp_path / f"problems.{suffix}"
    ran = isolux(monkeypatch, capsys, "check", f"coco:{root}", "--out", out)
    assert ran.code == 1
    rows = pl.read_csv(out).to_dicts() if suffix == "csv" else json.loads(out.read_text())
    assert len(rows) == 8
    assert list(rows[0]) == ["check", "severity", "problem", "unit_kind", "unit_id", "file",
                             "expected", "found", "hint"]  # fmt: skip
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_file_of_another_kind_is_refused_before_anything(monkeypatch, capsys, root, tmp_path):
    out = tmp_path / "problems.txt"
    ran = isolux(monkeypatch, capsys, "check", f"coco:{root}", "--out", out)
    assert ran.code == 2
    assert "ends in .csv or .json" in ran.plain
    assert not out.exists()


def test_annotations_alone(monkeypatch, capsys, root):
    ran = isolux(monkeypatch, capsys, "check", f"coco:{root}", "--no-images", "--skip", "boxes")
    assert ran.code == 0, ran.out
    assert "Without pictures these were not checked" in ran.out


def test_a_refused_annotation_is_a_problem_and_a_wrong_path_a_mistake(
    monkeypatch, capsys, root, tmp_path
):
    file = root / "annotations" / "instances_val.json"
    file.write_text(file.read_text()[:-40])
    ran = isolux(monkeypatch, capsys, "check", f"coco:{root}")
    assert (ran.code, "loading" in ran.out, "cut off" in ran.out) == (1, True, True)
    ran = isolux(monkeypatch, capsys, "check", f"coco:{tmp_path / 'absent'}")
    assert (ran.code, "no such file" in ran.plain) == (2, True)


def test_pictures_in_a_folder_of_ones_own(monkeypatch, capsys, root, tmp_path):
    (tmp_path / "other").mkdir()
    picture(1, 640, 480).save(tmp_path / "other" / "1.jpg")
    ran = isolux(monkeypatch, capsys, "check", f"coco:{root}", "--only", "missing_files",
                 "--images", tmp_path / "other")  # fmt: skip
    assert "4 errors, 0 warnings" in ran.out
    assert f"looked for below {tmp_path / 'other'}" in ran.out
