"""Who is judged: conditions on attributes, with several values, unknown ones and bystanders."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.people.filters import drop_unscored_people, filter_people, parse_conditions

INFO = DatasetInfo(title="Four people", summary="Made up.", references=())
# a is 19; b 20; c was judged 19 by one annotator and 30 by another; nobody knows of d.
ROWS = [
    ("instance", "a", "age", "19", 19.0),
    ("instance", "b", "age", "20", 20.0),
    ("instance", "c", "age", "19", 19.0),
    ("instance", "c", "age", "30", 30.0),
    ("instance", "d", "age", None, None),
    ("image", "1", "weather", "rain, snow", None),
    ("image", "2", "weather", "clear", None),
    ("subject", "s", "tone", "7", None),
]


def four(**columns):
    return Dataset(
        name="four people",
        info=INFO,
        instances=pl.DataFrame(
            {
                "instance_id": ["a", "b", "c", "d"],
                "image_id": ["1", "1", "2", "2"],
                "subject_id": ["s", None, None, "s"],
                **columns,
            }
        ),
        attributes=pl.DataFrame(
            ROWS, schema=["unit_kind", "unit_id", "attribute", "value", "number"], orient="row"
        ),
    )


def kept(*conditions):
    found = filter_people(four(), conditions, uses_unscored_people=False)
    return "".join(found.instances["instance_id"])


@pytest.mark.parametrize(
    ("condition", "who"),
    [
        ("age>=20", "bc"),
        ("age > 20", "c"),
        ("age<20", "ac"),
        ("age<=19", "ac"),
        ("age=19", "ac"),
        ("age=20,30", "bc"),
        ("age=20 , 30", "bc"),
        ("age!=19", "bd"),  # none of their values is 19; of d none is known
        ("weather=clear", "cd"),
        ('weather="rain, snow"', "ab"),
        ("tone=7", "ad"),
        ("tone >= 7", "ad"),  # a number written as text
    ],
)
def test_a_condition_keeps_who_passes(condition, who):
    assert kept(condition) == who


def test_every_condition_must_hold():
    assert kept("age>=20", "weather=clear") == "c"


def test_no_condition_keeps_the_dataset_as_it_is():
    dataset = four()
    assert filter_people(dataset, (), uses_unscored_people=True) is dataset


def test_bystanders_stay_and_are_not_judged():
    found = filter_people(four(), ["age>=20"], uses_unscored_people=True)
    assert found.instances["judged"].to_list() == [False, True, True, False]
    assert found.notes == (
        "2 of 4 people take part in the matching and are not judged: only age>=20.",
    )


def test_who_was_not_judged_before_is_not_judged_now():
    dataset = four(judged=[True, False, True, None])
    found = filter_people(dataset, ["age=19,20"], uses_unscored_people=True)
    assert found.instances["judged"].to_list() == [True, False, True, False]


def test_bystanders_have_no_part_where_images_are_not_looked_at():
    found = drop_unscored_people(four(judged=[True, False, None, True]))
    assert found.instances["instance_id"].to_list() == ["a", "c", "d"]
    assert found.notes == ("1 of 4 people are not to be judged and were left out.",)
    whole = four(judged=[True] * 4)
    assert drop_unscored_people(whole) is whole


def test_who_goes_is_counted():
    assert filter_people(four(), ["age=20"], uses_unscored_people=False).notes == (
        "3 of 4 people were left out: only age=20.",
    )


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("age", "--only is not a condition"),
        ("age=", "--only is not a condition"),
        (">=20", "--only is not a condition"),
        ("age>=old", "compares 'age' with something that is not a number"),
    ],
)
def test_what_is_no_condition_is_refused(condition, words):
    with pytest.raises(SpecError, match=words):
        parse_conditions([condition])


def test_nobody_passing_is_an_error():
    with pytest.raises(SpecError, match=r"(?s)nobody passes --only.*'age' from \d+ to \d+"):
        kept("age>99")


def test_a_value_that_nobody_has_is_named_with_the_columns_own():
    data = four()
    value = data.attributes.filter(pl.col("attribute") == "age")["value"][0]
    [caution, _] = sorted(
        filter_people(data, [f"age={value},x"], uses_unscored_people=False).notes,
        key=lambda note: not isinstance(note, Caution),
    )
    assert isinstance(caution, Caution)
    assert caution.startswith("--only names 'x', which nobody has: 'age' from ")
    notes = filter_people(data, [f"age={value}"], uses_unscored_people=False).notes
    assert not any(isinstance(note, Caution) for note in notes)


def test_an_unknown_attribute_names_those_there_are():
    with pytest.raises(UnknownNameError) as caught:
        kept("agee>=20")
    assert "age" in str(caught.value)
    assert "--only" in str(caught.value)


RANGES = ["3-9", "10-19", "20-29", "15-25", "70+", "under 20", "more than 20", "[18, 20)", "34"]


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        # A range passes where all of it does; "more than 20" leaves 20 itself out.
        ("age>=20", ["20-29", "70+", "more than 20", "34"]),
        ("age>20", ["70+", "more than 20", "34"]),
        ("age<20", ["3-9", "10-19", "under 20", "[18, 20)"]),
        ("age<=19", ["3-9", "10-19"]),
        ("age<=20", ["3-9", "10-19", "under 20", "[18, 20)"]),
        ("age=15-25", ["15-25"]),
    ],
)
def test_ranges_compare(condition, values):
    ids = [str(i) for i in range(len(RANGES) + 1)]
    people = Dataset(
        name="ranges",
        info=INFO,
        instances=pl.DataFrame({"instance_id": ids, "image_id": ids}),
        attributes=pl.DataFrame(
            {"unit_kind": "instance", "unit_id": ids, "attribute": "age",
             "value": [*RANGES, "not sure"]}
        ),
    )  # fmt: skip
    found = filter_people(people, [condition], uses_unscored_people=False).instances["instance_id"]
    assert [RANGES[int(i)] for i in found] == values


def test_fairfaces_ages_from_twenty_are_six_of_nine():
    ages = ["0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70"]
    people = Dataset(
        name="ages",
        info=INFO,
        instances=pl.DataFrame({"instance_id": ages, "image_id": ages}),
        attributes=pl.DataFrame(
            {"unit_kind": "instance", "unit_id": ages, "attribute": "age", "value": ages}
        ),
    )
    kept_ages = filter_people(people, ["age>=20"], uses_unscored_people=True).instances
    assert kept_ages.filter("judged")["instance_id"].to_list() == ages[3:]


def test_a_number_beside_a_range_is_what_compares():
    people = Dataset(
        name="both",
        info=INFO,
        instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["a", "b"]}),
        attributes=pl.DataFrame(
            {"unit_kind": "instance", "unit_id": ["a", "b"], "attribute": "age",
             "value": ["20-29", "20-29"], "number": [19.0, None]}
        ),
    )  # fmt: skip
    found = filter_people(people, ["age>=20"], uses_unscored_people=False).instances
    assert found["instance_id"].to_list() == ["b"]


AGES = ["10-19", "20-29", "20-29", "30-39", "more than 70"]


def ranged():
    ids = [f"p{i}" for i in range(len(AGES))]
    return Dataset(
        name="ages",
        info=INFO,
        instances=pl.DataFrame({"instance_id": ids, "image_id": ids}),
        attributes=pl.DataFrame(
            {"unit_kind": "instance", "unit_id": ids, "attribute": "age", "value": AGES}
        ),
    )


def test_a_range_on_both_sides_of_a_number_is_told_first():
    kept = filter_people(ranged(), ["age>20"], uses_unscored_people=False)
    assert kept.instances["instance_id"].to_list() == ["p3", "p4"]
    (told,) = [note for note in kept.notes if isinstance(note, Caution)]
    assert told.startswith("--only age>20 keeps a range only if all of it passes: 20-29 (2)")
    assert told.endswith('--only "age>=20" keeps them.')
    assert "Left out by age>20: 10-19 (1)." in kept.notes


def test_a_number_at_the_edge_of_ranges_needs_no_caution():
    kept = filter_people(ranged(), ["age>=20"], uses_unscored_people=False)
    assert kept.instances.height == 4
    assert not any(isinstance(note, Caution) for note in kept.notes)
    assert "Left out by age>=20: 10-19 (1)." in kept.notes
