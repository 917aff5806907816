"""COCO's captions: results and annotation files, given to whom an image shows, to an audit."""

from __future__ import annotations

import gzip
import json

import polars as pl
import pytest

import isolux
from isolux.core.errors import JoinError, SpecError, TableError
from isolux.core.notes import Caution
from isolux.predictions import detect_output_format, read_labels
from isolux.predictions.coco_captions import read
from tests.cli._run import isolux as run

RESULTS = [{"image_id": 9, "caption": "a man on skis"}, {"image_id": 4, "caption": " "},
           {"image_id": 9, "caption": "two people"}]  # fmt: skip


def written(folder, content, name="blip.json"):
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def test_results_and_annotation_files_are_one_table(tmp_path):
    rows = [
        ("blip", "9", "a man on skis", 1),
        ("blip", "4", None, 1),
        ("blip", "9", "two people", 2),
    ]
    named = ["model", "instance_id", "label", "rank"]
    assert read(written(tmp_path, RESULTS)).select(named).rows() == rows
    whole = {"info": {}, "images": [{"id": 9}], "annotations": [{"id": 1, **r} for r in RESULTS]}
    file = written(tmp_path, whole, "captions_val2017.json")
    assert read(file, model="people")["label"].to_list() == [r[2] for r in rows]
    packed = tmp_path / "blip.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(RESULTS).encode()))
    assert read(packed).select(named).rows() == rows


def test_they_are_known_by_their_first_bytes_or_by_their_name(tmp_path):
    assert detect_output_format(written(tmp_path, RESULTS)) == "coco_captions"
    far = {"images": [{"id": k, "file_name": "x" * 90} for k in range(900)], "annotations": RESULTS}
    assert detect_output_format(written(tmp_path, far, "captions_val2017.json")) == "coco_captions"
    boxes = [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]
    assert detect_output_format(written(tmp_path, boxes)) == "coco_results"


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        ([{"image_id": 1}], TableError, "missing required field `caption`"),
        ([{"image_id": 1.5, "caption": "a"}], TableError, "image_id"),
        ({"images": []}, TableError, "missing required field `annotations`"),
        ([], TableError, "no caption in this file"),
        ([{"image_id": " ", "caption": "a"}], TableError, "no id"),
        ("text", TableError, "Expected `object`, got `str`"),
    ],
)
def test_what_is_no_caption_is_refused(tmp_path, content, error, words):
    with pytest.raises(error, match=words):
        read(written(tmp_path, content))


def test_settings_of_tables_are_refused(tmp_path):
    with pytest.raises(SpecError, match="coco_captions is not a table, and has no column"):
        read_labels(written(tmp_path, RESULTS), column="caption")


def park(folder, n=40):
    """Two annotated people in image 0, one in each other; ids of people are not those of images."""
    people = [(100 + k, k, "feminine" if k % 2 else "masculine") for k in range(n)] + [
        (7, 0, "feminine")
    ]
    told = {
        "images": [{"id": k, "file_name": f"{k}.jpg", "width": 9, "height": 9} for k in range(n)],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [{"id": i, "image_id": image, "category_id": 1, "bbox": [1, 1, 5, 5],
                         "area": 25, "iscrowd": 0, "attributes": {"gender": gender}}
                        for i, image, gender in people],
    }  # fmt: skip
    said = [
        {"image_id": k, "caption": f"a {'woman' if k % 2 else 'man'} in a park"} for k in range(n)
    ]
    written(folder, said, "blip.json")
    return written(folder, told, "instances.json")


def test_an_image_s_caption_is_of_everyone_in_it(tmp_path, monkeypatch, capsys):
    """Image 7's caption goes to person 107, whom it shows, and not to person 7 of image 0."""
    people = park(tmp_path)
    ran = run(
        monkeypatch, capsys, "audit", f"coco:{people}", "--task", "caption_gender", "--target",
        "gender", "--predictions", tmp_path / "blip.json", "--by", "gender", "--min-units", "5",
        "--replicates", "200", "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    scores = pl.read_parquet(tmp_path / "run" / "scores.parquet")
    wrong = scores.filter(metric="wrong_gender", value=1.0)["unit_id"].to_list()
    assert wrong == ["7"]  # of image 0, whose caption names the man beside her
    assert "1 of 40 images show several people" in ran.out


def test_captions_of_other_images_are_refused_and_several_are_said(tmp_path):
    people = park(tmp_path)
    told = {"task": "caption_gender", "target": "gender", "by": "gender", "min_units": 5}
    other = written(tmp_path, [{"image_id": 700, "caption": "a man"}], "other.json")
    with pytest.raises(JoinError, match="not one is of the dataset"):
        isolux.audit(f"coco:{people}", predictions=other, **told)
    five = [{"image_id": k, "caption": "a man"} for k in range(40) for _ in range(5)]
    five.append({"image_id": 900, "caption": "a man"})
    found = isolux.audit(f"coco:{people}", predictions=written(tmp_path, five, "five.json"), **told)
    said = found.run.record["warnings"] + found.run.record["notes"]
    assert any("40 of 41 images have several labels" in text for text in said)
    assert any("1 images with labels show nobody" in text for text in said)
    assert not any(isinstance(text, Caution) for text in said)  # as JSON holds them
