from __future__ import annotations

import posixpath

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.io.ids import read_ids, reduce_ids

FRAME = pl.DataFrame({"file": ["a", " ", None], "tags": [["x"], ["y"], ["z"]], "n": [1.0, 2, 3]})


def test_ids_are_text_whatever_they_were():
    assert read_ids(FRAME, "n", "p.csv").to_list() == ["1", "2", "3"]


def test_rows_without_an_id_are_refused():
    with pytest.raises(
        TableError,
        match=r"(?s)2 row\(s\) have no id.*p\.csv, row 2, column 'file'.*leave the row out",
    ):
        read_ids(FRAME, "file", "p.csv")


def test_ids_are_single_values():
    with pytest.raises(TableError, match="the column of ids holds lists"):
        read_ids(FRAME, "tags", "p.csv")


def test_an_unknown_id_column_names_near_ones():
    with pytest.raises(UnknownNameError, match=r"(?s)no column named 'files'.*'file'"):
        read_ids(FRAME, "files", "p.csv")


@pytest.mark.parametrize(
    ("whole", "base", "stem"),
    [
        ("fairface/val/1.jpg", "1.jpg", "1"),
        ("C:\\faces\\1.jpg", "1.jpg", "1"),
        ("1.tar.gz", "1.tar.gz", "1.tar"),
        ("a.b/c", "c", "c"),
        (".hidden", ".hidden", ".hidden"),
        ("7", "7", "7"),
        ("x\ny/1.jpg", "1.jpg", "1"),
    ],
)
def test_parts_of_an_id(whole, base, stem):
    ids = pl.Series([whole])
    assert reduce_ids(ids, "column").to_list() == [whole]
    assert reduce_ids(ids, "basename").to_list() == [base]
    assert reduce_ids(ids, "stem").to_list() == [stem]


def test_another_way_is_refused():
    with pytest.raises(SpecError, match=r"(?s)cannot be taken that way.*column, basename, stem"):
        reduce_ids(pl.Series(["a"]), "suffix")


@given(st.lists(st.text("ab./", max_size=8), min_size=1))
def test_parts_agree_with_posixpath(ids):
    # posixpath is the independent implementation; it knows no backslash.
    bases = [posixpath.basename(i) for i in ids]
    stems = [posixpath.splitext(b)[0] for b in bases]
    assert reduce_ids(pl.Series(ids), "basename").to_list() == bases
    found = reduce_ids(pl.Series(ids), "stem").to_list()
    # splitext keeps leading dots ("..a" has no suffix); here only the first character is kept.
    assert [f for f, b in zip(found, bases, strict=True) if not b.startswith(".")] == [
        s for s, b in zip(stems, bases, strict=True) if not b.startswith(".")
    ]
