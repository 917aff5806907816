"""Files and places that no command can use end it with a named error, never as a bug."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.cli._run import isolux

PEOPLE = "id,race,truth,answer,weight\n" + "".join(
    f"{k},{'ab'[k % 2]},{'xy'[k % 3 == 0]},x,{1 + k % 2}\n" for k in range(12)
)
AUDIT = ["--id", "id", "--target", "truth", "--by", "race", "--out", "run"]
ANSWERS = [*AUDIT, "--prediction-column", "answer"]


@pytest.fixture
def ask(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(PEOPLE)

    def run(*args: object) -> str:
        ran = isolux(monkeypatch, capsys, *args)
        assert ran.code == 2, ran.err
        assert "a bug in isolux" not in ran.err
        return ran.plain

    return run


@pytest.mark.parametrize("weight", ["1e300", "1e-300", "inf"])
def test_a_weight_out_of_range(ask, weight):
    Path("people.csv").write_text(PEOPLE.replace(",2\n", f",{weight}\n", 1))
    said = ask("audit", "table:people.csv", *ANSWERS, "--weight", "weight")
    assert "1 of 12 people have no weight that can be used" in said


MODELS = {"lists": [[1, 2]] * 2, "no text": [b"\xff", b"a"]}
PREDICTIONS = {
    "embeddings": {"instance_id": ["0", "1"], "embedding": [[1.0, 2.0], [2.0, 1.0]]},
    "labels": {"id": ["0", "1"], "label": ["x", "y"]},
    "values": {"image_id": ["0", "1"], "lpips": [0.1, 0.2]},
    "pairs": {"probe": ["0", "1"], "candidate": ["1", "0"], "rank": [1, 1]},
    "boxes": {"image_id": ["0", "1"], "score": [1.0, 1.0],
              **{name: [1.0, 2.0] for name in ("box_x", "box_y", "box_w", "box_h")}},
}  # fmt: skip


@pytest.mark.parametrize("problem", MODELS)
@pytest.mark.parametrize(
    ("kind", "task"),
    [("embeddings", "retrieval"), ("labels", "classification"), ("values", "super_resolution"),
     ("pairs", "retrieval"), ("boxes", "detection")],
)  # fmt: skip
def test_names_of_models_that_are_none(ask, kind, task, problem):
    pl.DataFrame({**PREDICTIONS[kind], "model": MODELS[problem]}).write_parquet("p.parquet")
    flags = ["--id", "id", "--by", "race", "--out", "run", "--predictions", "p.parquet"]
    flags += ["--target", "truth"] if kind == "labels" else []
    said = ask("audit", "table:people.csv", "--task", task, *flags)
    assert f"the column of models holds {problem}" in said, said


def test_the_root_of_the_file_system_is_no_result(ask, tmp_path, monkeypatch, capsys):
    run = isolux(monkeypatch, capsys, "audit", "table:people.csv", *ANSWERS)
    assert run.code == 0, run.err
    words = "the root of the file system cannot be written"
    assert words in ask("audit", "table:people.csv", *ANSWERS[:-4], "--out", "/", *ANSWERS[-2:])
    assert words in ask("compare", "run", "run", "--out", "/")
    assert words in ask("explain", "run", "--analysis", "power", "--out", "/")


def test_a_working_folder_that_was_removed(ask, tmp_path, monkeypatch, capsys):
    people = shutil.copy("people.csv", tmp_path / "elsewhere.csv")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    said = ask("audit", f"table:{people}", *ANSWERS)
    assert "the folder in which this command runs was removed" in said
    os.chdir(tmp_path)


def test_a_table_of_a_run_in_another_type(ask, monkeypatch, capsys):
    assert isolux(monkeypatch, capsys, "audit", "table:people.csv", *ANSWERS).code == 0
    file = Path("run/scores.parquet")
    scores = pl.read_parquet(file)
    scores.with_columns(value=pl.lit([1, 2])).write_parquet(file)
    assert "files of the run are not as they were written" in ask("report", "run")
    said = ask("view", "run", "--bundle", "page.html")
    assert "a column of scores has the wrong type expected: Float64" in said
    assert "found: List(Int64) where: run/scores.parquet, column 'value'" in said


CVAT = """<annotations><image id="0" name="a.jpg" width="{width}" height="10">
<box label="person" xtl="1" ytl="1" xbr="2" ybr="2" occluded="0"/></image></annotations>"""


@pytest.mark.parametrize("width", ["99999999999999999999999", "1e300", "nan"])
def test_a_size_that_no_image_has(ask, width):
    Path("annotations.xml").write_text(CVAT.format(width=width))
    said = ask("describe", "cvat:annotations.xml")
    assert "expected: a number below 9e+15 as width" in said
