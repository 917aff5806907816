"""The bias profile: which groups stand in it and why, what the user says of them, what is blank."""

from __future__ import annotations

import pytest

import isolux
from isolux.core.errors import UnknownNameError
from tests.cards._cards import run_of_people, tables_of, traced

SCENARIO = {
    "attribute": "light * region", "group": "night*coast", "harm": "is not let in",
    "threshold": "5 points", "mitigation": "a lamp", "review_trigger": "each spring",
}  # fmt: skip


def scenarios(made):
    return next(table for table in tables_of(made) if table.caption == "Scenarios")


def test_the_group_that_differs_stands_there_and_its_blanks_are_named():
    """Of night 4 of 10 are right, of day 9 of 10: 200 and 400 people."""
    made = isolux.card(run_of_people(), kind="bias-profile")
    (night,) = [row for row in scenarios(made).rows if row[0] == "light: night"]
    assert night[1] == "differs"
    assert night[2] == night[5] == night[6] == night[7] == "not stated"
    assert "Accuracy: 40.0 %" in night[3]
    assert night[3].endswith("n = 200")
    assert not [row for row in scenarios(made).rows if row[0] == "light: day"]


def test_a_worst_group_within_chance_is_said_to_be_that():
    made = isolux.card(run_of_people(), kind="bias-profile")
    (region,) = [row for row in scenarios(made).rows if row[0].startswith("region: ")]
    assert region[1] == "worst group judged; no difference from the overall value was found"


def test_what_the_user_says_stands_first_with_its_source():
    made = isolux.card(
        run_of_people(), kind="bias_profile", facts={"facts": 1, "scenarios": [SCENARIO]}
    )
    first = scenarios(made).rows[0]
    assert first[0] == "light × region: night × coast"
    assert first[2] == "is not let in"
    assert first[5:] == ("5 points", "a lamp", "each spring")
    assert sum(row[0] == first[0] for row in scenarios(made).rows) == 1
    assert "The first row is stated by the user" in scenarios(made).notes[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [({"attribute": "lihgt"}, "light"), ({"group": "nigth × coast"}, "night × coast"),
     ({"metric": "acuracy"}, "accuracy")],
)  # fmt: skip
def test_what_the_run_lacks_is_refused_with_near_names(change, words):
    facts = {"facts": 1, "scenarios": [SCENARIO | change]}
    with pytest.raises(UnknownNameError, match=words):
        isolux.card(run_of_people(), kind="bias_profile", facts=facts)


def test_groups_too_small_to_judge_are_named_with_their_size():
    made = isolux.card(run_of_people(), kind="bias_profile")
    (small,) = [t for t in tables_of(made) if t.caption.startswith("Groups with too little")]
    assert ("light: dusk", "1") in [row[:2] for row in small.rows]


def test_every_number_is_the_runs():
    run = run_of_people()
    assert traced(isolux.card(run, kind="bias_profile"), run) == 3 + 3 + 7
