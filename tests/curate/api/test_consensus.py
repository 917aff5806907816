"""From a table of ratings to a folder of labels, by function and command."""

from __future__ import annotations

import json

import polars as pl
import pytest

import isolux_curate
from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from tests.cli._run import isolux as run

RATINGS = """photo,rater_1,rater_2,rater_3
a,cat,cat,dog
b,cat,owl,dog
c,owl,unsure,owl
"""


@pytest.fixture
def ratings(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(RATINGS)
    return path


def test_labels_of_a_wide_table(ratings):
    found = isolux_curate.consensus(f"ratings:{ratings}", ignored_answers=["unsure"])
    rows = found.labels.select("instance_id", "label", "answers", "status").rows()
    assert rows == [
        ("a", "cat", 3, "agreed"), ("b", None, 3, "needs more votes"), ("c", "owl", 2, "agreed"),
    ]  # fmt: skip
    assert any(isinstance(note, Caution) and "1 of 3 items" in note for note in found.notes)


def test_a_folder_by_the_command(ratings, tmp_path, monkeypatch, capsys):
    out = tmp_path / "labels"
    asked = ("curate", "consensus", f"ratings:{ratings}", "--out", out)
    done = run(monkeypatch, capsys, *asked, "--ignored-answers", "unsure")
    assert done.code == 0, done.err
    assert "3 items: 2 agreed, 1 needs more votes" in done.out
    assert pl.read_csv(out / "labels.csv")["label"].to_list() == ["cat", None, "owl"]
    record = json.loads((out / "consensus.json").read_text())
    assert record["settings"]["method"] == "majority"
    assert len(record["inputs"][str(ratings)]) == 64
    again = run(monkeypatch, capsys, *asked)
    assert again.code == 2
    assert "exists" in again.plain
    other = run(monkeypatch, capsys, *asked, "--overwrite", "--min-votes", 3)
    assert other.code == 0, other.err
    assert pl.read_csv(out / "labels.csv")["label"].null_count() == 3


def test_who_withdrew_has_no_label(ratings, tmp_path):
    gone = tmp_path / "gone.txt"
    gone.write_text("a\n")
    found = isolux_curate.consensus(f"ratings:{ratings}", withdrawn=str(gone))
    assert found.labels["instance_id"].to_list() == ["b", "c"]


def test_a_table_of_people_has_no_answers(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("id,tone\na,3\n")
    with pytest.raises(SpecError, match="no annotators' answers"):
        isolux_curate.consensus(f"table:{path}")
