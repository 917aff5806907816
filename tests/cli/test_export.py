"""``isolux export``: people and their scores for FiftyOne, of a run or of a dataset."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

from isolux.datasets import fiftyone
from isolux.io import run_directory
from tests.cli._run import isolux as run
from tests.datasets._coco_files import SMALL, written

DRAWN = [
    {"image_id": 7, "category_id": 1, "bbox": [1, 2, 3.5, 4], "score": 0.9},
    {"image_id": 8, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 0.2},
]


@pytest.fixture
def audited(monkeypatch, capsys, tmp_path):
    """An audit of two pictures: a person who was found, a dog, a crowd."""
    truth = written(tmp_path, SMALL)
    (tmp_path / "net.json").write_text(json.dumps(DRAWN))
    args = ("--task", "detection", "--person-label", "1", "--by", "box_size", "--metric",
            "recall_at_iou", "--predictions", tmp_path / "net.json",
            "--out", tmp_path / "run")  # fmt: skip
    ran = run(monkeypatch, capsys, "audit", f"coco:{truth}", "--data-option",
              "categories=person", *args)  # fmt: skip
    assert ran.code == 0, ran.err
    return tmp_path / "run"


def test_a_runs_people_come_with_their_scores_and_computed_groups(
    monkeypatch, capsys, tmp_path, audited
):
    ran = run(monkeypatch, capsys, "export", audited, "--out", tmp_path / "seen")
    assert ran.code == 0, ran.err
    assert "2 people of 2 images" in ran.out
    assert "fo.types.FiftyOneDataset" in ran.out
    seen = fiftyone.load(tmp_path / "seen")
    assert seen.instances["instance_id"].to_list() == ["1", "3"]
    found = {
        (unit, name): value
        for unit, name, value in seen.attributes.select("unit_id", "attribute", "value").rows()
    }
    assert found["1", "box_size"] == "small"
    assert found["1", "recall_at_iou_0_5"] == "1"
    assert found["3", "recall_at_iou_0_5"] is None
    assert found["3", "recall_at_iou_0_5_reason"] == "a crowd, not one person"


def test_who_is_in_no_table_of_the_run_is_not_shown(monkeypatch, capsys, tmp_path, audited):
    whole = run_directory.load_run(audited)
    scores = whole.scores.filter(pl.col("unit_id") != "3")
    left = replace(whole, scores=scores, evidence={}, record={**whole.record, "evidence": []})
    run_directory.save_run(left, audited, overwrite=True)
    ran = run(monkeypatch, capsys, "export", audited, "--out", tmp_path / "seen")
    assert ran.code == 0, ran.err
    assert fiftyone.load(tmp_path / "seen").instances["instance_id"].to_list() == ["1"]
    assert '"image_id": "8"' not in (tmp_path / "seen" / "samples.json").read_text()


def test_a_dataset_alone(monkeypatch, capsys, tmp_path):
    truth = written(tmp_path, SMALL)
    args = ("--out", tmp_path / "seen", "--data-option", "categories=dog", "--no-masks")
    ran = run(monkeypatch, capsys, "export", f"coco:{truth}", *args)
    assert ran.code == 0, ran.err
    assert "1 people of 1 images\n" in ran.out
    text = (tmp_path / "seen" / "samples.json").read_text()
    assert '"label": "dog"' in text
    assert '"mask"' not in text


def test_what_cannot_be_exported(monkeypatch, capsys, tmp_path, audited):
    def ask(*args):
        ran = run(monkeypatch, capsys, "export", *args)
        assert ran.code == 2
        assert "Traceback" not in ran.err
        return ran.plain

    out = ("--out", tmp_path / "seen")
    assert "expected: 'fiftyone' or 'parquet'" in ask(audited, *out, "--to", "yolo")
    assert "a run says how its dataset is loaded" in ask(audited, *out, "--data-option", "a=b")
    assert "exists already" in ask(audited, "--out", tmp_path)
    assert "the data are not named" in ask("nothing", *out)
    assert "no such folder of pictures" in ask(audited, *out, "--images", tmp_path / "absent")
    whole = run_directory.load_run(audited)
    run_directory.save_run(
        replace(whole, record={**whole.record, "spec": {}}), audited, overwrite=True
    )
    assert "does not say which dataset it is about" in ask(audited, *out)
    assert not (tmp_path / "seen").exists()
