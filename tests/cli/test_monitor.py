"""``isolux monitor`` on the screen and on disk."""

from __future__ import annotations

import pytest

from isolux.io import run_directory
from tests.api.test_monitor import day
from tests.cli._run import isolux as run_cli


@pytest.fixture
def folders(tmp_path):
    made = []
    for d in range(5):
        made.append(tmp_path / f"day{d}")
        run_directory.save_run(day(d, b=0.9 if d < 2 else 0.4), made[-1])
    return made


def test_sentences_table_and_page(folders, tmp_path, monkeypatch, capsys):
    out = tmp_path / "seen"
    ran = run_cli(monkeypatch, capsys, "monitor", *folders, "--out", out)
    assert ran.code == 0, ran.err
    assert "Score for b (tone) differs from that for the others: alarm at look" in " ".join(
        ran.out.split()
    )
    assert "alarm at" in ran.out
    assert "gap now" in " ".join(ran.out.split())
    assert "if constant" not in ran.out  # of a width that no screen has: on the page
    assert "if constant" in (out / "monitor.html").read_text()
    assert sorted(p.name for p in out.iterdir()) == [
        "monitor.html", "monitor.json", "monitor.parquet",
    ]  # fmt: skip
    again = run_cli(monkeypatch, capsys, "monitor", *folders, "--out", out)
    assert again.code != 0
    assert run_cli(monkeypatch, capsys, "monitor", *folders, "--out", out, "--overwrite").code == 0


def test_looks_out_of_order_are_refused(folders, monkeypatch, capsys):
    ran = run_cli(monkeypatch, capsys, "monitor", folders[1], folders[0])
    assert ran.code == 2
    assert "the looks are out of order" in ran.err
    assert "--timestamp says when each was" in ran.err
