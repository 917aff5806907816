"""``isolux predict`` on the command line: what it says, where it goes on, how it stops."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from tests.cli._run import isolux

NET = """
import time

def net(*, seconds: float = 0.0):
    def answer(pictures):
        time.sleep(seconds)
        return ["day" if one.mean() > 100 else "night" for one in pictures]
    return answer
"""
MODEL = "python:isolux_cli_net:net"


@pytest.fixture(autouse=True)
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for k in range(20):
        Image.fromarray(np.full((4, 4, 3), 200 if k % 2 else 20, np.uint8)).save(f"{k:02}.png")
    rows = "".join(
        f"{k:02}.png,{'ab'[k % 4 < 2]},{'day' if k % 2 else 'night'}\n" for k in range(20)
    )
    (tmp_path / "people.csv").write_text("id,light,truth\n" + rows)
    (tmp_path / "isolux_cli_net.py").write_text(NET)
    sys.modules.pop("isolux_cli_net", None)
    yield
    sys.modules.pop("isolux_cli_net", None)


def test_it_says_what_was_done_and_how_to_audit_it(monkeypatch, capsys):
    line = ("predict", "table:people.csv", "--model", MODEL, "--out", "out", "--shard-size", 8)
    ran = isolux(monkeypatch, capsys, *line)
    assert (ran.code, ran.err) == (0, "")  # no progress where no one watches
    assert "20 pictures: 20 looked at now" in ran.out
    assert "isolux audit table:people.csv --predictions" in ran.out
    again = isolux(monkeypatch, capsys, *line)
    assert "20 pictures: 0 looked at now, 20 answered before" in again.out
    assert pl.read_parquet("out/predictions.parquet")["label"].to_list() == ["night", "day"] * 10


def test_a_directory_alone_says_how_far_it_is_and_goes_on(monkeypatch, capsys, tmp_path):
    isolux(monkeypatch, capsys, "predict", "table:people.csv", "--model", MODEL, "--out", "out",
           "--shard-size", 8)  # fmt: skip
    told = isolux(monkeypatch, capsys, "predict", "--status", "out").out
    assert "finished" in told
    assert "3 of 3 committed" in told
    max((tmp_path / "out" / "shards").iterdir()).unlink()
    ran = isolux(monkeypatch, capsys, "predict", "--resume", "out")
    assert "20 pictures: 4 looked at now" in ran.out
    assert "16 answered before" in ran.out


def test_processes_of_their_own_write_the_same_files(monkeypatch, capsys, tmp_path):
    line = ("predict", "table:people.csv", "--model", MODEL, "--shard-size", 8, "--out")
    isolux(monkeypatch, capsys, *line, "here")
    ran = isolux(monkeypatch, capsys, *line, "there", "--workers", 2)
    assert (ran.code, ran.err) == (0, "")
    here, there = (
        {p.relative_to(tmp_path / out): p.read_bytes()
         for p in (tmp_path / out).rglob("*") if p.is_file()}
        for out in ("here", "there")
    )  # fmt: skip
    assert here == there


def test_an_audit_predicts_into_a_directory_beside_the_run(monkeypatch, capsys, tmp_path):
    line = ("audit", "table:people.csv", "--model", MODEL, "--target", "truth", "--by", "light",
            "--out", "run", "--min-units", 5)  # fmt: skip
    assert isolux(monkeypatch, capsys, *line).code == 0
    assert (tmp_path / "run.answers" / "predictions.parquet").exists()
    made = (tmp_path / "run.answers" / "predictions.parquet").stat().st_mtime_ns
    ran = isolux(monkeypatch, capsys, *line, "--overwrite")
    assert ran.code == 0
    shards = [p.stat().st_mtime_ns for p in (tmp_path / "run.answers" / "shards").iterdir()]
    assert max(shards) <= made  # none was computed again


@pytest.mark.parametrize(
    ("args", "match"),
    [
        ((), "it is not said what to predict"),
        (("table:people.csv",), "it is not said where to write"),
        (("table:people.csv", "--out", "o"), "there is no model to run"),
        (("table:people.csv", "--out", "o", "--model", "onyx:x"), "no model family named 'onyx'"),
        (("people.csv", "--out", "o", "--model", MODEL), "the data are not named"),
        (("--status", "nowhere"), "no answers were predicted here"),
        (("--resume", "nowhere"), "no answers were predicted here"),
        (("table:people.csv", "--out", "o", "--model", MODEL, "--batch", "0"), "--batch|'batch'"),
        (
            ("table:people.csv", "--out", "o", "--model", MODEL, "--gpus", "1"),
            "the setting 'gpus' is of --engine ray",
        ),
    ],
)
def test_what_is_missing_is_named(monkeypatch, capsys, args, match):
    import re

    ran = isolux(monkeypatch, capsys, "predict", *args)
    assert ran.code == 2
    assert not Path("o").exists()
    assert re.search(match, ran.plain), ran.err


def test_ctrl_c_finishes_the_shard_at_hand_and_the_next_command_goes_on(tmp_path):
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from isolux.cli import main; main()"
    )
    line = [sys.executable, "-c", program, "predict", "table:people.csv", "--model", MODEL,
            "--model-option", "settings=seconds=0.4", "--out", "out", "--shard-size", "4",
            "--batch", "4"]  # fmt: skip
    run = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    shards, deadline = tmp_path / "out" / "shards", time.monotonic() + 60
    while not (shards.is_dir() and list(shards.glob("0*"))) and time.monotonic() < deadline:
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "finishing the shard at hand; Ctrl-C again stops at once" in said
    assert "go on: isolux predict --resume out" in said
    kept = {p.name: p.stat().st_ino for p in shards.iterdir()}
    assert 0 < len(kept) < 5
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{4 * len(kept)} answered before" in done.stdout
    assert {p.name: p.stat().st_ino for p in shards.iterdir() if p.name in kept} == kept


@pytest.mark.parametrize("more", [(), ("--workers", "2")])
def test_too_many_failures_are_refused_again_by_the_same_command(monkeypatch, capsys, more):
    for name in ("03.png", "07.png"):
        Path(name).write_text("no picture")
    line = ("predict", "table:people.csv", "--model", MODEL, "--out", "out", "--shard-size", 20)
    first, *later = (isolux(monkeypatch, capsys, *line, *more) for _ in range(3))
    assert (first.code, [ran.code for ran in later]) == (2, [2, 2])
    assert "at most 0.05 of 20 (max_failures)" in later[0].plain
    assert isolux(monkeypatch, capsys, *line, *more, "--max-failures", 0.2).code == 0


def test_a_file_with_a_run_directory_keeps_the_answers_where_an_audit_looks(monkeypatch, capsys):
    Path("audit.yaml").write_text(
        f"data: table:people.csv\nmodel: {MODEL}\ntarget: truth\nby: light\nout: run\n"
    )
    ran = isolux(monkeypatch, capsys, "predict", "audit.yaml")
    assert (ran.code, "run.answers" in ran.out) == (0, True)
    made = Path("run.answers", "predictions.parquet").stat().st_mtime_ns
    assert isolux(monkeypatch, capsys, "audit", "audit.yaml", "--min-units", 5).code == 0
    assert max(p.stat().st_mtime_ns for p in Path("run.answers", "shards").iterdir()) <= made
    assert isolux(monkeypatch, capsys, "predict", "audit.yaml", "--out", "own").code == 0
    assert Path("own", "predictions.parquet").exists()
