from __future__ import annotations

import pytest

from isolux.core import registry
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.formatting import list_literal_choices
from isolux.core.plugin_options import list_keyword_options
from isolux.tasks import score
from isolux.tasks.classification import score as classify
from tests.tasks._people import answers, people

TRUTH = people({"a": "nurse", "b": "singer"})
GIVEN = answers({"a": "nurse", "b": "nurse"})
WORDS = [
    (task, name, list_literal_choices(option.type_hint))
    for task in registry.names("tasks")
    for name, option in list_keyword_options(registry.load("tasks", task).score).items()
    if list_literal_choices(option.type_hint)
]


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


@pytest.mark.parametrize(("task", "name", "words"), WORDS)
@pytest.mark.parametrize("value", ["no such word", 3, ["all"]])
def test_a_word_that_an_option_does_not_take_is_refused(task, name, words, value):
    with pytest.raises(SpecError) as caught:
        score(task, TRUTH, GIVEN, **{name: value})
    problem = str(caught.value)
    assert name in problem
    assert value != "no such word" or caught.value.expected == "one of " + ", ".join(words)


def test_tasks_have_options_of_some_words():
    assert ("classification", "undetected", ("mistake", "leave-out", "both")) in WORDS
    assert ("detection", "matching", ("one-to-one", "best-overlap")) in WORDS


def test_nothing_is_no_word_of_a_shared_option():
    with pytest.raises(SpecError, match="matching is not known"):
        score("detection", TRUTH, GIVEN, matching=None)
