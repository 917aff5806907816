from __future__ import annotations

from itertools import product

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.spec import Grouping
from isolux.groups import build_membership
from isolux.groups.intersections import (
    format_group_name,
    parse_intersection,
    parse_unique_intersections,
)

KNOWN = ["race", "gender", "age", "a*b"]


def attributes_of(rows):
    schema = dict.fromkeys(("unit_id", "attribute", "value"), pl.String)
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(unit_kind=pl.lit("instance"))


def test_two_tones_and_one_gender_are_two_groups():
    rows = attributes_of(
        [
            ("p", "tone", "3"), ("p", "tone", "4"), ("p", "gender", "F"),
            ("q", "tone", "4"), ("q", "gender", "M"),
        ]
    )  # fmt: skip
    found = build_membership(rows, ["tone*gender", "gender*tone"][:1])
    assert found.frame.rows() == [
        ("tone*gender", "3 × F", ["3", "F"], "p"),
        ("tone*gender", "4 × F", ["4", "F"], "p"),
        ("tone*gender", "4 × M", ["4", "M"], "q"),
    ]
    turned = build_membership(rows, ["gender*tone"]).frame
    assert turned["values"].to_list() == [["F", "3"], ["F", "4"], ["M", "4"]]
    assert turned["attribute"].unique().to_list() == ["gender*tone"]


def test_intersections_stand_beside_their_attributes_in_the_order_given():
    rows = attributes_of([("p", "race", "W"), ("p", "gender", "F")])
    frame = build_membership(rows, ["race*gender", "gender", " race ", "race"]).frame
    assert frame["attribute"].to_list() == ["race*gender", "gender", "race"]


def test_merges_and_bins_hold_inside_an_intersection():
    rows = attributes_of(
        [
            ("p", "tone", "1"),
            ("p", "tone", "2"),
            ("p", "age", "17"),
            ("q", "tone", "5"),
            ("q", "age", "40"),
        ]
    )
    how = {
        "tone": Grouping(attribute="tone", merge={"lighter": ("1", "2")}, rest="drop"),
        "age": Grouping(attribute="age", bins="edges:18"),
    }
    frame = build_membership(rows, ["tone*age"], how).frame
    assert frame.select("group", "unit_id").rows() == [("lighter × <18", "p")]


def test_groups_that_look_alike_are_still_told_apart():
    rows = attributes_of(
        [("p", "a", "x × y"), ("p", "b", "z"), ("q", "a", "x"), ("q", "b", "y × z")]
    )
    frame = build_membership(rows, ["a*b"]).frame
    assert sorted(frame["group"]) == ['"x × y" × z', 'x × "y × z"']
    assert format_group_name(["x × y"]) == "x × y"


def test_an_attribute_whose_name_holds_a_star_stays_whole():
    assert parse_intersection("a*b", KNOWN) == ("a*b",)
    assert parse_intersection(" race*gender * age", KNOWN) == ("race", "gender", "age")


def test_an_attribute_that_does_not_exist_is_refused_with_the_nearest_names():
    with pytest.raises(UnknownNameError) as error:
        parse_intersection("race*gendre", KNOWN)
    assert str(error.value) == (
        "there is no attribute named 'gendre'\n"
        "  expected: one of a*b, age, gender, race\n"
        "  what to do: did you mean 'gender'?"
    )


@pytest.mark.parametrize("entry", ["race*race", "race*", "*", ""])
def test_an_intersection_that_cannot_be_read_is_refused(entry):
    with pytest.raises(SpecError) as error:
        parse_intersection(entry, KNOWN)
    assert str(error.value) == (
        "an intersection cannot be read\n"
        "  expected: different attributes joined by *, as in 'race*gender'\n"
        f"  found: {entry!r}"
    )


def test_the_same_groups_in_another_order_are_refused():
    with pytest.raises(SpecError) as error:
        parse_unique_intersections(["race*gender", "gender*race"], KNOWN)
    assert str(error.value) == (
        "two intersections have the same groups\n"
        "  expected: each intersection once\n"
        "  found: 'race*gender' and 'gender*race'"
    )


VALUES = {"a": ["1", "2", None], "b": ["x", "y", None], "c": ["10", "9"], "d": ["v"]}
ROWS = st.lists(
    st.sampled_from(sorted(VALUES)).flatmap(
        lambda name: st.tuples(
            st.sampled_from("pqrstu"), st.just(name), st.sampled_from(VALUES[name])
        )
    ),
    max_size=40,
)
ALL = [("w", name, values[0]) for name, values in VALUES.items()]


@given(ROWS, st.permutations(sorted(VALUES)), st.integers(1, 4), st.sampled_from(["keep", "drop"]))
@settings(max_examples=100, deadline=None)
def test_membership_is_the_set_product_recomputed_in_plain_python(rows, order, k, unknown):
    rows = [*rows, *ALL]
    names = order[:k]
    units = sorted({u for u, _, _ in rows})
    how = {name: Grouping(attribute=name, unknown=unknown) for name in names}
    frame = build_membership(
        attributes_of(rows), ["*".join(names)], how, units=pl.Series(units)
    ).frame

    expected = set()
    for unit in units:
        sides = []
        for name in names:
            known = {v for u, n, v in rows if (u, n) == (unit, name) and v is not None}
            sides.append(known or ({"unknown"} if unknown == "keep" else set()))
        expected |= {(unit, cell) for cell in product(*sides)}
    found = [(unit, tuple(v)) for unit, v in frame.select("unit_id", "values").rows()]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert frame["group"].to_list() == [" × ".join(v) for v in frame["values"].to_list()]
