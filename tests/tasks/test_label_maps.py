"""Merged classes (``label_map``), and models that know other labels (``prediction_map``)."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from isolux.core.errors import SpecError
from isolux.tasks.classification import score
from tests.tasks._people import answers, people, values


def test_merged_classes_merge_truth_and_answers():
    truth = people({"a": "East Asian", "b": "White", "c": "Asian"}, target="race")
    given = answers({"a": "Southeast Asian", "b": "East Asian", "c": "East Asian"})
    merge = {"Asian": ("East Asian", "Southeast Asian")}
    scores = score(truth, given, target="race", label_map=merge, positive="Asian")
    assert values(scores, "accuracy") == {"a": 1.0, "b": 0.0, "c": 1.0}
    assert values(scores, "recall", "Asian") == {"a": 1.0, "c": 1.0}
    assert values(scores, "recall", "White") == {"b": 0.0}
    assert values(scores, "selection_rate", "Asian") == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_merged_answers_are_one_answer():
    truth, given = people({"a": "White"}, target="race"), answers({"a": ("East", "South", "White")})
    merge = {"Asian": ("East", "South")}
    scores = score(truth, given, target="race", label_map=merge, top_k=(2,))
    assert values(scores, "top_k_accuracy") == {"a": 1.0}


@pytest.mark.parametrize("target", ["job", None])
def test_a_merge_of_a_class_that_is_not_there_is_refused(target):
    dataset = people({"a": "x"})
    dataset = replace(dataset, instances=dataset.instances.with_columns(classes=pl.lit(["x"])))
    merge = {"new": ("x", "q", "typo")}
    with pytest.raises(SpecError, match="neither true of anyone nor answered: 'typo'") as caught:
        score(dataset, answers({"a": "q"}), target=target, label_map=merge)
    assert "labels that occur: 'q', 'x'" in str(caught.value)


def test_a_single_old_class_need_not_be_a_list():
    scores = score(
        people({"a": "man"}), answers({"a": "Male"}), target="job", label_map={"Male": "man"}
    )
    assert values(scores, "accuracy") == {"a": 1.0}


FINDING = {"a": "1", "b": None, "c": "0", "d": "not sure", "e": None, "f": [None, "1"]}
"""A finding that is named, not mentioned (twice), denied, and doubtful; one annotator's of two."""
SAID = {"a": "1", "b": "0", "c": "0", "d": "1", "e": "1", "f": "1"}


@pytest.mark.parametrize("name", ["0", "0.0"])
def test_an_empty_truth_is_the_class_that_is_said_and_a_word_for_unknown_stays_unknown(name):
    truth, given = people(FINDING, target="finding"), answers(SAID)
    scores = score(truth, given, target="finding", positive="1", label_map={name: [""]})
    right = {"a": 1.0, "b": 1.0, "c": 1.0, "d": "unknown truth", "e": 0.0, "f": 1.0}
    assert values(scores, "accuracy") == right
    assert values(scores, "false_positive_rate", "1") == {"b": 0.0, "c": 0.0, "e": 1.0}
    assert scores.notes[0].startswith("The truth of 2 of 6 people is an empty cell, and counts")
    unknown = score(truth, given, target="finding", positive="1")
    assert values(unknown, "accuracy") == right | dict.fromkeys("be", "unknown truth")


def test_a_truth_that_names_the_finding_alone_has_negatives_from_its_empty_cells():
    truth = people({"a": "1", "b": None, "c": "1", "d": None}, target="finding")
    scored = pl.DataFrame(
        {"model": "m", "instance_id": list("abcd"), "score": [0.9, 0.2, 0.7, 0.8]}
    )
    found = score(truth, scored, target="finding", label_map={"0": ""}, threshold=0.5)
    assert values(found, "false_positive_rate", "1") == {"b": 0.0, "d": 1.0}
    assert "is an empty cell" in found.notes[0]
    named = score(truth, answers(dict.fromkeys("abcd", "1")), target="finding", positive="1",
                  label_map={"absent": [""]})  # fmt: skip
    assert values(named, "recall", "absent") == {"b": 0.0, "d": 0.0}


def test_a_class_of_empty_cells_that_nothing_else_has_is_a_spelling_mistake():
    truth = people({"a": "yes", "b": "no", "c": None}, target="finding")
    with pytest.raises(SpecError, match=r"empty cells the class 'No'(.|\n)*one of 'no', 'yes'"):
        score(truth, answers(dict.fromkeys("abc", "yes")), target="finding", label_map={"No": [""]})


MAP = {"tutu": "dancer", "ballet": "dancer", "guitar": "guitarist"}


def test_mapped_labels_take_the_highest_score_of_a_class():
    # a: guitar .5 is the best mapped label, though its rank is the last. b: dancer by ballet.
    scores = score(
        people({"a": "guitarist", "b": "dancer"}),
        answers(
            {"a": ("dog", "tutu", "guitar"), "b": ("guitar", "tutu", "ballet")},
            {"a": (0.9, 0.4, 0.5), "b": (0.3, 0.2, 0.4)},
        ),
        target="job",
        prediction_map=MAP,
    )
    assert values(scores, "accuracy") == {"a": 1.0, "b": 1.0}
    assert scores.evidence["classification"]["confidence"].to_list() == [0.5, 0.4]
    assert scores.notes[0] == (
        "1 answers with 1 labels that the prediction map does not name were dropped; 0 units had "
        "no other answer, which counts as a mistake."
    )
    assert "appendix A.5.3" in {r.location for r in scores.info.references}


def test_mapped_labels_without_scores_keep_their_rank():
    given = answers({"a": ("dog", "tutu", "guitar")})
    scores = score(people({"a": "dancer"}), given, target="job", prediction_map=MAP)
    assert values(scores, "accuracy") == {"a": 1.0}


@pytest.mark.parametrize("mapping", [MAP, {}])
def test_labels_outside_the_map_are_a_mistake_not_a_missed_person(mapping):
    scores = score(
        people({"a": "dancer"}),
        answers({"a": "dog"}),
        target="job",
        prediction_map=mapping,
        undetected="leave-out",
    )
    assert values(scores, "accuracy") == {"a": 0.0}
    assert "1 units had no other answer" in scores.notes[0]


def test_mapped_labels_are_merged_afterwards():
    scores = score(
        people({"a": "artist"}),
        answers({"a": "tutu"}),
        target="job",
        prediction_map=MAP,
        label_map={"artist": ("dancer", "guitarist")},
    )
    assert values(scores, "accuracy") == {"a": 1.0}
