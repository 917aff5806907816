"""The command ``isolux view``."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import polars as pl
import pytest

import isolux as isolux_library
from isolux.io import run_directory
from tests.cli._run import isolux
from tests.viewer._pages import table_of
from tests.viewer._runs import audited, people


def test_it_writes_a_page_and_says_where_and_how_large(monkeypatch, capsys, tmp_path):
    run_directory.save_run(audited(), tmp_path / "run")
    page = tmp_path / "page.html"
    ran = isolux(monkeypatch, capsys, "view", tmp_path / "run", "--bundle", page)
    assert ran.code == 0
    assert re.match(rf"page: {re.escape(str(page))} \(0\.[12] MB", ran.out)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_bad_input_is_a_sentence(monkeypatch, capsys, tmp_path):
    run_directory.save_run(audited(), tmp_path / "run")
    for flags, said in (
        (["--bundle", tmp_path / "x.txt"], "a page is an HTML file"),
        (["--bundle", tmp_path / "x.html", "--metric", "scor"], "did you mean 'score'"),
        (["--bundle", tmp_path / "none" / "x.html"], "the folder to write to does not exist"),
    ):
        ran = isolux(monkeypatch, capsys, "view", tmp_path / "run", *flags)
        assert ran.code == 2
        assert said in ran.plain
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--bundle", "x.html", "--images", "."], "a file holds no pictures"),
        (["--bundle", "x.html", "--port", "9000"], "a file holds no pictures"),
        (["--people"], "--people with --bundle FILE.html"),
        (["--publish-min", "10"], "--publish-min with --bundle FILE.html"),
        (["--bundle", "x.html", "--people", "--publish-min", "10"], "holds no single person"),
    ],
)
def test_what_does_not_fit_together_is_refused(monkeypatch, capsys, tmp_path, flags, said):
    run_directory.save_run(audited(), tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    ran = isolux(monkeypatch, capsys, "view", tmp_path / "run", *flags)
    assert ran.code == 2
    assert said in ran.plain
    assert not (tmp_path / "x.html").exists()


def test_a_page_with_people_says_so(monkeypatch, capsys, tmp_path):
    run_directory.save_run(audited(), tmp_path / "run")
    page = tmp_path / "page.html"
    ran = isolux(monkeypatch, capsys, "view", tmp_path / "run", "--bundle", page, "--people")
    assert "It contains single people" in ran.out


def test_people_who_withdrew_since_are_in_no_table(monkeypatch, capsys, tmp_path):
    run_directory.save_run(audited(), tmp_path / "run")
    (tmp_path / "gone.txt").write_text("p7\n", encoding="utf-8")
    page = tmp_path / "page.html"
    flags = ["--bundle", page, "--withdrawn", tmp_path / "gone.txt"]
    assert isolux(monkeypatch, capsys, "view", tmp_path / "run", *flags).code == 0
    assert "audit again with --withdrawn to take them out" in page.read_text(encoding="utf-8")
    assert table_of(page, "distributions").is_empty()
    assert table_of(page, "groups").height > 10


def test_the_list_of_all_others_beside_values_that_count_everyone_is_refused(
    monkeypatch, capsys, tmp_path
):
    """3,000 people less the 2,999 of a list would be the one who withdrew, group and score."""
    run_directory.save_run(audited(), tmp_path / "run")
    (tmp_path / "gone.txt").write_text("p7\n", encoding="utf-8")
    page = tmp_path / "page.html"
    flags = ["--bundle", page, "--people", "--withdrawn", tmp_path / "gone.txt"]
    ran = isolux(monkeypatch, capsys, "view", tmp_path / "run", *flags)
    assert ran.code == 2
    assert "people who withdrew could be worked out from this file" in ran.plain
    assert "audit again with --withdrawn FILE" in ran.plain
    assert not page.exists()


def test_runs_before_and_after_a_withdrawal_are_no_page_together(monkeypatch, capsys, tmp_path):
    whole = people().filter(pl.col("light") != "dawn")
    for name, frame in (("before", whole), ("after", whole.filter(pl.col("unit_id") != "p7"))):
        run = isolux_library.audit(frame, by=["light"], replicates=100).run
        run_directory.save_run(run, tmp_path / name)
    (tmp_path / "gone.txt").write_text("p7\n", encoding="utf-8")
    gone = ["--withdrawn", tmp_path / "gone.txt"]
    ran = isolux(
        monkeypatch, capsys, "view", tmp_path / "before", tmp_path / "after",
        "--bundle", tmp_path / "page.html", *gone,
    )  # fmt: skip
    assert ran.code == 2
    assert "one run's values count more of them than the other's" in ran.plain
    for name in ("before", "after"):
        flags = ["--bundle", tmp_path / f"{name}.html", *gone, "--allow-unmatched"]
        assert isolux(monkeypatch, capsys, "view", tmp_path / name, *flags).code == 0


def test_a_page_cannot_be_subtracted_from_its_values_to_find_who_withdrew(
    monkeypatch, capsys, tmp_path
):
    run_directory.save_run(audited(), tmp_path / "run")
    run_directory.save_run(audited(1), tmp_path / "other")
    (tmp_path / "gone.txt").write_text("p7\n", encoding="utf-8")
    flags = ["--bundle", tmp_path / "page.html", "--withdrawn", tmp_path / "gone.txt"]
    ran = isolux(monkeypatch, capsys, "view", tmp_path / "run", tmp_path / "other", *flags)
    assert ran.code == 0
    for table in ("distributions", "moves"):
        assert table_of(tmp_path / "page.html", table).is_empty()


def test_a_page_that_is_there_is_not_replaced_unasked(monkeypatch, capsys, tmp_path):
    run_directory.save_run(audited(), tmp_path / "run")
    page = tmp_path / "page.html"
    page.write_text("another's", encoding="utf-8")
    ran = isolux(monkeypatch, capsys, "view", tmp_path / "run", "--bundle", page)
    assert ran.code == 2
    assert "this file exists already" in ran.plain
    assert page.read_text(encoding="utf-8") == "another's"
    ran = isolux(monkeypatch, capsys, "view", tmp_path / "run", "--bundle", page, "--overwrite")
    assert ran.code == 0
    assert "to pass it on, write it with --publish-min 10" in ran.out
    assert page.stat().st_size > 50_000


def test_a_list_that_names_no_one_of_the_run_takes_nothing_from_its_page(
    monkeypatch, capsys, tmp_path
):
    run_directory.save_run(audited(), tmp_path / "run")
    (tmp_path / "gone.txt").write_text("stranger\n", encoding="utf-8")
    page = tmp_path / "page.html"
    flags = ["--bundle", page, "--withdrawn", tmp_path / "gone.txt", "--allow-unmatched"]
    assert isolux(monkeypatch, capsys, "view", tmp_path / "run", *flags).code == 0
    assert table_of(page, "distributions").height > 10
    assert "its values still rest on them" not in page.read_text(encoding="utf-8")


def test_the_server_starts_answers_and_ends_by_ctrl_c(tmp_path):
    pytest.importorskip("uvicorn", reason="EXTRA view ABSENT: the local server was NOT started")
    run_directory.save_run(audited(), tmp_path / "run")
    started = subprocess.Popen(
        [sys.executable, "-u", "-m", "isolux", "view", str(tmp_path / "run")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ),
    )  # fmt: skip
    assert started.stdout is not None
    assert re.match(r"viewer: http://127\.0\.0\.1:\d+/\?token=", started.stdout.readline())
    started.send_signal(signal.SIGINT)
    rest, _ = started.communicate(timeout=30)
    assert started.returncode == 0
    assert rest.strip().endswith("viewer: ended")
    assert "Traceback" not in rest
