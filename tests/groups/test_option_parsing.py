from __future__ import annotations

import math

import polars as pl
import pytest

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.spec import UNKNOWN_VALUES, Grouping, Groups, format_setting_as_typed
from isolux.groups import build_membership, check_references, read_groupings, read_references


def attributes_of(**values):
    rows = [
        (f"u{i}", attribute, value)
        for attribute, given in values.items()
        for i, value in enumerate(given)
    ]
    schema = dict.fromkeys(("unit_id", "attribute", "value"), pl.String)
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(unit_kind=pl.lit("instance"))


TABLE = attributes_of(
    tone=["1", "2", "3", "9"],
    level=["1", "2", "5", "unknown"],
    ancestry=["Africa", "Kenya", "Korea, Republic of", "Japan"],
    income=["10", "20", "30", "40"],
    gender=["F", "M", "F", "M"],
)


def spec(**fields):
    return Groups(**fields)


def test_every_attribute_that_by_uses_has_a_grouping_with_the_audits_settings():
    found = read_groupings(
        spec(
            by=("gender", "tone*income", "gender"),
            group=("tone:lighter=1, 2 ,3", "darker=9"),
            ungrouped_values="drop",
            bins=("income=quantile:4",),
            votes="at-least:2",
            unknown="both",
            unknown_values=("dunno",),
        ),
        TABLE,
    )
    everywhere = {"votes": "at-least:2", "unknown": "both", "unknown_values": ("dunno",)}
    assert found == {
        "gender": Grouping(attribute="gender", **everywhere),
        "tone": Grouping(
            attribute="tone",
            merge={"lighter": ("1", "2", "3"), "darker": ("9",)},
            rest="drop",
            **everywhere,
        ),
        "income": Grouping(attribute="income", bins="quantile:4", **everywhere),
    }
    assert list(found) == ["gender", "tone", "income"]


def test_no_settings_are_the_defaults():
    assert read_groupings(spec(by=("gender",)), TABLE) == {
        "gender": Grouping(attribute="gender", unknown_values=UNKNOWN_VALUES)
    }
    assert read_groupings(spec(), TABLE) == {}


def test_a_value_with_a_comma_stands_in_quotes():
    text = 'ancestry:East="Korea, Republic of",Japan'
    found = read_groupings(spec(by=("ancestry",), group=(text,)), TABLE)
    assert found["ancestry"].merge == {"East": ("Korea, Republic of", "Japan")}


def test_nesting_is_read_with_and_without_its_attribute():
    for text in ("ancestry:Africa=Kenya,Ghana", "Africa=Kenya,Ghana"):
        found = read_groupings(spec(by=("ancestry", "gender"), nested=(text,)), TABLE)
        assert found["ancestry"].nested == {"Africa": ("Kenya", "Ghana")}
        assert found["gender"].nested == {}


def test_names_may_hold_colons_and_equals_signs():
    table = attributes_of(**{"skin:tone": ["1", "2"], "a=b": ["1", "2"]})
    how = read_groupings(
        spec(by=("skin:tone", "a=b"), group=("skin:tone:low=1",), bins=("a=b=edges:2",)), table
    )
    assert how["skin:tone"].merge == {"low": ("1",)}
    assert how["a=b"].bins == "edges:2"


def test_a_group_without_an_attribute_goes_to_the_one_that_holds_its_values():
    # Tones 1 and 2 are also levels, but 9 is not.
    found = read_groupings(spec(by=("tone", "level"), group=("some=2,9",)), TABLE)
    assert found["tone"].merge == {"some": ("2", "9")}
    assert found["level"].merge == {}


def test_a_group_that_fits_several_attributes_is_refused_naming_them():
    with pytest.raises(SpecError) as error:
        read_groupings(spec(by=("tone", "gender", "level"), group=("low=1,2",)), TABLE)
    assert str(error.value) == (
        "--group 'low=1,2' does not say which attribute it is about\n"
        "  expected: ATTRIBUTE:low=1,2\n"
        "  found: the values occur in each of 'tone', 'level'"
    )


def test_a_group_that_fits_no_attribute_is_refused_naming_those_there_are():
    with pytest.raises(SpecError) as error:
        read_groupings(spec(by=("tone", "gender"), group=("x=1,F",)), TABLE)
    assert str(error.value) == (
        "--group 'x=1,F' does not say which attribute it is about\n"
        "  expected: ATTRIBUTE:x=1,F\n"
        "  found: no attribute of --by holds '1', 'F': 'tone', 'gender'"
    )


def test_a_word_that_means_unknown_is_no_value_to_find_an_attribute_by():
    with pytest.raises(SpecError, match="no attribute of --by holds 'unknown': 'level'"):
        read_groupings(spec(by=("level",), group=("x=unknown",)), TABLE)


@pytest.mark.parametrize(
    ("field", "text"),
    [("group", "tne:low=1"), ("nested", "tne:low=1"), ("bins", "tne=quantile:4")],
)
def test_a_setting_for_an_attribute_that_does_not_exist_is_refused(field, text):
    with pytest.raises(UnknownNameError) as error:
        read_groupings(spec(by=("tone",), **{field: (text,)}), TABLE)
    assert str(error.value) == (
        "there is no attribute named 'tne'\n"
        "  expected: one of ancestry, gender, income, level, tone\n"
        f"  where: {format_setting_as_typed(field)} {text!r}\n"
        "  what to do: did you mean 'tone'?"
    )


@pytest.mark.parametrize(
    ("field", "text"),
    [("group", "tone:low=1"), ("nested", "tone:low=1"), ("bins", "tone=quantile:4")],
)
def test_a_setting_for_an_attribute_that_is_not_audited_is_refused(field, text):
    with pytest.raises(SpecError) as error:
        read_groupings(spec(by=("gender",), **{field: (text,)}), TABLE)
    assert str(error.value) == (
        f"{format_setting_as_typed(field)} {text!r} is about 'tone', which is not audited\n"
        "  expected: one of gender\n"
        "  what to do: add --by tone, or leave the setting out"
    )


@pytest.mark.parametrize("text", ["lighter", "lighter=", "=1,2", "tone:=1", "tone:x=,"])
def test_a_group_that_cannot_be_read_is_refused(text):
    with pytest.raises(SpecError) as error:
        read_groupings(spec(by=("tone",), group=(text,)), TABLE)
    assert str(error.value) == (
        "the setting --group cannot be read\n"
        "  expected: NAME=VALUE,VALUE or ATTRIBUTE:NAME=VALUE,VALUE\n"
        f"  found: {text!r}"
    )


def test_bins_that_cannot_be_read_are_refused_before_any_data_is():
    with pytest.raises(SpecError, match="the bins cannot be used"):
        read_groupings(spec(by=("income",), bins=("income=quarters",)), TABLE)
    with pytest.raises(SpecError, match="the setting --bins cannot be read"):
        read_groupings(spec(by=("income",), bins=("income",)), TABLE)
    with pytest.raises(SpecError, match="the vote rule cannot be used"):
        read_groupings(spec(by=("income",), votes="most"), TABLE)


def test_a_papers_rule_of_incomes_is_called_by_its_name():
    found = read_groupings(spec(by=("income",), bins=("income=fairness-indicators",)), TABLE)
    edges = [float(e) for e in found["income"].bins.removeprefix("edges:").split(",")]
    assert edges == pytest.approx(
        [math.exp(x) for x in (1.5, 4.5, 7.5, 10.5)]
    )  # Table 5: 90, 1,808


def test_a_setting_given_twice_is_refused():
    with pytest.raises(SpecError, match="--group names 'low' of 'tone' twice"):
        read_groupings(spec(by=("tone",), group=("low=1", "tone:low=2")), TABLE)
    with pytest.raises(SpecError, match="'income' has bins twice"):
        read_groupings(spec(by=("income",), bins=("income=quantile:2", "income=edges:5")), TABLE)


def test_by_names_that_do_not_exist_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'gender'"):
        read_groupings(spec(by=("gendre",)), TABLE)


def test_settings_reach_the_membership_table():
    audit = spec(
        by=("tone*gender",),
        group=("lighter=1,2,3", "tone:darker=9"),
    )
    frame = build_membership(TABLE, audit.by, read_groupings(audit, TABLE)).frame
    assert frame.select("group", "unit_id").rows() == [
        ("lighter × F", "u0"), ("lighter × F", "u2"), ("lighter × M", "u1"), ("darker × M", "u3"),
    ]  # fmt: skip
    against = read_references(audit, ["tone*gender=lighter*F"])
    assert against == {"tone*gender": "lighter × F"}
    check_references(against, frame)


def test_references_name_a_group_of_an_attribute_or_an_intersection():
    found = read_references(
        spec(by=("race", "race * gender", "income")),
        ("race=White", "race*gender=White * Female", "income=<=5"),
    )
    assert found == {"race": "White", "race*gender": "White × Female", "income": "<=5"}


def test_references_hold_with_and_without_unknown():
    found = read_references(spec(by=("race*gender",), unknown="both"), ["race*gender=White*Female"])
    assert found == {
        "race*gender": "White × Female",
        "race (known)*gender (known)": "White × Female",
    }


@pytest.mark.parametrize(
    ("text", "problem", "expected", "found"),
    [
        (
            "gender*race=F*White",
            "the reference 'gender*race=F*White' is about nothing that is audited",
            "one of race, race*gender",
            "'gender*race'",
        ),
        (
            "race*gender=White",
            "the reference 'race*gender=White' does not name one group",
            "as many values, joined by *, as 'race*gender' has attributes",
            "'White'",
        ),
        ("White", "the setting --reference cannot be read", "ATTRIBUTE=GROUP", "'White'"),
    ],
)
def test_a_reference_that_cannot_be_used_is_refused(text, problem, expected, found):
    with pytest.raises(SpecError) as error:
        read_references(spec(by=("race", "race*gender")), [text])
    assert str(error.value) == f"{problem}\n  expected: {expected}\n  found: {found}"


def test_two_references_for_one_attribute_are_refused():
    with pytest.raises(SpecError, match="'race' has two references"):
        read_references(spec(by=("race",)), ["race=White", "race=Black"])


def test_a_reference_that_nobody_is_in_is_refused_with_the_nearest():
    frame = build_membership(TABLE, ["ancestry"]).frame
    with pytest.raises(UnknownNameError) as error:
        check_references({"ancestry": "Japn", "ancestry (known)": "Japan"}, frame)
    assert str(error.value) == (
        "there is no group of 'ancestry' named 'Japn'\n"
        "  expected: one of Africa, Japan, Kenya, Korea, Republic of\n"
        "  where: --reference\n"
        "  what to do: did you mean 'Japan'?"
    )


def test_a_handle_without_unknown_that_does_not_stand_there_is_passed_over():
    frame = build_membership(TABLE, ["ancestry"]).frame
    check_references({"ancestry": "Japan", "ancestry (known)": "Japan"}, frame)
