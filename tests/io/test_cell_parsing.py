from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import SpecError, TableError
from isolux.io.cell_parsing import (
    as_labels,
    as_lists,
    as_numbers,
    as_text,
    fill_empty_lists,
    first_as_text,
    is_duration,
    is_readable_dtype,
    numbers_if_all,
)


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        (pl.Series(["007", "", " ", None, " x "]), ["007", None, None, None, " x "]),
        (pl.Series([3.0, None, float("nan")]), ["3", None, None]),  # pandas' 3 beside a gap
        (pl.Series([1.5, 2.0]), ["1.5", "2.0"]),
        (pl.Series([-0.0, 0.0, 0.5]), ["0.0", "0.0", "0.5"]),  # one number
        (pl.Series([-0.0, 0.5], dtype=pl.Float32), ["0.0", "0.5"]),
        (pl.Series([[-0.0, 0.5], []]), [["0.0", "0.5"], []]),
        (
            pl.Series(["-0.0", " -0 ", "-0e-3", "-0.5", "a-0", "-00x"]),
            ["0.0", " 0 ", "0e-3", "-0.5", "a-0", "-00x"],
        ),
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


SECONDS = [timedelta(seconds=90), timedelta(milliseconds=-1500), None]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_lengths_of_time_are_seconds(unit):
    cells = pl.Series("wait", SECONDS, dtype=pl.Duration(unit))
    assert as_text(cells).to_list() == ["90.0", "-1.5", None]
    assert as_numbers(cells, source="p", column="wait").to_list() == [90.0, -1.5, None]
    assert as_text(cells.head(1)).to_list() == ["90"]  # as any whole numbers
    lists = pl.Series([SECONDS[:2], [], None], dtype=pl.List(pl.Duration(unit)))
    assert as_text(lists).to_list() == [["90.0", "-1.5"], [], None]
    pairs = pl.Series([SECONDS[:2]], dtype=pl.Array(pl.Duration(unit), 2))
    assert as_text(pairs).to_list() == [["90.0", "-1.5"]]
    assert [is_duration(one.dtype) for one in (cells, lists, pairs)] == [True] * 3
    assert not is_duration(pl.Int64())


@pytest.mark.parametrize(
    "cells", [pl.Series("box", [{"x": 1}]), pl.Series("box", [b"x"]), pl.Series("box", [[[1]]])]
)
def test_structures_are_no_values(cells):
    assert not is_readable_dtype(cells.dtype)
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
    assert fill_empty_lists(lists).to_list() == [["a"], [None], [None]]
    assert fill_empty_lists(pl.Series([[], [1.0]])).to_list() == [[None], [1.0]]


def test_the_first_of_a_cell():
    assert first_as_text(pl.Series([["a", "b"], [], None])).to_list() == ["a", None, None]
    assert first_as_text(pl.Series([1.0, None])).to_list() == ["1", None]


def test_numbers_are_read_where_asked():
    cells = pl.Series([" 0.5", "1e-3", "", None, "-2", "NaN", "inf", "Unknown"])
    numbers = as_numbers(cells, source="p.csv", column="s", unknown=["unknown"]).to_list()
    assert numbers[:5] == [0.5, 0.001, None, None, -2.0]
    assert str(numbers[5:]) == "[nan, inf, None]"
    assert as_numbers(pl.Series([1, None]), source="", column="s").to_list() == [1.0, None]


def test_a_cell_that_is_no_number_is_named():
    with pytest.raises(
        TableError, match=r"(?s)2 cell\(s\) are not numbers.*'high'.*p\.csv, row 2, column 's'"
    ):
        as_numbers(pl.Series(["1", "high", "0,5"]), source="p.csv", column="s")
    with pytest.raises(TableError, match="a column of numbers holds lists"):
        as_numbers(pl.Series([["1"]]), source="p.csv", column="s")


def test_a_column_is_numeric_only_if_every_known_cell_is():
    assert numbers_if_all(pl.Series(["1", "N/A", None]), ["n/a"]).to_list() == [1.0, None, None]
    assert numbers_if_all(pl.Series(["1", "x"]), []) is None
    assert numbers_if_all(pl.Series(["1", "inf"]), []) is None
    assert numbers_if_all(pl.Series([None, "n/a"]), ["n/a"]) is None


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=8))
def test_a_number_written_as_text_is_the_same_number(values):
    cells = pl.Series(values, dtype=pl.Float64)
    back = as_numbers(as_text(cells), source="", column="x")
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


@given(
    st.lists(
        st.sampled_from([" x ", "x", "", " ", None, "1.0", "2", "02", "\u200b", "unknown", "nan"]),
        min_size=1,
        max_size=5,
    )
)
def test_a_long_column_is_read_as_its_cells_are(some):
    # Long columns of few texts are read text by text, short ones cell by cell.
    short = pl.Series("c", some, dtype=pl.String)
    long = pl.Series("c", (some * 1_200)[:1_200], dtype=pl.String)
    for read in (as_text, as_labels, lambda cells: numbers_if_all(cells, ["unknown"])):
        of_short, of_long = read(short), read(long)
        if of_short is None:
            assert of_long is None
        else:
            assert of_long.to_list() == (of_short.to_list() * 1_200)[:1_200]
            assert (of_long.name, of_long.dtype) == (of_short.name, of_short.dtype)
