"""From several annotators' drawings to a folder that other commands read."""

from __future__ import annotations

import json

import polars as pl
import pytest

from tests.cli._run import isolux as run


@pytest.fixture
def drawings(tmp_path):
    """Three annotators' masks and joints of two people in each of eight photos, COCO's form."""
    annotations = []
    for photo in range(8):
        for person, tone in enumerate(("light", "dark")):
            for shift, who in enumerate("xyz"):
                x, y = 10 + 60 * person + (shift + photo) * (1 + person) % 5, 5 + shift
                annotations.append(
                    {
                        "id": len(annotations), "image_id": photo, "category_id": 1,
                        "bbox": [x, y, 30, 40], "area": 1200, "iscrowd": 0,
                        "segmentation": [[x, y, x + 30, y, x + 30, y + 40, x, y + 40]],
                        "keypoints": [x + 15, y + 3, 2, x + 10, y + 20, 1], "num_keypoints": 2,
                        "attributes": {"annotator": who, "tone": tone},
                    }
                )  # fmt: skip
    coco = {
        "images": [
            {"id": k, "file_name": f"{k}.jpg", "width": 120, "height": 60} for k in range(8)
        ],
        "categories": [{"id": 1, "name": "person", "keypoints": ["nose", "hip"]}],
        "annotations": annotations,
    }
    path = tmp_path / "drawn.json"
    path.write_text(json.dumps(coco))
    return path


@pytest.mark.parametrize("kind", ["boxes", "masks", "keypoints"])
def test_a_folder_that_other_commands_read(drawings, tmp_path, monkeypatch, capsys, kind):
    out = tmp_path / "agreed"
    asked = ("curate", "shapes", f"coco:{drawings}", "--kind", kind, "--out", out)
    done = run(monkeypatch, capsys, *asked)
    assert done.code == 0, done.err
    assert "48 drawings of 16 objects: 16 agreed" in done.out
    objects = pl.read_csv(out / "objects.csv")
    assert objects["tone"].to_list() == ["light", "dark"] * 8
    assert pl.read_csv(out / "annotators.csv")["found"].to_list() == [1.0] * 3
    assert pl.read_csv(out / "drawings.csv").height == 48
    agreed = json.loads((out / "agreed.json").read_text())
    assert [one["id"] for one in agreed["images"]] == list(range(8))
    assert [one["id"] for one in agreed["annotations"]] == list(
        range(1, 17)
    )  # as pycocotools wants
    named = [one["instance_id"] for one in agreed["annotations"]]
    assert named == objects["instance_id"].to_list()
    described = run(monkeypatch, capsys, "describe", f"coco:{out / 'agreed.json'}")
    assert described.code == 0, described.err
    assert "tone" in described.out
    score = "oks" if kind == "keypoints" else "iou"
    audited = run(
        monkeypatch, capsys, "audit", f"table:{out / 'objects.csv'}", "--task", "number",
        "--score-column", score, "--by", "tone", "--cluster", "image_id", "--out", tmp_path / "run",
        "--better", "higher", "--replicates", "200",
    )  # fmt: skip
    assert audited.code == 0, audited.err
    again = run(monkeypatch, capsys, *asked)
    assert again.code == 2
    assert "exists" in again.plain


def test_people_who_withdrew_are_in_no_file(drawings, tmp_path, monkeypatch, capsys):
    gone, out = tmp_path / "gone.txt", tmp_path / "agreed"
    gone.write_text("3\n")  # a photo, and a drawing: ids of every kind are looked up
    done = run(
        monkeypatch, capsys, "curate", "shapes", f"coco:{drawings}", "--withdrawn", gone, "--out",
        out,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "3" not in pl.read_csv(out / "objects.csv")["image_id"].cast(pl.String).to_list()
