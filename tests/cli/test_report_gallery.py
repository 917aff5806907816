"""``isolux report --gallery``: beside the report, by licence or by statement, gone with the run."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from tests.cli._run import isolux as run

N = 24


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A COCO file of 24 people, boxes for the first eight, and pictures of all but the last."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "images").mkdir()
    images, people, found = [], [], []
    for i in range(N):
        file = f"{i}.png"
        images.append({"id": i, "file_name": file, "width": 90, "height": 60})
        box = [20, 10, 20, 30]
        people.append({"id": i, "image_id": i, "category_id": 1, "bbox": box, "area": 600,
                       "iscrowd": 0})  # fmt: skip
        if i < 8:
            found.append({"image_id": i, "category_id": 1, "bbox": box, "score": 0.9})
        if i < N - 1:
            Image.fromarray(np.full((60, 90, 3), 5 * i, np.uint8)).save(folder / "images" / file)
    truth = {"images": images, "annotations": people, "categories": [{"id": 1, "name": "person"}]}
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "found.json").write_text(json.dumps(found))
    return folder


@pytest.fixture
def audited(files, monkeypatch, capsys, tmp_path):
    done = run(
        monkeypatch, capsys, "audit", f"coco:{files / 'truth.json'}", "--task", "detection",
        "--predictions", files / "found.json", "--by", "category", "--min-units", 5,
        "--min-clusters", 2, "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 0, done.err
    return tmp_path / "run"


def test_refused_with_the_licences_own_words(audited, files, monkeypatch, capsys):
    ran = run(
        monkeypatch, capsys, "report", audited, "--gallery", 3, "--images", files / "images"
    )  # fmt: skip
    assert ran.code == 2
    assert "images under their own licences on Flickr" in ran.plain
    assert "--confirm-image-rights" in ran.plain
    assert not (audited / "gallery.html").exists()


def test_written_where_somebody_states_that_they_may(audited, files, monkeypatch, capsys):
    ran = run(
        monkeypatch, capsys, "report", audited, "--gallery", N, "--images", files / "images",
        "--confirm-image-rights",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "note: 1 picture was left out: there is no such file." in ran.out
    assert "(15 people; delete it when a person withdraws)" in ran.out
    page = (audited / "gallery.html").read_text()
    assert page.count("<img ") == 15  # 24, less 8 that were found, less one without a picture
    assert "<img" not in (audited / "report.html").read_text()


def test_a_new_run_in_its_place_takes_the_gallery_with_it(audited, files, monkeypatch, capsys):
    (audited / "gallery.html").write_text("pictures of people")
    ran = run(monkeypatch, capsys, "explain", audited, "--analysis", "power")
    assert ran.code == 0, ran.err
    assert not (audited / "gallery.html").exists()


@pytest.mark.parametrize("alone", [["--gallery", "3"], ["--images", "folder"]])
def test_a_number_and_a_folder_belong_together(audited, monkeypatch, capsys, alone):
    ran = run(monkeypatch, capsys, "report", audited, *alone)
    assert ran.code == 2
    assert "--gallery N together with --images FOLDER" in ran.plain
    assert "Traceback" not in ran.err
