from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolux.core.errors import SpecError, TableError
from isolux.core.spec import Grouping
from isolux.groups import build_membership
from isolux.groups.binning import (
    ALL_OTHERS,
    Bins,
    bin_or_merge_rare_values,
    format_bin_labels,
    parse_bins,
    quantile_bin_edges,
)


def ages(values, numbers=None, units=None):
    return pl.DataFrame(
        {
            "unit_id": units or [f"u{i}" for i in range(len(values))],
            "value": [None if v is None else str(v) for v in values],
            "number": numbers or [None] * len(values),
        },
        schema={"unit_id": pl.String, "value": pl.String, "number": pl.Float64},
    ).with_columns(unit_kind=pl.lit("instance"), attribute=pl.lit("age"))


def groups_of(attributes, bins, **how):
    grouping = {"age": Grouping(attribute="age", bins=bins, **how)}
    return build_membership(attributes, ["age"], grouping)


def pairs(attributes, bins, **how):
    return groups_of(attributes, bins, **how).frame.select("group", "unit_id").rows()


def test_the_age_bins_of_fairness_indicators_are_left_closed_and_in_order():
    # <18, [18,30), [30,45), [45,70), 70+: a birthday moves a person up on the day itself.
    found = pairs(ages([70, 69.9, 45, 30, 29, 18, 17]), "edges:18,30,45,70")
    assert found == [
        ("<18", "u6"),
        ("18–30", "u4"),
        ("18–30", "u5"),
        ("30–45", "u3"),
        ("45–70", "u1"),
        ("45–70", "u2"),
        ("70+", "u0"),
    ]


def test_the_number_column_is_used_where_there_is_one():
    assert pairs(ages(["about thirty"], [30.0]), "edges:18") == [("18+", "u0")]


def test_unknown_numbers_are_the_unknown_group_and_come_last():
    found = pairs(ages([20, None, "not sure"]), "edges:18")
    assert found == [("18+", "u0"), ("unknown", "u1"), ("unknown", "u2")]


def test_a_unit_with_numbers_on_both_sides_of_an_edge_is_in_both_bins():
    found = pairs(ages([29, 31], units=["a", "a"]), "edges:30")
    assert found == [("<30", "a"), ("30+", "a")]


def test_a_unit_has_one_number_for_quantiles_the_median_of_its_own():
    # a: 10, 20, 90 -> 20; b: 30; c: 40; d: 50. Two halves: a and b | c and d, edge 40.
    # With each number by itself 90 would put a into the upper half too.
    rows = ages([10, 20, 90, 30, 40, 50], units=["a", "a", "a", "b", "c", "d"])
    assert pairs(rows, "quantile:2") == [("<40", "a"), ("<40", "b"), ("40+", "c"), ("40+", "d")]


def test_quartiles_of_eight_have_two_each():
    rows = ages([8, 7, 6, 5, 4, 3, 2, 1])
    found = groups_of(rows, "quantile:4")
    assert found.frame.group_by("group", maintain_order=True).len().rows() == [
        ("<3", 2), ("3–5", 2), ("5–7", 2), ("7+", 2),
    ]  # fmt: skip
    assert found.notes == ()


def test_ties_share_the_upper_bin_and_the_report_says_that_bins_are_missing():
    # 0 0 0 0 0 1 2 3: the 1st and 2nd quartile edges are 0, which nobody is below.
    found = groups_of(ages([0, 0, 0, 0, 0, 1, 2, 3]), "quantile:4")
    assert found.frame.group_by("group", maintain_order=True).len().rows() == [("<2", 6), ("2+", 2)]
    assert found.notes == (
        (
            "age: 4 quantile bins were requested and 2 made, because there are too few different "
            "values"
        ),
    )


def test_equal_numbers_alone_are_one_bin():
    found = groups_of(ages([5, 5, 5]), "quantile:2")
    assert found.frame["group"].unique().to_list() == ["all values"]
    assert (
        "age: 'all values' is the only known group, so there is nothing to compare it with"
    ) in found.notes


def test_fewer_units_than_bins_are_a_bin_each():
    found = groups_of(ages([1, 2, 3]), "quantile:4")
    assert found.frame["group"].to_list() == ["<2", "2–3", "3+"]
    assert found.notes == (
        (
            "age: 4 quantile bins were requested and 3 made, because there are too few different "
            "values"
        ),
    )


@pytest.mark.parametrize("bins", ["quantile:4", "edges:18"])
def test_where_everyone_is_unknown_there_are_no_bins_to_speak_of(bins):
    found = groups_of(ages([None, None]), bins)
    assert found.frame["group"].to_list() == ["unknown", "unknown"]
    assert found.notes == (
        "age: 2 of 2 unit(s) unknown (not annotated), kept as a separate group",
        "age: every unit is unknown or left out",
    )


def test_an_empty_bin_is_no_group_but_is_named():
    found = groups_of(ages([20, 50]), "edges:18,30,45")
    assert found.frame["group"].to_list() == ["18–30", "45+"]
    assert found.notes == ("age: no unit is in <18, 30–45",)


def test_bins_can_be_merged_by_their_labels():
    rows = ages([10, 20, 80])
    merge = {"adult": ("18–70", "70+")}
    assert pairs(rows, "edges:18,70", merge=merge) == [
        ("<18", "u0"),
        ("adult", "u1"),
        ("adult", "u2"),
    ]


def test_edges_are_written_so_that_they_can_be_told_apart():
    assert format_bin_labels((195.21623, 1963.0, 10097.7)) == (
        "<195.2",
        "195.2–1963",
        "1963–10098",
        "10098+",
    )
    assert format_bin_labels((0.123456, 0.123457)) == (
        "<0.123456",
        "0.123456–0.123457",
        "0.123457+",
    )
    assert format_bin_labels((-5.0, 0.0)) == ("<-5", "-5–0", "0+")


def test_text_that_is_no_number_is_refused_with_its_unit():
    rows = ages([20, "twenty", 30, "old"])
    with pytest.raises(TableError) as error:
        groups_of(rows, "edges:18")
    assert str(error.value) == (
        "2 value(s) of 'age' are not numbers, so they do not fit in any bin\n"
        "  expected: a finite number, or a word that means unknown\n"
        "  found: 'twenty' of unit 'u1'\n"
        "  where: column 'age'\n"
        "  what to do: correct the value, or name it in unknown_values"
    )


def test_the_first_row_that_is_no_number_is_named_in_whatever_order_rows_come():
    rows = pl.DataFrame(
        {
            "row": [9, 4],
            "unit_id": ["z", "a"],
            "unit": [0, 1],
            "value": ["x", "y"],
            "number": [None, None],
        }
    )
    with pytest.raises(TableError, match=r"found: 'y' of unit 'a'\n  where: column 'age'"):
        bin_or_merge_rare_values(rows, Bins(edges=(1.0,)), "age")


def test_infinity_is_in_no_bin():
    with pytest.raises(TableError, match="found: 'inf' of unit 'u0'"):
        groups_of(ages(["inf"]), "edges:18")


@pytest.mark.parametrize(
    "text",
    ["quantile:1", "quantile:x", "quantile", "edges:", "edges:30,18", "edges:1,1", "edges:1,nan",
     "edges:1,inf", "width:5", ""],
)  # fmt: skip
def test_bins_that_cannot_be_read_are_refused(text):
    with pytest.raises(SpecError) as error:
        parse_bins(text)
    assert str(error.value) == (
        "the bins cannot be used\n  expected: 'quantile:K' with K of 2 or more, or 'edges:A,B,…' "
        "with rising numbers; closed on the left, or with ':right' at the end on the right; or "
        f"'top:K', the K most common values\n  found: {text!r}"
    )


def test_bins_are_read():
    assert parse_bins(" quantile:4 ") == Bins(quantiles=4)
    assert parse_bins("edges:-1, 2.5") == Bins(edges=(-1.0, 2.5))


def test_more_than_thirty_numbers_want_bins():
    thirty = ages(range(30))
    assert len(build_membership(thirty, ["age"]).frame) == 30
    with pytest.raises(SpecError) as error:
        build_membership(ages(range(31)), ["age"])
    assert str(error.value) == (
        "'age' has 31 different numbers, too many to be groups\n"
        "  expected: at most 30, or bins\n"
        '  what to do: give --bins "age=quantile:4" or --bins "age=edges:A,B,C"'
    )
    # Unless a merge leaves few enough.
    merge = Grouping(attribute="age", merge={"young": ("0", "1")}, rest="drop")
    assert len(build_membership(ages(range(31)), ["age"], {"age": merge}).frame) == 2


NUMBERS = st.lists(st.integers(-20, 20), min_size=1, max_size=60)


@given(NUMBERS, st.integers(2, 6))
@settings(max_examples=150, deadline=None)
def test_quantile_bins_differ_in_size_by_no_more_than_the_ties_at_their_edges(numbers, k):
    values = np.array(numbers, dtype=float)
    n = len(values)
    edges = quantile_bin_edges(pl.Series(values), k)
    below = [(values < e).sum() for e in edges]
    ties = [(values == e).sum() for e in edges]
    targets = [i * n // k for i in range(1, k)]
    for b, t in zip(below, ties, strict=True):
        # Each edge serves a target count of units below it, missed by less than its own ties.
        assert any(0 <= target - b < t for target in targets)
    if len(set(numbers)) == n >= k:
        sizes = np.diff([0, *below, n])
        assert len(sizes) == k
        assert sizes.max() - sizes.min() <= 1


@given(NUMBERS, st.integers(2, 6))
@settings(max_examples=60, deadline=None)
def test_a_unit_is_in_exactly_one_quantile_bin_and_equal_numbers_share_it(numbers, k):
    frame = groups_of(ages(numbers), f"quantile:{k}").frame
    assert sorted(frame["unit_id"]) == sorted(f"u{i}" for i in range(len(numbers)))
    bin_of = dict(frame.select("unit_id", "group").rows())
    by_number: dict[int, set[str]] = {}
    for i, number in enumerate(numbers):
        by_number.setdefault(number, set()).add(bin_of[f"u{i}"])
    assert all(len(bins) == 1 for bins in by_number.values())
    # Bins rise with the numbers, and the table lists them in that order.
    ordered = [bins.pop() for _, bins in sorted(by_number.items())]
    assert list(dict.fromkeys(ordered)) == frame["group"].unique(maintain_order=True).to_list()


def test_bystanders_do_not_move_the_edges_of_quantiles():
    # Four were scored, at 10, 20, 30, 40; a hundred bystanders are below 5. Halves part at 30.
    ids = [f"s{i}" for i in range(4)] + [f"b{i}" for i in range(100)]
    numbers = [10.0, 20.0, 30.0, 40.0] + [i / 20 for i in range(100)]
    attributes = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": ids, "attribute": "height",
         "value": [str(x) for x in numbers]}
    )  # fmt: skip
    units = pl.DataFrame({"unit_id": ids, "scored": [True] * 4 + [False] * 100})
    how = {"height": Grouping(attribute="height", bins="quantile:2")}
    frame = build_membership(attributes, ["height"], how, units=units).frame
    of = dict(frame.select("unit_id", "group").iter_rows())
    assert [of[f"s{i}"] for i in range(4)] == ["<30", "<30", "30+", "30+"]
    assert of["b99"] == "<30"


def test_closed_on_the_right_quantiles_are_those_of_numpy_and_an_edge_is_in_the_bin_below():
    draw = np.random.default_rng(0)
    for size in (5, 40, 41, 200):
        numbers = draw.integers(0, 30, size).astype(float)
        bins = parse_bins("quantile:4:right")
        edges = bins.fixed_or_quantile_edges(pl.Series(numbers))
        expected = np.unique(np.quantile(numbers, [0.25, 0.5, 0.75]))
        assert edges == pytest.approx(tuple(expected[expected < numbers.max()]))
        code = bins.bin_index(numbers, edges)
        assert [numbers[code == k].max() <= edges[k] for k in range(len(edges))]
        assert all(numbers[code == k + 1].min() > e for k, e in enumerate(edges))


def test_of_given_edges_the_closed_side_is_a_choice():
    rows = pl.DataFrame({"row": [0, 1, 2], "unit_id": ["a", "b", "c"], "unit": [0, 1, 2],
                         "value": ["17", "18", "19"], "number": [17.0, 18.0, 19.0]})  # fmt: skip
    assert bin_or_merge_rare_values(rows, parse_bins("edges:18"), "age").rows[
        "value"
    ].to_list() == [
        "<18",
        "18+",
        "18+",
    ]
    right = bin_or_merge_rare_values(rows, parse_bins("edges:18:right"), "age")
    assert right.rows["value"].to_list() == ["≤18", "≤18", ">18"]
    with pytest.raises(SpecError, match="':right' at the end"):
        parse_bins("edges:18:rigth")


def test_the_commonest_values_stay_and_all_others_are_one_group():
    # Four of Lima, two each of Bonn and Cork (equal: by name), one of Oslo, one unknown.
    cities = ["Lima"] * 4 + ["Cork", "Bonn"] * 2 + ["Oslo", None]
    found = groups_of(ages(cities), "top:2")
    sizes = found.frame.group_by("group", maintain_order=True).len().rows()
    assert dict(sizes) == {"Lima": 4, "Bonn": 2, ALL_OTHERS: 3, "unknown": 1}
    assert "age: 2 values that are not among the 2 most common are 'all others'" in found.notes
    few = groups_of(ages(cities), "top:4").frame
    assert few["group"].unique().sort().to_list() == ["Bonn", "Cork", "Lima", "Oslo", "unknown"]


def test_how_common_a_value_is_goes_by_units_not_by_rows():
    said = ages(["x", "x", "y", "y"], units=["a", "a", "b", "c"])
    assert "y" in groups_of(said, "top:1").frame["group"].to_list()


def test_an_attribute_of_too_many_values_is_refused_with_what_to_do():
    many = ages([f"name {i}" for i in range(12)])
    with pytest.raises(SpecError) as caught:
        build_membership(many, ["age"], max_values=11)
    assert "'age' has 12 different values, too many to compare their groups" in str(caught.value)
    assert "expected: at most 11" in str(caught.value)
    assert '--bins "age=top:50"' in str(caught.value)
    assert build_membership(many, ["age"], max_values=12).groups.height == 12
    few = {"age": Grouping(attribute="age", bins="top:3")}
    assert build_membership(many, ["age"], few, max_values=11).groups.height == 4
    numbers = ages(range(40))
    with pytest.raises(SpecError, match="40 different numbers, too many to be groups"):
        build_membership(numbers, ["age"], max_values=11)
