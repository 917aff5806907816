"""Tables of every library come out as one frame; rows keep their places."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isolux.core.errors import TableError
from isolux.core.inputs import is_table_like, refuse_misaligned_pandas_indices, to_polars
from tests.core.inputs._others import (
    ArrowStream,
    ClassLabel,
    HuggingFace,
    Image,
    Stream,
    Tensor,
)

DATA = {"race": ["a", "b", None], "right": [1.0, 0.0, None]}
EXPECTED = pl.DataFrame(DATA)


class OnlyPandas:
    def to_pandas(self):
        return pd.DataFrame(DATA)


@pytest.mark.parametrize(
    "given",
    [
        EXPECTED,
        EXPECTED.lazy(),
        DATA,
        {"race": DATA["race"], "right": Tensor([1.0, 0.0, np.nan], grad=True)},
        pd.DataFrame(DATA),
        pd.DataFrame(DATA, index=["x", "y", "z"]),
        pa.table(DATA),
        ArrowStream(DATA),
        OnlyPandas(),
        HuggingFace(DATA, {}),
    ],
    ids=["polars", "lazy", "mapping", "tensors", "pandas", "index", "pyarrow", "stream",
         "to_pandas", "datasets"],
)  # fmt: skip
def test_a_table_of_any_library(given):
    assert to_polars(given).equals(EXPECTED)


def test_pandas_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert to_polars(pd.DataFrame(DATA)).equals(EXPECTED)


def test_a_structured_array():
    given = np.array([("a", 1), ("b", 2)], dtype=[("race", "U2"), ("n", int)])
    assert to_polars(given).rows() == [("a", 1), ("b", 2)]


def test_classes_of_hugging_face_are_named():
    features = {"y": ClassLabel(["cat", "dog"]), "photo": Image(), "n": object()}
    features["several"] = type("Sequence", (), {"feature": ClassLabel(["p", "q"])})()
    given = HuggingFace(
        {"y": [1, 0, -1], "photo": ["…", "…", "…"], "n": [1, 2, 3], "several": [[0, 1], [], [1]]},
        features,
    )
    found = to_polars(given)
    assert found["y"].to_list() == ["dog", "cat", None]  # -1 is how a missing class is written
    assert found["several"].to_list() == [["p", "q"], [], ["q"]]
    assert found.columns == ["y", "n", "several"]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ([1, 2], r"not a table(.|\n)*found: list(.|\n)*given their names in a mapping"),
        ("people.csv", "not a table"),
        (pd.Series([1]), "not a table"),
        (np.eye(2), "not a table"),
        (None, "not a table"),
        ({"a": [1], "b": [1, 2]}, r"columns differ in length(.|\n)*a: 1, b: 2"),
        ({"train": EXPECTED, "test": EXPECTED}, r"several tables(.|\n)*data\['train'\]"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"same name(.|\n)*'a'"),
        (pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)}), r"several kinds(.|\n)*column 'a'"),
        (HuggingFace({"y": [2]}, {"y": ClassLabel(["p", "q"])}), r"none of the names(.|\n)*: 2"),
        (Stream(), r"a stream(.|\n)*without streaming=True"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused(given, match):
    with pytest.raises(TableError, match=match):
        to_polars(given)


def test_what_looks_like_a_table():
    frames = [EXPECTED, DATA, pd.DataFrame(DATA), pa.table(DATA), HuggingFace(DATA, {}), Stream()]
    assert all(is_table_like(one) for one in frames)
    assert not any(is_table_like(one) for one in ("a.csv", [1], np.eye(2), pd.Series([1]), None, 3))


def _series(index):
    return pd.Series(range(len(index)), index=index)


def test_indices_that_name_other_rows_are_refused():
    with pytest.raises(TableError, match=r"a and b hold the same rows in another order(.|\n)*'x'"):
        refuse_misaligned_pandas_indices({"a": _series(["x", "y"]), "b": _series(["y", "x"])})
    with pytest.raises(TableError, match=r"a and c hold other rows(.|\n)*'y' and 'z'"):
        refuse_misaligned_pandas_indices(
            {"a": _series(["x", "y"]), "b": [1, 2], "c": _series(["x", "z"])}
        )
    with pytest.raises(TableError, match="truth and answer hold the same rows in another order"):
        to_polars({"truth": _series([3, 4]), "answer": _series([4, 3])})


def test_an_index_that_only_counts_says_nothing(recwarn):
    refuse_misaligned_pandas_indices(
        {"a": _series([7, 9]), "b": _series(range(2)), "c": _series([7, 9])}
    )
    assert not recwarn.list


def test_a_shuffle_that_one_of_two_missed_is_told():
    with pytest.warns(UserWarning, match=r"a and b hold the same rows in another order, by their"):
        refuse_misaligned_pandas_indices({"a": _series([1, 0]), "b": _series(range(2))})
