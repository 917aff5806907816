from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from isolux.core.notes import Caution
from isolux.core.spec import UNKNOWN_VALUES, Grouping
from isolux.groups import build_membership
from isolux.groups.unknown_values import add_known_suffix, is_unknown_word, null_unknown_words


def attributes_of(rows):
    """Make an attributes table of (unit, attribute, value)."""
    schema = dict.fromkeys(("unit_id", "attribute", "value"), pl.String)
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(unit_kind=pl.lit("instance"))


def pairs(membership, attribute):
    rows = membership.frame.filter(pl.col("attribute") == attribute)
    return rows.select("group", "unit_id").rows()


RACE = attributes_of(
    [
        ("a", "race", "White"),
        ("b", "race", "Not Sure"),  # a word that means unknown, in another case
        ("c", "race", None),
        ("d", "race", "Black"),
        ("a", "gender", "F"),
        ("b", "gender", "F"),
        ("c", "gender", "M"),
        ("d", "gender", None),
    ]
)
UNITS = pl.Series(["a", "b", "c", "d", "e"])  # e has no row at all


def how(unknown, *names):
    return {name: Grouping(attribute=name, unknown=unknown) for name in names}


def test_kept_they_are_a_group_and_a_unit_without_a_row_is_among_them():
    found = build_membership(RACE, ["race"], how("keep", "race"), units=UNITS)
    assert pairs(found, "race") == [
        ("Black", "d"), ("White", "a"), ("unknown", "b"), ("unknown", "c"), ("unknown", "e"),
    ]  # fmt: skip
    assert found.frame["values"].to_list()[-1] == ["unknown"]
    assert found.notes == (
        "race: 3 of 5 unit(s) unknown (2 of them not annotated), kept as a separate group",
    )


@pytest.mark.parametrize("word", ["None", "<NA>", "?", "missing"])
def test_a_word_for_nothing_that_is_read_as_a_group_is_asked_about_first(word):
    rows = attributes_of([("a", "race", word), ("b", "race", "Black"), ("c", "race", "no")])
    found = build_membership(rows, ["race"], how("keep", "race"), units=UNITS[:3])
    assert (word, "a") in pairs(found, "race")
    (told,) = found.notes
    assert isinstance(told, Caution) == (word != "None")  # which may well be a group
    assert told.startswith(f"race: {word!r} is read as a group like any other.")
    assert f"--option unknown_values={word!r}" in told
    told_so = {"race": Grouping(attribute="race", unknown_values=(*UNKNOWN_VALUES, word))}
    alone = {"race": Grouping(attribute="race", unknown_values=("x",))}
    usual = attributes_of([("a", "race", "nan"), ("b", "race", "Black"), ("c", "race", "no")])
    (told,) = build_membership(usual, ["race"], alone, units=UNITS[:3]).notes
    assert told.startswith("race: 'nan' is read as a group")  # naming others took its place
    found = build_membership(rows, ["race"], told_so, units=UNITS[:3])
    assert found.notes == ("race: 1 of 3 unit(s) unknown, kept as a separate group",)
    assert ("unknown", "a") in pairs(found, "race")


def test_dropped_they_are_nowhere():
    found = build_membership(RACE, ["race"], how("drop", "race"), units=UNITS)
    assert pairs(found, "race") == [("Black", "d"), ("White", "a")]
    assert found.notes == ("race: 3 of 5 unit(s) unknown (2 of them not annotated), left out",)


def test_both_reports_the_attribute_twice():
    found = build_membership(RACE, ["race"], how("both", "race"), units=UNITS)
    assert found.frame["attribute"].unique(maintain_order=True).to_list() == [
        "race",
        "race (known)",
    ]
    assert len(pairs(found, "race")) == 5
    assert pairs(found, "race (known)") == [("Black", "d"), ("White", "a")]
    assert found.notes == (
        (
            "race: 3 of 5 unit(s) unknown (2 of them not annotated), reported with them and, "
            "as 'race (known)', without"
        ),
    )


def test_both_reports_it_once_where_nobody_is_unknown():
    found = build_membership(RACE, ["race"], how("both", "race"), units=pl.Series(["a", "d"]))
    assert found.frame["attribute"].unique().to_list() == ["race"]
    assert found.notes == ()


def test_in_an_intersection_a_unit_unknown_in_any_part_is_in_a_group_with_unknown():
    found = build_membership(RACE, ["race*gender"], how("keep", "race", "gender"), units=UNITS)
    assert found.frame.select("values", "unit_id").rows() == [
        (["Black", "unknown"], "d"),
        (["White", "F"], "a"),
        (["unknown", "F"], "b"),
        (["unknown", "M"], "c"),
        (["unknown", "unknown"], "e"),
    ]


def test_in_an_intersection_dropped_leaves_out_who_is_unknown_in_any_part():
    found = build_membership(RACE, ["race*gender"], how("drop", "race", "gender"), units=UNITS)
    assert pairs(found, "race*gender") == [("White × F", "a")]


def test_both_reports_an_intersection_with_every_unknown_and_with_none():
    found = build_membership(RACE, ["race*gender"], how("both", "race", "gender"), units=UNITS)
    assert len(pairs(found, "race*gender")) == 5
    assert pairs(found, "race (known)*gender (known)") == [("White × F", "a")]


def test_attributes_may_differ_in_what_becomes_of_unknown():
    rules = how("both", "race") | how("drop", "gender")
    found = build_membership(RACE, ["race*gender"], rules, units=UNITS)
    assert pairs(found, "race*gender") == [
        ("White × F", "a"), ("unknown × F", "b"), ("unknown × M", "c"),
    ]  # fmt: skip
    assert pairs(found, "race (known)*gender") == [("White × F", "a")]


def test_the_words_are_the_users_to_choose():
    words = Grouping(attribute="race", unknown_values=("white",))
    found = build_membership(RACE, ["race"], {"race": words})
    assert ("unknown", "a") in pairs(found, "race")
    assert ("Not Sure", "b") in pairs(found, "race")


def test_the_word_unknown_declared_known_is_one_group_with_the_nulls():
    rows = attributes_of([("a", "race", "unknown"), ("b", "race", None), ("b", "race", "unknown")])
    known = Grouping(attribute="race", unknown_values=(), votes="any+unknown")
    found = build_membership(rows, ["race"], {"race": known})
    assert pairs(found, "race") == [("unknown", "a"), ("unknown", "b")]
    dropped = replace(known, unknown="drop")
    assert pairs(build_membership(rows, ["race"], {"race": dropped}), "race") == [
        ("unknown", "a"),
        ("unknown", "b"),
    ]


@pytest.mark.parametrize("word", [*UNKNOWN_VALUES, " N/A ", "NaN", "Unknown"])
def test_default_words_mean_unknown_in_any_case(word):
    assert is_unknown_word(word, UNKNOWN_VALUES)
    rows = pl.DataFrame({"value": [word, "Kenya"], "number": [None, None]})
    assert null_unknown_words(rows, UNKNOWN_VALUES)["value"].to_list() == [None, "Kenya"]


def test_a_number_without_text_is_its_own_text_and_nan_is_unknown():
    rows = pl.DataFrame({"value": [None, None, None, "unknown"], "number": [34.0, 2.5, None, 7.0]})
    marked = null_unknown_words(rows, UNKNOWN_VALUES)
    assert marked["value"].to_list() == ["34", "2.5", None, None]
    assert marked["number"].to_list() == [34.0, 2.5, None, None]
    zeros = pl.DataFrame(
        {"value": [None, None], "number": [0.0, -0.0]}, schema_overrides={"value": str}
    )
    assert null_unknown_words(zeros, ())["value"].to_list() == ["0", "0"]
    nan = pl.DataFrame({"value": [None], "number": [float("nan")]}, schema_overrides={"value": str})
    assert null_unknown_words(nan, ())["value"].to_list() == [None]


def test_handles_without_unknown_mark_every_part():
    assert add_known_suffix("race") == "race (known)"
    assert add_known_suffix("a*b*c") == "a (known)*b (known)*c (known)"
