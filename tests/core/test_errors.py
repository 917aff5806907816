"""Messages hold what is wrong, expected, found, where and what to do, and nothing empty."""

from __future__ import annotations

import pytest

from isolux.core import errors
from isolux.core.errors import (
    FileError,
    IsoluxError,
    TableError,
    UnknownNameError,
    format_columns,
    format_location,
)


def test_every_part_has_its_line():
    error = FileError("it is empty", expected="rows", found="none", where="a.csv", hint="fill it")
    assert str(error).splitlines() == [
        "it is empty",
        "  expected: rows",
        "  found: none",
        "  where: a.csv",
        "  what to do: fill it",
    ]


def test_parts_that_are_not_known_have_none():
    assert str(FileError("it is empty")) == "it is empty"


@pytest.mark.parametrize("name", [n for n in errors.__all__ if n.endswith("Error")])
def test_one_root_catches_all_and_the_tree_shows_it(name):
    assert issubclass(getattr(errors, name), IsoluxError)
    assert name in (errors.__doc__ or "")


def test_near_names_are_offered_and_long_lists_cut():
    error = UnknownNameError("metric", "acuracy", ["accuracy", *(f"m{i}" for i in range(40))])
    assert "there is no metric named 'acuracy'" in str(error)
    assert "did you mean 'accuracy'?" in str(error)
    assert str(error).count("m") < 60
    assert "…" in str(error)


def test_no_names_at_all():
    assert "but there is none" in str(UnknownNameError("model", "x", []))


def test_a_place_is_named_as_far_as_it_is_known():
    assert format_location("a.csv", 3, "age") == "a.csv, row 3, column 'age'"
    assert format_location(None, 3) == "row 3"
    assert format_location() is None


def test_what_was_found_is_cut():
    error = TableError("a cell is not a number", found="x" * 50_000_000)
    assert error.found == "x" * 300 + " … (49,999,700 more characters)"
    assert len(str(error)) < 400
    assert TableError("short", found="x" * 300).found == "x" * 300


def test_of_many_columns_the_first_are_shown_and_the_others_counted():
    shown = format_columns(f"c{i}" for i in range(25))
    assert shown.startswith("columns 'c0', 'c1', ")
    assert shown.endswith("'c19' and 5 more")


def test_of_many_names_a_message_shows_some_and_says_how_many() -> None:
    ids = [f"{k:024x}" for k in range(4000)]
    told = str(UnknownNameError("task", "nope", ids))
    assert "… (4,000 in all)" in told
    assert len(told) < 300
    assert "n29" in str(UnknownNameError("column", "z", [f"n{k:02}" for k in range(30)]))
