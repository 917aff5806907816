"""The page of real audits: its sections, what is quoted, and what happens where data are absent."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from scripts import gallery

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
SERVICE = next(entry for entry in gallery.ENTRIES if entry.name == "services")


def test_every_entry_has_its_section_figure_and_report() -> None:
    sections = gallery.read_sections(gallery.PAGE.read_text(encoding="utf-8"))
    assert list(sections) == [entry.title for entry in gallery.ENTRIES]
    for entry in gallery.ENTRIES:
        assert all(command in sections[entry.title] for command in entry.commands)
        assert (gallery.ASSETS / f"{entry.name}.svg").is_file()
        assert (gallery.ASSETS / f"{entry.name}.html").is_file()


def test_all_warnings_and_the_first_two_findings_are_quoted() -> None:
    output = "All 5 people read were scored.\nWARNING: a\nOne.\n• Two.\nThree.\n\nm · n\n"
    assert gallery.select_findings(output) == ["WARNING: a", "One.", "Two."]


def test_an_absent_source_is_named_and_its_section_stays(tmp_path, monkeypatch, capsys) -> None:
    page = tmp_path / "gallery.md"
    page.write_text(gallery.build_page({SERVICE.title: "\nas before\n"}))
    monkeypatch.setattr(gallery, "PAGE", page)
    assert gallery.main([str(tmp_path)]) == 0
    assert (
        f"{SERVICE.title}: skipped, there is no folder fairface_services" in capsys.readouterr()[0]
    )
    assert gallery.read_sections(page.read_text()) == {SERVICE.title: "\nas before\n"}


def test_a_section_is_made_from_a_folder_of_data(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(gallery, "ASSETS", tmp_path / "assets")
    (tmp_path / "faces").mkdir()
    n = 400
    group = np.repeat(["A", "B"], n // 2)
    answer = np.where((group == "B") & (np.arange(n) % 2 == 0), "no", "yes")
    pl.DataFrame({"id": range(n), "group": group, "truth": "yes", "answer": answer}).write_csv(
        tmp_path / "faces" / "people.csv"
    )
    command = (
        "isolux audit table:faces/people.csv --id id --target truth --prediction-column answer "
        "--by group --model-name m --out runs/m"
    )
    entry = replace(SERVICE, name="m", commands=(command,), run="m", attribute="group")
    section = gallery.build_section(entry, tmp_path)
    # Half of B's answers are wrong and none of A's.
    assert re.search(r"> The model works worse for .*\bB\b.* 50 of 100 against 100", section)
    assert "<svg" in (tmp_path / "assets" / "m.svg").read_text()
    assert "<html" in (tmp_path / "assets" / "m.html").read_text()


def test_the_committed_answer_is_that_of_todays_code(tmp_path, monkeypatch) -> None:
    if not (SHARED / SERVICE.source).is_dir():
        pytest.skip(f"THE REAL DATA ARE ABSENT: there is no {SHARED / SERVICE.source}")
    monkeypatch.setattr(gallery, "ASSETS", tmp_path / "assets")
    (tmp_path / SERVICE.source).symlink_to(SHARED / SERVICE.source)
    committed = gallery.read_sections(gallery.PAGE.read_text(encoding="utf-8"))[SERVICE.title]
    assert gallery.build_section(SERVICE, tmp_path).strip() == committed.strip()
