"""One value a row: what is missing is null, what is of several kinds is refused."""

from __future__ import annotations

import datetime as dt
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isolux.core.errors import TableError
from isolux.core.inputs import infer_label_type, to_series_with_nulls, to_single_column
from tests.core.inputs._others import Tensor

DAY = dt.datetime(2020, 1, 1)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["a", None], ["a", None]),
        (np.array(["a", float("nan")], dtype=object), ["a", None]),
        (np.array([1.0, np.nan]), [1.0, None]),
        ([1, 2.5, float("nan")], [1.0, 2.5, None]),
        (Tensor([True, False]), [True, False]),
        ([Tensor(1), Tensor(0)], [1, 0]),
        ([np.int64(1), None], [1, None]),
        (pd.Series(["a", None], dtype=object), ["a", None]),
        (pd.Series(["a", None]), ["a", None]),
        (pd.Series([1, None], dtype="Int64"), [1, None]),
        (pd.Series([1.0, np.nan]), [1.0, None]),
        (pd.Series([True, None], dtype="boolean"), [True, None]),
        (pd.Series(["a", "b"], dtype="category"), ["a", "b"]),
        (pd.Series([3, 1], dtype="category"), [3, 1]),
        (pd.Series([DAY, pd.NaT]), [DAY, None]),
        (pd.cut(pd.Series([1, 9]), [0, 5, 10]), ["(0, 5]", "(5, 10]"]),
        (pd.Index(["a", "b"]), ["a", "b"]),
        (pa.chunked_array([["a"], [None]]), ["a", None]),
        (pl.Series(["a", None], dtype=pl.Object), ["a", None]),
        ([["a"], ["a", "b"]], [["a"], ["a", "b"]]),
    ],
)
def test_values_of_any_library(values, expected):
    found = to_series_with_nulls(values, "x")
    assert (found.name, found.to_list()) == ("x", expected)


@pytest.mark.parametrize("dtype", ["string", "Int64", "category"])
def test_pandas_needs_no_pyarrow(dtype, monkeypatch):
    given = pd.Series(["1", None] if dtype == "string" else [1, None], dtype=dtype)
    expected = to_series_with_nulls(given, "x").to_list()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert to_series_with_nulls(given, "x").cast(pl.String).to_list()[0][:1] == str(expected[0])[:1]
    assert to_series_with_nulls(given, "x")[1] is None


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (["1", 1], r"several kinds(.|\n)*text \('1', row 1\) and numbers \(1, row 2\)"),
        (pd.Series([1, "1"], dtype=object), r"several kinds(.|\n)*column 'x'(.|\n)*astype\(str\)"),
        ([True, 1], r"yes or no \(True, row 1\) and numbers"),
        ([None, object()], r"something that is not a value(.|\n)*objects of the type object"),
        ([{1, 2}], "something that is not a value"),
        ("abc", "x is one value"),
    ],
)
def test_several_kinds_of_values_are_refused(values, match):
    with pytest.raises(TableError, match=match):
        to_series_with_nulls(values, "x")


@pytest.mark.parametrize(
    "values", [np.array([[1], [0]]), pd.DataFrame({"y": [1, 0]}), pl.DataFrame({"y": [1, 0]}),
               Tensor([[1], [0]])]
)  # fmt: skip
def test_a_column_may_have_a_second_dimension_of_one(values):
    assert to_single_column(values, "y").to_list() == [1, 0]


@pytest.mark.parametrize("values", [np.eye(2), pd.DataFrame(np.eye(2)), [[1, 0], [0, 1]]])
def test_one_hot_code_is_refused_with_what_to_do(values):
    with pytest.raises(TableError, match=r"not one value a person(.|\n)*argmax\(axis=1\)"):
        to_single_column(values, "y")


def test_kinds():
    kinds = [infer_label_type(s) for s in (pl.Series([1]), pl.Series(["a"], dtype=pl.Categorical),
                                  pl.Series([True]), pl.Series([[1]]))]  # fmt: skip
    assert kinds == ["numbers", "text", "yes or no", "other"]
