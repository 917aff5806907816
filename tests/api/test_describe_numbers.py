"""Numbers by group: quantiles by hand, and which attributes are numbers."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.api.describe.counts import describe_datasets as counted
from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo

INFO = DatasetInfo(
    title="Made", summary="Made up.", references=(), terms=(("ita", "skin colour, degrees"),)
)
CAPTION = "Numbers: skin colour, degrees (ita)"


def described(angles, groups, by=()):
    ids = [str(i) for i in range(len(groups))]
    rows = [("instance", i, "race", g, None) for i, g in zip(ids, groups, strict=True)]
    rows += [
        ("instance", ids[i], "ita", None if a is None else f"{a:g}", a)
        for i, found in enumerate(angles)
        for a in (found if isinstance(found, list) else [found])
    ]
    schema = ["unit_kind", "unit_id", "attribute", "value", "number"]
    data = Dataset(
        "made",
        INFO,
        pl.DataFrame({"instance_id": ids, "image_id": ids}),
        pl.DataFrame(rows, schema=schema, orient="row"),
    )
    return counted({"d": data}, by).tables


def test_quantiles_by_hand():
    # A: 0.5, 10, 20, 30, 40; B: four of 50; one of B is not known
    table = described(
        [0.5, 10.0, 20.0, 30.0, 40.0, 50.0, 50.0, 50.0, 50.0, None], ["A"] * 5 + ["B"] * 5
    )[CAPTION]
    rows = {r["group"]: r for r in table.rows(named=True)}
    assert list(rows) == ["overall", "A", "B"]
    assert [rows["A"][q] for q in ("25th", "median", "75th")] == [10.0, 20.0, 30.0]
    assert rows["A"]["5th"] == pytest.approx(0.5 + 0.2 * 9.5)
    assert rows["A"]["mean"] == pytest.approx(20.1)
    assert (rows["B"]["people"], rows["B"]["% without"]) == (4, pytest.approx(20.0))
    assert rows["overall"]["people"] == 9


def test_three_annotators_are_one_person():
    table = described([[10.0, 20.5, 30.0], 1.0, 2.0, 3.0], ["A"] * 4)[CAPTION]
    assert table.row(1, named=True)["people"] == 4
    assert table.row(1, named=True)["mean"] == pytest.approx((60.5 / 3 + 6) / 4)


def test_of_fewer_than_four_nothing_is_told():
    table = described([1.5, 2.5, 3.5, 4.5, 5.5], ["A", "A", "A", "B", "B"])[CAPTION]
    assert table.filter(pl.col("group") == "A")["median"].to_list() == [None]
    assert table.filter(pl.col("group") == "overall")["median"].to_list() == [3.5]


def test_a_few_whole_numbers_are_groups_and_not_numbers():
    found = described([1.0, 2.0, 3.0, 1.0, 2.0], ["A"] * 5)
    assert CAPTION not in found
    assert "By skin colour, degrees (ita)" in found


def test_intersections_have_rows_too():
    table = described([1.5, 2.5, 3.5, 4.5], ["A"] * 4, by=["race"])[CAPTION]
    assert table["attribute"].to_list() == ["overall", "race"]
