"""Nothing that is no page of ours is written over by one, and no answer over a run."""

from __future__ import annotations

import pytest

from isolux.io import run_directory
from isolux.io.owned_files import is_run_file
from isolux.io.run_changes import list_changed_files
from tests.cli._run import isolux
from tests.policy._table import run


@pytest.fixture
def saved(tmp_path):
    return run_directory.save_run(run("alike"), tmp_path / "run")


@pytest.mark.parametrize("name", ["run/audit.json", "run/scores.parquet", "thesis.md", "mine.html"])
def test_a_report_is_written_over_no_other_file(monkeypatch, capsys, tmp_path, saved, name):
    for own in ("thesis.md", "mine.html"):
        (tmp_path / own).write_text("<html>three years of work", encoding="utf-8")
    before = (tmp_path / name).read_bytes()
    ran = isolux(monkeypatch, capsys, "report", saved, "--out", tmp_path / name)
    assert ran.code == 2
    assert "a page is an HTML file" in ran.plain or "not a page written by isolux" in ran.plain
    assert (tmp_path / name).read_bytes() == before
    assert list_changed_files(saved) == []


def test_its_own_pages_are_made_again(monkeypatch, capsys, tmp_path, saved):
    page = tmp_path / "page.html"
    for _ in range(2):
        assert isolux(monkeypatch, capsys, "report", saved, "--out", page).code == 0
    (saved / "report.html").write_text("<html>of an earlier version", encoding="utf-8")
    assert isolux(monkeypatch, capsys, "report", saved).code == 0
    assert "earlier version" not in (saved / "report.html").read_text(encoding="utf-8")


def test_nor_is_a_description(monkeypatch, capsys, tmp_path):
    (tmp_path / "people.csv").write_text("id,light\n1,day\n2,night\n", encoding="utf-8")
    (tmp_path / "thesis.md").write_text("work", encoding="utf-8")
    ask = ("describe", f"table:{tmp_path / 'people.csv'}", "--by", "light", "--out")
    assert isolux(monkeypatch, capsys, *ask, tmp_path / "thesis.md").code == 2
    assert (tmp_path / "thesis.md").read_text(encoding="utf-8") == "work"
    for _ in range(2):
        assert isolux(monkeypatch, capsys, *ask, tmp_path / "page.html").code == 0


@pytest.mark.parametrize("flag", ["--json-file", "--markdown", "--junit"])
def test_no_decision_is_written_over_a_run(monkeypatch, capsys, tmp_path, saved, flag):
    policy = tmp_path / "policy.yaml"
    policy.write_text("policy: 1\nrules:\n - {metric: accuracy, at_least: 1 %}\n")
    for name in ("audit.json", "scores.parquet", "report.html"):
        ran = isolux(monkeypatch, capsys, "gate", saved, "--policy", policy, flag, saved / name)
        assert ran.code == 2
        assert "this file is needed for something else" in ran.plain
    assert list_changed_files(saved) == []
    assert isolux(
        monkeypatch, capsys, "gate", saved, "--policy", policy, flag, saved / "gate.out"
    ).code in (0, 1, 3)  # fmt: skip
    assert (saved / "gate.out").is_file()
    assert list_changed_files(saved) == []


def test_what_is_a_run_s_own(saved, tmp_path):
    names = ["audit.json", "scores.parquet", "evidence/any.parquet", "gallery.html"]
    assert all(is_run_file(saved / name) for name in names)
    assert not is_run_file(saved / "notes" / "audit.txt")
    assert not is_run_file(tmp_path / "scores.parquet")
