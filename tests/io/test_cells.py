from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.io.cells import (
    as_labels,
    as_lists,
    as_numbers,
    as_text,
    filled,
    first_of,
    is_plain,
    numbers_if_all,
)
from isolux.vocabulary.errors import SpecError, TableError


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (pl.Series(["007", "", " ", None, " x "]), ["007", None, None, None, " x "]),
        (pl.Series([3.0, None, float("nan")]), ["3", None, None]),  # pandas' 3 beside a gap
        (pl.Series([1.5, 2.0]), ["1.5", "2.0"]),
        (pl.Series([2.0**60, 1.0]), ["1152921504606846976.0", "1.0"]),
        (pl.Series([3, None]), ["3", None]),
        (pl.Series([True, None]), ["true", None]),
        (pl.Series(["a"], dtype=pl.Categorical), ["a"]),
        (pl.Series([None, None]), [None, None]),
        (pl.Series([["a", ""], [], None]), [["a", None], [], None]),
        (pl.Series([[3.0, float("nan")]]), [["3", None]]),
        (pl.Series([[1, 2]], dtype=pl.Array(pl.Int64, 2)), [["1", "2"]]),
    ],
)
def test_cells_of_every_type_come_out_as_the_same_text(cells, text):
    if cells.dtype.is_float() and cells[0] == 2.0**60:
        # Beyond 2^53 a float is not known to be the whole number it looks like.
        assert float(as_text(cells)[0]) == 2.0**60
        assert as_text(cells)[1] == "1.0"
    else:
        assert as_text(cells).to_list() == text


@pytest.mark.parametrize(
    "cells", [pl.Series("box", [{"x": 1}]), pl.Series("box", [b"x"]), pl.Series("box", [[[1]]])]
)
def test_structures_are_no_values(cells):
    assert not is_plain(cells.dtype)
    with pytest.raises(TableError, match=r"(?s)cannot be read as text.*column 'box'"):
        as_text(cells)


def test_several_values_in_a_cell():
    cells = pl.Series(["3; 4", None, "5", " ; ", "a;;b"])
    assert as_lists(cells, ";").to_list() == [["3", "4"], [], ["5"], [], ["a", "b"]]
    kept = as_lists(cells, ";", keep_empty=True).to_list()
    assert kept == [["3", "4"], [], ["5"], [None, None], ["a", None, "b"]]
    assert as_lists(cells, None).to_list() == [["3; 4"], [], ["5"], [" ; "], ["a;;b"]]


def test_lists_stay_lists_whatever_the_separator():
    cells = pl.Series([["a;b", None], None, []])
    assert as_lists(cells, ";").to_list() == [["a;b"], [], []]


def test_a_separator_is_taken_literally():
    assert as_lists(pl.Series(["a|b.c"]), "|").to_list() == [["a", "b.c"]]
    assert as_lists(pl.Series(["a|b.c"]), ".").to_list() == [["a|b", "c"]]
    with pytest.raises(SpecError, match="the separator of values in a cell is empty"):
        as_lists(pl.Series(["a"]), "")


def test_empty_lists_keep_their_row_when_exploded():
    lists = pl.Series([["a"], [], None], dtype=pl.List(pl.String))
    assert filled(lists).to_list() == [["a"], [None], [None]]
    assert filled(pl.Series([[], [1.0]])).to_list() == [[None], [1.0]]


def test_the_first_of_a_cell():
    assert first_of(pl.Series([["a", "b"], [], None])).to_list() == ["a", None, None]
    assert first_of(pl.Series([1.0, None])).to_list() == ["1", None]


def test_numbers_are_read_where_asked():
    cells = pl.Series([" 0.5", "1e-3", "", None, "-2", "NaN", "inf", "Unknown"])
    numbers = as_numbers(cells, where="p.csv", column="s", unknown=["unknown"]).to_list()
    assert numbers[:5] == [0.5, 0.001, None, None, -2.0]
    assert str(numbers[5:]) == "[nan, inf, None]"
    assert as_numbers(pl.Series([1, None]), where="", column="s").to_list() == [1.0, None]


def test_a_cell_that_is_no_number_is_named():
    with pytest.raises(
        TableError, match=r"(?s)2 cell\(s\) are not numbers.*'high'.*p\.csv, row 2, column 's'"
    ):
        as_numbers(pl.Series(["1", "high", "0,5"]), where="p.csv", column="s")
    with pytest.raises(TableError, match="a column of numbers holds lists"):
        as_numbers(pl.Series([["1"]]), where="p.csv", column="s")


def test_a_column_is_numeric_only_if_every_known_cell_is():
    assert numbers_if_all(pl.Series(["1", "N/A", None]), ["n/a"]).to_list() == [1.0, None, None]
    assert numbers_if_all(pl.Series(["1", "x"]), []) is None
    assert numbers_if_all(pl.Series(["1", "inf"]), []) is None
    assert numbers_if_all(pl.Series([None, "n/a"]), ["n/a"]) is None


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=8))
def test_a_number_written_as_text_is_the_same_number(values):
    cells = pl.Series(values, dtype=pl.Float64)
    back = as_numbers(as_text(cells), where="", column="x")
    assert back.to_list() == values


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        ([" Male", "Male ", "a  b"], ["Male", "Male", "a  b"]),
        (["1.0", "0.0", None], ["1", "0", None]),
        (["1.0", "0.5"], ["1.0", "0.5"]),
        (["1.0", "unknown"], ["1.0", "unknown"]),
        (["007", "+3."], ["007", "+3"]),
        ([None, None], [None, None]),
        ([["1.0", " 2"], None], [["1", "2"], None]),
    ],
)
def test_labels_have_no_blanks_around_and_whole_numbers_no_decimals(cells, labels):
    dtype = pl.List(pl.String) if isinstance(cells[0], list) else pl.String
    assert as_labels(pl.Series(cells, dtype=dtype)).to_list() == labels


def test_characters_without_a_width_are_no_part_of_a_label():
    cells = pl.Series("race", ["A", "A\u200b", "\ufeffB ", "\u200b", "x\u200by", None])
    found = as_labels(cells)
    assert found.to_list() == ["A", "A", "B", None, "x\u200by", None]
    assert found.name == "race"
