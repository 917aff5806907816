"""People whom the model did not find: a mistake, left out, or both (FairFace, Tables 6 and 8)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from isolux.core.errors import SpecError
from isolux.core.notes import split_cautions_from_notes
from isolux.stats.statistic import MEAN
from isolux.tasks.classification import score
from tests.tasks._people import answers, people, values

# found and right, found and wrong, missed with a guess, missed with none, found without answer
TRUTH = people(dict.fromkeys(["right", "wrong", "guess", "none", "mute"], "F") | {"m": "M"})
GIVEN = answers(
    {"right": "F", "wrong": "M", "guess": "F", "none": None, "mute": None, "m": "M"},
    detected={
        "right": True,
        "wrong": True,
        "guess": False,
        "none": False,
        "mute": True,
        "m": True,
    },
)


def test_undetected_people_are_mistakes_whatever_was_guessed():
    scores = score(TRUTH, GIVEN, target="job")
    expected = {"right": 1, "wrong": 0, "guess": 0, "none": 0, "mute": 0, "m": 1}
    assert values(scores, "accuracy") == expected
    assert values(scores, "recall", "F") == {u: v for u, v in expected.items() if u != "m"}
    assert values(scores, "accuracy_on_detected") == {}
    assert "2 of 6 units were not detected: counted as mistakes." in scores.notes
    told = "1 of 6 units were detected but not answered: counted as mistakes."
    assert told in scores.notes


def test_undetected_people_are_left_out_with_a_reason():
    scores = score(TRUTH, GIVEN, target="job", undetected="leave-out", positive="F", top_k=(1,))
    missed = {"guess": "not detected", "none": "not detected"}
    for metric in ("accuracy", "top_k_accuracy"):
        found = {"right": 1.0, "wrong": 0.0, "mute": 0.0, "m": 1.0}
        assert values(scores, metric) == found | missed
    found = {"right": 1.0, "wrong": 0.0, "mute": 0.0}
    assert values(scores, "true_positive_rate", "F") == found | missed
    assert "2 of 6 units were not detected: left out." in scores.notes


def test_both_policies_stand_side_by_side():
    scores = score(TRUTH, GIVEN, target="job", undetected="both")
    mistake = score(TRUTH, GIVEN, target="job")
    left_out = score(TRUTH, GIVEN, target="job", undetected="leave-out")
    for metric, label in (("accuracy", None), ("recall", "F"), ("recall", "M")):
        assert values(scores, metric, label) == values(mistake, metric, label)
        on_detected = values(scores, f"{metric}_on_detected", label)
        assert on_detected == values(left_out, metric, label)


def test_both_brings_the_partner_of_what_was_asked_for():
    scores = score(TRUTH, GIVEN, target="job", undetected="both", metrics=("recall",))
    assert [m.name for m in scores.info.metrics] == ["recall", "recall_on_detected"]


def test_a_metric_on_detected_people_can_be_asked_for_alone():
    scores = score(TRUTH, GIVEN, target="job", metrics=("accuracy_on_detected",))
    assert [m.name for m in scores.info.metrics] == ["accuracy_on_detected"]
    assert values(scores, "accuracy_on_detected")["guess"] == "not detected"


def test_detection_rate_is_measured_by_itself():
    scores = score(TRUTH, GIVEN, target="job")
    expected = {"right": 1, "wrong": 1, "guess": 0, "none": 0, "mute": 1, "m": 1}
    assert values(scores, "detection_rate") == expected


def test_an_empty_answer_means_not_detected_where_nothing_else_says_so():
    scores = score(
        people({"a": "x", "b": "x", "c": "x"}),
        answers({"a": "x", "b": None}),
        target="job",
        undetected="leave-out",
    )
    reasons = {"b": "not detected", "c": "no prediction"}
    assert values(scores, "accuracy") == {"a": 1.0} | reasons
    assert values(scores, "detection_rate") == {"a": 1.0, "b": 0.0, "c": "no prediction"}


def test_nobody_said_to_be_missed_means_no_detection_rate():
    scores = score(people({"a": "x"}), answers({"a": "x"}), target="job", undetected="both")
    assert [m.name for m in scores.info.metrics] == ["accuracy", "recall", "balanced_accuracy"]
    assert "Nothing says who was not detected, so both policies are one." in scores.notes


def test_everyone_said_to_be_found_has_a_detection_rate_of_one():
    given = answers({"a": "x"}, detected={"a": True})
    assert values(score(people({"a": "x"}), given, target="job"), "detection_rate") == {"a": 1.0}


def test_an_undetected_person_was_not_given_the_positive_class():
    # Neither a true nor a false positive: rates add up to one under the mistake policy.
    scores = score(TRUTH, GIVEN, target="job", positive="F")
    for unit in ("guess", "none"):
        assert values(scores, "selection_rate", "F")[unit] == 0.0
        assert values(scores, "true_positive_rate", "F")[unit] == 0.0
        assert values(scores, "false_negative_rate", "F")[unit] == 1.0
        assert unit not in values(scores, "precision", "F")
    missed_m = answers({"m": "F"}, detected={"m": False})
    scores = score(people({"m": "M", "f": "F"}), missed_m, target="job", positive="F")
    assert values(scores, "false_positive_rate", "F")["m"] == 0.0
    assert values(scores, "true_negative_rate", "F")["m"] == 1.0


def test_evidence_follows_the_policy():
    mistake = score(TRUTH, GIVEN, target="job").evidence["classification"]
    assert mistake["correct"].to_list() == [True, False, False, False, False, True]
    assert mistake["prediction"].to_list() == ["F", "M", None, None, None, "M"]
    left_out = score(TRUTH, GIVEN, target="job", undetected="leave-out").evidence["classification"]
    assert left_out["correct"].to_list() == [True, False, None, None, False, True]
    for evidence in (mistake, left_out):
        missed = evidence.filter(~pl.col("detected"))
        assert missed["unit_id"].to_list() == ["guess", "none"]
        assert set(missed["reason"]) == {"not detected"}


def test_an_undetected_person_has_no_score():
    given = answers(
        {"a": "F", "b": "M", "c": "F"},
        {"a": 0.9, "b": 0.8, "c": 0.99},
        detected={"a": True, "b": True, "c": False},
    )
    truth = people({"a": "F", "b": "M", "c": "M"})
    scores = score(truth, given, target="job", positive="F", score_of="answer")
    evidence = scores.evidence["classification"]
    assert evidence["positive_score"].round(3).to_list() == [0.9, 0.2, None]
    assert evidence["confidence"].to_list() == [0.9, 0.8, None]
    assert scores.info.metric("roc_auc").statistic(evidence, np.ones(3)) == 1.0
    told = "1 of 3 units were not detected: counted as mistakes; metrics of scores leave them out."
    assert told in scores.notes


PERSON = st.tuples(
    st.sampled_from(["F", "M", None]),  # truth
    st.sampled_from(["F", "M", None]),  # answer
    st.sampled_from([True, False, None]),  # found
    st.sampled_from(["g", "h"]),  # group
    st.booleans(),  # whether there is a prediction at all
)


@given(st.lists(PERSON, min_size=1, max_size=30))
def test_accuracy_is_accuracy_on_detected_times_detection_rate_in_every_group(rows):
    """FairFace Tables 6 and 8 obey this; it holds exactly because all three skip the same units."""
    truth = people({str(i): row[0] for i, row in enumerate(rows)})
    asked = {str(i): row for i, row in enumerate(rows) if row[4]}
    predictions = answers(
        {i: row[1] for i, row in asked.items()}, detected={i: row[2] for i, row in asked.items()}
    )
    # Answers none of which is true of anyone are refused (test_vocabulary).
    found = [row for row in asked.values() if row[0] and row[1] and row[2] is not False]
    assume(not found or {row[1] for row in found} & {row[0] for row in found})
    if predictions["detected"].is_null().all() and predictions["label"].is_not_null().all():
        with pytest.raises(SpecError, match="'accuracy_on_detected' cannot be measured"):
            score(truth, predictions, target="job", metrics=("accuracy_on_detected",))
        return
    scores = score(truth, predictions, target="job", undetected="both")
    for group in ("g", "h"):
        mean = {}
        for metric in ("accuracy", "accuracy_on_detected", "detection_rate"):
            units = scores.units.filter(pl.col("metric") == metric)
            weights = np.array([float(rows[int(u)][3] == group) for u in units["unit_id"]])
            mean[metric] = float(MEAN(units, weights))
        if mean["detection_rate"] == 0:
            assert mean["accuracy"] == 0
            assert np.isnan(mean["accuracy_on_detected"])
            continue
        product = mean["accuracy_on_detected"] * mean["detection_rate"]
        np.testing.assert_allclose(mean["accuracy"], product, atol=1e-12)


@pytest.mark.parametrize(("silent", "cautioned"), [(1, False), (2, True), (20, True)])
def test_people_without_an_answer_are_told_before_the_numbers(silent, cautioned):
    given = {f"p{i}": None if i < silent else "FM"[i % 2] for i in range(100)}
    truth = people({f"p{i}": "FM"[i % 2] for i in range(100)})
    cautions, notes = split_cautions_from_notes(score(truth, answers(given), target="job").notes)
    told = (cautions if cautioned else notes)[0]
    assert told.startswith(f"{silent} of 100 people have no answer of 'm'")
    assert "count as not detected, so as mistakes" in told
    assert "--undetected leave-out" in told
    assert not any("were not detected:" in note for note in notes)
    left_out = score(truth, answers(given), target="job", undetected="leave-out").notes
    assert split_cautions_from_notes(left_out)[0] == []
    assert left_out[0] == f"{silent} of 100 people have no answer of 'm' and are left out."


def test_nothing_is_guessed_about_people_whose_detection_is_told():
    assert not any("have no answer" in note for note in score(TRUTH, GIVEN, target="job").notes)
