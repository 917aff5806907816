"""What is written as CSV runs nothing in a spreadsheet, and numbers stay numbers."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import polars as pl
import pytest

from isolux.cli import check
from isolux.io.csv_text import to_safe_csv
from tests.cli._run import isolux

NAMES = ["=cmd|x", "@one", "-two", "+three"]


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=HYPERLINK(0)", "'=HYPERLINK(0)"),
        ("+1+1", "'+1+1"),
        ("-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("-1", "-1"),
        ("+0.5e-3", "+0.5e-3"),
        ("a=b", "a=b"),
        ("", ""),
        ('=a,"b"', '\'=a,"b"'),
    ],
)
def test_a_formula_becomes_text(cell, written):
    text = to_safe_csv(pl.DataFrame({"id": ["x", cell]}))
    assert [row[0] if row else "" for row in csv.reader(io.StringIO(text, newline=""))][
        2
    ] == written


def test_names_of_columns_are_escaped_and_numbers_are_not():
    table = pl.DataFrame({"=a": [-1], "b": [-0.5], "c": pl.Series(["=x"], dtype=pl.Categorical)})
    assert to_safe_csv(table) == "'=a,b,c\n-1,-0.5,'=x\n"


def test_a_drawn_set_runs_nothing(tmp_path, monkeypatch, capsys):
    rows = "".join(f"{name},{'AB'[i % 2]}\n" for i, name in enumerate(NAMES))
    (tmp_path / "people.csv").write_text(f"file,race\n{rows}")
    done = isolux(
        monkeypatch, capsys, "sample", f"table:{tmp_path / 'people.csv'}", "--id", "file",
        "--balance", "race", "--per-cell", "9", "--out", tmp_path / "ids.csv",
    )  # fmt: skip
    assert done.code == 0, done.err
    _runs_nothing((tmp_path / "ids.csv").read_text())


def test_a_list_of_problems_runs_nothing():
    problems = pl.DataFrame({"unit_id": NAMES, "found": [f"{name}.jpg" for name in NAMES]})
    _runs_nothing(check._write_problems_and_format_note(problems, Path("problems.csv")))


def _runs_nothing(text: str) -> None:
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row if cell]
    assert all(f"'{name}" in cells for name in NAMES)
    assert [cell for cell in cells if cell[0] in "=+-@\t\r"] == []
