"""Ids that two files spell otherwise are refused, with what would make them alike."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.errors import JoinError
from isolux.io.id_spellings import (
    JoinSides,
    find_consecutive_start,
    find_spelling_match,
    refuse_different_numbering,
    refuse_other_spelling,
)

SIDES = JoinSides("the dataset", "the answers", "net.csv")


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ("IMG_7", "img_7", "upper and lower case"),
        ("007", "7", "leading zeros or .0"),
        ("p007", "p7", "leading zeros or .0"),
        ("7", "7.0", "leading zeros or .0"),
        ("7", " 7 ", "blanks around them"),
        ("7", "val/7.jpg", "folders and suffixes"),
        ("IMG_7", "img_007.png", "case, zeros, blanks, folders or suffixes"),
    ],
)
def test_what_parts_two_ids_is_named(ours, theirs, words):
    n, said, _, example = find_spelling_match(pl.Series([ours, "x"]), pl.Series(["y", theirs]))
    assert (n, said, example) == (1, words, (ours, theirs))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (["a"], ["b"]),
        (["10", "20"], ["1", "2"]),  # zeros at the end mean something
        (["A", "a"], ["ä"]),
        (["x/image.jpg", "y/image.jpg"], ["z/image.jpg"]),  # one stem for two people
    ],
)
def test_other_ids_are_not_the_same(ours, theirs):
    assert find_spelling_match(pl.Series(ours), pl.Series(theirs)) is None


def test_the_spelling_that_joins_most_is_told_with_its_cure():
    absent, strangers = pl.Series(["001", "002", "A"]), pl.Series(["1", "2", "a", "z"])
    with pytest.raises(JoinError, match=r"(?s)zeros, blanks, .* \(3\).*net\.csv"):
        refuse_other_spelling(absent, strangers, SIDES)
    with pytest.raises(
        JoinError, match=r"(?s)zeros or \.0 \(2\).*'001' and '1'.*read_csv\(dtype=str\)"
    ):
        refuse_other_spelling(absent[:2], strangers, SIDES)


def test_ids_are_not_quoted_where_people_withdrew():
    with pytest.raises(JoinError) as caught:
        refuse_other_spelling(
            pl.Series(["001"]),
            pl.Series(["1"]),
            JoinSides("the dataset", "the answers", shows_ids=False),
        )
    assert "'001'" not in str(caught.value)
    assert "1 of the dataset without a partner" in str(caught.value)


def test_everyone_with_a_partner_is_no_error():
    refuse_other_spelling(pl.Series([], dtype=pl.String), pl.Series(["1"]), SIDES)
    refuse_other_spelling(pl.Series(["001"]), pl.Series([], dtype=pl.String), SIDES)


def numbers(start, n=20):
    return pl.int_range(start, start + n, eager=True).cast(pl.String)


def test_rows_that_are_numbered_from_elsewhere_are_refused():
    with pytest.raises(JoinError, match=r"(?s)20 rows from different starts.*1 to 20, and 0 to 19"):
        refuse_different_numbering(numbers(1), numbers(0), SIDES)


@pytest.mark.parametrize(
    "given",
    [
        numbers(1),  # the same
        numbers(0, 15),  # a part of another length may be one
        numbers(500),  # no id in common: said elsewhere
        pl.Series([str(3 * k) for k in range(20)]),  # no run
        pl.Series([f"p{k}" for k in range(20)]),
    ],
)
def test_other_numbers_are_ids(given):
    refuse_different_numbering(numbers(1), given, SIDES)
    refuse_different_numbering(numbers(1, 5), numbers(0, 5), SIDES)


def test_a_run_of_numbers_has_no_gap():
    assert find_consecutive_start(numbers(3)) == 3
    assert find_consecutive_start(pl.Series(["1", "2", "4"])) is None
    assert find_consecutive_start(pl.Series(["1", "b"])) is None
