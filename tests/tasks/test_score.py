from __future__ import annotations

import pytest

from isolux.tasks import score
from isolux.tasks.classification import score as classify
from isolux.vocabulary.errors import SpecError, UnknownNameError
from tests.tasks._people import answers, people

TRUTH = people({"a": "nurse", "b": "singer"})
GIVEN = answers({"a": "nurse", "b": "nurse"})


def test_the_name_finds_the_task_and_options_reach_it():
    scores = score("classification", TRUTH, GIVEN, target="job", metrics=("accuracy",))
    assert scores.units.equals(classify(TRUTH, GIVEN, target="job", metrics=("accuracy",)).units)
    assert scores.units["value"].to_list() == [1.0, 0.0]


def test_an_option_that_is_not_known_is_named_with_those_that_are():
    with pytest.raises(
        SpecError,
        match=r"the task 'classification' has no option 'targt'\n"
        r"  expected: one of target, positive, one_vs_rest, metrics, top_k, undetected, .*\n"
        r"  what to do: did you mean 'target'\?",
    ):
        score("classification", TRUTH, GIVEN, targt="job")


def test_an_option_like_no_other_gets_no_suggestion():
    with pytest.raises(SpecError, match="has no option 'xyz'") as caught:
        score("classification", TRUTH, GIVEN, xyz=1)
    assert caught.value.hint is None


def test_what_is_audited_is_no_option():
    with pytest.raises(SpecError, match="expected: one of target") as caught:
        score("classification", TRUTH, GIVEN, dataste=TRUTH)
    assert "predictions" not in str(caught.value.expected).split(", ")


def test_a_task_that_is_not_known():
    with pytest.raises(UnknownNameError, match="there is no task named 'clasification'"):
        score("clasification", TRUTH, GIVEN)
