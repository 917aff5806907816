"""Scores: whose confidence they are, the ROC and the calibration that follow."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.tasks.classification import score
from isolux.tasks.classification.chance_agreement import caution_on_confidences
from tests.tasks._people import answers, people

TRUTH = people({"a": "yes", "b": "yes", "c": "no", "d": "no"}, target="t")
SAID = {"a": "yes", "b": "no", "c": "yes", "d": "no"}
OF_POSITIVE = {"a": 0.9, "b": 0.4, "c": 0.6, "d": 0.1}
OF_ANSWER = {"a": 0.9, "b": 0.6, "c": 0.6, "d": 0.9}  # the same model, read the other way


def run(scores, *, truth=TRUTH, said=SAID, **options):
    return score(truth, answers(said, scores), target="t", **({"positive": "yes"} | options))


def evaluate(scores, metric):
    info = scores.info.metric(metric)
    evidence = scores.evidence[info.evidence]
    return float(info.statistic(evidence, np.ones(evidence.height)))


def column(scores, name):
    found = scores.evidence["classification"][name].to_list()
    return [None if v is None else round(v, 12) for v in found]


def names(scores):
    return {m.name for m in scores.info.metrics}


@pytest.mark.parametrize(
    ("scores", "score_of"), [(OF_POSITIVE, None), (OF_POSITIVE, "positive"), (OF_ANSWER, "answer")]
)
def test_both_readings_of_one_model_agree(scores, score_of):
    found = run(scores, score_of=score_of)
    assert column(found, "positive_score") == [0.9, 0.4, 0.6, 0.1]
    assert column(found, "confidence") == [0.9, 0.6, 0.6, 0.9]
    # Positives .9, .4; negatives .6, .1: three of four pairs in order.
    assert evaluate(found, "roc_auc") == 0.75
    # .9 twice and right: |2 - 1.8|; .6 twice and wrong: |0 - 1.2|; over four.
    assert evaluate(found, "calibration_error") == pytest.approx((0.2 + 1.2) / 4, abs=1e-12)


def test_the_reading_is_noted():
    assert "Scores are read as the model's confidence in 'yes'." in run(OF_POSITIVE).notes
    told = run(OF_ANSWER, score_of="answer").notes
    assert "Scores are read as the model's confidence in the answer." in told


def test_scores_that_do_not_rise_with_the_answer_are_not_taken_for_the_positive_class():
    found = run(OF_ANSWER)
    assert not {"roc_auc", "calibration_error"} & names(found)
    told = [note for note in found.notes if "was not measured" in note]
    assert len(told) == 2
    assert "it does not rise with the answer 'yes'" in told[0]
    with pytest.raises(SpecError, match="'roc_auc' cannot be measured") as caught:
        run(OF_ANSWER, metrics=("roc_auc",))
    assert "say score_of='answer' or score_of='positive'" in str(caught.value.expected)


def test_said_aloud_the_reading_is_believed():
    found = run(OF_ANSWER, score_of="positive")
    assert column(found, "positive_score") == [0.9, 0.6, 0.6, 0.9]


def test_all_answers_alike_cannot_contradict_the_reading():
    found = run(OF_POSITIVE, said=dict.fromkeys(SAID, "no"))
    assert evaluate(found, "roc_auc") == 0.75


def test_without_a_positive_class_a_score_is_of_the_answer():
    found = run(OF_ANSWER, positive=None)
    assert names(found) == {"accuracy", "recall", "balanced_accuracy", "calibration_error"}
    assert column(found, "confidence") == [0.9, 0.6, 0.6, 0.9]
    assert column(found, "positive_score") == [None] * 4
    assert not [note for note in found.notes if "read as" in note]


def test_ranked_answers_carry_the_score_of_each_class():
    found = run(
        {"a": (0.5, 0.3), "b": (0.6, 0.2), "c": (0.7, 0.1), "d": (0.4, 0.35)},
        said={"a": ("yes", "no"), "b": ("no", "yes"), "c": ("other", "yes"), "d": ("no", "yes")},
    )
    assert column(found, "positive_score") == [0.5, 0.2, 0.1, 0.35]
    assert column(found, "confidence") == [0.5, 0.6, 0.7, 0.4]
    assert evaluate(found, "roc_auc") == 0.75  # .5 beats both, .2 beats .1 alone


def test_merged_classes_score_as_their_first_member():
    found = run(
        {"a": (0.5, 0.3, 0.2), "b": (0.4, 0.35, 0.25), "c": (0.9, 0.06, 0.04), "d": (0.8, 0.2, 0)},
        said={
            "a": ("maybe", "no", "yes"),
            "b": ("no", "yes", "maybe"),
            "c": ("no", "yes", "maybe"),
            "d": ("no", "maybe", "yes"),
        },
        label_map={"yes": ("maybe",)},
    )  # fmt: skip
    assert column(found, "positive_score") == [0.5, 0.35, 0.06, 0.2]


def test_a_short_list_without_the_positive_class_is_no_score():
    said = {"a": ("yes", "no"), "b": ("no", "other"), "c": ("no", "other"), "d": ("no", "yes")}
    scores = dict.fromkeys(said, (0.6, 0.3))
    found = run(scores, said=said)
    assert "roc_auc" not in names(found)
    with pytest.raises(SpecError, match="'roc_auc' cannot be measured") as caught:
        run(scores, said=said, metrics=("roc_auc",))
    expected = "the score of 'yes' for every unit; 2 of 4 have only those of other classes"
    assert caught.value.expected == expected


def test_one_score_of_three_classes_says_nothing_of_the_others():
    said = SAID | {"d": "other"}
    with pytest.raises(SpecError, match="'roc_auc' cannot be measured") as caught:
        run(OF_ANSWER, said=said, score_of="answer", metrics=("roc_auc",))
    assert "2 of 4 have only those of other classes" in str(caught.value.expected)
    with pytest.raises(SpecError, match="'calibration_error' cannot be measured") as caught:
        run(OF_POSITIVE, said=said, metrics=("calibration_error",))
    told = "the confidence in every answer; the scores are of 'yes' alone"
    assert caught.value.expected == told
    found = run(OF_POSITIVE, said=said)
    assert evaluate(found, "roc_auc") == 0.75
    assert column(found, "confidence") == [0.9, None, 0.6, None]


def test_a_missing_score_leaves_its_unit_out_and_is_counted():
    found = run(OF_POSITIVE | {"b": None})
    assert column(found, "positive_score") == [0.9, None, 0.6, 0.1]
    assert evaluate(found, "roc_auc") == 1.0
    assert found.evidence["classification"]["reason"].to_list() == [None, "no score", None, None]
    told = "1 of 4 units have an answer without a score; metrics of scores leave them out."
    assert told in found.notes


def test_scores_that_are_no_confidences_rank_but_do_not_calibrate():
    logits = {"a": 4.0, "b": -1.0, "c": 2.0, "d": -3.0}
    found = run(logits)
    assert evaluate(found, "roc_auc") == 0.75
    assert "calibration_error" not in names(found)
    with pytest.raises(SpecError, match="'calibration_error' cannot be measured") as caught:
        run(logits, metrics=("calibration_error",))
    assert caught.value.expected == "confidences from 0 to 1; the scores run from -3 to 4"


def test_percentages_are_not_turned_round_into_negative_confidences():
    percent = {unit: 100 * value for unit, value in OF_ANSWER.items()}
    with pytest.raises(SpecError, match="'roc_auc' cannot be measured") as caught:
        run(percent, score_of="answer", metrics=("roc_auc",))
    assert caught.value.expected == "confidences from 0 to 1; the scores run from 60 to 90"


def test_a_confidence_just_above_one_is_rounding():
    assert "calibration_error" in names(run(OF_POSITIVE | {"a": 1.0000001}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score_of": "positive", "positive": None}, "score_of='positive' needs positive"),
        (
            {"score_of": "positive", "said": SAID | {"a": ("yes", "no")}},
            "score_of='positive' needs one answer for each unit",
        ),
    ],
)
def test_a_reading_that_cannot_be_is_refused(options, message):
    with pytest.raises(SpecError, match=message):
        run(OF_POSITIVE, **options)


def test_scores_of_the_other_class_are_told_first():
    truth = {str(i): "ab"[i % 2] for i in range(40)}
    given = answers(truth, {k: 0.1 if v == "a" else 0.9 for k, v in truth.items()})
    scores = score(people(truth), given, target="job", positive="a", score_of="positive")
    (told,) = [note for note in scores.notes if isinstance(note, Caution)]
    assert told.startswith("The scores fall where the answer is 'a' (area under the curve 0.00)")


def test_right_and_wrong_in_turn_are_no_confidences_of_other_rows():
    # Surer where it is wrong: of the next row, which is right, the confidence would be perfect.
    right = [True, False] * 200
    noise = np.random.default_rng(5).random(400)
    sure = pl.Series(np.where(right, 0.5, 0.8) + noise / 10)
    (told,) = caution_on_confidences(pl.DataFrame({"model": "m", "correct": right}), sure)
    assert "is no more confident when it is right" in told
