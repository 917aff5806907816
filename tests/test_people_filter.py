"""Who is judged: conditions on attributes, with several values, unknown ones and bystanders."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.containers import Dataset
from isolux.errors import SpecError, UnknownNameError
from isolux.info import DatasetInfo
from isolux.people_filter import keep_only, only_judged, parse_conditions

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
    found = keep_only(four(), conditions, whole_images=False)
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
    assert keep_only(dataset, (), whole_images=True) is dataset


def test_bystanders_stay_and_are_not_judged():
    found = keep_only(four(), ["age>=20"], whole_images=True)
    assert found.instances["judged"].to_list() == [False, True, True, False]
    assert found.notes == (
        "2 of 4 people take part in the matching and are not judged: only age>=20.",
    )


def test_who_was_not_judged_before_is_not_judged_now():
    dataset = four(judged=[True, False, True, None])
    found = keep_only(dataset, ["age=19,20"], whole_images=True)
    assert found.instances["judged"].to_list() == [True, False, True, False]


def test_bystanders_have_no_part_where_images_are_not_looked_at():
    found = only_judged(four(judged=[True, False, None, True]))
    assert found.instances["instance_id"].to_list() == ["a", "c", "d"]
    assert found.notes == ("1 of 4 people are not judged and were left out.",)
    whole = four(judged=[True] * 4)
    assert only_judged(whole) is whole


def test_who_goes_is_counted():
    assert keep_only(four(), ["age=20"], whole_images=False).notes == (
        "3 of 4 people were left out: only age=20.",
    )


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("age", "--only is no condition"),
        ("age=", "--only is no condition"),
        (">=20", "--only is no condition"),
        ("age>=old", "compares 'age' with what is no number"),
    ],
)
def test_what_is_no_condition_is_refused(condition, words):
    with pytest.raises(SpecError, match=words):
        parse_conditions([condition])


def test_nobody_passing_is_an_error():
    with pytest.raises(SpecError, match="nobody passes --only"):
        kept("age>99")


def test_an_unknown_attribute_names_those_there_are():
    with pytest.raises(UnknownNameError) as caught:
        kept("agee>=20")
    assert "age" in str(caught.value)
    assert "--only" in str(caught.value)
