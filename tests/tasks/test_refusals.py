"""What classification refuses, and the words it uses."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from isolux.core.errors import JoinError, SpecError, TableError, UnknownNameError
from isolux.core.tables import ATTRIBUTES, LABEL_PREDICTIONS
from isolux.tasks.classification import score
from tests.tasks._people import answers, people


def test_truth_of_a_household_is_not_what_is_judged():
    attributes = pl.DataFrame(
        {"unit_kind": "household", "unit_id": ["h"], "attribute": "job", "value": ["x"]}
    )
    dataset = replace(people({"a": "x"}), attributes=ATTRIBUTES.conform(attributes))
    with pytest.raises(SpecError, match="'job' does not describe what is judged") as caught:
        score(dataset, answers({"a": "x"}), target="job")
    assert caught.value.found == "an attribute of a household"


def test_a_class_in_two_merges_is_refused():
    with pytest.raises(SpecError, match="the class 'x' is merged into two classes") as caught:
        score(people({"a": "x"}), answers({}), target="job", label_map={"p": ["x"], "q": ["x"]})
    assert caught.value.found == "'p' and 'q'"


def test_predictions_for_nobody_are_refused():
    with pytest.raises(JoinError, match="no prediction is for a unit of the dataset") as caught:
        score(people({"a": "x", "b": "x"}), answers({"val/a": "x"}), target="job")
    assert caught.value.expected == "instance ids such as 'a', 'b'"
    assert caught.value.found == "'val/a'"


def test_two_answers_of_one_rank_are_refused_with_their_rows():
    given = answers({"a": ("x", "y"), "b": "x"}).with_columns(rank=pl.lit(1))
    with pytest.raises(
        TableError, match=r"two rows have the same model \+ instance_id \+ rank"
    ) as caught:
        score(people({"a": "x", "b": "x"}), given, target="job")
    assert "rows 1 and 2" in str(caught.value.found)


def test_a_score_that_is_no_number_is_refused_with_its_row():
    given = answers({"a": "x", "b": "x"}, {"a": 0.5, "b": float("nan")})
    with pytest.raises(TableError, match="predictions, row 2, column 'score'"):
        score(people({"a": "x", "b": "x"}), given, target="job")


def test_a_positive_class_that_is_never_true_is_refused():
    with pytest.raises(SpecError, match="the positive class 'male' is true of nobody") as caught:
        score(people({"a": "Male", "b": "Female"}), answers({}), target="job", positive="male")
    assert caught.value.expected == "one of Female, Male"


def test_no_truth_is_refused():
    with pytest.raises(SpecError, match="nothing says what the true class is") as caught:
        score(people({"a": "x"}), answers({"a": "x"}))
    assert str(caught.value.found).endswith("but attributes 'job'")
    assert "--target NAME" in str(caught.value.hint)


def test_a_target_that_is_not_there():
    with pytest.raises(UnknownNameError, match="there is no attribute named 'jbo'"):
        score(people({"a": "x"}), answers({"a": "x"}), target="jbo")


def test_a_metric_that_is_not_there():
    with pytest.raises(UnknownNameError, match="there is no metric named 'acuracy'"):
        score(people({"a": "x"}), answers({"a": "x"}), target="job", metrics=("acuracy",))


@pytest.mark.parametrize(
    ("metric", "lacks"),
    [
        ("precision", "positive, the class it is about"),
        ("roc_auc", "positive, the class it is about"),
        ("top_k_accuracy", "top_k, such as top_k=(5,)"),
        ("detection_rate", "a column `detected`, or empty answers, in the predictions"),
        ("recall_on_detected", "a column `detected`, or empty answers, in the predictions"),
        ("calibration_error", "a score for each answer; the predictions have none"),
    ],
)
def test_a_metric_asked_for_says_what_it_lacks(metric, lacks):
    with pytest.raises(SpecError, match=f"the metric '{metric}' cannot be measured") as caught:
        score(people({"a": "x"}), answers({"a": "x"}), target="job", metrics=(metric,))
    assert caught.value.expected == lacks


@pytest.mark.parametrize("k", [0, -1, 2.0, True])
def test_a_k_that_is_no_rank_is_refused(k):
    with pytest.raises(SpecError, match="top_k counts answers") as caught:
        score(people({"a": "x"}), answers({"a": "x"}), target="job", top_k=(k,))
    assert caught.value.found == repr(k)


def test_a_k_beyond_the_answers_is_refused():
    with pytest.raises(SpecError, match="top_k=5 needs as many ranked answers") as caught:
        score(people({"a": "x"}), answers({"a": ("x", "y")}), target="job", top_k=(1, 5))
    assert caught.value.found == "at most 2"


def test_a_missing_column_is_named():
    with pytest.raises(UnknownNameError, match="there is no column named 'rank'"):
        score(people({"a": "x"}), LABEL_PREDICTIONS.empty().drop("rank"), target="job")
