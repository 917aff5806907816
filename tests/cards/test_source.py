"""What stands in every card: warnings first, no folder of a machine, whence its numbers come."""

from __future__ import annotations

from dataclasses import replace

import pytest

import isolux
from isolux.cards._source import without_folders
from tests.cards._cards import run_of_people


def test_warnings_stand_before_anything_else():
    run = run_of_people()
    warned = replace(run, record={**run.record, "warnings": ["Half of /data/x/y/people.csv lacks"]})
    made = isolux.card(warned, kind="annex_iv")
    text, page = made.markdown(), made.html()
    assert text.splitlines()[2] == "> **Warning.** Half of people.csv lacks"
    assert page.index("Half of people.csv lacks") < page.index(made.statement)


@pytest.mark.parametrize(
    ("said", "kept"),
    [("/a/b/c.csv", "c.csv"), (r"C:\Users\x\c.csv", "c.csv"), ("~/x/c.csv: row 3", "c.csv: row 3"),
     ("n/a or and/or", "n/a or and/or"), ("https://a.org/b/c", "https://a.org/b/c"),
     ("runs/aurora/people.csv", "runs/aurora/people.csv")],
)  # fmt: skip
def test_absolute_paths_lose_their_folders(said, kept):
    assert without_folders(said) == kept


@pytest.mark.parametrize("kind", ["annex_iv", "bias_profile"])
def test_no_card_names_a_single_person(kind):
    made = isolux.card(run_of_people(), kind=kind)
    assert "/photos/" not in made.markdown() + made.html()
    assert ".jpg" not in made.markdown()
