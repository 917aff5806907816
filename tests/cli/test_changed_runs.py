"""A run whose files were changed after it was written: one rule, whatever opens it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

import isolux as isolux_library
from isolux.core.errors import RunError
from isolux.io import run_directory
from isolux.io.run_changes import list_changed_files
from tests.cli._run import isolux
from tests.viewer._runs import audited

SOURCES = Path(isolux_library.__file__).parent


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return run_directory.save_run(audited(), tmp_path_factory.mktemp("runs") / "kept")


@pytest.fixture
def whole(kept, tmp_path):
    return Path(shutil.copytree(kept, tmp_path / "whole"))


@pytest.fixture
def changed(whole, tmp_path):
    """A copy in which everyone in dusk was right after all."""
    run = Path(shutil.copytree(whole, tmp_path / "changed"))
    file = run / "group_metrics.parquet"
    value = pl.when(pl.col("group") == "dusk").then(1.0).otherwise("value")
    pl.read_parquet(file).with_columns(value=value).write_parquet(file)
    return run


COMMANDS = {
    "report": ["report", "{changed}", "--out", "{out}/page.html"],
    "report, published": ["report", "{changed}", "--publish-min", "10", "--out", "{out}/p.html"],
    "explain": ["explain", "{changed}", "--analysis", "power"],
    "explain into another": ["explain", "{changed}", "--analysis", "power", "--out", "{out}/more"],
    "compare": ["compare", "{whole}", "{changed}", "--out", "{out}/both"],
    "compare, first": ["compare", "{changed}", "{whole}", "--out", "{out}/both"],
    "models side by side": ["compare", "a={whole},{changed}", "b={whole}", "--out", "{out}/side"],
    "datasets": ["compare", "--datasets", "A={changed}", "--out", "{out}/across"],
    "monitor": ["monitor", "{whole}", "{changed}", "--out", "{out}/days"],
    "export": ["export", "{changed}", "--out", "{out}/seen"],
    "card": ["card", "{changed}", "--kind", "model_card", "--out", "{out}/cards"],
    "gate": ["gate", "--init", "{changed}"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_uses_it(monkeypatch, capsys, tmp_path, whole, changed, name):
    out = tmp_path / "out"
    out.mkdir()
    before = (changed / "audit.json").read_bytes()
    args = [arg.format(whole=whole, changed=changed, out=out) for arg in COMMANDS[name]]
    ran = isolux(monkeypatch, capsys, *args)
    assert ran.code == (4 if name == "gate" else 2)
    assert "not as they were written" in ran.plain
    assert "group_metrics.parquet" in ran.plain
    assert str(changed) in ran.plain
    assert not list(out.iterdir())
    assert (changed / "audit.json").read_bytes() == before  # no new hashes hide the change


def test_nor_does_a_chart(changed):
    with pytest.raises(RunError, match="not as they were written"):
        run_directory.load_run(changed)
    pytest.importorskip("altair")
    with pytest.raises(RunError, match="not as they were written"):
        isolux_library.plot(changed, "score", "light")


def test_the_viewer_shows_it_and_says_so_on_the_terminal_too(
    monkeypatch, capsys, tmp_path, whole, changed
):
    page = tmp_path / "page.html"
    ran = isolux(monkeypatch, capsys, "view", whole, changed, "--bundle", page)
    assert ran.code == 0
    assert f"WARNING: {changed}: Files of this run are not as they were written" in ran.plain
    assert ran.plain.count("WARNING") == 1  # none of the run that is as it was
    assert "WARNING" not in ran.out
    said = isolux(monkeypatch, capsys, "view", changed, "--bundle", page, "--overwrite", "--json")
    assert "(group_metrics.parquet)" in json.loads(said.out)["warnings"][0]


def test_what_reads_a_changed_run_says_so_itself():
    """Whoever opens a run without the check must look or warn, and stands here by name."""
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if re.search(r"load_run\([^)]*on_change=", path.read_text(encoding="utf-8"))
    }
    assert found == {"cli/view.py", "api/view/__init__.py", "api/_tables_from_memory.py"}


@pytest.mark.parametrize("kind", ["added", "lost", "record"])
def test_every_sort_of_change_counts(whole, kind):
    if kind == "added":
        pl.DataFrame({"unit_id": ["p0"]}).write_parquet(whole / "evidence" / "more.parquet")
    elif kind == "lost":
        record = json.loads((whole / "audit.json").read_text())
        record["files"]["evidence/gone.parquet"] = "0" * 64
        (whole / "audit.json").write_text(json.dumps(record), encoding="utf-8")
    else:
        text = (whole / "audit.json").read_text().replace('"seed": 0', '"seed": 1')
        (whole / "audit.json").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match="not as they were written"):
        run_directory.load_run(whole)


def test_what_isolux_and_the_system_write_is_no_change(monkeypatch, capsys, tmp_path, whole):
    assert isolux(monkeypatch, capsys, "explain", whole, "--analysis", "power").code == 0
    (whole / "evidence").mkdir(exist_ok=True)
    (whole / "evidence" / ".DS_Store").write_text("")
    (whole / "notes.txt").write_text("mine")
    assert list_changed_files(whole) == []
    ran = isolux(monkeypatch, capsys, "report", whole)
    assert ran.code == 0
    assert "power" in run_directory.load_run(whole).findings["analysis"].to_list()


def test_a_run_without_hashes_is_not_used(whole):
    record = json.loads((whole / "audit.json").read_text())
    del record["files"]
    (whole / "audit.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(RunError, match="not as they were written"):
        run_directory.load_run(whole)
