from __future__ import annotations

from pathlib import Path

from isolux.io.stages import Stage
from tests.cli._run import isolux


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_clean_removes_and_names_what_was_left(tmp_path, monkeypatch, capsys):
    (tmp_path / "runs" / ".a.new-0a1b2c3d").mkdir(parents=True)
    (tmp_path / "runs" / ".a.new-0a1b2c3d" / "scores.parquet").write_text("people")
    (tmp_path / "runs" / ".b.old-0a1b2c3d").mkdir()
    alive = Stage(tmp_path / "runs" / "c", folder=True)
    would = isolux(monkeypatch, capsys, "clean", tmp_path, "--dry-run")
    assert "would be removed" in would.out
    assert "would be put back" in would.out
    assert len(names(tmp_path / "runs")) == 3
    done = isolux(monkeypatch, capsys, "clean", tmp_path)
    said = "".join(done.out.split())
    assert done.code == 0
    assert "".join(f"removed: {tmp_path}/runs/.a.new-0a1b2c3d (1 file, 6 bytes)".split()) in said
    assert "".join(f"put back as {tmp_path}/runs/b: ".split()) in said
    assert "inuse,stays:" in said
    assert names(tmp_path / "runs") == sorted([alive.path.name, "b"])
    alive.discard()
    again = isolux(monkeypatch, capsys, "clean", tmp_path)
    assert again.out == "nothing was left behind\n"


def test_clean_names_a_folder_that_is_not_there(tmp_path, monkeypatch, capsys):
    done = isolux(monkeypatch, capsys, "clean", tmp_path / "none")
    assert done.code == 2
    assert "there is no such folder to clean" in done.err
