"""``isolux export --to parquet``: any output, whole or not at all, and read again."""

from __future__ import annotations

import json
import time

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import FileError, SpecError, TableError
from isolux.predictions import detect_output_format, read_labels, read_outputs, read_predictions
from tests.cli._run import isolux as run
from tests.contracts._samples import FORMATS, OUTPUTS, N

EXPORT = ("export", "--to", "parquet")
ROW = {"image_id": 1, "category_id": 2, "bbox": [1.5, 2, 3, 4], "score": 0.5}


@pytest.mark.parametrize("name", OUTPUTS)
def test_what_was_converted_reads_as_before(monkeypatch, capsys, tmp_path, name):
    path, out = OUTPUTS[name][1](tmp_path), tmp_path / "out.parquet"
    ran = run(monkeypatch, capsys, *EXPORT, path, "--out", out)
    assert ran.code == 0, ran.err
    assert f"{N} rows of" in ran.out
    if name == "part_masks":
        assert pl.read_parquet(out).equals(read_outputs(path))
    else:
        assert read_outputs(out).equals(read_outputs(path))


@pytest.mark.parametrize("name", FORMATS)
def test_labels_too(monkeypatch, capsys, tmp_path, name):
    FORMATS[name](tmp_path / f"net.{name}")
    path, out = tmp_path / f"net.{name}", tmp_path / "out.parquet"
    ran = run(monkeypatch, capsys, *EXPORT, path, "--out", out, "--format", name)
    assert ran.code == 0, ran.err
    assert read_predictions(out).equals(read_predictions(path, format=name))


def test_masks_and_keypoints_keep_their_lists(monkeypatch, capsys, tmp_path):
    mask = {"segmentation": {"size": [4, 3], "counts": "2\\7"}}
    points = {"image_id": 1, "keypoints": [1, 2, 0.5], "score": 1}
    for rows in ([ROW | mask], [points]):
        (tmp_path / "net.json").write_text(json.dumps(rows))
        out = tmp_path / "out.parquet"
        args = (*EXPORT, tmp_path / "net.json", "--out", out, "--overwrite")
        assert run(monkeypatch, capsys, *args).code == 0
        assert read_outputs(out).equals(read_outputs(tmp_path / "net.json"))


def test_options_reach_the_format(monkeypatch, capsys, tmp_path):
    (tmp_path / "net.json").write_text(json.dumps([ROW]))
    truth = tmp_path / "truth.json"
    truth.write_text('{"categories": [{"id": 2, "name": "person"}]}')
    args = ("--prediction-option", f"categories={truth}", "--model-name", "detr",
            "--prediction-option", "kind=boxes")  # fmt: skip
    ran = run(
        monkeypatch, capsys, *EXPORT, tmp_path / "net.json", "--out", tmp_path / "x.pq", *args
    )
    assert ran.code == 0, ran.err
    assert pl.read_parquet(tmp_path / "x.pq").row(0)[:3] == ("detr", "1", "person")


def test_an_option_of_another_format_is_refused(monkeypatch, capsys, tmp_path):
    (tmp_path / "net.json").write_text(json.dumps([ROW]))
    args = (*EXPORT, tmp_path / "net.json", "--out", tmp_path / "x.parquet",
            "--prediction-option", "scale=100")  # fmt: skip
    ran = run(monkeypatch, capsys, *args)
    assert ran.code == 2
    assert "scale" in ran.err
    assert not (tmp_path / "x.parquet").exists()


def test_bad_input_leaves_nothing_and_keeps_the_old(monkeypatch, capsys, tmp_path):
    (tmp_path / "net.json").write_text(json.dumps([ROW, ROW | {"score": None}]))
    out = tmp_path / "x.parquet"
    out.write_text("old")
    ran = run(monkeypatch, capsys, *EXPORT, tmp_path / "net.json", "--out", out, "--overwrite")
    assert ran.code == 2
    assert "a result has no score" in ran.err
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.json", "x.parquet"]


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("x.csv", "ends in .parquet or .pq"),
        ("there.parquet", "this file exists already"),
        ("absent/x.parquet", "the folder to write to does not exist"),
        ("folder.parquet", "this path is a folder"),
    ],
)
def test_where_nothing_can_be_written(monkeypatch, capsys, tmp_path, out, told):
    (tmp_path / "net.json").write_text(json.dumps([ROW]))
    (tmp_path / "there.parquet").write_text("old")
    (tmp_path / "folder.parquet").mkdir()
    ran = run(monkeypatch, capsys, *EXPORT, tmp_path / "net.json", "--out", tmp_path / out)
    assert ran.code == 2
    assert told in ran.err


@pytest.mark.parametrize("flag", [("--images", "."), ("--no-masks",), ("--withdrawn", "w.csv"),
                                  ("--publish-min", "10"), ("--data-option", "a=b")])  # fmt: skip
def test_flags_of_the_other_format_are_refused(monkeypatch, capsys, tmp_path, flag):
    (tmp_path / "net.json").write_text(json.dumps([ROW]))
    ran = run(
        monkeypatch, capsys, *EXPORT, tmp_path / "net.json", "--out", tmp_path / "x.pq", *flag
    )
    assert ran.code == 2
    assert "--to parquet does not take this flag" in ran.plain
    ran = run(monkeypatch, capsys, "export", tmp_path, "--out", tmp_path / "x", "--format", "csv")
    assert ran.code == 2
    assert "--to fiftyone does not take this flag" in ran.plain
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.json"]


def test_a_file_is_not_converted_into_itself(monkeypatch, capsys, tmp_path):
    path = tmp_path / "net.parquet"
    pl.DataFrame({"id": ["a"], "label": ["x"]}).write_parquet(path)
    ran = run(monkeypatch, capsys, *EXPORT, path, "--out", path, "--overwrite")
    assert ran.code == 2
    assert "this is the file that is to be read" in ran.err


# Tables of detections, and finding out formats -----------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "arrow"])
def test_a_table_of_boxes(tmp_path, ending):
    frame = pl.DataFrame(
        {"image_id": [7, 8], "box_x": [1.5, 2], "box_y": [2, 3], "box_w": [3, 4], "box_h": [4, 5],
         "score": [0.5, 0.25]}, strict=False
    )  # fmt: skip
    path = tmp_path / f"net.{ending}"
    {
        "csv": frame.write_csv,
        "tsv": lambda p: frame.write_csv(p, separator="\t"),
        "jsonl": frame.write_ndjson,
        "parquet": frame.write_parquet,
        "arrow": frame.write_ipc,
    }[ending](path)
    assert read_outputs(path).rows() == [
        ("net", "7", None, 1.5, 2.0, 3.0, 4.0, 0.5),
        ("net", "8", None, 2.0, 3.0, 4.0, 5.0, 0.25),
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("7,1,2,,4,0.5", "a box lacks some of its numbers"),
        ("7,1,2,-3,4,0.5", "a box has a negative width or height"),
        ("7,1,2,inf,4,0.5", "a box is not made of finite numbers"),
        ("7,1,2,x,4,0.5", r"1 cell\(s\) are not numbers"),
        ("7,1,2,3,4,nan", "cannot be used"),
        ("7,1,2,3,4,", "cannot be used"),
        (",1,2,3,4,0.5", "cannot be used"),
    ],
)
def test_a_table_of_boxes_that_cannot_be_used(tmp_path, line, told):
    path = tmp_path / "net.csv"
    path.write_text(f"image_id,box_x,box_y,box_w,box_h,score\n7,1,2,3,4,0.5\n{line}\n")
    with pytest.raises(TableError, match=told) as caught:
        read_outputs(path)
    assert "row 2" in str(caught.value)


def test_json_is_told_apart_by_its_names(tmp_path):
    path = tmp_path / "net.json"
    for text, name in (
        (json.dumps([ROW]), "coco_results"),
        ("[ ]", "coco_results"),
        ('[{"name": "a.jpg", "labels": []}]', "scalabel"),
        ('{"frames": []}', "scalabel"),
    ):
        path.write_text(text)
        assert detect_output_format(path) == name
    path.write_text('{"a": 1}')
    with pytest.raises(
        FileError, match=r"(?s)no format of predictions fits.*not coco_results: .*not scalabel: "
    ):
        detect_output_format(path)


def test_boxes_are_no_labels(tmp_path):
    (tmp_path / "net.json").write_text(json.dumps([ROW]))
    with pytest.raises(SpecError, match="this format holds no labels of people"):
        read_labels(tmp_path / "net.json", format="coco_results")


def test_a_million_boxes_load_from_parquet_at_once(monkeypatch, capsys, tmp_path):
    n = 1_000_000
    draw = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "model": pl.repeat("net", n, eager=True),
            "image_id": pl.Series(np.repeat(np.arange(n // 100), 100)).cast(pl.String),
            "label": pl.repeat("1", n, eager=True),
            **{name: draw.random(n) for name in ("box_x", "box_y", "box_w", "box_h", "score")},
        }
    )
    frame.write_parquet(tmp_path / "net.parquet")
    start = time.process_time()
    assert read_outputs(tmp_path / "net.parquet").height == n
    assert time.process_time() - start < 1  # CPU seconds of all threads; measured 0.13
