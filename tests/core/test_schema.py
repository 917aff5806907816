"""check() says file, row, column, expected and found, and refuses nothing that is right."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import IsoluxError, TableError, UnknownNameError
from isolux.core.schema import check, to_polars
from isolux.core.tables import ATTRIBUTES, IMAGES, LABEL_PREDICTIONS, SCORES, TABLES

GOOD = pl.DataFrame(
    {"unit_kind": "instance", "unit_id": ["a", "b"], "attribute": "tone", "value": ["3", None]}
)


def test_absent_optional_columns_come_as_nulls_in_order():
    found = check(GOOD.select("value", "attribute", "unit_id", "unit_kind"), ATTRIBUTES)
    assert found.columns == list(ATTRIBUTES.schema)
    assert found["number"].null_count() == 2
    assert found.schema["votes"] == pl.Float64


def test_whole_numbers_may_stand_for_floats():
    assert check(GOOD.with_columns(votes=pl.Series([1, 2])), ATTRIBUTES)["votes"].to_list() == [
        1,
        2,
    ]


def test_a_missing_column_names_the_nearest():
    with pytest.raises(UnknownNameError) as caught:
        check(GOOD.rename({"attribute": "atribute"}), ATTRIBUTES, source="people.csv")
    assert "no column named 'attribute'" in str(caught.value)
    assert "people.csv" in str(caught.value)
    assert "did you mean 'atribute'?" in str(caught.value)


def test_a_cell_of_the_wrong_type_is_named():
    frame = GOOD.with_columns(number=pl.Series(["1.5", "many"]))
    with pytest.raises(TableError) as caught:
        check(frame, ATTRIBUTES, source="people.csv")
    assert str(caught.value) == (
        "a cell of attributes has the wrong type\n"
        "  expected: Float64 (the value of a numeric attribute)\n"
        "  found: 'many'\n"
        "  where: people.csv, row 2, column 'number'"
    )


@pytest.mark.parametrize(("value", "found"), [(float("nan"), "nan"), (float("inf"), "inf")])
def test_nan_and_infinity_are_no_numbers(value, found):
    frame = GOOD.with_columns(number=pl.Series([1.0, value]))
    with pytest.raises(TableError, match=rf"expected: a finite number, or none\n  found: {found}"):
        check(frame, ATTRIBUTES)


def test_a_null_where_none_may_be():
    frame = GOOD.with_columns(unit_id=pl.Series(["a", None]))
    with pytest.raises(TableError, match="a value in every row") as caught:
        check(frame, ATTRIBUTES)
    assert "row 2, column 'unit_id'" in str(caught.value)


def test_a_word_outside_a_closed_list():
    frame = GOOD.with_columns(unit_kind=pl.Series(["instance", "dog"]))
    with pytest.raises(TableError, match="one of instance, image, subject, household, query"):
        check(frame, ATTRIBUTES)


def test_a_repeated_key_names_both_rows():
    row = {"model": "m", "instance_id": "a", "label": "x", "score": 0.5, "rank": 1}
    frame = pl.DataFrame([row, {**row, "rank": 2}, row])
    with pytest.raises(TableError, match="in rows 1 and 3"):
        check(frame, LABEL_PREDICTIONS)


def test_nulls_in_a_key_are_equal():
    row = {"model": "m", "task": "t", "metric": "a", "label": None, "threshold": None,
           "unit_kind": "instance", "unit_id": "a", "cluster_id": None, "value": 1.0,
           "reason": None}  # fmt: skip
    with pytest.raises(TableError, match="in rows 1 and 2"):
        check(pl.DataFrame([row, row]), SCORES)


def test_an_open_table_keeps_further_columns_and_a_closed_one_drops_them():
    frame = pl.DataFrame({"image_id": ["a"], "weather": ["fog"]})
    assert check(frame, IMAGES).columns[-1] == "weather"
    assert "weather" not in check(GOOD.with_columns(weather=pl.lit("fog")), ATTRIBUTES).columns


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_an_empty_table_passes_and_every_column_means_something(table):
    assert check(table.empty(), table).height == 0
    assert all(column.meaning for column in table.columns)
    assert set(table.key) <= set(table.schema)


cells = st.one_of(st.none(), st.text(max_size=4), st.floats(), st.integers(-5, 5), st.booleans())


@given(st.lists(st.tuples(cells, cells, cells, cells, cells), max_size=5))
def test_whatever_comes_in_only_isolux_errors_come_out(rows):
    names = ["unit_kind", "unit_id", "attribute", "value", "number"]
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    frame = pl.DataFrame(
        {n: pl.Series(list(c), strict=False) for n, c in zip(names, columns, strict=True)}
    )
    try:
        found = check(frame, ATTRIBUTES)
    except IsoluxError:
        return
    assert found.columns == list(ATTRIBUTES.schema)


def test_any_frame_becomes_a_polars_one():
    expected = [(1, "x"), (2, "y")]
    data = {"a": [1, 2], "b": ["x", "y"]}
    for frame in (
        pl.DataFrame(data),
        pl.LazyFrame(data),
        pd.DataFrame(data),
        pl.DataFrame(data).to_arrow(),
    ):
        assert to_polars(frame).rows() == expected


def test_what_is_no_frame_is_refused():
    with pytest.raises(TableError, match="a frame of polars, pandas, pyarrow or datasets"):
        to_polars([1, 2])


def test_finite_numbers_whose_sum_is_not_are_right():
    large = GOOD.with_columns(votes=pl.lit(1.7e308))
    assert check(large, ATTRIBUTES)["votes"].to_list() == [1.7e308] * 2


@pytest.mark.parametrize("bad", [[float("inf"), float("-inf")], [float("nan"), 1.0]])
def test_what_is_not_finite_is_told_with_its_row(bad):
    votes = pl.Series(bad)
    with pytest.raises(TableError, match=r"a finite number(?s:.*)row 1, column 'votes'"):
        check(GOOD.with_columns(votes=votes), ATTRIBUTES)


def _part(**columns):
    given = {"unit_kind": "instance", "unit_id": ["a", "b"], "attribute": "x", "value": ["3", "4"]}
    return pl.DataFrame(given | columns)


@pytest.mark.parametrize(
    "parts",
    [
        [_part()],
        [_part(), _part(attribute="y", value=None)],
        [_part(value=None), _part(value=None, attribute="y")],
        [_part().clear(), _part(unit_kind="image")],
        [_part().clear(), _part().clear()],
        [_part().head(1)],
        [_part(number=pl.Series([None, 1.0])), _part(number=pl.Series([1.0, 1.0]))],
    ],
)
def test_parts_under_one_another_are_the_rows_of_all(parts):
    same = {name: dtype for name, dtype in ATTRIBUTES.schema.items() if name in parts[0].columns}
    parts = [part.cast(same) for part in parts]
    assert ATTRIBUTES.stack(parts).equals(ATTRIBUTES.conform(pl.concat(parts)))


def test_a_key_that_differs_in_one_column_alone_is_told_by_it():
    row = {"model": "m", "instance_id": ["a", "a"], "label": "x", "score": None}
    twice = pl.DataFrame({**row, "rank": [1, 2]})
    assert check(twice, LABEL_PREDICTIONS).height == 2
    with pytest.raises(TableError, match="two rows have the same model"):
        check(pl.DataFrame({**row, "rank": [1, 1]}), LABEL_PREDICTIONS)
