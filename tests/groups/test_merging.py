from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolux.core.errors import SpecError
from isolux.core.spec import Grouping
from isolux.groups import build_membership
from isolux.groups.merging import merge_values

LIGHTER = {"lighter": ("1", "2", "3"), "darker": ("8", "9", "10")}  # FACET, Table 6


def tones(rows):
    frame = pl.DataFrame(rows, schema={"unit_id": pl.String, "value": pl.String}, orient="row")
    return frame.with_columns(unit_kind=pl.lit("instance"), attribute=pl.lit("tone"))


def everyone(*values):
    """One more unit for each value, so that the values occur."""
    return [(f"x{v}", v) for v in values]


def groups_of(attributes, merge, rest="keep", **how):
    grouping = {"tone": Grouping(attribute="tone", merge=merge, rest=rest, **how)}
    return build_membership(attributes, ["tone"], grouping)


def test_facets_lighter_and_darker_may_share_a_person():
    # p carries tones 3, 4 and 8: lighter by 3, darker by 8; 4 is in neither.
    # q carries 1 and 2: in lighter once, not twice. r carries only 5; s is unknown.
    rows = tones(
        [
            *[("p", t) for t in ("3", "4", "8")],
            *[("q", t) for t in ("1", "2")],
            ("r", "5"),
            ("s", None),
            *everyone("9", "10"),
        ]
    )
    frame = groups_of(rows, LIGHTER, "drop").frame
    assert frame.select("group", "unit_id").rows() == [
        ("darker", "p"),
        ("darker", "x10"),
        ("darker", "x9"),
        ("lighter", "p"),
        ("lighter", "q"),
        ("unknown", "s"),
    ]
    notes = groups_of(rows, LIGHTER, "drop").notes
    assert "tone: 1 unit(s) are in no named group and are left out" in notes
    assert "tone: 1 of 6 unit(s) are in more than one group" in notes

    kept = groups_of(rows, LIGHTER, "keep").frame
    assert kept.filter(pl.col("unit_id") == "p")["group"].sort().to_list() == [
        "4",
        "darker",
        "lighter",
    ]
    assert kept.filter(pl.col("unit_id") == "r")["group"].to_list() == ["5"]


def test_the_rest_is_not_unknown():
    # r's tone is known, it only has no name: with the rest dropped r is nowhere.
    rows = tones([("r", "5"), ("r", None), *everyone("1")])
    found = groups_of(rows, {"lighter": ("1",)}, "drop")
    assert found.frame.select("group", "unit_id").rows() == [("lighter", "x1")]


def test_a_merge_that_names_a_value_which_does_not_occur_is_refused_with_the_nearest():
    race = tones([("a", "East Asian"), ("b", "Southeast Asian"), ("c", "White")])
    with pytest.raises(SpecError) as error:
        groups_of(race, {"Asian": ("East Asian", "South East Asian")})
    assert str(error.value) == (
        "the merge 'Asian' names a value that does not occur in 'tone'\n"
        "  expected: one of 'East Asian', 'Southeast Asian', 'White'\n"
        "  found: 'South East Asian'\n"
        "  what to do: did you mean 'Southeast Asian' or 'East Asian'?"
    )


def test_a_value_that_means_unknown_cannot_be_merged():
    rows = tones([("a", "1"), ("b", "Not Sure")])
    with pytest.raises(SpecError) as error:
        groups_of(rows, {"other": ("Not Sure",)})
    assert str(error.value) == (
        "the merge 'other' names a value that does not occur in 'tone'\n"
        "  expected: one of '1'\n"
        "  found: 'Not Sure'\n"
        "  what to do: 'Not Sure' means unknown here: take it out of unknown_values to use it"
    )


def test_where_everyone_is_unknown_there_is_nothing_to_merge():
    with pytest.raises(SpecError, match="expected: a known value; there is none"):
        groups_of(tones([("a", None)]), {"lighter": ("1",)})


@pytest.mark.parametrize("rest", ["keep", "drop"])
def test_a_merge_may_not_take_the_name_of_a_value_that_it_leaves_out(rest):
    race = tones([("a", "East Asian"), ("b", "Asian")])
    with pytest.raises(SpecError) as error:
        groups_of(race, {"Asian": ("East Asian",)}, rest)
    assert str(error.value) == (
        "the merge 'Asian' takes the name of a value of 'tone' that it leaves out\n"
        "  expected: 'Asian' among its values, or another name\n"
        "  found: 'East Asian'"
    )
    both = groups_of(race, {"Asian": ("East Asian", "Asian")}, rest).frame
    assert both["group"].unique().to_list() == ["Asian"]


@pytest.mark.parametrize("words", [("unknown", "n/a"), ()])
def test_a_merge_may_not_be_called_unknown(words):
    with pytest.raises(SpecError) as error:
        groups_of(tones([("a", "1")]), {"Unknown": ("1",)}, unknown_values=words)
    assert str(error.value) == (
        "a merge of 'tone' takes a name that means unknown\n"
        "  expected: another name\n"
        "  found: 'Unknown'\n"
        "  what to do: values that mean unknown belong in unknown_values"
    )


TONES = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["1", "2", "3", "4", None])), max_size=25
)
MERGES = st.fixed_dictionaries(
    {
        "one": st.lists(st.sampled_from("1234"), min_size=1, unique=True).map(tuple),
        "two": st.lists(st.sampled_from("1234"), min_size=1, unique=True).map(tuple),
    }
)


@given(TONES, MERGES, st.sampled_from(["keep", "drop"]))
@settings(max_examples=80, deadline=None)
def test_a_merge_is_the_union_of_its_values_and_the_rest_stays_as_it_was(rows, merge, rest):
    attributes = tones([*rows, *everyone(*"1234")])
    plain = groups_of(attributes, {}).frame
    found = groups_of(attributes, merge, rest).frame

    def members(frame, group):
        return set(frame.filter(pl.col("group") == group)["unit_id"])

    for name, values in merge.items():
        assert members(found, name) == set().union(*(members(plain, v) for v in values))
    named = {v for values in merge.values() for v in values}
    for value in set("1234") - named:
        assert members(found, value) == (members(plain, value) if rest == "keep" else set())
    assert members(found, "unknown") == members(plain, "unknown")
    assert found.select("group", "unit_id").is_unique().all()


def test_a_protocols_merge_may_name_values_that_nobody_here_has():
    found = pl.DataFrame({"unit": [0, 1], "value": ["1", "5"]})
    how = Grouping(attribute="tone", merge={"lighter": ("1", "2", "3")}, absent="note")
    rows, notes = merge_values(found, how, ["1", "5"])
    assert sorted(rows.rows()) == [(0, "lighter"), (1, "5")]
    assert notes == ("tone: nobody here is '2', '3', which the merge 'lighter' names",)
