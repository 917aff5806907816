"""A folder of tables is written whole, replaced only when asked, and says how it was made."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import OutputError
from isolux_curate.table_folder import write_csv_tables_and_record

TABLES = {"votes": pl.DataFrame({"item": ["=1+1"], "n": [2]})}


def written(folder: Path, *, overwrite: bool = False) -> Path:
    return write_csv_tables_and_record(
        folder,
        TABLES,
        {"notes": ["é"]},
        record_file="votes.json",
        folder_kind="folder of votes",
        text_by_file={"more.txt": "x"},
        overwrite=overwrite,
    )


def test_tables_texts_and_what_is_told(tmp_path: Path) -> None:
    out = written(tmp_path / "v")
    assert (out / "votes.csv").read_text() == "item,n\n'=1+1,2\n"  # no spreadsheet runs it
    assert json.loads((out / "votes.json").read_text(encoding="utf-8")) == {"notes": ["é"]}
    assert (out / "more.txt").read_text() == "x"


def test_only_its_own_kind_is_replaced(tmp_path: Path) -> None:
    out = written(tmp_path / "v")
    with pytest.raises(OutputError, match="exists"):
        written(out)
    assert written(out, overwrite=True) == out
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(OutputError, match="folder of votes"):
        written(other, overwrite=True)
    assert (other / "thesis.txt").read_text() == "mine"
