"""FHIBE's rule: a broad value counts in each subregion when no subregion is beside it."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.errors import SpecError
from isolux.core.spec import Grouping
from isolux.groups import build_membership
from isolux.groups.merging import expand_nested_values, list_leaves

ANCESTRY = {"Africa": ("Kenya", "Ghana"), "Asia": ("Japan", "Nepal")}


def people(*values):
    """One person per argument, each with a tuple of ancestries."""
    rows = [(f"p{i}", value) for i, given in enumerate(values) for value in given]
    frame = pl.DataFrame(rows, schema={"unit_id": pl.String, "value": pl.String}, orient="row")
    return frame.with_columns(unit_kind=pl.lit("instance"), attribute=pl.lit("ancestry"))


def groups_of(attributes, tree, **how):
    grouping = {"ancestry": Grouping(attribute="ancestry", nested=tree, **how)}
    found = build_membership(attributes, ["ancestry"], grouping)
    by_unit: dict[str, set[str]] = {}
    for group, unit in found.frame.select("group", "unit_id").rows():
        by_unit.setdefault(unit, set()).add(group)
    return by_unit, found.notes


def test_a_broad_value_alone_counts_in_each_part_and_beside_a_part_in_that_part_only():
    found, notes = groups_of(
        people(
            ("Africa",),  # p0: every part
            ("Africa", "Kenya"),  # p1: the part says more
            ("Kenya",),  # p2
            ("Africa", "Japan"),  # p3: Japan is no part of Africa, so Africa still spreads
            ("Asia", "Nepal", "Africa"),  # p4
            ("Europe",),  # p5: no broad value
            (None,),  # p6
        ),
        ANCESTRY,
    )
    assert found == {
        "p0": {"Kenya", "Ghana"},
        "p1": {"Kenya"},
        "p2": {"Kenya"},
        "p3": {"Kenya", "Ghana", "Japan"},
        "p4": {"Nepal", "Kenya", "Ghana"},
        "p5": {"Europe"},
        "p6": {"unknown"},
    }
    assert "ancestry: 3 unit(s) gave only 'Africa' and count in each of its 2 parts" in notes
    assert "ancestry: nobody gave 'Ghana' by itself" in notes


def test_nesting_goes_as_deep_as_it_is_given():
    tree = {"World": ("Africa", "Europe"), "Africa": ("Kenya", "Ghana")}
    found, _ = groups_of(
        people(("World",), ("World", "Ghana"), ("World", "Africa"), ("Africa",)), tree
    )
    assert found == {
        "p0": {"Kenya", "Ghana", "Europe"},
        "p1": {"Ghana"},
        "p2": {"Kenya", "Ghana"},
        "p3": {"Kenya", "Ghana"},
    }
    assert list_leaves(tree, "World") == ["Kenya", "Ghana", "Europe"]


def test_the_order_of_the_settings_does_not_matter():
    tree = {"World": ("Africa",), "Africa": ("Kenya", "Ghana")}
    backwards = dict(reversed(tree.items()))
    rows = people(("World",), ("Africa", "Kenya"))
    assert groups_of(rows, tree)[0] == groups_of(rows, backwards)[0]


def test_parts_can_be_merged_afterwards_even_those_nobody_gave():
    found, _ = groups_of(
        people(("Africa",), ("Kenya",), ("Japan",), ("Asia",)),
        ANCESTRY,
        merge={"West Africa": ("Ghana",)},
    )
    assert found["p0"] == {"Kenya", "West Africa"}
    assert found["p1"] == {"Kenya"}


def test_a_broad_value_no_longer_occurs_after_nesting():
    with pytest.raises(SpecError, match="the merge 'Old world' names a value that does not occur"):
        groups_of(people(("Africa",), ("Asia",)), ANCESTRY, merge={"Old world": ("Africa",)})


def test_a_broad_value_that_does_not_occur_is_refused_with_the_nearest():
    with pytest.raises(SpecError) as error:
        groups_of(people(("Africa",), ("Kenya",)), {"Afrika": ("Kenya",)})
    assert str(error.value) == (
        "the nesting names a value that does not occur in 'ancestry'\n"
        "  expected: one of 'Africa', 'Kenya'\n"
        "  found: 'Afrika'\n"
        "  what to do: did you mean 'Africa'?"
    )


def test_a_circle_is_refused():
    with pytest.raises(SpecError) as error:
        groups_of(people(("a",), ("b",)), {"a": ("b",), "b": ("a",)})
    assert str(error.value) == (
        "nested values run in a circle\n"
        "  expected: each part below one broad value, none above itself\n"
        "  found: a > b > a"
    )


def test_without_nesting_the_rows_come_back_as_they_are():
    rows = pl.DataFrame({"unit": [0], "value": ["Africa"]})
    assert expand_nested_values(rows, Grouping(attribute="ancestry"), ["Africa"]) == (rows, ())


def test_a_protocols_nesting_may_name_a_continent_that_nobody_here_named():
    found = pl.DataFrame({"unit": [0], "value": ["Kenya"]})
    how = Grouping(attribute="ancestry", nested={"Africa": ("Kenya",)}, absent="note")
    rows, notes = expand_nested_values(found, how, ["Kenya"])
    assert rows.rows() == [(0, "Kenya")]
    assert notes == ("ancestry: nobody here is 'Africa', which the nesting names",)
